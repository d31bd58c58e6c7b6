#!/usr/bin/env python3
"""assemble.py EXAMPLES: compiles every program in the folder for several architectures and passes the PTX to ptxas.
Prints errors."""
import argparse
import itertools
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
from share import share_of

MATRICES = "f32[:, :] C, const f32[:, :] C, const f32[:, :] C"
PROGRAMS = [
    ("axpy", "axpy", "f32[:] C, f32, const f32[:] C, const f32[:] C"),
    ("axpy", "axpy", "f64[:], f64, const f64[:], const f64[:] C"),
    ("vector_add", None, "f32[:] C, const f32[:] C, const f32[:] C"),
    ("abs_sum", "abs_sum", "f32[:] C, const f32[:] C"),
    ("normalize_rows", "normalize_rows", "f32[:, :] C, const f32[:, :] C"),
    ("matmul", "matmul_naive", MATRICES),
    ("matmul", "matmul", MATRICES + ", 16"),
    ("diffusion", "diffusion", "f32[:, :] C, const f32[:, :] C, 8"),
    ("black_scholes", "black_scholes", "f32[:] C, f32[:] C, const f32[:] C, const f32[:] C, const f32[:] C, f32, f32"),
    ("black_scholes", "black_scholes", "f64[:] C, f64[:] C, const f64[:] C, const f64[:] C, const f64[:] C, f64, f64"),
]


def kernels(compiler, path):
    lines = subprocess.run([compiler, path, "--list"], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    return [line.split("(")[0].strip() for line in lines if "(" in line]


def refusal(arguments, path, kernel, signature, arch, facts, folder):
    ptx = os.path.join(folder, "code.ptx")
    command = [arguments.kjit_compile, path, "-q", "-k", kernel, "-s", signature, "--arch", arch, "--facts", facts, "--checks", arguments.checks, "--emit", "ptx", "-o", ptx]
    option = {"": [], "lineinfo": ["-lineinfo"], "debug": ["-g"]}[arguments.information]
    command += ["--" + arguments.information] if arguments.information else []
    for step in (command, [arguments.ptxas, *option, "-arch", arch, ptx, "-o", os.path.join(folder, "code.cubin")]):
        result = subprocess.run(step, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if result.returncode:
            return " ".join(step) + "\n" + result.stdout
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("examples")
    parser.add_argument("--kjit-compile", required=True)
    parser.add_argument("--ptxas", required=True)
    parser.add_argument("--information", default="", choices=["lineinfo", "debug"])
    parser.add_argument("--checks", default="none")
    arguments = parser.parse_args()
    cases, refused = [], []
    for program, kernel, signature in PROGRAMS:
        path = os.path.join(arguments.examples, program, program + ".kir")
        names = [kernel] if kernel else kernels(arguments.kjit_compile, path)
        cases += [(path, *case) for case in itertools.product(names, [signature], ("sm_75", "sm_80", "sm_90", "sm_100"), ("all", ""))]
    with tempfile.TemporaryDirectory() as folder:
        for case in share_of(cases, "assemble", arguments.information, arguments.checks):
            refused += filter(None, [refusal(arguments, *case, folder)])
    print("\n".join(refused))
    return bool(refused)


if __name__ == "__main__":
    sys.exit(main())
