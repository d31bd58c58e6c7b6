# Tests of all stages: text tests with RUN lines, and the programs of unit/ and fuzz/ (formats.py).
# Substitutions: %kjit-python (with the package kjit), %kjit-run, %kjit-compile, %kjit-cache, %cpu and %cuda (kjit-run on that device), %python, %pyarrow-python (one that has pyarrow), %numba-python (one that has Numba, with the package kjit), %cc, %cxx, %cmake, %ptxas, %nvcc, %nvlink, %include, %libdir, %bindir, %builddir,
# %srcdir, %examples, %hosts (the built example hosts),
# %accuracy, %programs (what run/*.c became), %fuzz (what fuzz/*.c became). Features: cuda, cuda-sm80 and so on, ptxas, nvdisasm, llvm-dwarfdump, nvcc, libdevice, x86, numpy, greenlet, pyarrow, arrow (kjit-run reads Parquet and Arrow files), numba, make, mpfr (the accuracy program), gdb, cuda-gdb, compute-sanitizer, ncu, nsys, sanitizer and one for each sanitizer (address, undefined, thread), hostile (KJIT_HOSTILE), assertions (a debug build: facts are asserted in code for the CPU), build (a build tree, not a bundle), clangxx, zsh, doxygen, chromium, dpkg (Debian packages can be made), namespaces (a test may mount what only it sees).
import glob
import os
import platform
import re
import shutil
import subprocess
import sys

import lit.formats

sys.path.insert(0, os.path.dirname(__file__))

config.name = "kjit"
config.test_format = lit.formats.ShTest(execute_external=False)
config.test_source_root = os.path.dirname(__file__)
config.suffixes = [".kir", ".test", ".c", ".ll"]
config.excludes = ["Inputs", "bench"]

source_dir, bin_dir = config.kjit_source_dir, config.kjit_bin_dir
kjit_run = os.path.join(bin_dir, "kjit-run")


def answers(*command):
    """The command's output where it can be run and succeeds, else None."""
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, timeout=120, check=True, text=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None


ptxas = shutil.which("ptxas") or next(iter(glob.glob("/usr/local/cuda*/bin/ptxas")), None)
nvcc = shutil.which("nvcc") or next(iter(glob.glob("/usr/local/cuda*/bin/nvcc")), None)
libdevice = glob.glob("/usr/local/cuda*/nvvm/libdevice/libdevice.10.bc") + glob.glob("/usr/lib/nvidia-cuda-toolkit/libdevice/libdevice.10.bc")
# Beside the tests' own Python, that of scripts/setup.sh.
pyarrow_python = next((python for python in [config.kjit_python, os.path.join(source_dir, "build", "python", "bin", "python3")] if answers(python, "-c", "import pyarrow") is not None), None)
numba_python = next((python for python in [config.kjit_python, os.path.join(source_dir, "build", "python", "bin", "python3")] if answers(python, "-c", "import numba") is not None), None)
devices = answers(kjit_run, "--devices") or ""
compute_sanitizer = shutil.which("compute-sanitizer") or next(iter(glob.glob("/usr/local/cuda*/bin/compute-sanitizer")), None)
cuda_gdb = shutil.which("cuda-gdb") or next(iter(glob.glob("/usr/local/cuda*/bin/cuda-gdb")), None)
ncu, nsys = (shutil.which(name) or next(iter(sorted(glob.glob(f"/usr/local/cuda*/bin/{name}") + glob.glob(f"/opt/nvidia/nsight-*/*/{place}"))), None)
             for name, place in (("ncu", "ncu"), ("nsys", "bin/nsys")))
fact_report = b"an assumption of the compiled code does not hold"  # a text that only libraries with assertions have
libraries = glob.glob(os.path.join(config.kjit_lib_dir, "libkjit.so*"))
sanitizers = [name for name in config.kjit_sanitize.split(",") if name]

features = {
    "cuda": any(line.startswith("cuda") for line in devices.splitlines()),
    "ptxas": ptxas,
    "nvdisasm": shutil.which("nvdisasm") or glob.glob("/usr/local/cuda*/bin/nvdisasm"),
    "llvm-dwarfdump": shutil.which("llvm-dwarfdump"),
    "nvcc": nvcc and ptxas,
    "libdevice": libdevice,
    "x86": platform.machine() == "x86_64",
    "numpy": answers(config.kjit_python, "-c", "import numpy") is not None,
    "greenlet": answers(config.kjit_python, "-c", "import greenlet") is not None,
    "dask": answers(config.kjit_python, "-c", "import dask.array, dask.distributed") is not None,
    "mpi4py": shutil.which("mpirun") and answers(config.kjit_python, "-c", "import mpi4py") is not None,
    "pyarrow": pyarrow_python,
    "arrow": glob.glob(os.path.join(config.kjit_lib_dir, "kjit-*", "kjit-arrow.so")),
    "numba": numba_python,
    "make": shutil.which("make") and shutil.which("pkg-config"),
    "mpfr": os.path.exists(os.path.join(config.kjit_test_dir, "accuracy", "accuracy")),
    "compute-sanitizer": compute_sanitizer,
    "cuda-gdb": cuda_gdb,
    "ncu": ncu,
    "nsys": nsys,
    # gdb needs ptrace, which some systems forbid.
    "gdb": "exited normally" in (answers("gdb", "-nx", "-batch", "-ex", "set debuginfod enabled off", "-ex", "run", "/bin/true") or ""),
    "build": config.kjit_build_dir,
    "clangxx": shutil.which("clang++"),
    "zsh": shutil.which("zsh"),
    "doxygen": shutil.which("doxygen"),
    "codespell": shutil.which("codespell"),
    "git": shutil.which("git"),
    "chromium": shutil.which("chromium"),
    "dpkg": shutil.which("dpkg-shlibdeps"),
    # A test can have its own mounts.
    "namespaces": answers("unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt") is not None,
    "mpi": shutil.which("mpirun") and os.path.exists(os.path.join(config.kjit_example_dir, "diffusion_mpi")),
    "sanitizer": sanitizers,
    "assertions": any(fact_report in open(library, "rb").read() for library in libraries[:1]),
    "hostile": config.kjit_hostile,
}
config.available_features.update(name for name, present in features.items() if present)
# cuda-sm80: the first GPU supports at least sm_80. cuda-sm90a: it is an sm_90, which has instructions that other GPUs lack.
arch = next((int(found[1]) for found in [re.search(r"^cuda:0\s+sm_(\d+)", devices, re.MULTILINE)] if found), 0)
config.available_features.update(f"cuda-sm{least}" for least in (75, 80, 86, 89, 90, 100, 120) if arch >= least)
config.available_features.update([f"cuda-sm{arch}a"] if arch >= 90 else [])
config.available_features.update(sanitizers)

for name, value in [
    ("%kjit-run", kjit_run),
    ("%kjit-compile", os.path.join(bin_dir, "kjit-compile")),
    ("%kjit-cache", os.path.join(bin_dir, "kjit-cache")),
    ("%cpu", kjit_run + " --device cpu"),
    ("%cuda-gdb", cuda_gdb or "cuda-gdb"),  # before %cuda, which it begins with
    ("%cuda", kjit_run + " --device cuda"),
    ("%kjit-python", "env PYTHONFAULTHANDLER=1 PYTHONPATH=%s %s" % (os.path.join(config.kjit_build_dir or "", "python"), config.kjit_python)),
    ("%numba-python", "env PYTHONFAULTHANDLER=1 PYTHONPATH=%s %s" % (os.path.join(config.kjit_build_dir or "", "python"), numba_python or config.kjit_python)),
    ("%python", config.kjit_python),
    ("%pyarrow-python", pyarrow_python or config.kjit_python),
    ("%cc", config.kjit_cc),
    ("%cxx", config.kjit_cxx),
    ("%cmake", config.kjit_cmake),
    ("%ptxas", ptxas or "ptxas"),
    ("%nvcc", nvcc or "nvcc"),
    ("%nvlink", os.path.join(os.path.dirname(nvcc or ""), "nvlink")),
    ("%compute-sanitizer", compute_sanitizer or "compute-sanitizer"),
    ("%ncu", ncu or "ncu"),
    ("%nsys", nsys or "nsys"),
    ("%include", os.path.join(source_dir, "include")),
    ("%libdir", config.kjit_lib_dir),
    ("%bindir", bin_dir),
    ("%builddir", config.kjit_build_dir),
    ("%srcdir", source_dir),
    ("%hosts", config.kjit_example_dir),
    ("%accuracy", os.path.join(config.kjit_test_dir, "accuracy", "accuracy")),
    ("%programs", os.path.join(config.kjit_test_dir, "run")),
    ("%fuzz", os.path.join(config.kjit_test_dir, "fuzz")),
    ("%examples", os.path.join(source_dir, "examples")),
    # Starts any number of ranks on this host, also as root, as in a container.
    ("%mpirun", "mpirun --oversubscribe --allow-run-as-root --mca btl self,vader --mca plm isolated -n"),
]:
    config.substitutions.append((name + r"\b", value))

environment = {
    # lit runs a test on every core, so each test uses few threads, which do not spin while they wait.
    "OMP_NUM_THREADS": "2",
    "OMP_WAIT_POLICY": "passive",
    "PATH": os.pathsep.join([bin_dir, os.path.dirname(config.kjit_filecheck), os.environ.get("PATH", "")]),
    "KJIT_RUN": kjit_run,
    "KJIT_SOURCE_DIR": source_dir, # unit tests that read the project's programs
    "PYTHONDONTWRITEBYTECODE": "1",
    "XDG_CACHE_HOME": "/dev/null",  # no cache directory, so no test finds code from another test or run; tests of the disk cache have their own directories
    "FILECHECK_OPTS": "--dump-input-context=8",
    "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=1:allocator_may_return_null=1:detect_odr_violation=0:intercept_tls_get_addr=0",
    "LSAN_OPTIONS": "suppressions=%s:print_suppressions=0" % os.path.join(config.test_source_root, "leaks.supp"),
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "TSAN_OPTIONS": "suppressions=%s:halt_on_error=1:history_size=7" % os.path.join(config.test_source_root, "races.supp"),
}
# --param share=K/N/SEED: a test with many rows runs part K of the N parts into which SEED divides the rows (share.py).
share = lit_config.params.get("share")
if share:
    if not re.fullmatch(r"\d+/[1-9]\d*/\d+", share):
        lit_config.fatal("share is K/N/SEED, three numbers: " + share)
    environment["KJIT_TEST_SHARE"] = share
for name in ("CUDA_VISIBLE_DEVICES", "KJIT_TEST_SEED", "LD_LIBRARY_PATH", "OMP_NUM_THREADS"):
    if name in os.environ:
        environment[name] = os.environ[name]
config.environment.update(environment)
