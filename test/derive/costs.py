#!/usr/bin/env python3
"""costs.py: what a value and its gradient cost, compared with the value alone.

Counts the instructions of each func of Inputs/costs.kir and of its `vjp`: those of LLVM's IR for sm_90 in f64, and those of the PTX in f64 and in f32. A loop that is left
counts once, and so does a call of a function of libclc. PTX has an instruction for a product and a sum. With --times it also compares the times of compilation. With --limit
the exit status is 1 where a mean ratio is larger than its limit, or where a ratio of PTX exceeds 4.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
import time

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "Inputs", "costs.kir")


def read_funcs():
    with open(SOURCE) as file:
        text = file.read()
    return text, [(name, len(params.split(","))) for name, params in re.findall(r"^func (\w+)\(([^)]*)\) @noinline", text, re.M)]


def make_source(text, name, count, is_gradient):
    arguments = ", ".join(f"x[{i}]" for i in range(count))
    lines = [f"kernel measured(x, r) {{", f"  let p = vjp({name})({arguments}, x[{count}])" if is_gradient else f"  let p = {name}({arguments})"]
    lines += [f"  r[{i}] = p[{i}]" for i in range(count + 1)] if is_gradient else ["  r[0] = p"]
    return text + "\n".join([*lines, "}", ""])


def compile_one(options, path, stage, type_name):
    command = [options.kjit_compile, path, "--quiet", "--emit", stage, "--arch", "sm_90", "--libdevice", "libclc", "--kernel", "measured", "--signature", f"{type_name}[:] C, {type_name}[:] C"]
    start = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"costs.py: {' '.join(command)}\n{done.stdout}")
    return done.stdout, time.perf_counter() - start


def count_llvm(text, name):
    """The instructions of the func, which is not inlined. Its results lie in registers: a tuple of them is made by no instruction."""
    body = re.search(rf"^define [^\n]*@\"?{name}[^\n]*\{{\n(.*?)^\}}", text, re.M | re.S)
    return len([line for line in body.group(1).split("\n") if re.match(r"\s+\S", line) and " = insertvalue " not in line])


def count_ptx(text, name):
    body = re.search(rf"^\.func[^\{{;]*\b{name}[^\{{;]*\n\{{\n(.*?)^\}}", text, re.M | re.S)
    return len([line for line in body.group(1).split("\n") if re.match(r"\s+[@a-z]", line) and not re.match(r"\s+\.", line)])


def count_instructions(options, folder, text, name, count):
    """((llvm, ptx in f64, ptx in f32) of the value, the same of both, seconds of the value, of both)."""
    result, seconds = [], []
    for is_gradient in False, True:
        path = os.path.join(folder, "costs.kir")
        with open(path, "w") as file:
            file.write(make_source(text, name, count, is_gradient))
        llvm, _ = compile_one(options, path, "llvm-opt", "f64")
        wide, _ = compile_one(options, path, "ptx", "f64")
        ptx, first = compile_one(options, path, "ptx", "f32")
        seconds.append(min([first] + [compile_one(options, path, "ptx", "f32")[1] for _ in range(4 if options.times else 0)]))
        result.append((count_llvm(llvm, name), count_ptx(wide, name), count_ptx(ptx, name)))
    return [*result, *seconds]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kjit-compile", required=True)
    parser.add_argument("--times", action="store_true")
    parser.add_argument("--limit", type=float, nargs=2, metavar=("LLVM", "PTX"))
    options = parser.parse_args()
    text, funcs = read_funcs()
    ratios = []
    print(f"{'func':15}{'LLVM IR, f64':>24}{'PTX, f64':>24}{'PTX, f32':>24}" + (f"{'compilation':>14}" if options.times else ""))
    with tempfile.TemporaryDirectory() as folder:
        for name, count in funcs:
            value, both, value_time, both_time = count_instructions(options, folder, text, name, count)
            ratio = [b / v for v, b in zip(value, both)] + [both_time / value_time]
            ratios.append(ratio)
            columns = "".join(f"{v:8}{b:8}{r:8.2f}" for v, b, r in zip(value, both, ratio))
            print(f"{name:15}{columns}" + (f"{ratio[3]:14.2f}" if options.times else ""))
    means = [sum(column) / len(column) for column in zip(*ratios)]
    most = [max(column) for column in zip(*ratios)]
    columns = "".join(f"{mean:16.2f}{largest:8.2f}" for mean, largest in zip(means[:3], most))
    print(f"{'mean, largest':15}{columns}" + (f"{means[3]:14.2f}" if options.times else ""))
    if options.limit:
        sys.exit(means[0] > options.limit[0] or max(means[1:3]) > options.limit[1] or max(most[1:3]) > 4)


main()
