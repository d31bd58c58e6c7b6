"""large_kernels.py KJIT_RUN DEVICE: kernels so large that they go through fewer passes give what the same statements give in Python: thousands of element updates in one block, of ifs and
loops, one long chain of values, and checks of subscripts, of which one fails and is told: among few, where each place has a call of its own, and among hundreds, which share calls."""
import subprocess
import sys
import tempfile

import numpy as np


def stores(n):
    lines, r, x = [], [0.0] * 64, list(range(64))
    for k in range(n):
        lines.append(f"  r[{k % 64}] = x[{(k + 1) % 64}] * s + r[{(k * 7) % 64}] * 0.5")
        r[k % 64] = np.float32(np.float32(x[(k + 1) % 64] * np.float32(2)) + np.float32(np.float32(r[(k * 7) % 64]) * np.float32(0.5)))
    return lines, r


def blocks(n):
    lines, a, r = ["  var a = x[3]", "  var c = i32(0)"], 3, 0
    c = 0
    for k in range(n):
        if k % 3:
            lines.append(f"  if c % {k % 7 + 2} == {k % 2} {{\n    c += {k % 5 + 1}\n  }}")
            c += (k % 5 + 1) if c % (k % 7 + 2) == k % 2 else 0
        else:
            lines.append(f"  for j in range(n) {{\n    c = (c * 3 + {k % 11}) % 1009\n  }}")
            c = (c * 3 + k % 11) % 1009
            c = (c * 3 + k % 11) % 1009
    lines.append("  r[0] = c + a")
    return lines, [c + a] + [0] * 63


def lets(n):
    lines, value = ["  let v0 = x[1]"], np.float32(1)
    for k in range(1, n):
        lines.append(f"  let v{k} = v{k - 1} * 0.5 + {k % 13}")
        value = np.float32(np.float32(value * np.float32(0.5)) + np.float32(k % 13))
    lines.append(f"  r[0] = v{n - 1}")
    return lines, [value] + [0] * 63


def compare(n, failing=None, first="  var c = i32(0)"):
    lines, c, x = [first], 0, range(64)
    for k in range(n):
        a, b = k * 7 % 60 + 2, k * 11 % 60 + 2
        lines.append(f"  if x[n + {64 if k == failing else a - 2}] > x[n + {b - 2}] {{ c += {k % 5 + 1} }} else {{ c = (c + {k % 7}) % 1009 }}")
        c = c + k % 5 + 1 if x[a] > x[b] else (c + k % 7) % 1009
    return lines + ["  r[0] = c"], [c] + [0] * 63


def run(kjit_run, device, name, lines, checks):
    with tempfile.TemporaryDirectory() as folder:
        source, result = f"{folder}/{name}.kir", f"{folder}/r.npy"
        with open(source, "w") as file:
            file.write("kernel k(r, x, s, n) @strict {\n" + "\n".join(lines) + "\n}\n")
        np.save(f"{folder}/x.npy", np.arange(64, dtype=np.float32))
        command = [kjit_run, source, "--device", device, "--quiet", "--checks", checks, "--arg", "r=zeros:f32[64]", "--arg", f"x=@{folder}/x.npy", "--launch", "k[1, 1](r, x, 2, 2)",
                   "--save", f"r={result}"]
        done = subprocess.run(command, timeout=200, capture_output=True, text=True)
        return done, np.load(result) if not done.returncode else None


def check(kjit_run, device, name, made, checks="none"):
    lines, expected = made
    done, found = run(kjit_run, device, name, lines, checks)
    if done.returncode:
        sys.exit(f"{name}: {done.stderr}")
    if not np.allclose(found, expected, rtol=1e-6):
        sys.exit(f"{name}: {found} instead of {np.array(expected, dtype=np.float32)}")
    print(f"{name}: right")


def check_failing(kjit_run, device, n, failing):
    done, _ = run(kjit_run, device, "failing", compare(n, failing)[0], "usual")
    for expected in (f"failing.kir:{failing + 3}:", "66"):
        if expected not in done.stderr:
            sys.exit(f"statement {failing} of {n} fails: expected `{expected}` in {done.stderr!r}")


# The kernel contains an access that would be out of bounds, so the version with all checks runs, and no other version
# is compiled.
UNREACHED = "  var c = i32(0)\n  if s > 5 { c += i32(x[n + 64]) }"

for name, made in [("stores", stores(2500)), ("blocks", blocks(1500)), ("50 loops", blocks(150)), ("lets", lets(6000)), ("uses", lets(9000))]:
    check(*sys.argv[1:3], name, made)
for n in (60, 600):
    check(*sys.argv[1:3], f"{n} checks", compare(n), "usual")
    check(*sys.argv[1:3], f"{n} checks and one that is not reached", compare(n, first=UNREACHED), "usual")
    for failing in (3, n // 2, n - 1):
        check_failing(*sys.argv[1:3], n, failing)
print("failing: right")
