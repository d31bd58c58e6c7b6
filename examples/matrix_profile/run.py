#!/usr/bin/env python3
"""The matrix profile of a series of heartbeats with a pattern that comes twice and a beat that is missed: both are found, and all
distances are compared with NumPy. With --program the C program for several devices runs instead of kjit-run, and with --stumpy
the results are also compared with the package stumpy. docs/performance.md uses the size --points 131072."""
import os
import shlex
import subprocess
import sys
import time

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from program import Program, beside

HEIGHT = 2048  # rows of a tile
LARGE = 20000  # number of points above which NumPy compares only some rows


def options(parser):
    parser.add_argument("--points", type=int, default=4000)
    parser.add_argument("--window", type=int, default=100)
    parser.add_argument("--type", default="f64", choices=["f32", "f64"], help="what covariances are computed in")
    parser.add_argument("--threads", type=int, help="of a block; default: 128 on a GPU, 1 on the CPU")
    parser.add_argument("--diagonals", type=int, help="of a thread; default: 4 on a GPU, 64 on the CPU")
    parser.add_argument("--program", help="the program matrix_profile that is built from matrix_profile.c")
    parser.add_argument("--parts", type=int, default=1, help="of the program")
    parser.add_argument("--walk", action="store_true", help="a random walk, of which nothing is known: any number of points from the window's on")
    parser.add_argument("--flat", default="", help="of the walk: lengths of stretches of one value, as 150,100")
    parser.add_argument("--stumpy", choices=["cpu", "gpu"], help="compare with stumpy.stump or stumpy.gpu_stump, and print their times")


def heartbeats(rng, n, m):
    """Beats of different lengths and heights over a baseline that wanders, with noise. Also returns the positions of the repeated
    pattern and of the missing beat."""
    series, at = 0.002 * np.cumsum(rng.standard_normal(n)) + 0.02 * rng.standard_normal(n), 0
    beats = []
    while at < n:
        length = int(m * rng.uniform(0.8, 1.2))
        t = np.linspace(-1, 1, length)[:max(0, n - at)]
        series[at:at + length] += rng.uniform(0.8, 1.2) * (np.exp(-300 * t**2) - 0.2 * np.exp(-100 * (t - 0.15)**2) + 0.15 * np.exp(-40 * (t - 0.5)**2))
        beats.append(at)
        at += length
    first, second, missed = (n * part // 10 for part in (2, 6, 8))
    pattern = np.cumsum(rng.standard_normal(m)) / np.sqrt(m)
    for place in (first, second):
        series[place:place + m] = pattern + 1e-4 * rng.standard_normal(m)
    series[missed:missed + 2 * m] = 0.3 * np.sin(np.linspace(0, 19, 2 * m)**1.5) + 0.02 * rng.standard_normal(2 * m)
    return series, first, second, missed


def random_walk(rng, n, lengths):
    """Adds stretches of equal values at regular distances."""
    series = np.cumsum(rng.standard_normal(n))
    for i, length in enumerate(lengths):
        first = (2 * i + 1) * n // (2 * len(lengths)) - length // 2
        series[max(0, first):first + length] = series[max(0, first)]
    return series


def windows_of(series, m):
    """Returns each window minus its mean, normalized to length 1, and the length before. A window whose values are all equal
    cannot be normalized; its result is 0."""
    w = np.lib.stride_tricks.sliding_window_view(series, m)
    is_flat = (w == w[:, :1]).all(1)
    w = np.where(is_flat[:, None], 0, w - w.mean(1, keepdims=True))
    lengths = np.sqrt((w * w).sum(1))
    return w / np.where(is_flat, 1, lengths)[:, None], lengths


def rounding(kind, series, m, lengths):
    """Returns a factor for each window: the error of the correlation of windows i and j is at most the product of their factors.
    Along a diagonal of a tile, the covariance of the largest windows can be updated to that of the smallest windows, with a
    rounding error in the computed type at each step. The means are computed in f64."""
    steps, small = min(len(lengths), HEIGHT), np.where(lengths > 0, lengths, np.inf)
    values = np.sqrt(m) * np.abs(series).max()
    return np.sqrt(0.5 * np.sqrt(steps) * (np.finfo(kind).eps * lengths.max() ** 2 + np.finfo("f8").eps * values**2)) / small


def check(kind, series, m, rows, profile, places):
    """Computes the distances of these windows from all other windows, by matrix products. A found window is right if it is as
    near as the nearest one."""
    (w, lengths), least = windows_of(series, m), m // 4 + 1
    is_flat, wrong_by = lengths == 0, rounding({"f32": "f4", "f64": "f8"}[kind], series, m, lengths)
    for part in np.array_split(rows, max(1, len(rows) // 64)):
        squared = 2 * m * np.maximum(1 - w[part] @ w.T, 0)
        squared[is_flat[part][:, None] | is_flat] = m  # in stumpy's form
        squared[is_flat[part][:, None] & is_flat] = 0
        squared[np.abs(part[:, None] - np.arange(len(w))) < least] = np.inf
        is_none = np.isinf(squared.min(1))
        if np.any(~np.isinf(profile[part[is_none]])) or np.any((places[part] == -1) != is_none):
            sys.exit(f"windows {part[is_none]} are near to none: distances {profile[part[is_none]]}, places {places[part]}")
        part, squared = part[~is_none], squared[~is_none]
        tolerance = 2 * m * wrong_by[part][:, None] * wrong_by + 2e-7 * squared  # a key contains an f32
        nearest = (squared + tolerance).min(1)
        at = np.arange(len(part)), places[part]
        found, tolerance = squared[at], tolerance[at]
        wrong = np.flatnonzero((np.abs(profile[part]**2 - found) > tolerance) | (found - tolerance > nearest))
        if len(wrong):
            i = wrong[0]
            sys.exit(f"window {part[i]}: distance {profile[part[i]]} from {places[part[i]]}, which is at {found[i]**0.5}; the nearest is at {squared[i].min()**0.5}")


def run_kjit(p, series, m):
    """Runs kjit-run, on one device."""
    n = len(series) - m + 1
    names = {"keys": "u64", "mean": "f64", "f": p.options.type, "g": p.options.type, "s": p.options.type}
    for name, kind in names.items():
        p.value(name, f"zeros:{kind}[{n}]")
    p.value("flat", "zeros:i32[2]")
    p.array("x", series)
    devices = subprocess.run([*shlex.split(p.options.kjit_run), "--devices"], capture_output=True, text=True).stdout
    is_gpu = p.options.device == "cuda" or p.options.device == "auto" and "cuda:" in devices
    p.launch(f"prepare(keys, mean, f, g, s, flat, x, {m})")
    threads, diagonals = p.options.threads or (128 if is_gpu else 1), p.options.diagonals or (4 if is_gpu else 64)
    p.launch(f"profile(keys, mean, f, g, s, x, {m}, {m // 4 + 1}, 0, 1, {threads}, {diagonals})")
    p.launch("find_flat(flat, s)")
    p.launch(f"add_flat(keys, flat, s, {m // 4 + 1})")
    p.call(f"profile, places = map(finish, keys, {m})")
    subprocess.run(p.tool("--quiet", "--save", f"profile={p.file('profile.npy')}", "--save", f"places={p.file('places.npy')}"), check=True)
    return np.load(p.file("profile.npy")), np.load(p.file("places.npy"))


def run_program(p, series, m):
    series.tofile(p.file("series"))
    device = "cpu" if p.options.device == "auto" else p.options.device
    subprocess.run([p.options.program, device, str(p.options.parts), p.options.type, p.file("series"), str(m), p.file("profile"), p.file("places"), p.module], check=True)
    return np.fromfile(p.file("profile")), np.fromfile(p.file("places"), "i8")


def compare_stumpy(which, series, m, profile, places, tolerance):
    if which == "gpu" and not hasattr(np, "row_stack"):
        np.row_stack = np.vstack  # numba-cuda asks for it
    import stumpy
    function = stumpy.gpu_stump if which == "gpu" else stumpy.stump
    function(series[:10 * m], m)  # compiles
    start = time.perf_counter()
    result = function(series, m)
    seconds = time.perf_counter() - start
    theirs = result[:, 0].astype("f8")
    print(f"stumpy {stumpy.__version__}, {function.__name__}: {seconds:.3f} s; greatest difference of squared distances {np.abs(theirs**2 - profile**2).max():.2g}, {(result[:, 1] != places).sum()} places differ")
    if np.abs(theirs**2 - profile**2).max() > tolerance:
        sys.exit("stumpy has other distances")


def main():
    p = Program(beside(__file__, "matrix_profile.kir"), __doc__, options)
    m, tolerance = p.options.window, 2 * p.options.window * (1e-7 if p.options.type == "f64" else 2e-5)
    try:
        print(f"matrix_profile.kir: seed {p.seed}", flush=True)
        walk = random_walk(p.rng, p.options.points, [int(length) for length in p.options.flat.split(",") if length])
        series, first, second, missed = (walk, None, None, None) if p.options.walk else heartbeats(p.rng, p.options.points, m)
        profile, places = (run_program if p.options.program else run_kjit)(p, series, m)
        rows = np.arange(len(profile)) if len(series) < LARGE else p.rng.choice(len(profile), 256, replace=False)
        check(p.options.type, series, m, rows, profile, places)
        if p.options.walk:
            if p.options.stumpy:
                compare_stumpy(p.options.stumpy, series, m, profile, places, tolerance)
            print("matrix_profile.kir: the results are right")
            return
        motif, discord = int(np.argmin(profile)), int(np.argmax(profile))
        print(f"nearest: {motif} and {places[motif]}, at {profile[motif]:.4f}; farthest from all: {discord}, at {profile[discord]:.4f}")
        # Because of the noise, the nearest pair may begin a few values before or after the two patterns. Both windows then have
        # the same distance from their pattern.
        near, far = sorted((motif, int(places[motif])))
        if far - near != second - first or abs(near - first) > m // 4:
            sys.exit(f"the pattern comes at {first} and {second}")
        if not missed - m < discord < missed + 2 * m:
            sys.exit(f"the missing beat is at {missed}")
        if p.options.stumpy:
            compare_stumpy(p.options.stumpy, series, m, profile, places, tolerance)
        print("matrix_profile.kir: the results are right")
    finally:
        p.close()


if __name__ == "__main__":
    main()
