"""compile_limits.py KJIT_COMPILE FILE: prints the messages of kjit-compile for FILE with each limit in turn, for both
targets, and checks that FILE compiles if all limits are larger. Then compiles a kernel with many variables and loops,
whose instructions alone would not exceed the limit."""
import subprocess
import sys
import tempfile

*program, path = sys.argv[1:]
LIMITS = ["instances=3", "expressions=60", "unrolled=99", "instructions=150", "memory=0.01", "memory=0.03", "code=0.5", "time=1e-6"]
LARGER = ["instances=10", "expressions=1e6", "unrolled=1e4", "instructions=1e6", "memory=1e3", "code=1e3", "time=none"]


VARIABLES = 500
WIDE = "kernel k(x) {\n%s\n%s\n}\n" % ("\n".join("var v%d = x[%d]" % (i, i) for i in range(VARIABLES)), "\n".join("while x[0] > %d { v%d = v%d * 2 }\nx[%d] = v%d" % (i, i, i, i, i) for i in range(VARIABLES)))


def compile_with(target, limits, path=path):
    command = [*program, path, "--arch", target, "--emit", "ptx" if target != "cpu" else "object", "--signature", "f32[:]", "-o", "/dev/null"]
    return subprocess.run(command + [part for limit in limits for part in ("--compile-limit", limit)], capture_output=True, text=True)


for target in ("cpu", "sm_90"):
    for limit in LIMITS:
        done = compile_with(target, [limit])
        lines = [line for line in done.stderr.splitlines() if "compilation limit" in line]
        print(f"{target} {limit}: {lines[0].removeprefix(path + ':') if done.returncode == 3 and lines else done}")
print("all of them larger:", ", ".join(f"{target} {'compiles' if compile_with(target, LARGER).returncode == 0 else 'fails'}" for target in ("cpu", "sm_90")))
with tempfile.NamedTemporaryFile("w", suffix=".kir") as file:
    file.write(WIDE)
    file.flush()
    for target in ("cpu", "sm_90"):
        done, larger = compile_with(target, ["instructions=20000"], file.name), compile_with(target, ["instructions=100000"], file.name)
        lines = [line for line in done.stderr.splitlines() if "compilation limit" in line]
        print(f"{target} variables: {lines[0].removeprefix(file.name + ':') if done.returncode == 3 and lines else done}; with a larger limit {larger.returncode}")
