"""What comes out of tests that pytest runs, written to a file with lines as suites.py says."""
import json
import os
import sys
import traceback


def first_line(error, site):
    """Returns the type and the message of an error. The message does not contain the path of the folder site."""
    return f"{type(error).__name__}: {' '.join(str(error).replace(site + os.sep, '').split())}"[:300]


class File:
    def __init__(self, path):
        self.done = {json.loads(line)[0] for line in open(path)}
        self.file = open(path, "a")

    def write(self, *row):
        self.file.write(json.dumps(row) + "\n")
        self.file.flush()


class Reporter:
    """A pytest plugin that combines the results of a function with all its parameters into the result of one test."""

    def __init__(self, file, site):
        self.file, self.site = file, site
        self.now, self.outcomes, self.first, self.done = None, [], "", set()

    def flush(self):
        if self.now is None:
            return
        bad = self.outcomes.count("fail")
        if bad:
            all_of = "" if bad == len(self.outcomes) else f"{bad} of {len(self.outcomes)}: "
            self.file.write(self.now, "fail", all_of + self.first)
        else:
            self.file.write(self.now, "pass" if "pass" in self.outcomes else "skip", "" if "pass" in self.outcomes else self.first)
        self.done.add(self.now)
        self.now = None

    def pytest_collection_modifyitems(self, items):
        items[:] = [i for i in items if self.test_of(i.nodeid) not in self.file.done]

    @staticmethod
    def test_of(node):
        return os.path.basename(node.split("::")[0]) + "::" + "::".join(node.split("::")[1:]).split("[")[0]

    def pytest_runtest_logstart(self, nodeid, location):
        test = self.test_of(nodeid)
        if test != self.now:
            self.flush()
            if test in self.done:  # the parameters of a fixture change the order of tests
                test += "'"
            self.now, self.outcomes, self.first = test, [], ""
            self.file.write(test, "began", "")

    def pytest_runtest_makereport(self, item, call):
        if call.excinfo is not None and not call.excinfo.errisinstance(sys.modules["pytest"].skip.Exception):
            if os.environ.get("NUMBA_SUITE_TRACE"):
                traceback.print_exception(*call.excinfo._excinfo)
            self.first = self.first or first_line(call.excinfo.value, self.site)
            self.outcomes.append("fail")
        elif call.excinfo is not None:
            self.first = self.first or str(call.excinfo.value)
            self.outcomes.append("skip")
        elif call.when == "call":
            self.outcomes.append("pass")

    def pytest_collectreport(self, report):
        if report.failed:
            if os.environ.get("NUMBA_SUITE_TRACE"):
                print(report.longreprtext)
            self.file.write(os.path.basename(report.nodeid) + "::*", "fail", "import: " + report.longreprtext.strip().splitlines()[-1][:200])
