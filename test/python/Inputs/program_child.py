"""Runs the checks or the tests of one program of others: program_child.py WHO NAME SITE VALUES RESULTS.

WHO is kjit, with kjit in numba's place, or numba. NAME is a file of the folder programs. SITE is the folder of the installed packages.
VALUES is the folder for what the checks return, which one file of pickle a check takes. RESULTS has lines as suites.py says."""
import importlib.util
import json
import os
import pickle
import sys
import time
import traceback
import warnings

WHO, NAME, SITE, VALUES, RESULTS = sys.argv[1:6]
HERE = os.path.dirname(os.path.abspath(__file__))


def first_line(error):
    return f"{type(error).__name__}: {' '.join(str(error).replace(SITE + os.sep, '').split())}"[:300]


def checks_of(name):
    spec = importlib.util.spec_from_file_location(name, os.path.join(HERE, "programs", name + ".py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class File:
    def __init__(self, path):
        self.done = {json.loads(line)[0] for line in open(path)}
        self.file = open(path, "a")

    def write(self, *row):
        self.file.write(json.dumps(row) + "\n")
        self.file.flush()


def run_check(file, name, check):
    if name in file.done:
        return
    file.write(name, "began", "")
    start = time.time()
    try:
        value = check()
        with open(os.path.join(VALUES, name + ".pickle"), "wb") as out:
            pickle.dump(value, out)
        outcome = "pass", ""
    except BaseException as error:
        if os.environ.get("NUMBA_SUITE_TRACE"):
            traceback.print_exc()
        outcome = "fail", first_line(error)
    file.write(name, *outcome, round(time.time() - start, 2))


class Reporter:
    """A plugin of pytest: the results of a function with all its parameters are those of one test."""

    def __init__(self, file):
        self.file, self.now, self.outcomes, self.first, self.done = file, None, [], "", set()

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
            if test in self.done:  # parameters of a fixture sort tests otherwise
                test += "'"
            self.now, self.outcomes, self.first = test, [], ""
            self.file.write(test, "began", "")

    def pytest_runtest_makereport(self, item, call):
        if call.excinfo is not None and not call.excinfo.errisinstance(sys.modules["pytest"].skip.Exception):
            if os.environ.get("NUMBA_SUITE_TRACE"):
                traceback.print_exception(*call.excinfo._excinfo)
            self.first = self.first or first_line(call.excinfo.value)
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


def main():
    sys.path.insert(0, SITE)
    warnings.simplefilter("ignore")
    file = File(RESULTS)
    if WHO == "kjit":
        import numba_place
        numba_place.take()
    try:
        module = checks_of(NAME)
    except BaseException as error:
        if os.environ.get("NUMBA_SUITE_TRACE"):
            traceback.print_exc()
        file.write("*", "fail", "import: " + first_line(error))
        return
    for name, check in list(vars(module).items()):
        if name.startswith("check_"):
            run_check(file, name, check)
    if WHO == "kjit" and getattr(module, "TESTS", None):
        import pytest
        reporter = Reporter(file)
        where = [os.path.join(SITE, *t.split("/")) for t in module.TESTS]
        pytest.main(["-q", "-p", "no:cacheprovider", "--continue-on-collection-errors", "--rootdir", SITE, *getattr(module, "OPTIONS", []), *where], plugins=[reporter])
        reporter.flush()
    sys.stdout.flush()


if __name__ == "__main__":
    main()
