# Tests of all stages: text tests with RUN lines, and the programs of unit/ and fuzz/ (formats.py).
# Substitutions: %kjit-run, %kjit-compile, %kjit-cache, %cpu and %cuda (kjit-run on that device), %python, %cc, %cxx, %cmake, %ptxas, %include, %libdir, %bindir, %builddir,
# %srcdir, %examples, %hosts (the built example hosts),
# %programs (what run/*.c became). Features: cuda, ptxas, libdevice, libclc, x86, numpy, make, sanitizer and one for each sanitizer (address, undefined, thread), build (a build tree, not a bundle).
import glob
import os
import platform
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
libdevice = glob.glob("/usr/local/cuda*/nvvm/libdevice/libdevice.10.bc") + glob.glob("/usr/lib/nvidia-cuda-toolkit/libdevice/libdevice.10.bc")
devices = answers(kjit_run, "--devices") or ""
sanitizers = [name for name in config.kjit_sanitize.split(",") if name]

features = {
    "cuda": any(line.startswith("cuda") for line in devices.splitlines()),
    "ptxas": ptxas,
    "libdevice": libdevice,
    "libclc": os.path.exists("/usr/lib/clc/nvptx64--.bc"),
    "x86": platform.machine() == "x86_64",
    "numpy": answers(config.kjit_python, "-c", "import numpy") is not None,
    "make": shutil.which("make") and shutil.which("pkg-config"),
    "build": config.kjit_build_dir,
    "sanitizer": sanitizers,
}
config.available_features.update(name for name, present in features.items() if present)
config.available_features.update(sanitizers)

for name, value in [
    ("%kjit-run", kjit_run),
    ("%kjit-compile", os.path.join(bin_dir, "kjit-compile")),
    ("%kjit-cache", os.path.join(bin_dir, "kjit-cache")),
    ("%cpu", kjit_run + " --device cpu"),
    ("%cuda", kjit_run + " --device cuda"),
    ("%python", config.kjit_python),
    ("%cc", config.kjit_cc),
    ("%cxx", config.kjit_cxx),
    ("%cmake", config.kjit_cmake),
    ("%ptxas", ptxas or "ptxas"),
    ("%include", os.path.join(source_dir, "include")),
    ("%libdir", config.kjit_lib_dir),
    ("%bindir", bin_dir),
    ("%builddir", config.kjit_build_dir),
    ("%srcdir", source_dir),
    ("%hosts", config.kjit_example_dir),
    ("%programs", os.path.join(config.kjit_test_dir, "run")),
    ("%examples", os.path.join(source_dir, "examples")),
]:
    config.substitutions.append((name + r"\b", value))

environment = {
    # lit runs a test on every core: few threads each, that do not spin while they wait.
    "OMP_NUM_THREADS": "2",
    "OMP_WAIT_POLICY": "passive",
    "PATH": os.pathsep.join([bin_dir, os.path.dirname(config.kjit_filecheck), os.environ.get("PATH", "")]),
    "KJIT_RUN": kjit_run,
    "KJIT_SOURCE_DIR": source_dir, # unit tests that read the project's programs
    "PYTHONDONTWRITEBYTECODE": "1",
    "XDG_CACHE_HOME": "/dev/null", # no directory: nothing is compiled by another test, or before. Tests of the disk cache have directories of their own
    "FILECHECK_OPTS": "--dump-input-context=8",
    "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=1:allocator_may_return_null=1:detect_odr_violation=0",
    "LSAN_OPTIONS": "suppressions=%s:print_suppressions=0" % os.path.join(config.test_source_root, "leaks.supp"),
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "TSAN_OPTIONS": "suppressions=%s:halt_on_error=1" % os.path.join(config.test_source_root, "races.supp"),
}
for name in ("CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH", "OMP_NUM_THREADS"):
    if name in os.environ:
        environment[name] = os.environ[name]
config.environment.update(environment)
