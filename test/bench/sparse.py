#!/usr/bin/env python3
"""sparse.py BIN_DIR [--device cuda] [--small]: measures products of sparse matrices and LSMR in one run, with kjit-run
and, if they are installed, with CuPy on the first GPU or SciPy on the CPU. The results are compared. BIN_DIR is the
folder of kjit-run. Times are medians of several calls; LSMR's time includes the transposition of the matrix. --small: a
tenth of each size, to test the program itself."""
import argparse
import os
import re
import statistics
import tempfile
import time

import numpy as np

from report import output_of, print_table, processor_name, say

REPETITIONS = 15


def save_csr(path, data, columns, offsets, shape):
    """Writes the matrix in the format of scipy.sparse.save_npz."""
    np.savez(path, format=b"csr", shape=np.array(shape), data=data, indices=columns, indptr=offsets)


def random_csr(rng, rows, columns, count, lengths):
    """Creates entries at random positions. even: the same number in each row on average. steep: most entries are in a
    few rows."""
    share = rng.random(count) if lengths == "even" else rng.random(count)**8
    offsets = np.searchsorted(np.sort((share * rows).astype("i4")), np.arange(rows + 1)).astype("i4")
    return rng.standard_normal(count).astype("f4"), rng.integers(0, columns, count).astype("i4"), offsets, (rows, columns)


class Peer:
    """CuPy or SciPy, or None if it is not installed."""

    def __init__(self, device):
        self.is_gpu = device == "cuda"
        if self.is_gpu:
            import cupy
            import cupyx.scipy.sparse
            import cupyx.scipy.sparse.linalg
            self.arrays, self.sparse, self.linalg, self.name = cupy, cupyx.scipy.sparse, cupyx.scipy.sparse.linalg, f"CuPy {cupy.__version__}"
        else:
            import scipy
            import scipy.sparse
            import scipy.sparse.linalg
            self.arrays, self.sparse, self.linalg, self.name = np, scipy.sparse, scipy.sparse.linalg, f"SciPy {scipy.__version__}"

    def matrix(self, data, columns, offsets, shape):
        return self.sparse.csr_matrix(tuple(self.arrays.asarray(x) for x in (data, columns, offsets)), shape=shape)

    def host(self, x):
        return self.arrays.asnumpy(x) if self.is_gpu else x

    def measure(self, call):
        """Returns (median us, the result)."""
        times = []
        for i in range(REPETITIONS + 3):
            self.wait()
            start = time.perf_counter()
            result = call()
            self.wait()
            times.append((time.perf_counter() - start) * 1e6)
        return statistics.median(times[3:]), self.host(result)

    def wait(self):
        if self.is_gpu:
            self.arrays.cuda.Device().synchronize()


def find_peer(device):
    try:
        return Peer(device)
    except ImportError as error:
        say(f"no peer: {error}")
        return None


def measure_kjit(kjit_run, device, folder, arguments, call):
    """Returns (median us, the result r)."""
    command = [kjit_run, "--device", device, "--quiet", "--bench", str(REPETITIONS), "--call", call, "--save", f"r={os.path.join(folder, 'r.npy')}"]
    for name, path in arguments.items():
        command += ["--arg", f"{name}=@{path}"]
    median = re.search(r"median ([0-9.]+) us", output_of(command)).group(1)
    return float(median), np.load(os.path.join(folder, "r.npy"))


def rows_of(scale):
    """(title, matrix, columns of the other operand; 0 means a vector)"""
    rng = np.random.default_rng(1)
    many, entries = 1_000_000 // scale, 10_000_000 // scale
    for lengths in ("even", "steep"):
        matrix = random_csr(rng, many, many, entries, lengths)
        for across in (0, 32):
            yield f"{many} rows, {entries} entries, {lengths}, times {'a vector' if not across else f'{across} columns'}", matrix, across


def compare(title, mine, peers, tolerance):
    if not np.allclose(mine, peers, rtol=tolerance, atol=tolerance * np.abs(peers).max()):
        raise SystemExit(f"{title}: the results differ by {np.abs(mine - peers).max()}")


def row(title, mine, peer):
    return [title, f"{mine:.0f}", f"{peer:.0f}" if peer else "", f"{peer / mine:.2f}" if peer else ""]


def measure_product(kjit_run, device, folder, peer, title, matrix, across):
    x = np.random.default_rng(2).standard_normal((matrix[3][1], across) if across else matrix[3][1]).astype("f4")
    paths = {"A": os.path.join(folder, "A.npz"), "x": os.path.join(folder, "x.npy")}
    save_csr(paths["A"], *matrix)
    np.save(paths["x"], x)
    mine, result = measure_kjit(kjit_run, device, folder, paths, f"r = {'spmm' if across else 'spmv'}(A, x)")
    if not peer:
        return row(title, mine, None)
    a, there = peer.matrix(*matrix), peer.arrays.asarray(x)
    theirs, expected = peer.measure(lambda: a @ there)
    compare(title, result, expected, 1e-4)
    return row(title, mine, theirs)


def measure_lsmr(kjit_run, device, folder, peer, scale):
    rows, columns, count = 200_000 // scale, 100_000 // scale, 2_000_000 // scale
    rng = np.random.default_rng(3)
    data, where, offsets, shape = random_csr(rng, rows, columns, count, "even")
    matrix, b = (data.astype("f8"), where, offsets, shape), rng.standard_normal(rows)
    paths = {"A": os.path.join(folder, "A.npz"), "b": os.path.join(folder, "b.npy")}
    save_csr(paths["A"], *matrix)
    np.save(paths["b"], b)
    title = f"LSMR, {rows} x {columns}, {count} entries, damp 0.1"
    mine, result = measure_kjit(kjit_run, device, folder, paths, "r = lsmr(A, b, damp=0.1)")
    if not peer:
        return row(title, mine, None)
    a, there = peer.matrix(*matrix), peer.arrays.asarray(b)
    theirs, expected = peer.measure(lambda: peer.linalg.lsmr(a, there, damp=0.1)[0])
    compare(title, result, expected, 1e-4)
    return row(title, mine, theirs)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bin_dir")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--small", action="store_true")
    arguments = parser.parse_args()
    kjit_run, scale = os.path.join(arguments.bin_dir, "kjit-run"), 10 if arguments.small else 1
    peer = find_peer(arguments.device)
    with tempfile.TemporaryDirectory() as folder:
        rows = []
        for title, matrix, across in rows_of(scale):
            say(title)
            rows.append(measure_product(kjit_run, arguments.device, folder, peer, title, matrix, across))
        say("LSMR")
        rows.append(measure_lsmr(kjit_run, arguments.device, folder, peer, scale))
    machine = processor_name() if arguments.device == "cpu" else next((line for line in output_of([kjit_run, "--devices"]).splitlines() if line.startswith("cuda")), "no GPU")
    name = peer.name if peer else "no peer"
    print_table("Sparse matrices, f32, us; LSMR in f64", f"{machine}, {name}", ["", "kjit", name, "times as fast"], rows)


if __name__ == "__main__":
    main()
