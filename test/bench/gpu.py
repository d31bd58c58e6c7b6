#!/usr/bin/env python3
"""gpu.py BIN_DIR: compares kjit on the first GPU, in one run, with CUDA C compiled by nvcc -O3 and with CuPy, Numba and
Triton if they are installed. Prints two tables. BIN_DIR is the folder of kjit-run."""
import argparse
import math
import os
import tempfile

os.environ["CUDA_CACHE_DISABLE"] = "1"

import gpu_peers
from report import HERE, compile_with_kjit, kjit_bench, output_of, print_table, processor_name, say

# The eight kernels of the geometric mean. CUDA C programmers know them, and both languages have the same source.
EIGHT = ["axpy", "abs_sum_28", "transpose", "matmul", "diffusion", "black_scholes", "nbody", "histogram"]
AXPY_BYTES = 12 * gpu_peers.N
TITLES = {"axpy": "axpy 2^28 f32, grid_range", "axpy_128": "the same; CUDA C with 128 threads a block, not 256", "axpy_1024": "the same; CUDA C with 1024", "diffusion": "diffusion step 2000 x 2000 f32, 8 x 8 threads", "matmul": "tiled product 1000 f32, 16 x 16 threads", "tutorial_matmul": "the same, threadIdx.x picks the row", "abs_sum_24": "sum of absolute values 2^24 f32", "abs_sum_28": "sum of absolute values 2^28 f32", "transpose": "transpose 8192 x 8192 f32", "black_scholes": "Black-Scholes 2^24 f32", "nbody": "n-body, 65536 bodies, all pairs f32", "histogram": "histogram of 2^28 bytes"}


def median_us(*arguments):
    return kjit_bench(*arguments)[0]


def measure_kjit(kjit_run):
    n, square, size = gpu_peers.N, "f32[2000, 2000]", "f32[1000, 1000]"
    results = {}
    say("kjit")
    results["axpy"] = median_us(kjit_run, "cuda", "axpy/axpy.kir", [f"r=zeros:f32[{n}]", f"x=rand:f32[{n}]", f"y=rand:f32[{n}]"], "axpy(r, 2.5, x, y)", 50)
    results["axpy_128"] = results["axpy_1024"] = results["axpy"]
    for exponent in (24, 28):
        results[f"abs_sum_{exponent}"] = median_us(kjit_run, "cuda", "abs_sum/abs_sum.kir", ["total=zeros:f32[1]", f"x=rand:f32[{1 << exponent}]:low=-1"], "abs_sum[1056, 256](total, x)", 50)
    results["diffusion"] = median_us(kjit_run, "cuda", "diffusion/diffusion.kir", [f"a=rand:{square}", f"b=zeros:{square}"], "diffusion[250x250, 8x8](b, a, 8)", 50, 20)
    results["matmul"] = median_us(kjit_run, "cuda", "matmul/matmul.kir", [f"c=zeros:{size}", f"a=rand:{size}", f"b=rand:{size}"], "matmul(c, a, b)", 30, 5)
    tutorial = os.path.join(HERE, "tutorial_matmul.kir")
    results["tutorial_matmul"] = median_us(kjit_run, "cuda", tutorial, [f"c=zeros:{size}", f"a=rand:{size}", f"b=rand:{size}"], "tutorial_matmul[63x63, 16x16](a, b, c)", 30, 5)
    side, options, bodies = "f32[8192, 8192]", 1 << 24, 65536
    results["transpose"] = median_us(kjit_run, "cuda", "transpose/transpose.kir", [f"out=zeros:{side}", f"x=rand:{side}"], "transpose(out, x)", 50, 5)
    prices = [f"{name}=zeros:f32[{options}]" for name in ("call", "put")] + [f"{name}=rand:f32[{options}]" for name in ("s", "x", "t")]
    results["black_scholes"] = median_us(kjit_run, "cuda", "black_scholes/black_scholes.kir", prices, "black_scholes(call, put, s, x, t, 0.02, 0.3)", 50, 5)
    results["nbody"] = median_us(kjit_run, "cuda", "nbody/nbody.kir", [f"acc=zeros:f32x4[{bodies}]", f"pos=rand:f32x4[{bodies}]"], "accelerate(acc, pos, 0.01)", 20)
    results["histogram"] = median_us(kjit_run, "cuda", "histogram/histogram.kir", ["bins=zeros:u32[256]", f"data=randint:u8[{n}]"], "histogram256[1056, 256](bins, data)", 50)
    return results


def measure_nvcc(folder):
    program = os.path.join(folder, "peers")
    say("CUDA C by nvcc")
    try:
        output_of(["nvcc", "-O3", "-arch=native", os.path.join(HERE, "peers.cu"), "-o", program])
    except (OSError, RuntimeError) as error:
        say(f"no nvcc: {error}")
        return {}
    return {line.split("\t")[0]: float(line.split("\t")[1]) for line in output_of([program]).splitlines()}


def device_name(kjit_run):
    return next((line for line in output_of([kjit_run, "--devices"]).splitlines() if line.startswith("cuda")), "no GPU")


def kernel_rows(results):
    rows = []
    for name, title in TITLES.items():
        cells = [f"{results[who][name]:.1f}" if name in results[who] else "" for who in results]
        best = {who: results[who][name] / results["kjit"][name] for who in results if who != "kjit" and name in results[who]}
        rows.append([title, *cells, ", ".join(f"{ratio:.2f} x {who}" for who, ratio in best.items()), f"{AXPY_BYTES / results['kjit'][name] / 1e3:.0f} GB/s" if name == "axpy" else ""])
    return rows


def print_mean(results):
    ratios = [results["kjit"][name] / results["nvcc"][name] for name in EIGHT]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"\n{', '.join(EIGHT)}: time of kjit / time of nvcc -O3 {', '.join(f'{ratio:.2f}' for ratio in ratios)}; geometric mean {mean:.3f}, largest {max(ratios):.2f} (goals: 1, 1.1)")


def compile_rows(bin_dir, folder):
    program = os.path.join(folder, "compile_time")
    say("kernel IR to PTX")
    compile_with_kjit("compile_time.c", program, bin_dir, "-Wno-format-extra-args")
    goals = {"axpy": 3, "axpy with exp": 6, "axpy with sin": 15, "tiled product": 8}
    rows = []
    for line in output_of([program]).splitlines():
        name, median, least, _ = line[:16].strip(), *line[16:].split()
        rows.append([name, median, least, goals.get(name, "")])
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bin_dir")
    parser.add_argument("--no-gpu", action="store_true", help="only the times from kernel IR to PTX")
    options = parser.parse_args()
    kjit_run = os.path.join(options.bin_dir, "kjit-run")
    with tempfile.TemporaryDirectory() as folder:
        if not options.no_gpu:
            results = {"kjit": measure_kjit(kjit_run), "nvcc": measure_nvcc(folder)} | gpu_peers.measure_peers(say)
            results = {who: times for who, times in results.items() if times}
            print_table("GPU: median microseconds of a launch, device time", device_name(kjit_run), ["kernel", *results, "kjit is faster by", ""], kernel_rows(results))
            if "nvcc" in results:
                print_mean(results)
        print_table("Kernel IR text to PTX (sm_90), warm process, milliseconds", processor_name(), ["kernel", "median", "least", "goal"], compile_rows(options.bin_dir, folder))


if __name__ == "__main__":
    main()
