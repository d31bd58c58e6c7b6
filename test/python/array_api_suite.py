# RUN: %kjit-python %s --suite %builddir/array-api-suite --only has_names,constants,inspection_functions --examples 5
"""The Python array API standard's own tests, data-apis/array-api-tests, run on kjit.numpy:

    python3 test/python/array_api_suite.py --fetch build/array-api-suite      # clones the suite at the pinned commit
    python3 test/python/array_api_suite.py --suite build/array-api-suite      # all tests, against array_api_suite.txt
    python3 test/python/array_api_suite.py --suite ... --update               # writes what came out to array_api_suite.txt
    python3 test/python/array_api_suite.py --suite ... --causes               # the reasons of the failures
    python3 test/python/array_api_suite.py --suite ... --only sorting_functions    # some files, with what fails
    python3 test/python/array_api_suite.py --suite ... --module numpy         # the same tests on another library

array_api_suite.txt has the expected outcome of each test, and a reason if it does not pass:

    pass    the test passes
    fail    the test fails
    skip    the test skips itself

The tests need the packages pytest, hypothesis and ndindex; numpy is theirs, too. The device is that of KJIT_DEVICE, the CPU
unless it is set. Without the suite or a package nothing runs, and the script says so."""
import argparse
import concurrent.futures
import importlib.util
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "Inputs"))
import suites  # noqa: E402

ADDRESS = "https://github.com/data-apis/array-api-tests"
COMMIT = "55fcc60"
VERSION = "2024.12"  # of the standard
PACKAGES = ("pytest", "hypothesis", "ndindex", "pytest_jsonreport")
EXPECTED = os.path.join(HERE, "Inputs", "array_api_suite.txt")
CHILD = os.path.join(HERE, "Inputs", "array_api_child.py")
SECONDS = 1200  # for a file
# Tests that fail on a GPU, by file, and the reasons.
FAILING_ON_GPU = {"test_dlpack.py": {"test_dunder_dlpack": "asks for the memory of a GPU on the CPU without a copy, which the standard refuses"}}
EXTENSIONS = ("test_linalg.py", "test_fft.py")


def fetch(folder, address):
    """Clones the suite and the text of the standard, from which its tests are made. Raises if git cannot."""
    if not os.path.isdir(os.path.join(folder, ".git")):
        subprocess.run(["git", "clone", "--quiet", address, folder], check=True)
    subprocess.run(["git", "-C", folder, "checkout", "--quiet", COMMIT], check=True)
    subprocess.run(["git", "-C", folder, "submodule", "--quiet", "update", "--init"], check=True)


def missing(folder):
    """Returns which requirement is missing, or None if the tests can run."""
    if not os.path.isdir(os.path.join(folder, "array-api", "spec")):
        return f"{folder} does not have the suite: --fetch {folder} clones it"
    found = subprocess.run(["git", "-C", folder, "rev-parse", "HEAD"], stdout=subprocess.PIPE, text=True).stdout
    if not found.startswith(COMMIT):
        return f"{folder} has commit {found[:7] or 'unknown'} of the suite, and the expected outcomes are of {COMMIT}"
    absent = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    return f"Python has no package {' and '.join(absent)}" if absent else None


def files_of(folder, only):
    names = sorted(n for n in os.listdir(os.path.join(folder, "array_api_tests")) if re.fullmatch(r"test_\w+\.py", n))
    if not only:
        return names
    wanted = {f"test_{name.removeprefix('test_').removesuffix('.py')}.py" for name in only.split(",")}
    unknown = sorted(wanted - set(names))
    if unknown:
        raise SystemExit(f"the suite has no file {unknown[0]}")
    return [n for n in names if n in wanted]


def run_file(folder, name, options):
    environment = {"ARRAY_API_TESTS_MODULE": options.module, "ARRAY_API_TESTS_VERSION": VERSION}
    return suites.run([sys.executable, CHILD, os.path.abspath(folder), name, str(options.examples)], SECONDS, environment=environment)


def count_parts(found):
    """Prints the outcomes for the core and for the extensions."""
    suites.count("the core: ", {n: rows for n, rows in found.items() if n not in EXTENSIONS})
    for name in EXTENSIONS:
        if name in found:
            suites.count(f"{name}: ", {name: found[name]})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", help="the folder of the suite")
    parser.add_argument("--fetch", metavar="FOLDER", help="clone the suite to this folder, then run its tests unless --suite is given")
    parser.add_argument("--address", default=ADDRESS, help="where git clones it from")
    parser.add_argument("--only", help="only these files, with commas between them")
    parser.add_argument("--examples", type=int, default=30, help="the number of examples for each test (30)")
    parser.add_argument("--module", default="kjit.numpy", help="the library under test (kjit.numpy)")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--causes", action="store_true")
    parser.add_argument("--strict", action="store_true", help="a test that passes and is not expected to is a difference, too")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    if options.fetch:
        fetch(options.fetch, options.address)
    folder = options.suite or options.fetch
    if not folder:
        parser.error("--suite or --fetch names a folder")
    reason = missing(folder)
    if reason:
        print(f"SKIPPED: {reason}")
        return 0
    names = files_of(folder, options.only)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        found = dict(zip(names, pool.map(lambda n: run_file(folder, n, options), names)))
    count_parts(found)
    if options.causes:
        suites.causes(found)
    is_kjit = options.module == "kjit.numpy"
    if options.update and is_kjit:
        head = f"What is expected of array-api-tests {COMMIT} on kjit.numpy; written by array_api_suite.py --update."
        suites.write_expected(EXPECTED, head, found)
        return 0
    expected = suites.read_expected(EXPECTED) if is_kjit else {}
    if os.environ.get("KJIT_DEVICE") == "cuda":
        for name, tests in FAILING_ON_GPU.items():
            expected.get(name, {}).update({test: ("fail", reason) for test, reason in tests.items()})
    return suites.compare(found, expected, show_failures=bool(options.only), is_strict=options.strict and is_kjit) > 0


if __name__ == "__main__":
    sys.exit(main())
