"""Runs the checks or the tests of one program of others: program_child.py WHO NAME SITE VALUES RESULTS.

WHO is kjit, with kjit in numba's place, or numba. NAME is a file of the folder programs. SITE is the folder of the installed packages.
VALUES is the folder for what the checks return, which one file of pickle a check takes. RESULTS has lines as suites.py says."""
import importlib.util
import os
import pickle
import sys
import time
import traceback
import warnings

import pytest_results

WHO, NAME, SITE, VALUES, RESULTS = sys.argv[1:6]
HERE = os.path.dirname(os.path.abspath(__file__))


def checks_of(name):
    spec = importlib.util.spec_from_file_location(name, os.path.join(HERE, "programs", name + ".py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
        outcome = "fail", pytest_results.first_line(error, SITE)
    file.write(name, *outcome, round(time.time() - start, 2))


def main():
    sys.path.insert(0, SITE)
    warnings.simplefilter("ignore")
    file = pytest_results.File(RESULTS)
    if WHO == "kjit":
        import numba_place
        numba_place.take()
    try:
        module = checks_of(NAME)
    except BaseException as error:
        if os.environ.get("NUMBA_SUITE_TRACE"):
            traceback.print_exc()
        file.write("*", "fail", "import: " + pytest_results.first_line(error, SITE))
        return
    for name, check in list(vars(module).items()):
        if name.startswith("check_"):
            run_check(file, name, check)
    if WHO == "kjit" and getattr(module, "TESTS", None):
        import pytest
        reporter = pytest_results.Reporter(file, SITE)
        where = [os.path.join(SITE, *t.split("/")) for t in module.TESTS]
        pytest.main(["-q", "-p", "no:cacheprovider", "--continue-on-collection-errors", "--rootdir", SITE, *getattr(module, "OPTIONS", []), *where], plugins=[reporter])
        reporter.flush()
    sys.stdout.flush()


if __name__ == "__main__":
    main()
