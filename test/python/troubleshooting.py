# RUN: %kjit-python %s
"""The messages in docs/troubleshooting.md, "In Python". Each kernel contains one mistake, and the page quotes its
message."""

import pathlib

import numpy as np

import kjit

page = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "troubleshooting.md").read_text()
section = page.partition("## In Python\n")[2].partition("\n## ")[0]
rows = [row for row in section.splitlines() if row.startswith("| `")]
assert len(rows) >= 5


@kjit.jit
def dictionary(r, x):
    for i in kjit.grid_range(len(r)):
        d = {"a": x[i]}
        r[i] = d["a"]


@kjit.jit
def array_element(r, x):
    for i in kjit.grid_range(len(r)):
        r[i] = x


@kjit.jit
def doubled(r, x):
    for i in kjit.grid_range(len(r)):
        r[i] = x[i] * 2


def without_source():
    names = {"kjit": kjit, "x": np.ones(4)}
    exec("@kjit.jit\ndef f(r):\n    r[0] = 1\nf[1, 1](x)\n", names)


def check(error, text, call):
    """Checks that the call raises the error with this text, and that a row of the page quotes it."""
    name = error.__name__
    try:
        call()
    except error as raised:
        assert text in str(raised), str(raised)
    else:
        raise AssertionError(f"no {name}: {text}")
    assert any(row.startswith(f"| `{name}") and text in row for row in rows), (name, text)


x = np.ones(4, np.float32)
read_only = np.ones(4, np.float32)
read_only.flags.writeable = False
check(kjit.SourceError, "kernels have no dictionaries", lambda: dictionary[1, 32](x, x))
check(kjit.SourceError, "the source of f cannot be found", without_source)
check(kjit.TypingError, "the element has the type float32, but the value is a C-contiguous array of float32 with one dimension; an index is missing", lambda: array_element[1, 32](x, x))
check(kjit.ArgumentError, "is neither a number nor an array", lambda: doubled[1, 32]([1, 2], x))
check(kjit.ArgumentError, "the array's owner has marked it read-only", lambda: doubled[1, 32](read_only, x))
