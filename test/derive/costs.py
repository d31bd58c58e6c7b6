#!/usr/bin/env python3
"""costs.py: what a value and its gradient cost, compared with the value alone.

Counts the instructions of each func of Inputs/costs.kir and of its `vjp`: those of LLVM's IR for sm_90 in f64, and those of the PTX in f64 and in f32. A loop that is left
counts once, and so does a call of a function of libclc. PTX has an instruction for a product and a sum. With --times it also compares the processor times of whole compilations in f32, the minima of nine, for the
CPU and for sm_90. With --machine it counts the machine code for this x86-64 processor in f64 instead: the whole kernel, which also loads the arguments, and how many of its
instructions access the stack or copy registers. With --limit
the exit status is 1 where a mean ratio is larger than its limit, or where a ratio of PTX exceeds 4.
"""
import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile

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


def compile_one(options, path, stage, type_name, arch="sm_90", more=()):
    command = [options.kjit_compile, path, *more, "--quiet", "--emit", stage, "--arch", arch, "--libdevice", "libclc", "--kernel", "measured", "--signature", f"{type_name}[:] C, {type_name}[:] C"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"costs.py: {' '.join(command)}\n{done.stdout}")
    return done.stdout


def measure_compilation(options, path, stage, arch):
    """Returns the processor time of a compilation. Other programs on a busy machine change it only a little."""
    seconds = []
    for _ in range(9):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        compile_one(options, path, stage, "f32", arch)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(seconds)


def count_llvm(text, name):
    """Counts the instructions of the func, which is not inlined. Its results are in registers, and a tuple of them
    needs no instructions."""
    body = re.search(rf"^define [^\n]*@\"?{name}[^\n]*\{{\n(.*?)^\}}", text, re.M | re.S)
    return len([line for line in body.group(1).split("\n") if re.match(r"\s+\S", line) and " = insertvalue " not in line])


def count_ptx(text, name):
    body = re.search(rf"^\.func[^\{{;]*\b{name}[^\{{;]*\n\{{\n(.*?)^\}}", text, re.M | re.S)
    return len([line for line in body.group(1).split("\n") if re.match(r"\s+[@a-z]", line) and not re.match(r"\s+\.", line)])


def count_instructions(options, folder, text, name, count):
    """Returns the counts for the value, and for value and gradient: LLVM IR, PTX in f64, PTX in f32, and with --times
    the seconds for the CPU and for sm_90."""
    result = []
    for is_gradient in False, True:
        path = os.path.join(folder, "costs.kir")
        with open(path, "w") as file:
            file.write(make_source(text, name, count, is_gradient))
        counts = [count_llvm(compile_one(options, path, "llvm-opt", "f64"), name), *(count_ptx(compile_one(options, path, "ptx", t), name) for t in ("f64", "f32"))]
        times = [measure_compilation(options, path, *form) for form in (("asm", "cpu"), ("ptx", "sm_90"))] if options.times else []
        result.append([*counts, *times])
    return result


def count_machine(text):
    """Returns the number of instructions, and the share of spill code: stack accesses and copies between registers."""
    lines = [line.strip() for line in text.split("\n") if re.match(r"\s+[a-z]", line)]
    return len(lines), len([line for line in lines if "(%rsp)" in line or (re.match(r"v?mov", line) and "(" not in line)])


def show_machine(options, folder, text, funcs):
    """Prints the counts for the value, and for value and gradient, and their ratios, with all instructions and without
    spill code."""
    print(f"{'func':15}{'machine code':>16}{'ratio':>8}{'stack, copies':>16}{'ratio without':>16}")
    ratios = []
    for name, count in funcs:
        (value, spilled), (both, both_spilled) = (count_machine(compile_kernel(options, folder, make_source(text, name, count, is_gradient))) for is_gradient in (False, True))
        ratios.append((both / value, (both - both_spilled) / (value - spilled)))
        print(f"{name:15}{value:8}{both:8}{ratios[-1][0]:8.2f}{spilled:8}{both_spilled:8}{ratios[-1][1]:16.2f}")
    print(f"{'mean':31}{sum(r[0] for r in ratios) / len(ratios):8.2f}{sum(r[1] for r in ratios) / len(ratios):32.2f}")


def compile_kernel(options, folder, source):
    path = os.path.join(folder, "costs.kir")
    with open(path, "w") as file:
        file.write(source)
    return compile_one(options, path, "asm", "f64", "cpu", ["--checks", "none"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kjit-compile", required=True)
    parser.add_argument("--times", action="store_true")
    parser.add_argument("--machine", action="store_true")
    parser.add_argument("--limit", type=float, nargs=2, metavar=("LLVM", "PTX"))
    options = parser.parse_args()
    text, funcs = read_funcs()
    if options.machine:
        with tempfile.TemporaryDirectory() as folder:
            show_machine(options, folder, text, funcs)
        return
    ratios = []
    print(f"{'func':15}{'LLVM IR, f64':>24}{'PTX, f64':>24}{'PTX, f32':>24}" + (f"{'compilation: CPU':>20}{'sm_90':>8}" if options.times else ""))
    with tempfile.TemporaryDirectory() as folder:
        for name, count in funcs:
            value, both = count_instructions(options, folder, text, name, count)
            ratio = [b / v for v, b in zip(value, both)]
            ratios.append(ratio)
            columns = "".join(f"{v:8}{b:8}{r:8.2f}" for v, b, r in zip(value[:3], both, ratio))
            print(f"{name:15}{columns}" + (f"{ratio[3]:20.2f}{ratio[4]:8.2f}" if options.times else ""))
    means = [sum(column) / len(column) for column in zip(*ratios)]
    most = [max(column) for column in zip(*ratios)]
    columns = "".join(f"{mean:16.2f}{largest:8.2f}" for mean, largest in zip(means[:3], most))
    print(f"{'mean, largest':15}{columns}" + (f"{means[3]:12.2f}{most[3]:8.2f}{means[4]:8.2f}{most[4]:8.2f}" if options.times else ""))
    if options.limit:
        sys.exit(means[0] > options.limit[0] or max(means[1:3]) > options.limit[1] or max(most[1:3]) > 4)


main()
