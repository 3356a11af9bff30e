#!/usr/bin/env bash
# Guess: INSERT OR IGNORE into the table of the event IDs that were seen ignores duplicates, as ON CONFLICT DO
#   NOTHING does; an event that breaks another rule of the table is an error.
# Software: SQLite 3.40, of Python 3.11's sqlite3 (needs Python 3.11 on Debian 12).
# Seen: OR IGNORE drops whatever breaks NOT NULL or CHECK as well, and rowcount is 0, as for a repeat. ON
#   CONFLICT DO NOTHING raises IntegrityError. With either, a NULL ID is new each time, although the
#   column is the primary key.
# Why it matters: an event of a kind that the table does not know is answered as one that was seen, and lost;
#   one without an ID runs at each delivery.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat > main.py <<'PY'
import sqlite3
import sys

store = sqlite3.connect(":memory:")
store.execute("CREATE TABLE seen (id TEXT PRIMARY KEY, kind TEXT NOT NULL, cents INTEGER CHECK (cents > 0))")
ways = {"INSERT OR IGNORE": "INSERT OR IGNORE INTO seen VALUES (?, ?, ?)",
        "ON CONFLICT DO NOTHING": "INSERT INTO seen VALUES (?, ?, ?) ON CONFLICT DO NOTHING"}
events = [("evt_1", "paid", 100), ("evt_1", "paid", 100), ("evt_2", None, 100), ("evt_3", "refund", -100),
          (None, "paid", 100), (None, "paid", 100)]
seen = {}
for way, statement in ways.items():
    seen[way] = []
    for event in events:
        try:
            seen[way].append("new" if store.execute(statement, event).rowcount else "repeat")
        except sqlite3.IntegrityError:
            seen[way].append("error")
    store.execute("DELETE FROM seen")
    print(f"SQLite {sqlite3.sqlite_version}: {way}: an event, again, without a kind, below 0, without an ID, again: {seen[way]}")
same = seen == {"INSERT OR IGNORE": ["new", "repeat", "repeat", "repeat", "new", "new"],
                "ON CONFLICT DO NOTHING": ["new", "repeat", "error", "error", "new", "new"]}
sys.exit(0 if same else 1)
PY
timeout 50 /usr/bin/python3 main.py
