#!/usr/bin/env bash
# Guess: in a table of the event IDs that were seen, `id STRING PRIMARY KEY` (or UUID) keeps them as they
#   are: what SQLite does not know as a type is text, and what is inserted is a string.
# Software: SQLite 3.40, of Python 3.11's sqlite3 (needs Python 3.11 on Debian 12).
# Seen: a type that has none of CHAR, TEXT, CLOB, BLOB or INT in its name makes the column numeric, and a
#   string that looks like a number becomes one: "007" is "7", "1e3" is "1000", 21 digits are rounded to
#   16, and "12e45678" and "98e76543" are both infinite, so the second is a duplicate of the first. With
#   TEXT or VARCHAR(40) all are new.
# Why it matters: short hexadecimal IDs whose one letter is an e, long decimal ones and those with
#   zeros in front are taken for events that were seen, and are lost; all others work, so tests do.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
python3 -c 'import sqlite3, sys; sys.exit(not sqlite3.sqlite_version.startswith("3.40."))' || exit 2
cat > main.py <<'PY'
import sqlite3, sys

PAIRS = [("evt_1", "evt_2"), ("12e45678", "98e76543"), ("007", "7"), ("1e3", "1000"),
         ("123456789012345678901", "123456789012345678902")]
same = True
for column, lost in (("STRING", PAIRS[1:]), ("UUID", PAIRS[1:]), ("TEXT", []), ("VARCHAR(40)", [])):
    seen = sqlite3.connect(":memory:")
    seen.execute(f"CREATE TABLE seen (id {column} PRIMARY KEY)")
    duplicates = []
    for first, second in PAIRS:
        seen.execute("INSERT INTO seen VALUES (?)", (first,))
        if seen.execute("INSERT OR IGNORE INTO seen VALUES (?)", (second,)).rowcount == 0:
            duplicates.append((first, second))
    told = ", ".join(f"{b} is {a}" for a, b in duplicates) or "all are new"
    print(f"SQLite {sqlite3.sqlite_version}, id {column}: {told}")
    same = same and duplicates == lost
sys.exit(not same)
PY
timeout 50 python3 main.py
