"""print-slowest.py FILE...: prints the tests that took longest, with their seconds, from lit's --output files. The log of a run then shows where its time went."""
import json
import pathlib
import sys

SHOWN = 12  # number of tests that are printed for each build

for name in sys.argv[1:]:
    path = pathlib.Path(name)
    if not path.exists():
        continue
    tests = json.loads(path.read_text())["tests"]
    times = sorted(((test.get("elapsed") or 0, test["name"]) for test in tests), reverse=True)
    print(f"{path.parent.parent.name}: {sum(seconds for seconds, _ in times):.0f} s in {len(times)} tests; the longest:")
    print("\n".join(f"{seconds:8.1f} s  {test}" for seconds, test in times[:SHOWN]))
