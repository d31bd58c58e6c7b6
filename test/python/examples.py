# RUN: %kjit-python %s %examples/python
# RUN: %if cuda %{ env KJIT_DEVICE=cuda %kjit-python %s %examples/python "numba_|captured|ray_tracing" %}
"""Runs each program in examples/python, which compares itself with NumPy: all programs on the CPU, or on a GPU the
programs whose names match a pattern. Two programs run at a time."""
import concurrent.futures
import glob
import os
import re
import subprocess
import sys

programs = sorted(glob.glob(os.path.join(sys.argv[1], "*.py")))
assert len(programs) >= 26
device = "cpu"
if len(sys.argv) > 2:
    programs = [program for program in programs if re.match(sys.argv[2], os.path.basename(program))]
    device = os.environ["KJIT_DEVICE"]
    assert len(programs) >= 20


def run(program):
    return program, subprocess.run([sys.executable, program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=500,
                                   env=os.environ | {"KJIT_DEVICE": device, "KJIT_CPU_DEVICES": "3" if "_on_gpus" in program else "1"})


with concurrent.futures.ThreadPoolExecutor(2) as pool:
    for program, done in pool.map(run, programs):
        assert done.returncode == 0 and done.stdout, (program, done.stdout)
