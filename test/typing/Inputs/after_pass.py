"""after_pass.py KJIT-COMPILE PASSES.DEF FILE.kir TOOLS.md: checks the typed IR after each pass of the table, for each
kind of request, and that docs/tools.md lists the same passes as the table."""
import re
import subprocess
import sys

compiler, table, kernel, manual = sys.argv[1:]
rows = re.findall(r'^PASS\("([^"]+)",\s*\w+,\s*(\w+),', open(table).read(), re.MULTILINE)
names = [name for name, _ in rows]
assert len(names) >= 10 and len(set(names)) == len(names), names

SUMS = ["--kernel", "sums", "--signature", "i32[:] C, const i32[:] C, 8", "--block", "64", "--facts", "all"]
RATIO = ["--func", "ratio", "--signature", "i32, i32"]
CPU, GPU, CHECKS = [], ["--arch", "sm_90"], ["--checks", "usual"]
# the request, and the conditions of passes.def that it fulfils
REQUESTS = [
    (SUMS + CPU, "ALWAYS CPU_KERNEL"),
    (SUMS + CPU + CHECKS, "ALWAYS CPU_KERNEL CHECKED"),
    (SUMS + GPU, "ALWAYS GPU WITHOUT_THREAD_LOOPS GPU_NEVER_FAILING"),
    (SUMS + GPU + CHECKS, "ALWAYS GPU WITHOUT_THREAD_LOOPS CHECKED"),
    (SUMS + CPU + ["--interruptible"], "ALWAYS CPU_KERNEL INTERRUPTIBLE"),
    (SUMS + GPU + ["--interruptible"], "ALWAYS GPU WITHOUT_THREAD_LOOPS GPU_NEVER_FAILING INTERRUPTIBLE"),
    (RATIO + CPU + CHECKS, "ALWAYS C_FUNCTION WITHOUT_THREAD_LOOPS CHECKED"),
]


def emit(request, *more):
    done = subprocess.run([compiler, kernel, "--quiet", "--emit", "typed", *request, *more], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def check(request, conditions):
    """Returns the trees after each pass that runs, by name."""
    runs = [name for name, condition in rows if condition in conditions.split()]
    trees = {}
    for name in names:
        status, tree, errors = emit(request, "--after", name)
        if name in runs:
            assert status == 0 and re.search(r"^(kernel|func) \w+\(", tree, re.MULTILINE), (request, name, errors)
            trees[name] = tree
        else:
            assert status == 3 and f"{', '.join(runs)}, got `{name}`" in errors, (request, name, errors)
    assert emit(request) == (0, trees[runs[-1]], ""), request
    return trees


seen = set()
for request, conditions in REQUESTS:
    trees = check(request, conditions)
    seen.update(trees)
    in_order = list(trees.values())
    # the effect of a pass must be present after it and not before
    for mark, maker in [("threads {", "thread-loops"), (" narrow", "narrow-indices")]:
        narrows = maker != "narrow-indices" or "--arch" in request  # only for subscripts, and only on GPUs
        if maker in trees and "--checks" not in request and narrows:
            at = list(trees).index(maker)
            assert mark in in_order[at] and all(mark not in tree for tree in in_order[:at]), (request, mark)
    if "early-loads" in trees:
        assert "staged" in trees["early-loads"] and "staged" not in trees["version-loops"], request
assert seen == set(names), set(names) - seen

described = re.findall(r'^PASS\("([^"]+)",[^"]*"([^"]+)"\)', open(table).read(), re.MULTILINE)
listed = re.findall(r"^\| `([^`]+)` \| [^|]* \| ([^|]*) \|$", open(manual).read().split("--after PASS` shows", 1)[1], re.MULTILINE)
assert listed[:len(described)] == described, "docs/tools.md lists other passes than lib/pass/passes.def"
