# RUN: env KJIT_DEVICE=cpu %kjit-python %s %srcdir %bindir
"""Runs the example of each row of the tables in docs/numba.md and docs/from/numba.md.

A comment before a table says how its examples run. `<!-- rows: program -->` and `<!-- rows: kernel -->` are explained in
docs/numba.md: the last cell of a row is the example, code and then `→` with its value or `raises` with an exception. An example
of `<!-- rows: njit -->` is the body of an njit function of `x`, and its last line is the value. In `<!-- rows: forms -->` the
three cells of a row are bodies of kernels for kjit.cuda, kjit.jit and the kernel IR, which have to write the same `r`.

`numba_rows.py TREE BINDIR TEXT` runs only the rows that contain TEXT."""
import ast
import contextlib
import io
import linecache
import os
import re
import subprocess
import sys
import tempfile
import traceback

import numpy as np

os.environ["KJIT_CPU_DEVICES"] = "2"  # for the rows about several devices
PAGES = ("docs/numba.md", "docs/from/numba.md")
TABLE = re.compile(r"^<!-- rows: (\w+) -->\n((?:\|.*\n)+)", re.MULTILINE)
EXAMPLE = re.compile(r"(`[^`]+`(?:<br>`[^`]+`)*)(?: (→|raises) `([^`]+)`)?")
PREAMBLE = re.compile(r"<!-- run by: test/python/numba_rows.py -->\n```python\n(.*?)```", re.DOTALL)


def rows_of(text):
    """Yields (line, kind of table, cells) for each row with an example."""
    for table in TABLE.finditer(text):
        line = text[: table.start(2)].count("\n") + 1
        lines = table[2].splitlines()
        assert re.fullmatch(r"\|[-|]+\|", lines[1]), lines[0]
        for offset, row in enumerate(lines[2:], 2):
            yield line + offset, table[1], [cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]]


def code_of(cell):
    """Returns (source, the text after it, the expected value) of a cell."""
    found = EXAMPLE.fullmatch(cell.replace("\\|", "|"))
    assert found, f"no example: {cell}"
    lines = [span[1:-1] for span in found[1].split("<br>")]
    return "\n".join(lines), found[2], found[3]


def run_source(source, name, names):
    """Runs statements; returns the value of the last one if it is an expression."""
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), names)
    return eval(compile(ast.Expression(last.value), name, "eval"), names) if last is not None else None


def run_program(source, name, names):
    return run_source(source, name, names)


def indented(source):
    return "".join(f"    {line}\n" for line in source.splitlines())


def run_kernel(source, name, names):
    text = f"@cuda.jit\ndef example(r, x):\n    i = cuda.grid(1)\n{indented(source)}"
    run_source(text, name, names)
    names["example"][1, 8](names["r"], names["x"])
    names["cuda"].synchronize()
    return names["r"]


def run_njit(source, name, names):
    *before, last = source.split("\n")
    text = f"@njit\ndef example(x):\n{indented(chr(10).join([*before, 'return ' + last] if not last.startswith('return') else [source]))}"
    run_source(text, name, names)
    return names["example"](names["x"])


SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM") == "1"
RUN = {"program": run_program, "kernel": run_kernel, "njit": run_njit}


def is_equal(value, expected):
    if isinstance(expected, int | float | complex | list | np.ndarray) and not isinstance(expected, bool):
        return np.allclose(value, expected, rtol=1e-6, atol=0, equal_nan=True)
    return value == expected and type(value) is type(expected)


def check_example(name, kind, cell, preamble):
    """Returns what is wrong with the example of a row, or None."""
    source, relation, expected = code_of(cell)
    names = {"__name__": "rows"}
    run_source(preamble, "<names of docs/numba.md>", names)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            value = RUN[kind](source, name, names)
    except Exception as error:
        if SIMULATED and any(words in str(error) for words in ("is not simulated", "in the simulator", "the simulator does not")):
            return None
        if relation != "raises":
            return "".join(traceback.format_exception_only(error))
        if expected not in [c.__name__ for c in type(error).__mro__] or not str(error):
            return f"raises {error!r}, not {expected}"
        return None
    if relation == "raises" and SIMULATED and expected == "Error":
        return None  # code that only the interpreter can run, not a compiled kernel
    if relation == "raises":
        return f"raises nothing, and {expected} is expected"
    if relation == "→" and not is_equal(value, eval(expected, names)):
        return f"gives {value!r}"
    return None


def run_ir(source):
    """Runs the body of a kernel in the kernel IR; returns `r`."""
    with tempfile.NamedTemporaryFile("w", suffix=".kir") as file:
        file.write(f"kernel example(r, x) {{\n{source}\n}}\n")
        file.flush()
        command = [os.path.join(sys.argv[2], "kjit-run"), file.name, "--arg", "x=arange:f64[8]", "--arg", "r=zeros:f64[8]",
                   "--launch", "example[1, 8](r, x)", "--print", "r"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    found = re.search(r"^r: f64\[8\] = \[(.*)\]", done.stdout, re.MULTILINE)
    assert found, done.stdout
    return np.array(found[1].split(), dtype=float)


def check_forms(name, cells, preamble):
    """Returns what is wrong with a row that has a kernel in three forms, or None."""
    results = []
    for cell, decorator in zip(cells, ("cuda.jit", "kjit.jit")):
        names = {"__name__": "rows"}
        run_source(preamble + "import kjit\n", "<names of docs/numba.md>", names)
        names["r"][:] = 0
        run_source(f"@{decorator}\ndef example(r, x):\n{indented(code_of(cell)[0])}", f"{name} {decorator}", names)
        names["example"][1, 8](names["r"], names["x"])
        results.append(names["r"])
    results.append(run_ir(code_of(cells[2])[0]))
    if not all(np.array_equal(results[0], other) for other in results[1:]):
        return f"the forms give {results}"
    return None


def main():
    wanted = sys.argv[3] if len(sys.argv) > 3 else ""
    texts = {page: open(os.path.join(sys.argv[1], page), encoding="utf-8").read() for page in PAGES}
    preamble = "".join(PREAMBLE.findall(texts[PAGES[0]]))
    failures = rows = 0
    for page, text in texts.items():
        for line, kind, cells in rows_of(text):
            if wanted not in " ".join(cells):
                continue
            rows += 1
            name = f"<{page} line {line}>"
            what = check_forms(name, cells, preamble) if kind == "forms" else check_example(name, kind, cells[-1], preamble)
            if what is not None:
                failures += 1
                print(f"{page}:{line}: {' | '.join(cells)}\n    {what}")
    print(f"{rows} rows, {failures} wrong")
    assert rows > 100 or wanted
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
