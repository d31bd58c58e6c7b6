"""large_kernels.py KJIT_RUN DEVICE: kernels so large that they go through fewer passes give what the same statements give in Python: thousands of element updates in one block, of ifs and
loops, and one long chain of values."""
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


def check(kjit_run, device, name, made):
    lines, expected = made
    with tempfile.TemporaryDirectory() as folder:
        source, result = f"{folder}/{name}.kir", f"{folder}/r.npy"
        with open(source, "w") as file:
            file.write("kernel k(r, x, s, n) @strict {\n" + "\n".join(lines) + "\n}\n")
        np.save(f"{folder}/x.npy", np.arange(64, dtype=np.float32))
        command = [kjit_run, source, "--device", device, "--quiet", "--checks", "none", "--arg", "r=zeros:f32[64]", "--arg", f"x=@{folder}/x.npy", "--launch", "k[1, 1](r, x, 2, 2)",
                   "--save", f"r={result}"]
        subprocess.run(command, check=True, timeout=200)
        found = np.load(result)
        if not np.allclose(found, expected, rtol=1e-6):
            sys.exit(f"{name}: {found} instead of {np.array(expected, dtype=np.float32)}")
        print(f"{name}: right")


for name, made in [("stores", stores(2500)), ("blocks", blocks(1500)), ("lets", lets(6000))]:
    check(sys.argv[1], sys.argv[2], name, made)
