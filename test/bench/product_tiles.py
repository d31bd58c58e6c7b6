#!/usr/bin/env python3
"""product_tiles.py BIN_DIR: measures the tiles of lib/library/product_tiles.kir on the first GPU, for 4096 x 4096 x
4096. Prints the microseconds for each row in the table of runtime/algorithm/product_plan.c, and for other tiles."""
import argparse
import os
import re
import tempfile

from report import output_of, print_table

SIZE = 4096
TEXT = """import "product_tiles"
func left(g, i, l, x) @inline { return x[i, l] }
func right(g, j, l, y) @inline { return y[l, j] }
func put(p, g, i, j, v, c) @inline { c[i, j] = v }
kernel run(c, x, y, const MMA, const ROWS, const COLUMNS, const DEPTH, const AT_ONCE) @block(256) @launch_bounds(256, AT_ONCE) {
  product_tiles(bind_back(left, x), bind_back(right, y), bind_back(put, c), i32(c.shape[0]), i32(c.shape[1]), i32(x.shape[1]), zero(dtype(c)), 1, ROWS, COLUMNS, DEPTH, true, false, MMA, 1)
}
"""
# Rows, columns, depth, blocks on a multiprocessor: candidates for new rows in the table.
SIZES = [(256, 128, 8, 1), (128, 256, 8, 1), (128, 128, 8, 1), (128, 128, 16, 1), (128, 128, 16, 2), (64, 128, 16, 2), (128, 64, 16, 2), (64, 64, 16, 2), (64, 64, 16, 3)]
KINDS = [("f32", "false"), ("f32", "true"), ("f64", "false"), ("f64", "true"), ("c128", "false")]
BYTES = {"f32": 4, "f64": 8, "c128": 16}
PLAN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "runtime", "algorithm", "product_plan.c")


def table_of(kind, has_mma):
    """The table's rows for products of this type."""
    with open(PLAN) as file:
        table = re.search(r"tile_table\[\] = \{\n(.*?)\n\};", file.read(), re.DOTALL).group(1)
    rows = re.findall(r"\{ (true|false), (\d+), (\d+), (\d+), (\d+), (\d+), (\d+), [0-9.]+ \}", table)
    if len(rows) != table.count("{"):
        raise ValueError(f"{PLAN}: {len(rows)} of {table.count('{')} rows of the table are understood")
    return [tuple(map(int, row[3:])) for row in rows if row[0] == has_mma and int(row[1]) <= BYTES[kind] <= int(row[2])]


def measure(kjit_run, text, kind, has_mma, size):
    rows, columns, depth, at_once = size
    command = [kjit_run, text, "--device", "cuda", "--quiet", "--bench", "5", "--arg", f"c=zeros:{kind}[{SIZE}, {SIZE}]", "--arg", f"a=rand:{kind}[{SIZE}, {SIZE}]", "--arg",
               f"b=rand:{kind}[{SIZE}, {SIZE}]", "--launch", f"run[{SIZE // rows * (SIZE // columns)}, 256](c, a, b, {has_mma}, {rows}, {columns}, {depth}, {at_once})"]
    try:
        return re.search(r"median ([0-9.]+) us", output_of(command)).group(1)
    except RuntimeError as error:
        return str(error).strip().splitlines()[-1][:60]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bin_dir")
    arguments = parser.parse_args()
    kjit_run = os.path.join(arguments.bin_dir, "kjit-run")
    device = next((line for line in output_of([kjit_run, "--devices"]).splitlines() if line.startswith("cuda")), "no GPU")
    with tempfile.TemporaryDirectory() as folder:
        text = os.path.join(folder, "tiles.kir")
        with open(text, "w") as file:
            file.write(TEXT)
        rows = []
        for kind, has_mma in KINDS:
            table = table_of(kind, has_mma)
            name = kind + (" by tensor cores" if has_mma == "true" else "")
            for size in table + [size for size in SIZES if size not in table]:
                rows.append([name, " x ".join(map(str, size[:2])), size[2], size[3], "yes" if size in table else "", measure(kjit_run, text, kind, has_mma, size)])
    print_table(f"Tiles of products, {SIZE} x {SIZE} x {SIZE}", device, ["type", "tile", "depth", "blocks at once", "in the table", "us"], rows)


if __name__ == "__main__":
    main()
