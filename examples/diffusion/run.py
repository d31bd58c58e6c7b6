#!/usr/bin/env python3
"""Two-dimensional diffusion between two arrays, checked against the exact solution of the scheme; --image writes the result as a picture."""
import os
import subprocess
import sys
import time

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from program import Program, beside

TILE = 8
COEFF = 0.25  # as in diffusion.kir
CPU_SECONDS = 15


def hot_spots(rng, rows, cols):
    """Returns a field with round and square spots of several temperatures."""
    y, x = np.ogrid[:rows, :cols]
    field = np.zeros((rows, cols))
    for _ in range(12):
        cy, cx, size, heat = rng.uniform(0, rows), rng.uniform(0, cols), rng.uniform(0.02, 0.12) * min(rows, cols), rng.uniform(20, 100)
        if rng.integers(3):
            field[(y - cy) ** 2 + (x - cx) ** 2 < size**2] = heat
        else:
            field[(abs(y - cy) < size) & (abs(x - cx) < 0.7 * size)] = heat
    return field.astype(np.float32)


def sine_transform(field, axis):
    """Returns the discrete sine transform of type I, computed by an FFT of the odd extension. Applied twice, it returns the field
    times 2 (n + 1)."""
    field = np.moveaxis(field, axis, -1)
    n = field.shape[-1]
    odd = np.zeros((field.shape[0], 2 * (n + 1)))
    odd[:, 1:n + 1] = field
    odd[:, n + 2:] = -field[:, ::-1]
    return np.moveaxis(-np.fft.rfft(odd, axis=-1).imag[:, 1:n + 1], -1, axis)


def diffuse_exactly(field, iterations):
    """Returns the result of the scheme after any number of steps in closed form: for a field that is zero outside, sine waves are
    the eigenvectors of a step."""
    rows, cols = field.shape
    wave_rows, wave_cols = (np.cos(np.arange(1, n + 1) * np.pi / (n + 1)) for n in (rows, cols))
    eigenvalues = 1 - COEFF * (4 - 2 * wave_rows[:, None] - 2 * wave_cols[None, :])
    modes = sine_transform(sine_transform(field.astype(np.float64), 0), 1) * eigenvalues**iterations
    return sine_transform(sine_transform(modes, 0), 1) / (4.0 * (rows + 1) * (cols + 1))


def is_on_gpu(p):
    """Returns whether this run will use a GPU."""
    if p.options.device == "auto":
        devices = subprocess.run([*p.options.kjit_run.split(), "--devices"], capture_output=True, text=True).stdout
        return any(line.startswith("cuda") for line in devices.splitlines())
    return p.options.device == "cuda"


def choose_iterations(p):
    """Returns the number of steps: 10,000 on a GPU; on a CPU the number that takes CPU_SECONDS, estimated from a few steps."""
    if p.options.iterations != "auto":
        return int(p.options.iterations)
    if is_on_gpu(p):
        return 10000
    seconds = []
    for repeat in (1, 1, 11):
        start = time.perf_counter()
        subprocess.run(p.tool("--repeat", str(repeat)), check=True, stdout=subprocess.DEVNULL)
        seconds.append(time.perf_counter() - start)
    step = max((seconds[2] - seconds[1]) / 20, 1e-6)
    iterations = min(10000, max(20, int(CPU_SECONDS / step) // 20 * 20))
    if iterations < 10000:
        print(f"diffusion.kir: no GPU here: {iterations} iterations instead of 10000, {1e3 * step:.1f} ms each", flush=True)
    return iterations


def main():
    def options(parser):
        parser.add_argument("--rows", type=int, default=2000)
        parser.add_argument("--cols", type=int, default=2000)
        parser.add_argument("--iterations", default="auto", help="an even number, or auto: 10000 on a GPU, what takes some seconds on a CPU")
        parser.add_argument("--image", default=None, help="where to write the picture (.ppm in colour, .pgm in gray)")
        parser.add_argument("--time", action="store_true", help="let kjit-run print its timings")
        parser.add_argument("--verbose", action="store_true", help="let kjit-run say what runs where")
    p = Program(beside(__file__, "diffusion.kir"), __doc__, options)
    rows, cols = p.options.rows, p.options.cols
    field = p.array("field", hot_spots(p.rng, rows, cols))
    p.value("next", f"zeros:f32[{rows}, {cols}]")
    configuration = f"{-(-cols // TILE)}x{-(-rows // TILE)}, {TILE}x{TILE}"
    p.launch(f"diffusion[{configuration}](next, field, {TILE})")
    p.launch(f"diffusion[{configuration}](field, next, {TILE})")
    iterations = choose_iterations(p)
    if iterations % 2:
        p.close()
        sys.exit("diffusion.kir: an even number of iterations, so that the result is in field")
    print(f"diffusion.kir: {rows} x {cols}, {iterations} iterations between two arrays, expectation by sine transform", flush=True)
    p.expect("field", diffuse_exactly(field, iterations).astype(np.float32))
    more = ["--repeat", str(iterations // 2)]
    more += ["--image", f"field={p.options.image}"] if p.options.image else []
    more += ["--time"] if p.options.time else []
    more += ["--verbose"] if p.options.verbose else []
    start = time.perf_counter()
    # A step computes averages, so it does not amplify the largest error. It adds its own rounding errors: at most 4 half units in
    # the last place of the largest temperature, because it adds up to 4 values, takes a quarter, and rounds once more. In flat
    # areas all steps can round in the same direction.
    status = p.run(rtol=0, atol=4 * 2.0**-24 * (iterations + 1) * float(field.max()), more=more)
    print(f"diffusion.kir: {time.perf_counter() - start:.2f} s for the whole process, {'on the GPU' if is_on_gpu(p) else 'on the CPU'}")
    if p.options.image and status == 0:
        print(f"diffusion.kir: picture in {p.options.image}")
    return status


if __name__ == "__main__":
    sys.exit(main())
