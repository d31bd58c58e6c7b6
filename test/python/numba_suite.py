# RUN: %kjit-python %s --folder %builddir/numba-suite --share 12
# RUN: env KJIT_CPU_DEVICES=2 %kjit-python %s --folder %builddir/numba-suite --only "test_(multigpu|context_stack|select_device|reset_device)"
# RUN: %if greenlet %{ env KJIT_DEVICE=python %kjit-python %s --folder %builddir/numba-suite --share 25 %}
"""numba-cuda's own tests, which are fetched with pip and not changed, run with kjit.cuda in the place of numba.cuda:

    python3 test/python/numba_suite.py --folder build/numba-suite            # all of them, against numba_suite.txt
    python3 test/python/numba_suite.py --folder build/numba-suite --update   # writes what came out to numba_suite.txt
    python3 test/python/numba_suite.py --folder ... --only test_atomics      # some files, with what fails

numba_suite.txt has the expected outcome of each method, and a reason if the method does not pass:

    pass    the test passes; values are compared with numba-cuda's own assertPreciseEqual
    fail    the test fails
    xfail   numba-cuda marks the test as an expected failure, and it fails
    xpass   numba-cuda marks the test as an expected failure, and it passes
    skip    the test skips itself
    omit    numba_standin.py skips the test, since it is about something that the stand-in cannot provide
    out     the test is out of scope and does not run

--share N runs every Nth file, as the test command above does. The device is that of KJIT_DEVICE, the CPU unless it is set. "python" is
the simulator, whose expected outcomes are in numba_suite_simulated.txt."""
import argparse
import ast
import collections
import concurrent.futures
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "Inputs"))
import numba_suite_kinds  # noqa: E402

VERSION = "0.30.4"
# The packages that the tests import in addition to numba-cuda. With fixed versions, the outcomes are the same on every
# machine that can download them.
PACKAGES = ("numpy==2.2.6", "ml_dtypes==0.5.1")
# The simulator, KJIT_DEVICE=python, has its own expected outcomes.
EXPECTED = os.path.join(HERE, "Inputs", "numba_suite_simulated.txt" if os.environ.get("KJIT_DEVICE") == "python" else "numba_suite.txt")
# The tests whose outcome on a GPU differs from EXPECTED. On a machine with NVRTC, nvJitLink and cffi.
EXPECTED_ON_GPU = os.path.join(HERE, "Inputs", "numba_suite_gpu.txt")
IS_GPU = os.environ.get("KJIT_DEVICE") == "cuda"
CHILD = os.path.join(HERE, "Inputs", "numba_standin.py")
PAGE = os.path.join(HERE, "..", "..", "docs", "numba.md")  # its tables must agree with numba_suite.txt
SECONDS = 240  # for a file

# Files that test Numba's internals, with the reason.
OUT = {
    "core/test_itanium": "Numba's name mangler", "nrt/": "NRT, Numba's runtime for memory", **{f"nocuda/test_{name}": "Numba's insides" for name in ("cache_version", "function_resolution", "library_lookup", "nvvm")},
    "nocuda/test_dummyarray.py TestSlicing": "Numba's insides", "nocuda/test_dummyarray.py TestReshape": "Numba's insides",
    "nocuda/test_dummyarray.py TestSqueeze": "Numba's insides", "nocuda/test_dummyarray.py TestExtent": "Numba's insides",
    "nocuda/test_dummyarray.py TestIterate": "Numba's insides", "nocuda/test_dummyarray.py TestEmptyArrays": "Numba's insides",
    "nocuda/test_dummyarray.py TestNumpyIntegerTypes": "Numba's insides",
    "benchmarks/": "benchmarks for pytest",
    "cudapy/test_analysis.py": "Numba's IR", "cudapy/test_ir.py": "Numba's IR", "cudapy/test_ir_utils.py": "Numba's IR",
    "cudapy/test_byteflow.py": "Numba's bytecode analysis", "cudapy/test_typeinfer.py": "Numba's typing",
    "cudapy/test_typeconv.py": "Numba's typing",
    "cudapy/test_tracing.py": "Numba's tracing", "cudapy/test_copy_propagate.py": "Numba's IR",
    "cudapy/test_debuginfo_types.py": "LLVM's debug information as Numba writes it",
    "cudapy/test_numba_interop.py": "numba itself",
    "cudadrv/test_linker.py TestLinker.test_linker_basic": "Numba's linker class", "cudadrv/test_linker.py TestLinker.test_link_for_different_cc": "Numba's linker class",
    "cudadrv/test_nvrtc.py": "Numba's NVRTC module", "cudadrv/test_nvvm_driver.py": "NVVM", "cudadrv/test_module_callbacks.py": "callbacks with objects of cuda.core",
    "cudadrv/test_inline_ptx.py": "Numba's bindings to LLVM",
    "cudapy/test_caching.py": "Numba's cache files",
    "cudapy/test_cupy_bfloat16_interop.py": "CuPy",
    "cudapy/test_flow_control.py TestCFGraph": "Numba's control flow graph", "cudapy/test_flow_control.py TestRealCodeDomFront": "Numba's bytecode",
    "cudapy/test_gufunc_scheduling.py": "Numba's scheduler of gufuncs",
    "cudapy/test_debug.py TestDebugOutput": "dumps of Numba's IR", "cudapy/test_dispatcher.py TestDispatcher.test_capture_compile": "Numba's hook into compilations",
    "cudapy/test_launch_config_sensitive.py": "Numba's hook into compilations",
    "cudapy/test_vectorize_decor.py BaseVectorizeDecor": "a class that others derive from, whose tests are theirs",
}

if not IS_GPU:
    OUT |= {f"cudadrv/test_linker.py TestLinker.test_linking_cu_{name}": "linked code is compiled on a GPU" for name in ("error", "log_warning")}
    OUT["cudapy/test_device_func.py TestDeclareDeviceCABI.test_declare_device_cabi_pointer_return"] = "cffi"

# The reason for tests that run only on machines without CUDA's disassembler.
WITHOUT_TOOLKIT = "Missing nvdisasm exception only generated when it is not present"

# The reason of tests that need two devices, which KJIT_CPU_DEVICES=2 provides.
NEEDS_SEVERAL = "need more than 1 gpus"
SEVERAL = int(os.environ.get("KJIT_CPU_DEVICES") or 1) > 1

# Files that test the results of kernels. The others test the interface, code as text, vectorize and Numba's internals.
KERNELS = """alignment array array_alignment array_args array_methods array_reductions atomics bfloat16 blackscholes boolean casting complex
    complex_kernel const_string constmem cooperative_groups cuda_jit_no_types datetime device_func enums errors exception fastmath
    flow_control forall freevar frexp_ldexp globals idiv inline intrinsics iterators lang laplace libdevice localmem
    make_function_to_jit_function mandel math minmax montecarlo multithreads nondet operator powi print py2_div_issue record_dtype
    recursion retrieve_autoconverted_arrays slicing sm sm_creation ssa sync transpose userexc vector_type warp_ops""".split()


def is_of_kernels(name):
    folder, file = os.path.split(name)
    return folder in ("cudasim", "doc_examples") or (folder == "cudapy" and file[len("test_"):-len(".py")] in KERNELS)


# Names that kjit.cuda refuses because their functions are out of scope. A test that uses such a name is out of scope as
# well.
# On the CPU that is linked code; a machine without NVRTC refuses CUDA C.
REFUSED = r"is linked code for GPUs \(|which needs the library NVRTC|the simulator does not run linked code"


def fetch(folder):
    """Returns the folder of the tests, or None if pip cannot download them."""
    tests = os.path.join(folder, f"numba-cuda-{VERSION}", "tests")
    if not os.path.isdir(tests):
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as place:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:",
                       "--python-version", "3.11", "--dest", place, f"numba-cuda=={VERSION}"]
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
            wheels = glob.glob(os.path.join(place, "*.whl"))
            if done.returncode or not wheels:
                print(done.stdout[-400:])
                return None
            with zipfile.ZipFile(wheels[0]) as wheel:
                inside = "numba_cuda/numba/cuda/tests/"
                wheel.extractall(place, [n for n in wheel.namelist() if n.startswith(inside)])
            os.makedirs(os.path.dirname(tests), exist_ok=True)
            os.rename(os.path.join(place, inside), tests)
    return tests


def fetch_packages(folder):
    """Returns the folder of PACKAGES, or None if pip cannot download them. The tests then use the installed
    packages."""
    packages = os.path.join(folder, "_".join(PACKAGES))
    if not os.path.isdir(packages):
        with tempfile.TemporaryDirectory(dir=folder) as place:
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:",
                       "--target", os.path.join(place, "all"), *PACKAGES]
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
            if done.returncode:
                print(f"{' and '.join(PACKAGES)} cannot be fetched; outcomes may differ: {done.stdout[-200:]}")
                return None
            os.rename(os.path.join(place, "all"), packages)
    return packages


def methods_of(path):
    """Returns the names of the test methods as they are written: Class.method."""
    return [f"{c.name}.{m.name}" for c in ast.parse(open(path).read()).body if isinstance(c, ast.ClassDef)
            for m in c.body if isinstance(m, (ast.FunctionDef, ast.AsyncFunctionDef)) and m.name.startswith("test")]


def names_of_files(tests):
    return sorted(os.path.relpath(p, tests) for p in glob.glob(os.path.join(tests, "**", "test_*.py"), recursive=True))


def names_in_scope(tests, pattern=""):
    """Returns the names of the files that match a pattern and are not out of scope as a whole."""
    return [n for n in names_of_files(tests) if re.search(pattern, n) and not any(n.startswith(start) for start in OUT)]


def run_file(tests, name):
    """{method: (outcome, reason, seconds)}"""
    written = methods_of(os.path.join(tests, name))
    out = {m: ("out", why, 0) for m in written for start, why in OUT.items() if f"{name} {m}".startswith(start)}
    if len(out) == len(written):
        return out
    found, crashes = {}, 0
    with tempfile.NamedTemporaryFile("r", suffix=".jsonl") as results:
        while True:
            begun = None
            environment = {**os.environ, "KJIT_DEVICE": os.environ.get("KJIT_DEVICE") or "cpu", "PYTHONDONTWRITEBYTECODE": "1"}
            try:
                code = subprocess.run([sys.executable, CHILD, tests, os.path.join(tests, name), results.name], timeout=SECONDS, env=environment,
                                      stdin=subprocess.DEVNULL, stdout=None if os.environ.get("NUMBA_SUITE_TRACE") else subprocess.DEVNULL,
                                      stderr=None if os.environ.get("NUMBA_SUITE_TRACE") else subprocess.DEVNULL).returncode
            except subprocess.TimeoutExpired:
                code = "time"
            for line in open(results.name):
                method, outcome, *rest = json.loads(line)
                if outcome == "began":
                    begun = method
                    continue
                begun = None
                if outcome == "fail" and re.search(REFUSED, rest[0]):
                    outcome = "out"
                found[method] = (outcome, rest[0], rest[1] if len(rest) > 1 else 0)
            if begun is None and code != "time":
                # If a child ends between tests in an unexpected way, the remaining tests have no result.
                if code and "*" not in found:
                    found["*"] = ("fail", f"CRASH: the process ended with {code}", 0)
                break
            crashes += 1
            if begun is None or crashes > 20:
                break
            # The next process continues after it.
            reason = f"no end within {SECONDS} seconds" if code == "time" else f"CRASH: the interpreter ended with {code}"
            found[begun] = ("fail", reason, 0)
            with open(results.name, "a") as file:
                file.write(json.dumps([begun, "fail", reason]) + "\n")
    if "*" in found:
        return {m: found.get(m, found["*"]) for m in written} | out
    found.update(out)
    for method in written:
        found.setdefault(method, ("skip", "unittest does not see a test method", 0))
    return found


def clean(reason):
    """Returns the reason without the parts that differ between runs."""
    reason = re.sub(r"0x[0-9a-f]+", "0x...", reason)
    return re.sub(r"\S*/(\w+\.py:\d+)", r"\1", reason)[:110]


def read_rows(path, expected):
    """Adds the outcomes of a file to {name of a file: {method: (outcome, reason)}}."""
    file = None
    for line in open(path) if os.path.exists(path) else ():
        if line.startswith("  "):
            method, outcome, *reason = line.split(None, 2)
            expected[file][method] = outcome, reason[0].strip() if reason else ""
        elif line.strip() and not line.startswith("#"):
            file = line.strip()
            expected.setdefault(file, {})
    return expected


def read_expected():
    expected = read_rows(EXPECTED, {})
    return read_rows(EXPECTED_ON_GPU, expected) if IS_GPU else expected


def write_expected(found):
    place, path = (f", on the CPU, with {' and '.join(PACKAGES)}", EXPECTED) if not IS_GPU else (" on a GPU, if it differs from that on the CPU", EXPECTED_ON_GPU)
    if IS_GPU:
        usual = read_rows(EXPECTED, {})
        found = {name: {m: row for m, row in rows.items() if usual.get(name, {}).get(m, ("",))[0] != row[0]} for name, rows in found.items()}
        found = {name: rows for name, rows in found.items() if rows}
    with open(path, "w") as out:
        out.write(f"# What is expected of the tests of numba-cuda {VERSION}{place}; written by numba_suite.py --update.\n")
        for name in sorted(found):
            out.write(name + "\n")
            for method, (outcome, reason, _) in sorted(found[name].items()):
                out.write(f"  {method} {outcome}" + (f" {clean(reason)}" if reason else "") + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--share", type=int, help="only every Nth file")
    parser.add_argument("--only", help="only files whose names match")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    tests = fetch(options.folder)
    if tests is None:
        print(f"SKIPPED: pip cannot fetch numba-cuda {VERSION}: no network")
        return 0
    packages = fetch_packages(options.folder)
    if packages:
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [packages, os.environ.get("PYTHONPATH")]))
    names = names_of_files(tests)
    if options.only:
        names = [n for n in names if re.search(options.only, n)]
    if options.share:
        names = names[::options.share]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        found = dict(zip(names, pool.map(lambda n: run_file(tests, n), names)))
    for title, of in (("", found), ("of what kernels compute: ", list(filter(is_of_kernels, found)))):
        counts = collections.Counter(o for name in of for o, _, _ in found[name].values())
        print(title + ", ".join(f"{outcome} {count}" for outcome, count in counts.most_common()))
    crashed = [(n, m) for n, rows in found.items() for m, (o, reason, _) in rows.items() if reason.startswith("CRASH")]
    expected = read_expected()
    if options.update:
        write_expected({**{n: {m: (*r, 0) for m, r in rows.items()} for n, rows in expected.items()}, **found})
        return bool(crashed)
    if os.environ.get("KJIT_DEVICE") not in ("python", "cuda"):
        numba_suite_kinds.check_page(PAGE, expected)
    changed = 0
    for name, rows in found.items():
        for method, (outcome, reason, seconds) in rows.items():
            wanted, why = expected.get(name, {}).get(method, ("nothing", ""))[:2]
            if why == NEEDS_SEVERAL and (outcome == "pass" or SEVERAL):
                wanted = "pass"
            if wanted != outcome and not (outcome == "skip" and reason == WITHOUT_TOOLKIT):
                changed += 1
                print(f"{name} {method}: {wanted} is expected, {outcome} came: {clean(reason)}")
            elif options.only and outcome == "fail":
                print(f"{name} {method}: {clean(reason)}")
    for name, method in crashed:
        print(f"{name} {method}: the interpreter crashed")
    return changed > 0 or bool(crashed)


if __name__ == "__main__":
    sys.exit(main())
