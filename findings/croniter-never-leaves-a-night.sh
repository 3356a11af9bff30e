#!/usr/bin/env bash
# Guess: each get_next of croniter is later than the one before, and the same whichever library the time zone
#   comes from: "30 2 * * *" has one run a day, moved or left out in the night in which there is no 02:30.
# Software: Debian packages python3-croniter 1.3.5-3, python3-dateutil 2.8.2-2, python3-tz 2022.7.1-4 (needs
#   Debian 12 and its Python, whose zoneinfo is the third).
# Seen: with dateutil, which croniter brings along, the night of March never ends: each next run is the same
#   past moment again. With pytz that night has three runs within two hours. With zoneinfo it has one, and
#   in the night of October "*/30 * * * *" leaves out two runs, and the daily one is an hour late a day
#   after it.
# Why it matters: a scheduler that sleeps until the next run starts the job over and over, or twice, in one
#   night a year. Tests, which use UTC or another month, pass.
set -euo pipefail
dir=$(mktemp -d); chmod 755 "$dir"; trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download python3-croniter=1.3.5-3 python3-dateutil=2.8.2-2 python3-tz=2022.7.1-4 python3-natsort python3-six \
  >log 2>&1 || { cat log; exit 2; }
for package in *.deb; do dpkg -x "$package" .; done
cat > main.py <<'PY'
import sys
from datetime import datetime, timezone
from zoneinfo import ZoneInfo

import pytz
from croniter import croniter
from dateutil import tz

ZONES = {
    "zoneinfo": lambda *at: datetime(*at, tzinfo=ZoneInfo("Europe/Berlin")),
    "dateutil": lambda *at: datetime(*at, tzinfo=tz.gettz("Europe/Berlin")),
    "pytz": lambda *at: pytz.timezone("Europe/Berlin").localize(datetime(*at)),
}
WANT = {  # in UTC: the clock goes from 02:00 to 03:00 on 29 March, and back on 25 October, both at 01:00 UTC
    ("30 2 * * *", (2026, 3, 28, 12)): {
        "zoneinfo": "29T01:30 30T00:30 31T00:30 01T00:30",
        "dateutil": "29T00:30 29T00:30 29T00:30 29T00:30",
        "pytz": "29T00:30 29T01:30 29T23:30 30T00:30",
    },
    ("30 2 * * *", (2026, 10, 24, 12)): {
        "zoneinfo": "25T00:30 26T02:30 27T01:30 28T01:30",
        "dateutil": "25T00:30 26T02:30 27T01:30 28T01:30",
        "pytz": "25T00:30 26T01:30 27T01:30 28T01:30",
    },
    ("*/30 * * * *", (2026, 10, 25, 1, 50)): {
        "zoneinfo": "25T00:00 25T00:30 25T02:00 25T02:30",
        "dateutil": "25T00:00 25T00:30 25T02:00 25T02:30",
        "pytz": "25T00:00 25T00:30 25T01:00 25T01:30",
    },
}
same = True
for (expression, start), wants in WANT.items():
    for library, zone in ZONES.items():
        runs = croniter(expression, zone(*start))
        got = " ".join(runs.get_next(datetime).astimezone(timezone.utc).strftime("%dT%H:%M") for _ in range(4))
        print(f"croniter 1.3.5, {library}, Berlin, {expression} from {start}: {got}")
        same = same and got == wants[library]
sys.exit(0 if same else 1)
PY
PYTHONPATH=usr/lib/python3/dist-packages timeout 50 /usr/bin/python3 main.py
