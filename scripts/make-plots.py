#!/usr/bin/env python3
"""Draws the plots of docs/performance.md from the tables of that page, and a diagram, into docs/plots. With --check, writes
nothing and exits 1 if a plot differs from its table."""
import argparse
import pathlib
import re
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "test/bench"))
import plot  # noqa: E402

PAGE = (ROOT / "docs/performance.md").read_text()


def table(heading, column):
    """Returns the rows of the first table below the heading that has this column, as dictionaries of column names."""
    section = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)[1]
    for lines in re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE):
        head, _, *rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines.splitlines()]
        if column in head:
            return [dict(zip(head, row)) for row in rows]
    raise SystemExit(f"make-plots: docs/performance.md has no table with the column `{column}` below `{heading}`")


def cell(rows, name, column):
    """Returns the cell in this column of the row with this name."""
    return next(row[column] for row in rows if next(iter(row.values())) == name)


# The rows of the chart on the front page: the measured operation and the peer.
OVERVIEW = {("eight kernels, geometric mean", "nvcc -O3"), ("launch from C", "cuLaunchKernel"), ("launch from Python, own arrays", "CuPy"),
            ("launch from Python, own arrays", "numba-cuda"), ("first kernel of a Python process", "CuPy"), ("first kernel of a Python process", "numba-cuda"),
            ("kernel of 1000 statements to PTX", "NVRTC 13"), ("sum, 2^28 f32", "CUB"), ("radix sort, 2^28 u32", "CUB"),
            ("matrix product, 4096 x 4096 f32", "cuBLAS"), ("axpy, 2^26 f32", "gcc with OpenMP"), ("sum, 2^24 f32", "NumPy"), ("radix sort, 2^24 u32", "NumPy"),
            ("tiled product, 1000 x 1000 f32", "PoCL"), ("sum by a key of 1000 values", "pyarrow")}


def ratios(is_chosen):
    """Returns the rows of the summary tables that is_chosen accepts, for each device; kjit itself is no peer."""
    groups = {"GPU": [], "CPU": []}
    for name, rows in groups.items():
        column = f"on {'a' if name == 'GPU' else 'the'} {name}"
        for row in table("In short", column):
            low, *high = map(float, row["ratio"].split(" to "))
            peer = re.sub(r"[:,].*| alone", "", row["peer"])
            peer = peer.replace("gcc -O3 with", "gcc with")
            label = row[column].replace("`", "").removesuffix(", 10^7 rows")
            if not peer.startswith("kjit") and is_chosen((label, peer)):
                rows.append((label, peer, low, high[0] if high else low))
    return groups


def launches():
    """Host time of one launch in us, from C and from Python."""
    c = next(row for row in table("Host time of one launch", "kjit_launch") if row["arguments"] == "3 arrays, 1 scalar")
    nanoseconds = lambda column: float(c[column].split()[0]) / 1000
    python = table("From Python", "us")
    names = [("kjit", "kjit, its own arrays"), ("CuPy", "CuPy, RawKernel"), ("Triton", "Triton, PyTorch's arrays"), ("numba-cuda", "numba-cuda, its own arrays")]
    return {"From C, 3 arrays and a scalar (H200)": [("kjit_launch", nanoseconds("kjit_launch")), ("cuLaunchKernel alone", nanoseconds("cuLaunchKernel"))],
            "From Python, 3 arrays and a scalar (H100)": [(name, float(cell(python, row, "us"))) for name, row in names]}


def first_kernel():
    """Time of the import and the first kernel in ms, from the second of two runs."""
    rows = table("From Python", "import and first kernel")
    names = [("kjit", "kjit"), ("CuPy", "CuPy, RawKernel"), ("numba-cuda", "numba-cuda")]
    return {"": [(name, float(cell(rows, row, "import and first kernel").split(";")[-1])) for name, row in names]}


def sizes_gpu():
    rows, series = table("Beside CUB", "2^12"), {}
    for label, name in (("sum f32", "sum f32"), ("sort u32", "radix sort u32")):
        for column, found in next(row for row in rows if row[""] == name).items():
            if column:
                own, peer = found.split(" = ")[0].split(" / ")
                for who, time in (("kjit", own), ("CUB", peer)):
                    series.setdefault(f"{label}, {who}", []).append((2 ** int(column[2:]), float(time)))
    return series


def sizes_cpu():
    rows, series = table("16 cores", "2^16"), {}
    for label, name in (("sum f32", "sum f32"), ("sort u32", "radix sort u32")):
        for column, found in next(row for row in rows if row[""] == name).items():
            if column:
                own, others = found.split(": ")
                time, ratio = float(own), float(others.split()[-1])
                series.setdefault(f"{label}, kjit", []).append((2 ** int(column[2:]), time))
                series.setdefault(f"{label}, NumPy", []).append((2 ** int(column[2:]), time / ratio))
    return series


# How a grid_range may distribute 16 indices, for docs/tutorial-python.md.
RANGES = [("GPU, four threads, one element at a time: each thread continues four elements further on", [i % 4 for i in range(16)], "thread "),
          ("GPU, two threads, 16 bytes (four f32) at a time", [i // 4 % 2 for i in range(16)], "thread "),
          ("CPU, four cores: each core takes consecutive elements", [i // 4 for i in range(16)], "core ")]


def expressions(heading, peers):
    """Returns kjit's time of each fused expression divided by the times of peers, for write_ratios."""
    rows = table(heading, "expression")
    return {peer: [(row["expression"], peer, *[float(row["kjit"]) / float(row[peer])] * 2) for row in rows if row[peer]] for peer in peers}


# The plots of fused expressions: name, heading of the table, peers, device.
EXPRESSIONS = [
    ("gpu", "Fused expressions beside CuPy, PyTorch and JAX", ("CuPy", "PyTorch", "JAX"), "one H200"),
    ("cpu", "Fused expressions on the CPU", ("NumPy", "numexpr"), "two cores"),
]


def draw(folder):
    plot.write_cells(folder / "grid_range.svg", "for i in grid_range(16)", RANGES)
    plot.write_ratios(folder / "peers.svg", "kjit's time divided by the time of the peer", ratios(lambda row: True))
    plot.write_ratios(folder / "overview.svg", "kjit's time divided by the time of the peer", ratios(OVERVIEW.__contains__))
    plot.write_bars(folder / "launches.svg", "Host time of one launch", launches(), "us")
    plot.write_bars(folder / "first_kernel.svg", "New Python process: import and first kernel on a GPU (H100)", first_kernel(), "ms")
    for name, section, peers, where in EXPRESSIONS:
        title = f"Fused expressions on {where}: kjit's time divided by the time of the peer"
        plot.write_ratios(folder / f"expressions_{name}.svg", title, expressions(section, peers))
    for name, where, series in (("gpu", "one H200", sizes_gpu()), ("cpu", "16 cores of a Xeon", sizes_cpu())):
        plot.write_plot(folder / f"sizes_{name}.svg", f"Sum and radix sort on {where}", "elements", "microseconds", series, log_x=True, log_y=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare only")
    if not parser.parse_args().check:
        return draw(ROOT / "docs/plots")
    with tempfile.TemporaryDirectory() as folder:
        draw(pathlib.Path(folder))
        old = [path.name for path in sorted(pathlib.Path(folder).iterdir()) if path.read_text() != (ROOT / "docs/plots" / path.name).read_text()]
    for name in old:
        print(f"docs/plots/{name} differs from its table in docs/performance.md: run scripts/make-plots.py")
    return 1 if old else None


if __name__ == "__main__":
    sys.exit(main())
