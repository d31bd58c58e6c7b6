"""periodic.py KJIT_RUN: compares indices of neighbours in a periodic array with NumPy's remainders, for all small n and
for random n, in the same types, which wrap in the same way."""
import os
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
import seeds

FORMS = ["(i + 1) % n", "(1 + i) % n", "(i - 1) % n", "(i + n - 1) % n", "(n + i - 1) % n", "(i - 1 + n) % n", "(i + (n - 1)) % n", "(i + 2) % n", "(i - 2) % n", "(i + 1) % m", "(j + 1) % n", "(i + n) % n"]
SOURCE = """
kernel loops(n, m, r) {
  for i in range(n) {
    let j = n - i
%s  }
}
kernel grids(x, m, r) {
  for i in grid_range(x.size) {
    let n = x.size
    let j = n - i
%s  }
}
kernel last(n, m, r) {
  for i in range(n) {
    if n - i <= 3 {
      let j = n - i
      let q = 3 - i32(n - i)
%s    }
  }
}
kernel changed(n, m, r) {
  var k = n
  for i in range(k) {
    let j = n - i
%s    k = m
  }
}
"""


def body(forms):
    return "".join(f"    r[i, {k}] = i64({form})\n" for k, form in enumerate(forms))


def expected(n, m, dtype, forms, first=0):
    """Returns the values for i from `first` on. Integers with 8 and 16 bits are computed in i32."""
    dtype = np.int32 if np.dtype(dtype).itemsize < 4 else dtype
    with np.errstate(all="ignore"):
        i, n, m, one, two = np.arange(first, n, dtype=dtype), dtype(n), dtype(m), dtype(1), dtype(2)
        names = {"i": i, "n": n, "m": m, "j": n - i, "k": np.where(i == 0, n, m).astype(dtype)}
        return np.stack([eval(form.replace("1", "one").replace("2", "two"), {}, names | {"one": one, "two": two}).astype(np.int64) for form in forms], 1)


def run(kjit_run, folder, kernel, arguments, n, columns):
    path = os.path.join(folder, "r.npy")
    command = [kjit_run, os.path.join(folder, "k.kir"), "--quiet", "--device", "cpu", "--checks", "none", "--launch", f"{kernel}(a, b, r)", "--arg", f"r=zeros:i64[{n}, {columns}]", "--save", f"r={path}"]
    done = subprocess.run(command + arguments, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"periodic.py: {' '.join(command + arguments)}\n{done.stderr}")
    return np.load(path)


def check(what, found, want, forms):
    for k, form in enumerate(forms):
        wrong = np.flatnonzero(found[:, k] != want[:, k])
        if wrong.size:
            sys.exit(f"periodic.py: {what}: {form} for i = {wrong[0]}: {found[wrong[0], k]}, expected {want[wrong[0], k]}")


def main():
    rng = seeds.fresh_generator()
    changed = [form.replace("n)", "k)").replace("% n", "% k") for form in FORMS if "j" not in form]
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "k.kir"), "w") as file:
            file.write(SOURCE % (body(FORMS), body(FORMS), body(FORMS).replace("r[i,", "r[q,"), body(changed)))
        for dtype in (np.int8, np.uint16, np.int32, np.uint32, np.int64, np.uint64):
            name = {"i": "i", "u": "u"}[np.dtype(dtype).kind] + str(8 * np.dtype(dtype).itemsize)
            most = min(int(np.iinfo(dtype).max), 40000)
            for n in {1, 2, most, int(rng.integers(3, most))}:
                m = int(rng.integers(1, n + 1))
                arguments = ["--arg", f"a={n}{name}", "--arg", f"b={m}{name}"]
                check(f"loops of {name}, n = {n}, m = {m}", run(sys.argv[1], folder, "loops[1, 1]", arguments, n, len(FORMS)), expected(n, m, dtype, FORMS), FORMS)
                found = run(sys.argv[1], folder, "changed[1, 1]", arguments, n, len(changed))
                check(f"changed of {name}, n = {n}, m = {m}", found, expected(n, m, dtype, changed), changed)
        for dtype in (np.int32, np.uint32):
            n, m, name = int(np.iinfo(dtype).max), int(rng.integers(1, 1000)), {"i": "i32", "u": "u32"}[np.dtype(dtype).kind]
            found = run(sys.argv[1], folder, "last[1, 1]", ["--arg", f"a={n}{name}", "--arg", f"b={m}{name}"], 3, len(FORMS))
            check(f"last of {name}", found, expected(n, m, dtype, FORMS, n - 3), FORMS)
        for n in (1, 2, 3, int(rng.integers(4, 5000))):
            m = int(rng.integers(1, n + 1))
            found = run(sys.argv[1], folder, "grids", ["--arg", f"a=zeros:f32[{n}]", "--arg", f"b={m}i64"], n, len(FORMS))
            check(f"grids, n = {n}, m = {m}", found, expected(n, m, np.int64, FORMS), FORMS)


main()
