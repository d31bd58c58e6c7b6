"""Runs the tests of one file of numba-cuda, and writes a line for each event to a file: [test, "began", ""] and
[test, outcome, reason, seconds, processor seconds, processor seconds in launches], as JSON. The test "*" stands for all tests of a file that cannot be imported."""
import importlib
import json
import os
import resource
import sys
import time
import traceback
import types
import unittest

# The stand-in skips tests whose reason begins with this text. Other skipped tests skip themselves.
LEFT_OUT = "left out: "


def processor_seconds():
    """Returns the processor time of all threads in this process and of its ended children."""
    return time.process_time() + sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])


launches = types.SimpleNamespace(seconds=0.0, is_inside=False)  # processor time of a simulator's launches


def time_launches(kind):
    """Adds the processor time of kind.__call__ to launches.seconds. A call inside another call counts once."""
    call = kind.__call__

    def timed(self, *arguments, **keywords):
        if launches.is_inside:
            return call(self, *arguments, **keywords)
        launches.is_inside, start = True, time.process_time()
        try:
            return call(self, *arguments, **keywords)
        finally:
            launches.seconds += time.process_time() - start
            launches.is_inside = False

    kind.__call__ = timed


class Result(unittest.TestResult):
    """folder: the tests' folder, which is removed from reasons."""

    def __init__(self, file, folder):
        super().__init__()
        self.file, self.folder, self.worst = file, folder, None

    def write(self, *event):
        self.file.write(json.dumps(event) + "\n")
        self.file.flush()

    def first_line(self, error):
        text = " ".join(str(error).replace(self.folder + os.sep, "").split())
        return f"{type(error).__name__}: {text}"[:160]

    def startTest(self, test):
        super().startTest(test)
        self.write(name_of(test), "began", "")
        self.worst, self.start, self.processor_start = None, time.perf_counter(), processor_seconds()
        launches.seconds = 0.0

    def stopTest(self, test):
        seconds, processor = time.perf_counter() - self.start, processor_seconds() - self.processor_start
        outcome, reason = self.worst or ("pass", "")
        self.write(name_of(test), outcome, reason, round(seconds, 5), round(processor, 5), round(launches.seconds, 5))

    def addError(self, test, error):
        if os.environ.get("NUMBA_SUITE_TRACE"):
            traceback.print_exception(*error)
        self.worst = "fail", self.first_line(error[1])

    addFailure = addError

    def addSubTest(self, test, subtest, error):
        if error is not None and self.worst is None:
            self.addError(test, error)

    def addSkip(self, test, reason):
        self.worst = ("omit", reason[len(LEFT_OUT):]) if reason.startswith(LEFT_OUT) else ("skip", reason)

    def addExpectedFailure(self, test, error):
        self.worst = "xfail", self.first_line(error[1])

    def addUnexpectedSuccess(self, test):
        self.worst = "xpass", "Numba does not do this"


def name_of(test):
    return f"{type(test).__name__}.{test._testMethodName}"


def tests_of(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from tests_of(item)
        else:
            yield item


def run_file(folder, path, results):
    """Runs the tests of numba.cuda.tests that the file has, except those that the results already have."""
    wanted = os.environ.get("NUMBA_SUITE_TEST")
    package, _, last = os.path.splitext(os.path.relpath(path, folder))[0].replace(os.sep, ".").rpartition(".")
    with open(results, "a") as file:
        done = {json.loads(line)[0] for line in open(results)}
        result = Result(file, folder)
        try:
            module = importlib.import_module(f"numba.cuda.tests.{package}.{last}")
            suite = unittest.defaultTestLoader.loadTestsFromModule(module)
        except BaseException as error:
            if os.environ.get("NUMBA_SUITE_TRACE"):
                traceback.print_exc()
            outcome = "skip" if isinstance(error, unittest.SkipTest) else "fail"
            result.write("*", outcome, "import: " + result.first_line(error))
            return
        prepared = set()
        for test in tests_of(suite):
            if type(test) not in prepared:
                prepared.add(type(test))
                type(test).setUpClass()
            if name_of(test) not in done and (not wanted or wanted in name_of(test)):
                test.run(result)
    sys.stdout.flush()
