# RUN: %kjit-python %s --folder %builddir/array-packages --share
"""Public packages that work on arrays of any library, fetched with pip and not changed: their own tests, run on kjit.numpy:

    python3 test/python/array_packages.py --folder build/array-packages            # all, against array_packages.txt
    python3 test/python/array_packages.py --folder build/array-packages --update   # writes what came out
    python3 test/python/array_packages.py --folder ... --only sklearn              # some packages, with what fails
    python3 test/python/array_packages.py --folder ... --only scipy --tests scipy/cluster/tests    # some files of a package
    python3 test/python/array_packages.py --folder ... --causes                    # reasons, most frequent first

The tests of these packages are written once for all array libraries. Each package compares its results with those of NumPy.
Inputs/array_packages_child.py adds kjit.numpy to the libraries that a package tests. array_packages.txt has what is expected:
pass; fail, with the reason; skip, with the reason that the test gives. A function with all its parameters is one test. --share:
the small packages, as in the test command. The device is that of KJIT_DEVICE, the CPU unless it is set."""
import argparse
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "Inputs"))
import suites  # noqa: E402

EXPECTED = os.path.join(HERE, "Inputs", "array_packages.txt")
CHILD = os.path.join(HERE, "Inputs", "array_packages_child.py")
SECONDS = 6000  # for a package
# What is installed for the small packages, and what for the large ones besides.
SMALL = ["numpy==2.4.6", "einops==0.8.2", "opt_einsum==3.4.0", "array-api-compat==1.16.0", "array-api-extra==0.11.5", "pytest==9.2.0", "pluggy==1.7.0",
         "iniconfig==2.3.1", "packaging==26.4", "pygments==2.21.0", "typing_extensions==4.15.0"]  # fmt: skip
LARGE = ["scipy==1.17.1", "scikit-learn==1.9.1", "joblib==1.6.0", "cloudpickle==3.1.3", "threadpoolctl==3.8.0", "narwhals==2.29.0",
         "hypothesis==6.170.17", "sortedcontainers==2.4.0"]  # fmt: skip
# Whether the package is small: in the share of the test command, and without the large packages.
PACKAGES = {"array_api_compat": True, "array_api_extra": False, "einops": True, "opt_einsum": False, "scipy": False, "sklearn": False}


def run_package(site, name, tests):
    """Returns the outcomes of a package's tests. A package without a test that uses kjit.numpy fails."""
    paths = [site, *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {"PYTHONPATH": os.pathsep.join(paths)}
    # -S: ignores the other packages of this Python, which may need another NumPy.
    found = suites.run([sys.executable, "-S", CHILD, name, site, *tests], SECONDS, environment=environment)
    return found or {"*": ("fail", "no test uses kjit.numpy", 0)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--share", action="store_true", help="only the small packages")
    parser.add_argument("--only", help="only these packages, with commas between them")
    parser.add_argument("--tests", help="only these files of the package, with commas between them")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--causes", action="store_true")
    parser.add_argument("--strict", action="store_true", help="a test that passes and is not expected to is a difference, too")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else [n for n, is_small in PACKAGES.items() if is_small or not options.share]
    has_large = any(not PACKAGES[name] for name in names)
    site = suites.install(os.path.abspath(options.folder), [*SMALL, *LARGE] if has_large else SMALL)
    if site is None:
        return 0
    found = {}
    for name in names:
        found[name] = run_package(site, name, options.tests.split(",") if options.tests else [])
        suites.count(f"{name}: ", {name: found[name]})
    if options.causes:
        suites.causes(found)
    if options.update:
        suites.write_expected(EXPECTED, "What is expected of packages for any array library on the CPU; written by array_packages.py --update.", found)
        return 0
    return suites.compare(found, suites.read_expected(EXPECTED), show_failures=bool(options.only), is_strict=options.strict) > 0


if __name__ == "__main__":
    sys.exit(main())
