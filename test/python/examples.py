# RUN: %kjit-python %s %examples/python
"""Each program of examples/python, which compares itself with NumPy; on the CPU, two at once."""
import concurrent.futures
import glob
import os
import subprocess
import sys

programs = sorted(glob.glob(os.path.join(sys.argv[1], "*.py")))
assert len(programs) >= 26


def run(program):
    return program, subprocess.run([sys.executable, program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=200,
                                   env=os.environ | {"KJIT_DEVICE": "cpu", "KJIT_CPU_DEVICES": "3" if "_on_gpus" in program else "1"})


with concurrent.futures.ThreadPoolExecutor(2) as pool:
    for program, done in pool.map(run, programs):
        assert done.returncode == 0 and done.stdout, (program, done.stdout)
