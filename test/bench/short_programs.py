"""Short programs with and without plain code (kjit.set_plain_code), on the CPU. Each row is one program that is started several
times with the same cache directory, which is empty at first. It calls algorithms on 1000 integers and ends. The columns are the
processor time of each process in ms, without the time of a process that only imports kjit, and the number of compilations.

    PYTHONPATH=build/release/python python3 test/bench/short_programs.py [ROUNDS]"""
import os
import resource
import statistics
import subprocess
import sys
import tempfile

PROGRAM = """
import sys
import numpy as np
import kjit
kjit.set_plain_code(sys.argv[1])
if sys.argv[2] != "none":
    x = np.arange(1000, dtype="i4") * 7919 % 1013
    if sys.argv[2] == "sort": kjit.sort(x)
    if sys.argv[2] == "five": kjit.sort(x), kjit.scan(x, "add"), kjit.unique(x), kjit.reduce(x, "add"), kjit.nonzero(x)
if sys.argv[3] == "wait": kjit.wait_background()
print(kjit.statistics()["compilations"])
"""
PROCESSES = 3


def start(folder, words):
    """Returns the processor time of one process in ms, and its number of compilations."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = os.environ | {"XDG_CACHE_HOME": folder, "KJIT_DEVICE": "cpu"}
    output = subprocess.run([sys.executable, "-c", PROGRAM, *words], env=environment, check=True, capture_output=True, text=True).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000, int(output)


def series(words):
    """Returns (time, compilations) of each of the processes, which share a cache directory."""
    with tempfile.TemporaryDirectory() as folder:
        return [start(folder, words) for _ in range(PROCESSES)]


rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
idle = statistics.median(start("", ("never", "none", "-"))[0] for _ in range(rounds))
print(f"{'program':24}" + "".join(f"{f'process {i + 1}':>22}" for i in range(PROCESSES)))
for calls in "sort", "five":
    for kind, end in ("never", "-"), ("equal", "-"), ("equal", "wait"):
        runs = [series((kind, calls, end)) for _ in range(rounds)]
        cells = [f"{statistics.median(r[i][0] for r in runs) - idle:9.0f} ms, {statistics.median(r[i][1] for r in runs):3.0f} made" for i in range(PROCESSES)]
        print(f"{calls + ', ' + kind + (', waits' if end == 'wait' else ''):24}" + "".join(f"{cell:>22}" for cell in cells))
