"""compile_limits.py KJIT_COMPILE FILE: what kjit-compile says of FILE with one limit after the other, for both targets; and that with all of them larger it compiles."""
import subprocess
import sys

*program, path = sys.argv[1:]
LIMITS = ["instances=3", "expressions=60", "unrolled=99", "instructions=150", "memory=0.05", "code=0.5", "time=1e-6"]
LARGER = ["instances=10", "expressions=1e6", "unrolled=1e4", "instructions=1e6", "memory=1e3", "code=1e3", "time=none"]


def compile_with(target, limits):
    command = [*program, path, "--arch", target, "--emit", "ptx" if target != "cpu" else "object", "--signature", "f32[:]", "-o", "/dev/null"]
    return subprocess.run(command + [part for limit in limits for part in ("--compile-limit", limit)], capture_output=True, text=True)


for target in ("cpu", "sm_90"):
    for limit in LIMITS:
        done = compile_with(target, [limit])
        lines = [line for line in done.stderr.splitlines() if "error: the limit" in line]
        print(f"{target} {limit}: {lines[0].removeprefix(path + ':') if done.returncode == 3 and lines else done}")
print("all of them larger:", ", ".join(f"{target} {'compiles' if compile_with(target, LARGER).returncode == 0 else 'fails'}" for target in ("cpu", "sm_90")))
