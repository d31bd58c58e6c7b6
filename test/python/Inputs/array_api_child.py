"""Runs one file of data-apis/array-api-tests by pytest and writes what comes out of each test, as suites.py reads it:

    array_api_child.py SUITE FILE EXAMPLES RESULTS

EXAMPLES is the number of examples that Hypothesis tries for each test. They are the same ones in each run."""
import json
import os
import sys

import pytest


class Recorder:
    """Writes one line for each event, and leaves out the tests that an earlier child has run."""

    def __init__(self, path):
        self.path = path
        self.done = {json.loads(line)[0] for line in open(path)} if os.path.exists(path) else set()

    def write(self, *event):
        with open(self.path, "a") as file:
            file.write(json.dumps(event) + "\n")

    def pytest_collection_modifyitems(self, items):
        items[:] = [item for item in items if name_of(item.nodeid) not in self.done]

    def pytest_collectreport(self, report):
        if report.failed:
            self.write("*", "fail", reason_of(report.longrepr))

    def pytest_runtest_logstart(self, nodeid, location):
        self.write(name_of(nodeid), "began", "")

    def pytest_runtest_logreport(self, report):
        if report.when != "call" and report.passed:
            return
        outcome = {"passed": "pass", "failed": "fail", "skipped": "skip"}[report.outcome]
        text = "" if outcome == "pass" else reason_of(report.longrepr)
        self.write(name_of(report.nodeid), outcome, text, round(report.duration, 2))


def name_of(nodeid):
    """Returns the test's name without the file, as one word."""
    return nodeid.split("::", 1)[-1].replace(" ", "_")


def reason_of(longrepr):
    """Returns the exception's message, or the reason that the skipped test gives."""
    if isinstance(longrepr, tuple):
        return str(longrepr[2]).removeprefix("Skipped: ")
    crash = getattr(longrepr, "reprcrash", None)
    text = crash.message if crash else str(longrepr)
    return text.strip().splitlines()[0] if text.strip() else ""


def main(suite, file, examples, results):
    os.chdir(suite)
    sys.path.insert(0, suite)
    recorder = Recorder(results)
    try:
        import array_api_tests  # noqa: F401
    except Exception as error:
        recorder.write("*", "fail", f"{type(error).__name__}: {error}")
        return 0
    command = [os.path.join("array_api_tests", file), "-q", "-p", "no:cacheprovider", "--max-examples", examples,
               "--disable-deadline", "--hypothesis-derandomize"]
    # The results contain the outcome of failing tests. pytest's own failures have a status above 1.
    return max(int(pytest.main(command, plugins=[recorder])) - 1, 0) % 4


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
