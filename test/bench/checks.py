#!/usr/bin/env python3
"""checks.py [EXAMPLE...]: measures the cost of the usual checks for the example programs. Prints the minimum time of
kjit-run --bench without checks and with them, and their ratio."""
import argparse
import os
import re
import subprocess

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")
VECTORS = "r=zeros:f32[2000000] x=rand:f32[2000000] y=rand:f32[2000000]"
MATRICES = "C=zeros:f32[256,256] A=rand:f32[256,256] B=rand:f32[256,256]"
OPTIONS = "call=zeros:f32[200000] put=zeros:f32[200000] s=rand:f32[200000]:low=5:high=30 x=rand:f32[200000]:low=1:high=100 t=rand:f32[200000]:low=0.25:high=10"
ROWS = {
    "axpy": ("axpy", VECTORS + " a=2.5f32", "axpy"),
    "black_scholes": ("black_scholes", OPTIONS, "black_scholes(call, put, s, x, t, 0.02f32, 0.3f32)"),
    "diffusion": ("diffusion", "next=zeros:f32[1000,1000] field=rand:f32[1000,1000]", "diffusion[125x125,8x8](next, field, 8)"),
    "mandelbrot": ("mandelbrot", "steps=zeros:i32[100,100]", "mandelbrot(steps, -2.0f64, 1.0f64, 0.02f64, 200)"),
    "matmul_naive": ("matmul", MATRICES, "matmul_naive[16x16,16x16](C, A, B)"),
    "matmul": ("matmul", MATRICES, "matmul(C, A, B)"),
    "normalize_rows": ("normalize_rows", "out=zeros:f32[1000,1000] A=rand:f32[1000,1000]", "normalize_rows[1000,256](out, A)"),
    "vector_add": ("vector_add", VECTORS, "vector_add(r, x, y)"),
    "vector_add_stride": ("vector_add", VECTORS, "vector_add_stride[1000,256](r, x, y)"),
    "vector_add_guard": ("vector_add", VECTORS, "vector_add_guard[7813,256](r, x, y)"),
    "abs_sum": ("abs_sum", "total=zeros:f32[1] x=rand:f32[2000000]", "abs_sum[100,256](total, x)"),
    "histogram256": ("histogram", "bins=zeros:u32[256] data=randint:u8[4000000]:high=256", "histogram256[64,256](bins, data)"),
    "transpose": ("transpose", "out=zeros:f32[1024,1024] in_=rand:f32[1024,1024]", "transpose(out, in_)"),
}
UNITS = {"ns": 1e-3, "us": 1, "ms": 1e3, "s": 1e6}


def measure(tool, device, row, checks, repetitions):
    folder, arrays, launch = row
    command = [tool, "-q", "--no-cache", "--device", device, "--checks", checks, os.path.join(EXAMPLES, folder, folder + ".kir"), "--launch", launch, "--bench", str(repetitions)]
    for array in arrays.split():
        command += ["--arg", array]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    found = re.search(r"(?:min|least) ([0-9.]+) (ns|us|ms|s)\b", done.stdout)
    return float(found.group(1)) * UNITS[found.group(2)] if found else None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("examples", nargs="*", default=list(ROWS))
    parser.add_argument("--kjit-run", default=os.environ.get("KJIT_RUN", "kjit-run"))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repetitions", type=int, default=15)
    arguments = parser.parse_args()
    print(f"{'example':20}{'unchecked us':>14}{'checked us':>14}{'ratio':>8}")
    for name in arguments.examples:
        plain, checked = (measure(arguments.kjit_run, arguments.device, ROWS[name], checks, arguments.repetitions) for checks in ("none", "usual"))
        if plain and checked:
            print(f"{name:20}{plain:14.1f}{checked:14.1f}{checked / plain:8.2f}")
        else:
            print(f"{name:20}{'was not measured':>36}")


if __name__ == "__main__":
    main()
