# RUN: %kjit-python %s %srcdir
"""The rows of the table `tutorial` in docs/tutorial-python.md: the first column's NumPy code and the last column's kjit
code have the same value."""
import linecache
import pathlib
import re
import sys

import numpy as np
import seeds

import kjit

text = (pathlib.Path(sys.argv[1]) / "docs/tutorial-python.md").read_text()
table = re.search(r"^<!-- rows: tutorial -->\n((?:\|.*\n)+)", text, re.MULTILINE)[1]
random = seeds.fresh_generator()
x, y = random.random((2, 500))
NAMES = {"np": np, "kjit": kjit, "x": x, "y": y, "k": random.integers(0, 10, 300), "m": random.random((5, 7))}


def value_of(cell, name):
    """Evaluates the code of a cell. kjit must find its source."""
    source = re.fullmatch(r" `(.*)` ", cell)[1]
    linecache.cache[name] = (len(source), None, [source + "\n"], name)
    return np.asarray(eval(compile(source, name, "eval"), NAMES))


rows = table.splitlines()[2:]
assert len(rows) > 10, rows
for number, row in enumerate(rows):
    cells = row.split("|")[1:-1]
    assert len(cells) == 4, row
    expected, found = value_of(cells[0], f"<numpy {number}>"), value_of(cells[-1], f"<kjit {number}>")
    assert found.shape == expected.shape, (row, found.shape, expected.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-12, err_msg=row)
