# REQUIRES: numba
# RUN: %numba-python %s --folder %builddir/programs --share
"""Public packages whose kernels are written for Numba, which are fetched with pip and not changed, run with kjit in numba's place:

    build/python/bin/python3 test/python/programs_of_others.py --folder build/programs            # all, against programs_of_others.txt
    build/python/bin/python3 test/python/programs_of_others.py --folder build/programs --update   # writes what came out
    build/python/bin/python3 test/python/programs_of_others.py --folder ... --only stumpy         # some packages, with what fails
    build/python/bin/python3 test/python/programs_of_others.py --folder ... --causes              # reasons, most frequent first

A package has a file in Inputs/programs. Its functions check_... call the package and return numbers and arrays, which have to be
those that Numba gives (kernels for a GPU: Numba's simulator); a check that compares by itself returns None. TESTS are the package's own tests, which pytest runs.
programs_of_others.txt has what is expected: pass; fail, with the reason; skip, with the reason that the test gives. --share: the
small packages, as in the test command. The device is that of KJIT_DEVICE, the CPU unless it is set."""
import argparse
import hashlib
import os
import pickle
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "Inputs"))
import suites  # noqa: E402

EXPECTED = os.path.join(HERE, "Inputs", "programs_of_others.txt")
CHILD = os.path.join(HERE, "Inputs", "program_child.py")
SECONDS = 600  # for a package

# Packages that several of the tested packages need.
PYTEST = ["pytest==8.3.4", "pluggy==1.5.0", "iniconfig==2.0.0"]
SCIPY = ["scipy==1.11.4"]
TABLES = [*SCIPY, "pandas==2.0.3", "xarray==2023.8.0", "python-dateutil==2.9.0.post0", "pytz==2024.2", "tzdata==2024.2", "six==1.16.0", "packaging==24.1",
          "dask==2023.8.0", "fsspec==2023.6.0", "toolz==0.12.0", "partd==1.4.0", "locket==1.0.0", "cloudpickle==2.2.1", "importlib_metadata==6.8.0",
          "zipp==3.16.2", "pyyaml==6.0.1", "click==8.1.6"]
LEARN = [*SCIPY, "scikit-learn==1.4.2", "joblib==1.4.2", "threadpoolctl==3.5.0"]
PLOTS = [*TABLES, "pillow==10.0.1", "requests==2.31.0", "urllib3==2.0.4", "idna==3.4", "certifi==2023.7.22", "charset-normalizer==3.2.0",
         "datashader==0.16.3", "param==2.1.1", "pyct==0.5.0", "colorcet==3.1.0", "multipledispatch==1.0.0"]

# Returns the field, whether it is in the share of the test command, and the packages to install.
PACKAGES = {
    "choclo": ("gravity and magnetic fields", True, ["choclo==0.3.2", *PYTEST]),
    "datashader": ("plots", False, [*PLOTS, *PYTEST]),
    "disba": ("seismology", False, ["disba==0.7.0"]),
    "fbpic": ("particles in plasmas", False, ["fbpic==0.27.1", *SCIPY]),
    "miepython": ("light that particles scatter", False, ["miepython==3.0.2", *SCIPY]),
    "numba_celltree": ("searches in meshes", True, ["numba_celltree==0.4.2"]),
    "numbagg": ("statistics of moving windows", False, ["numbagg==0.9.0", *TABLES]),
    "pynndescent": ("nearest neighbours", False, ["pynndescent==0.5.13", *LEARN]),
    "quaternionic": ("rotations", False, ["quaternionic==1.0.15", *SCIPY]),
    "resampy": ("audio", True, ["resampy==0.4.3"]),
    "sgkit": ("genomics", False, ["sgkit==0.10.0"]),
    "sigpy": ("image reconstruction", False, ["sigpy==0.1.27", *SCIPY]),
    "stumpy": ("time series", False, ["stumpy==1.13.0", *SCIPY]),
    "tslearn": ("time series, dynamic time warping", False, ["tslearn==0.6.3", *LEARN]),
    "warprnnt": ("losses of speech models", True, ["warprnnt-numba==0.4.1"]),
    "xrspatial": ("rasters", False, ["xarray-spatial==0.4.0", *PLOTS, *PYTEST]),
}


def values_of_numba(folder, site, name):
    """Returns the folder with Numba's results of the checks, which is kept until the checks change."""
    with open(os.path.join(HERE, "Inputs", "programs", name + ".py"), "rb") as file:
        digest = hashlib.sha256(file.read() + " ".join(PACKAGES[name][2]).encode()).hexdigest()[:12]
    values = os.path.join(folder, f"values-{name}-{digest}")
    if not os.path.isdir(values):
        with tempfile.TemporaryDirectory(dir=folder) as place:
            inside = os.path.join(place, "values")
            os.mkdir(inside)
            found = suites.run([sys.executable, CHILD, "numba", name, site, inside], SECONDS, environment={"NUMBA_ENABLE_CUDASIM": "1"})
            for check, (outcome, reason, _) in found.items():
                if outcome != "pass":
                    print(f"{name} {check}: with Numba: {reason}")
            os.rename(inside, values)
    return values


def differs(got, wanted, rtol):
    """Returns how the results of kjit and Numba differ, or None."""
    import numpy as np
    if isinstance(wanted, (tuple, list)):
        if not isinstance(got, (tuple, list)) or len(got) != len(wanted):
            return f"a {type(got).__name__}, not {len(wanted)} values"
        return next((f"value {i}: {d}" for i, d in enumerate(differs(g, w, rtol) for g, w in zip(got, wanted)) if d), None)
    got, wanted = np.asarray(got), np.asarray(wanted)
    if got.dtype != wanted.dtype or got.shape != wanted.shape:
        return f"{got.dtype} {got.shape}, not {wanted.dtype} {wanted.shape}"
    if wanted.dtype.kind not in "fc":
        return None if np.array_equal(got, wanted) else f"{np.sum(got != wanted)} of {wanted.size} elements differ"
    rtol = max(rtol, 64 * np.finfo(wanted.dtype).eps)
    scale = np.max(np.abs(wanted[np.isfinite(wanted)]), initial=0)
    near = np.isclose(got, wanted, rtol=rtol, atol=rtol * scale, equal_nan=True)
    return None if near.all() else f"{np.sum(~near)} of {wanted.size} elements differ"


def judge(folder, site, name):
    wanted = values_of_numba(folder, site, name)
    with tempfile.TemporaryDirectory() as values:
        found = suites.run([sys.executable, CHILD, "kjit", name, site, values], SECONDS)
        for check, (outcome, _, seconds) in list(found.items()):
            path = os.path.join(wanted, check + ".pickle")
            if outcome != "pass" or not check.startswith("check_"):
                continue
            with open(os.path.join(values, check + ".pickle"), "rb") as file:
                value = pickle.load(file)
            if value is None:  # the check has compared by itself
                continue
            if not os.path.exists(path):
                found[check] = "skip", "Numba cannot run it", seconds
                continue
            with open(path, "rb") as file:
                difference = differs(value, pickle.load(file), 1e-9)
            if difference:
                found[check] = "fail", "DIFFERENT: " + difference, seconds
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--share", action="store_true", help="only the small packages")
    parser.add_argument("--only", help="only these packages, with commas between them")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--causes", action="store_true")
    parser.add_argument("--strict", action="store_true", help="a test that passes and is not expected to is a difference, too")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else [n for n, (_, is_small, _) in PACKAGES.items() if is_small or not options.share]
    folder = os.path.abspath(options.folder)
    wanted = sorted({package for name in (PACKAGES if options.only else names) for package in PACKAGES[name][2]})
    site = suites.install(folder, wanted)
    if site is None:
        return 0
    found = {}
    for name in names:
        found[name] = judge(folder, site, name)
        suites.count(f"{name} ({PACKAGES[name][0]}): ", {name: found[name]})
    suites.count("", found)
    if options.causes:
        suites.causes(found)
    if options.update:
        suites.write_expected(EXPECTED, "What is expected of programs of others on the CPU; written by programs_of_others.py --update.", found)
        return 0
    return suites.compare(found, suites.read_expected(EXPECTED), show_failures=bool(options.only), is_strict=options.strict) > 0


if __name__ == "__main__":
    sys.exit(main())
