#!/usr/bin/env python3
"""scalar_types.py --table include/kjit/types.def --kjit-compile PROGRAM --kjit-run PROGRAM [--device cuda]: computes
with every scalar type in the table, converts it to every other type, stores it in every memory space and prints it. The
code is compiled for each target, and the device must compute the right values. A type without a lowering fails."""
import argparse
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "random"))
import values

TARGETS = ("cpu", "sm_75", "sm_80", "sm_90", "sm_100")


def kernel(t, types):
    """Returns the source, and the contents of r for x = 1."""
    is_complex = types[t] == "COMPLEX"
    number = lambda text: f"real({text})" if is_complex else text
    cases = [(number("a + b"), 2), (number("a * b"), 1), (number("a - b"), 0), ("a == b ? 1 : 2", 1), (number("zero(T) * b"), 0), (number("s[0]"), 1), (number("l[i32(x[0] != x[1])]"), 1),
             (number("choose(a, b)"), 1), (number("c[0]"), 1), ("i32(sizeof(T)) // sizeof(T)", 1)]
    if not is_complex:
        cases += [("a < b ? 1 : 2", 2), ("min(a, b)", 1), ("v.x + v.y", 2), ("(v * v).y" if types[t] != "BOOL" else "v.y", 1), ("a // b" if types[t] != "BOOL" else "1", 1), ("i32(-a)", -1) if types[t] in ("SIGNED", "FLOAT") else ("1", 1)]
    for u, kind in types.items():
        if kind == "COMPLEX":
            cases.append((f"real({u}(a))", 1))
        elif not is_complex:
            cases.append((u + "(a)", 1))
    lines = [f"const C: {t}[2] = {{ {t}(1), {t}(0) }}", f"func choose(a: {t}, b: {t}) @noinline {{ return a == b ? a : b }}", f"kernel k(r, x) @grid(1) @block(1) {{", f"  shared s: {t}[2]", f"  local l: {t}[2]",
             "  let a = x[0], b = x[1]".replace(", b", "\n  let b"), "  let c = C", "  s[0] = a", "  l[0] = b", "  l[1] = a", *([] if is_complex else [f"  let v = {t}x2(a, b)"]), '  print(a, x[1])']
    lines += [f"  r[{n}] = f64({text.replace('(T)', f'({t})')})" for n, (text, _) in enumerate(cases)]
    return "\n".join(lines + ["}", ""]), [value for _, value in cases]


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout, done.stderr if done.returncode else None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("table", "kjit-compile", "kjit-run"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    types = {name: kind for name, kind in re.findall(r'^KJIT_ROW\(\w+, "(\w+)", \d+, (\w+),', open(options.table).read(), re.M)}
    wrong = [f"{t}: random kernels do not have it: values.SCALARS" for t, kind in types.items() if kind != "COMPLEX" and t not in values.SCALARS]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "k.kir")
        for t in types:
            text, expected = kernel(t, types)
            open(path, "w").write(text)
            for arch in TARGETS:
                _, error = run(options.kjit_compile, path, "-q", "-s", f"f64[:],{t}[:]", "-a", arch, "-o", os.devnull, "--emit", "asm" if arch == "cpu" else "ptx")
                wrong += [f"{t} for {arch}: {error}"] if error else []
            output, error = run(options.kjit_run, path, "--device", options.device, "--arg", f"r=zeros:f64[{len(expected)}]", "--arg", f"x=ones:{t}[2]", "--launch", "k(r, x)", "--print", "r")
            got = re.search(r"r: f64.* = \[(.*?)\]", output, re.S)
            got = [float(n) for n in re.split(r"[,\s]+", got[1].strip())] if got else None
            if error or got != expected:
                wrong.append(f"{t} on {options.device}: got {got}, expected {expected}: {error or output}")
    print("\n".join(wrong) or f"{len(types)} types right")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
