#!/usr/bin/env python3
"""Reconstructs a picture from sums along rays, as a tomograph does. The lengths of the rays in the pixels form a sparse matrix,
for which LSMR with damping finds the picture (`--call 'x = lsmr(A, b, damp=...)'`). The check solves the normal equations as
dense equations, and compares with SciPy if it is installed. --image writes the scanned picture and the result next to each
other."""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from program import Program, beside

SIZE, ANGLES, RAYS, DAMP = 32, 40, 45, 0.3


def scanned():
    """A head of ellipses: (value, center, half axes, turned by)."""
    y, x = (np.mgrid[:SIZE, :SIZE] + 0.5) * 2 / SIZE - 1
    picture = np.zeros((SIZE, SIZE))
    for value, cx, cy, a, b, turn in ((1.0, 0, 0, 0.7, 0.9, 0), (-0.7, 0, 0, 0.62, 0.8, 0), (-0.2, 0.25, 0, 0.15, 0.35, -0.3), (-0.2, -0.25, 0, 0.2, 0.45, 0.3), (0.4, 0, -0.4, 0.25, 0.25, 0), (0.5, 0.1, 0.5, 0.08, 0.08, 0)):
        u = (x - cx) * np.cos(turn) + (y - cy) * np.sin(turn)
        v = (y - cy) * np.cos(turn) - (x - cx) * np.sin(turn)
        picture[(u / a)**2 + (v / b)**2 <= 1] += value
    return picture


def crossed(angle, distance):
    """Returns (pixels, lengths) for the ray with the given distance from the center. Between two neighbouring intersections with
    grid lines the ray is in one pixel."""
    direction, normal = np.array([np.cos(angle), np.sin(angle)]), np.array([-np.sin(angle), np.cos(angle)])
    lines = np.linspace(-1, 1, SIZE + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        places = np.concatenate([(lines - distance * normal[i]) / direction[i] for i in (0, 1) if abs(direction[i]) > 1e-12])
    places = np.unique(places[np.abs(places) < 2])
    middles, lengths = (places[1:] + places[:-1]) / 2, np.diff(places)
    column, row = (np.floor((middles * direction[i] + distance * normal[i] + 1) * SIZE / 2).astype(int) for i in (0, 1))
    inside = (column >= 0) & (column < SIZE) & (row >= 0) & (row < SIZE) & (lengths > 1e-12)
    return (row * SIZE + column)[inside], lengths[inside] * SIZE / 2


def ray_matrix():
    """Returns (data, columns, offsets) with a row for each ray. The row of a ray that misses the picture is empty."""
    rays = [crossed(angle, distance) for angle in np.arange(ANGLES) * np.pi / ANGLES for distance in np.linspace(-1.4, 1.4, RAYS)]
    offsets = np.cumsum([0] + [len(pixels) for pixels, _ in rays])
    return np.concatenate([lengths for _, lengths in rays]), np.concatenate([pixels for pixels, _ in rays]).astype("i4"), offsets.astype("i4")


def ask_scipy(data, columns, offsets, b, x):
    try:
        from scipy.sparse import csr_matrix
        from scipy.sparse.linalg import lsmr
    except ImportError:
        return
    theirs, _, iterations, *_ = lsmr(csr_matrix((data, columns, offsets), shape=(len(b), SIZE**2)), b, damp=DAMP, atol=1e-12, btol=1e-12, maxiter=2000)
    print(f"SciPy, {iterations} iterations: differs from the normal equations' by {np.abs(theirs - x).max():.2g}")


def main():
    p = Program(beside(__file__, "tomography.kir"), __doc__, lambda parser: parser.add_argument("--image", default=None, help="where to write the picture (.ppm in colour, .pgm in gray)"))
    data, columns, offsets = ray_matrix()
    count, dense, picture = len(offsets) - 1, np.zeros((len(offsets) - 1, SIZE**2)), scanned()
    np.add.at(dense, (np.repeat(np.arange(count), np.diff(offsets)), columns), data)
    b = dense @ picture.reshape(-1) + 0.05 * p.rng.standard_normal(count)
    x = np.linalg.solve(dense.T @ dense + DAMP**2 * np.eye(SIZE**2), dense.T @ b)
    print(f"{count} rays, of which {int((np.diff(offsets) == 0).sum())} miss; {len(data)} lengths; the picture is off by {np.sqrt(np.mean((x - picture.reshape(-1))**2)):.3f} on average")
    ask_scipy(data, columns, offsets, b, x)
    # as scipy.sparse.save_npz writes it
    np.savez_compressed(p.file("A.npz"), format=b"csr", shape=np.array(dense.shape), data=data, indices=columns, indptr=offsets)
    p.value("A", f"@{p.file('A.npz')}")
    p.array("b", b)
    p.array("scanned", picture)
    p.call(f"x = lsmr(A, b, damp={DAMP}, matrix_tolerance=1e-12, b_tolerance=1e-12, iteration_limit=2000)")
    p.call("sums = spmv(A, x)")
    p.value("beside", f"zeros:f64[{SIZE},{2 * SIZE}]")
    p.launch("put_beside(beside, x, scanned)")
    p.expect("x", x)
    p.expect("sums", dense @ x)
    p.expect("beside", np.hstack([x.reshape(SIZE, SIZE), picture]))
    return p.run(atol=1e-7, more=["--image", f"beside={p.options.image}", "--image-range", "-0.2:1.2"] if p.options.image else [])


sys.exit(main())
