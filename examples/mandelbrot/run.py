#!/usr/bin/env python3
"""Counts the iterations in a part of the Mandelbrot set, and compares with exact counts; --image writes a picture."""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from program import Program, beside


def count_steps(cx, cy, limit):
    """Does the same iteration for all points at once. A point with |z| > 2 keeps its count."""
    x, y = np.zeros_like(cx), np.zeros_like(cx)
    steps = np.zeros(cx.shape, np.int32)
    inside = np.ones(cx.shape, bool)
    for _ in range(limit):
        xx, yy = x * x, y * y
        inside &= ~(xx + yy > 4)
        if not inside.any():
            break
        y = np.where(inside, 2 * x * y + cy, y)
        x = np.where(inside, xx - yy + cx, x)
        steps[inside] += 1
    return steps


def main():
    def options(parser):
        parser.add_argument("--image", default=None, help="where to write the picture (.ppm in colour, .pgm in gray)")
    p = Program(beside(__file__, "mandelbrot.kir"), __doc__, options)
    rows, cols, limit = 301, 403, 200
    pixel = float(p.rng.uniform(0.002, 0.009))
    left, top = float(p.rng.uniform(-2.3, -1.0)), float(p.rng.uniform(0.3, 1.2))
    p.value("steps", f"zeros:i32[{rows}, {cols}]")
    p.launch(f"mandelbrot(steps, {left!r}f64, {top!r}f64, {pixel!r}f64, {limit})")
    p.expect("steps", count_steps(np.broadcast_to(left + pixel * np.arange(cols), (rows, cols)), np.broadcast_to((top - pixel * np.arange(rows))[:, None], (rows, cols)), limit))
    return p.run(more=("--image", f"steps={p.options.image}") if p.options.image else ())


sys.exit(main())
