#!/usr/bin/env python3
"""interrupt_cost.py [EXAMPLE...]: measures the cost of interruptible code for the example programs. Prints the minimum
time of kjit-run --bench in microseconds without and with interruptible code, measured in turn, their ratio, the host
time of a launch, and last the geometric mean.

--sass compares machine code for a GPU instead; this needs no GPU. In each example, it takes the loop with most of the
instructions that do the example's work (multiplications, loads, tensor core products). For this loop it prints the
number of instructions for each of these instructions, the registers, the number of all instructions, the spilled bytes,
and the remarks of ptxas."""
import argparse
import math
import os
import re
import subprocess
import tempfile

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")
# The instruction that does most of the work in an example's inner loop.
WORK = {
    "axpy": "FFMA", "vector_add": "FADD", "vector_add_stride": "FADD", "vector_add_guard": "FADD", "abs_sum": "FADD", "histogram256": "ATOMS", "black_scholes": "MUFU", "diffusion": "FADD",
    "mandelbrot": "DSETP", "normalize_rows": "FFMA", "transpose": "STG", "matmul_naive": "FFMA", "matmul": "FFMA", "nbody": "MUFU", "product_f32": "FFMA", "product_bf16": "HGMMA",
}
UNITS = {"ns": 1e-3, "us": 1, "ms": 1e3, "s": 1e6}


def rows(n, side, bodies, steps, product):
    """Rows for arrays with n elements, pictures and matrices of side x side, and products of product x product."""
    vectors = f"r=zeros:f32[{n}] x=rand:f32[{n}] y=rand:f32[{n}]"
    matrices = f"C=zeros:f32[{product},{product}] A=rand:f32[{product},{product}] B=rand:f32[{product},{product}]"
    halves = matrices.replace("f32", "bf16")
    square = f"f32[{side},{side}]"
    m = n // 8
    options = f"call=zeros:f32[{m}] put=zeros:f32[{m}] s=rand:f32[{m}]:low=5:high=30 x=rand:f32[{m}]:low=1:high=100 t=rand:f32[{m}]:low=0.25:high=10"
    blocks = (product + 15) // 16
    return {
        "axpy": ("axpy", vectors + " a=2.5f32", "axpy", None),
        "vector_add": ("vector_add", vectors, "vector_add(r, x, y)", None),
        "vector_add_stride": ("vector_add", vectors, "vector_add_stride[1000,256](r, x, y)", None),
        "vector_add_guard": ("vector_add", vectors, f"vector_add_guard[{(n + 255) // 256},256](r, x, y)", None),
        "abs_sum": ("abs_sum", f"total=zeros:f32[1] x=rand:f32[{n}]", "abs_sum[1056,256](total, x)", None),
        "histogram256": ("histogram", f"bins=zeros:u32[256] data=randint:u8[{2 * n}]:high=256", "histogram256[1056,256](bins, data)", None),
        "black_scholes": ("black_scholes", options, "black_scholes(call, put, s, x, t, 0.02f32, 0.3f32)", None),
        "diffusion": ("diffusion", f"next=zeros:{square} field=rand:{square}", f"diffusion[{side // 8}x{side // 8},8x8](next, field, 8)", None),
        "mandelbrot": ("mandelbrot", f"steps=zeros:i32[{side},{side}]", f"mandelbrot(steps, -2.0f64, 1.0f64, {2.0 / side}f64, {steps})", None),
        "normalize_rows": ("normalize_rows", f"out=zeros:{square} A=rand:{square}", f"normalize_rows[{side},256](out, A)", None),
        "transpose": ("transpose", f"out=zeros:{square} in_=rand:{square}", "transpose(out, in_)", None),
        "matmul_naive": ("matmul", matrices, f"matmul_naive[{blocks}x{blocks},16x16](C, A, B)", None),
        "matmul": ("matmul", matrices, "matmul(C, A, B)", None),
        "nbody": ("nbody", f"acc=zeros:f32x4[{bodies}] pos=rand:f32x4[{bodies}]", "accelerate(acc, pos, 0.01f32)", None),
        "product_f32": ("product_f32", matrices, "product_f32(C, A, B)", "cuda"),
        "product_bf16": ("product_bf16", halves, "product_bf16(C, A, B)", "cuda"),
    }


def command_of(arguments, row, is_interruptible, repetitions):
    folder, arrays, launch, _ = row
    command = [arguments.kjit_run, "-q", "--device", arguments.device, "--interruptible", "yes" if is_interruptible else "no", os.path.join(EXAMPLES, folder, folder + ".kir"), "--launch", launch, "--bench", str(repetitions)]
    for array in arrays.split():
        command += ["--arg", array]
    return command


def measure(arguments, row, is_interruptible):
    """Returns microseconds: the minimum time of the launch on the device, and the median host time of a launch."""
    done = subprocess.run(command_of(arguments, row, is_interruptible, arguments.repetitions), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    found = re.search(r"min ([0-9.]+) (ns|us|ms|s)\b.*host ([0-9.]+) us", done.stdout)
    if not found:
        print(f"{row[2]}: {done.stdout.strip()[:600]}")
    return (float(found.group(1)) * UNITS[found.group(2)], float(found.group(3))) if found else (math.inf, math.inf)


def count(arguments, row, is_interruptible):
    """Thousands of instructions of a launch on the CPU, by valgrind, on one core: of some launches more. The code comes from the disk cache, where the first run has put it, made for the processor that valgrind shows. valgrind cannot read the libraries' own debug information: strip a copy of them."""
    counts = []
    for repetitions in (1, 1, 4):
        watch = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
        command = ["taskset", "-c", "0", *watch, *command_of(arguments, row, is_interruptible, repetitions)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        found = re.search(r"I\s+refs:\s+([0-9,]+)", done.stdout)
        counts.append(int(found.group(1).replace(",", "")) if found else 0)
        if done.returncode:
            print(f"{row[2]}: {done.stdout.strip()[:600]}")
            return math.inf
    return (counts[2] - counts[1]) / 3 / 1000


# ---- machine code ----


def type_of(argument, is_const):
    """Returns an argument or a literal of a launch in the form that kjit-compile takes."""
    array = re.fullmatch(r"\w+:(\w+)\[([^\]]*)\]", re.sub(r":(low|high)=[^:]*", "", argument))
    if array:
        return f"{array.group(1)}[{', '.join([':'] * (array.group(2).count(',') + 1))}] C"
    scalar = re.fullmatch(r"-?[0-9.]+([fiu][0-9]+)?", argument)
    return argument if is_const else scalar.group(1) or "i32"


def signature_of(arguments, row):
    folder, arrays, launch, _ = row
    values = dict(array.split("=", 1) for array in arrays.split())
    kernel, block, given = re.fullmatch(r"(\w+)(?:\[[^,]*,([^\]]*)\])?(?:\((.*)\))?", launch).groups()
    source = os.path.join(EXAMPLES, folder, folder + ".kir")
    listed = subprocess.run([arguments.kjit_compile, source, "--list"], stdout=subprocess.PIPE, text=True, check=True).stdout
    parameters = re.search(rf"^{kernel}\((.*)\)", listed, re.M).group(1)
    names = [re.sub(r"\[[^\]]*\]", "", parameter) for parameter in re.split(r", (?![^\[]*\])", parameters)]
    options = [source, "--kernel", kernel, *(["--block", block] if block else [])]
    for name, value in zip(names, given.split(", ") if given else names):
        if ":" in name:
            continue
        is_const = name.startswith("const ")
        options += ["--type", f"{name.split()[-1]}={type_of(values.get(value, value), is_const)}"]
    return options


def read_sass(text):
    """Returns the instructions, and for each backward branch its target and its position."""
    instructions, labels = [], {}
    for line in text.splitlines():
        label = re.match(r"(\.L\w+):", line)
        instruction = re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;", line)
        if label:
            labels[label.group(1)] = len(instructions)
        elif instruction:
            instructions.append(instruction.group(1))
    goals = [re.search(r"BRA.*`\((\.L\w+)\)", instruction) for instruction in instructions]
    goals = [labels.get(goal.group(1)) if goal else None for goal in goals]
    while instructions and instructions[-1] == "NOP":
        instructions.pop()
    return instructions, goals


def is_look(instruction):
    return "SR_CLOCKLO" in instruction or "STRONG.SYS" in instruction


def executed_in(instructions, goals, first, last):
    """Returns the instructions that a loop executes in iterations without a poll of the clock or the word. The poll is
    in blocks that a branch skips, or to which a branch jumps."""
    hot, at = [], first
    while at <= last:
        hot.append(instructions[at])
        goal = goals[at]
        if goal is not None and at < goal <= last and any(map(is_look, instructions[at + 1 : goal])):
            at = goal
        else:
            at += 1
    return hot


def operation_of(instruction):
    return re.sub(r"^@!?U?P\w+\s+", "", instruction).split()[0].split(".")[0]


def hottest(instructions, goals, work):
    """(how many of the instruction, all of its loop): of loops that have them and are around no other that has, the one with the fewest others beside each, which is the unrolled version for many iterations, or the one that does not look; code without loops is one."""
    loops = [(goal, at) for at, goal in enumerate(goals[: len(instructions)]) if goal is not None and goal < at]
    holds = [loop for loop in loops if any(operation_of(x) == work for x in instructions[loop[0] : loop[1] + 1])]
    inner = [a for a in holds if not any(b != a and a[0] <= b[0] and b[1] <= a[1] for b in holds)]
    found = []
    for first, last in inner or [(0, len(instructions) - 1)]:
        hot = executed_in(instructions, goals, first, last)
        found.append((sum(operation_of(x) == work for x in hot), len(hot)))
    return min((loop for loop in found if loop[0]), key=lambda loop: (loop[1] / loop[0], -loop[0]))


def compare_sass(arguments, name, row):
    options, architecture = signature_of(arguments, row), "sm_90a"
    seen = []
    with tempfile.TemporaryDirectory() as folder:
        ptx, cubin = os.path.join(folder, "a.ptx"), os.path.join(folder, "a.cubin")
        for way in ([], ["--interruptible"]):
            subprocess.run([arguments.kjit_compile, *options, "--arch", architecture, "--facts", "all", "--quiet", *way, "--emit", "ptx", "--output", ptx], check=True)
            made = subprocess.run([arguments.ptxas, "--verbose", "--gpu-name", architecture, ptx, "--output-file", cubin], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True).stdout
            command = [arguments.nvdisasm, "--print-code", cubin] if "nvdisasm" in arguments.nvdisasm else [arguments.nvdisasm, "--dump-sass", cubin]
            text = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
            instructions, goals = read_sass(text)
            count, length = hottest(instructions, goals, WORK[name])
            registers, spilled = re.search(r"Used (\d+) registers", made).group(1), re.search(r"(\d+) bytes spill stores", made).group(1)
            seen.append((length / count, len(instructions), registers, spilled, " ".join(sorted(set(re.findall(r"C7\d+", made))))))
    ratio = seen[1][0] / seen[0][0]
    both = [f"{a} {b}" for a, b in zip(*seen)][1:]
    print(f"{name:18}{WORK[name]:>7}{seen[0][0]:9.2f}{seen[1][0]:9.2f}{ratio:8.3f}{both[0]:>12}{both[1]:>9}{both[2]:>6} {both[3]}", flush=True)
    return ratio


def print_sass(arguments, all_rows):
    print(f"{'example':18}{'per':>7}{'plain':>9}{'interr.':>9}{'ratio':>8}{'all':>12}{'regs':>9}{'spill':>6} remarks")
    ratios = [compare_sass(arguments, name, all_rows[name]) for name in arguments.examples or all_rows]
    print(f"most {max(ratios):.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("examples", nargs="*")
    parser.add_argument("--kjit-run", default=os.environ.get("KJIT_RUN", "kjit-run"))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repetitions", type=int, default=15)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sass", action="store_true", help="instructions of machine code for sm_90a instead; needs ptxas and nvdisasm (or cuobjdump), no GPU")
    parser.add_argument("--kjit-compile", default=os.environ.get("KJIT_COMPILE", "kjit-compile"))
    parser.add_argument("--ptxas", default="ptxas")
    parser.add_argument("--nvdisasm", default="nvdisasm")
    parser.add_argument("--instructions", action="store_true", help="CPU: thousands of instructions instead of microseconds, which other processes do not change; smaller arrays")
    arguments = parser.parse_args()
    sizes = (1 << 26, 4096, 32768, 1000, 4096) if arguments.device != "cpu" else (100000, 200, 512, 50, 96) if arguments.instructions else (2000000, 1000, 2048, 200, 256)
    all_rows = rows(*sizes)
    if arguments.sass:
        print_sass(arguments, all_rows)
        return
    ratios = []
    print(f"{'example':20}{'plain':>14}{'interruptible':>18}{'ratio':>8}{'host':>8}{'':>8}", flush=True)
    for name in arguments.examples or all_rows:
        row = all_rows[name]
        if row[3] and not arguments.device.startswith(row[3]):
            continue
        least, host = [math.inf, math.inf], [math.inf, math.inf]
        for _ in range(1 if arguments.instructions else arguments.rounds):
            for way in range(2):
                found = (count(arguments, row, way == 1), math.nan) if arguments.instructions else measure(arguments, row, way == 1)
                least[way], host[way] = min(least[way], found[0]), min(host[way], found[1])
        if max(least) == math.inf:
            print(f"{name:20}{'was not measured':>40}", flush=True)
            continue
        ratios.append(least[1] / least[0])
        print(f"{name:20}{least[0]:14.1f}{least[1]:18.1f}{ratios[-1]:8.3f}{host[0]:8.1f}{host[1]:8.1f}", flush=True)
    if ratios:
        print(f"geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.3f}, most {max(ratios):.3f}")


if __name__ == "__main__":
    main()
