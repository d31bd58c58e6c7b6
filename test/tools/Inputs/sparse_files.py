"""Makes FOLDER/csr.npz, coo.npz and csc.npz, a random matrix in files as scipy.sparse.save_npz writes them, x.npy and b.npy; with --check compares y.npy, d.npy and z.npy there with what NumPy gives:
the product with x, the dense matrix, and what makes |b - A z|^2 + 0.25 |z|^2 least."""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
import seeds


def save(path, form, shape=(60, 25), **arrays):
    np.savez_compressed(path, format=form.encode("ascii"), shape=np.array(shape), _is_array=True, **arrays)


folder = sys.argv[1]
at = lambda name: os.path.join(folder, name)
if sys.argv[2:] != ["--check"]:
    os.makedirs(folder, exist_ok=True)
    rng = seeds.fresh_generator()
    dense = np.where(rng.random((60, 25)) < 0.2, rng.standard_normal((60, 25)), 0)
    dense[::7] = 0
    rows, columns = np.nonzero(dense)
    data, offsets = dense[rows, columns], np.searchsorted(rows, np.arange(61))
    save(at("csr.npz"), "csr", data=data, indices=columns.astype("i4"), indptr=offsets.astype("i4"))
    # in any order, and each entry in two parts
    order, share = rng.permutation(2 * len(data)), rng.random(len(data))
    parts = np.concatenate([data * share, data - data * share])
    save(at("coo.npz"), "coo", data=parts[order], row=np.tile(rows, 2)[order], col=np.tile(columns, 2)[order])
    save(at("csc.npz"), "csc", data=data, indices=rows, indptr=np.arange(26))
    save(at("long.npz"), "csr", data=data, indices=columns + 25, indptr=offsets)
    save(at("square.npz"), "csr", (25, 25), data=np.arange(1.0, 26), indices=np.arange(25), indptr=np.arange(26))
    for name, value in (("dense", dense), ("x", rng.standard_normal(25)), ("m", rng.standard_normal((25, 3))), ("b", rng.standard_normal(60))):
        np.save(at(f"{name}.npy"), value)
else:
    dense, x, m, b, y, ym, d, z = (np.load(at(f"{name}.npy")) for name in ("dense", "x", "m", "b", "y", "ym", "d", "z"))
    np.testing.assert_allclose(y, dense @ x, atol=1e-12)
    np.testing.assert_allclose(ym, dense @ m, atol=1e-12)
    np.testing.assert_allclose(d, dense, atol=1e-14)
    np.testing.assert_allclose(z, np.linalg.solve(dense.T @ dense + 0.25 * np.eye(25), dense.T @ b), atol=1e-9)
    for name in ("y", "ym", "d", "z"):
        os.remove(at(f"{name}.npy"))
