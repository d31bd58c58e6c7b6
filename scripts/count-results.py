"""count-results.py FILE: passed, failed and skipped tests of lit's --output file."""
import json
import sys

codes = [test["code"] for test in json.load(open(sys.argv[1]))["tests"]]
passed = sum(code in ("PASS", "XFAIL", "FLAKYPASS") for code in codes)
skipped = sum(code in ("UNSUPPORTED", "SKIPPED") for code in codes)
if not codes:
    sys.exit("no tests found")
print(passed, len(codes) - passed - skipped, skipped) # every other result of lit is a failure
