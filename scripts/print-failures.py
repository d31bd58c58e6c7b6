"""print-failures.py FILE...: prints the end of the output of each failed test from lit's --output files. If only the end of a log
is kept, it then contains the reasons."""
import json
import pathlib
import sys

LINES = 30

for name in sys.argv[1:]:
    path = pathlib.Path(name)
    if not path.exists():
        continue
    for test in json.loads(path.read_text())["tests"]:
        if test["code"] in ("PASS", "XFAIL", "FLAKYPASS", "UNSUPPORTED", "SKIPPED"):
            continue
        lines = test.get("output", "").rstrip().splitlines()
        print(f"---- {test['code']} {test['name']} ({path.parent.parent.name})")
        print("\n".join(lines[-LINES:]))
