#!/usr/bin/env python3
"""Writes the list of the element-wise operations of kjit.numpy, for kjit-cache build.

make-operations-list.py FOLDER writes FOLDER/operations.list, with a call of kjit_map for each
operation and type, and the modules that the list names. Their funcs are the same as the funcs that
the package passes to kjit_map, so that programs find the kernels. `import kjit` has to find the
package."""
import pathlib
import sys

from kjit.numpy._elementwise import ROWS
from kjit.numpy._errors import PromotionError

TYPES = ("f32", "f64", "i32", "i64")
SIZE = 1_000_000


def write_operation(row, element, folder, lines):
    """Appends the call of one operation of arrays of one type, if there is such an operation."""
    try:
        func = row.kernel((element,) * row.count).func
    except PromotionError:
        return
    names = [f"x{i}" for i in range(row.count)]
    module = f"{row.name}_{element}.kir"
    (folder / module).write_text(func.text + "\n")
    lines += [f"module {module}", *(f"arg {name}=zeros:{element}[{SIZE}]" for name in names), f"call r = map({func.name}, {', '.join(names)})"]
    if row.count == 2:  # for x + 1: a number takes the type of the array
        lines.append(f"call r = map({func.name}, x0, 1{element})")


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["# Written by make-operations-list.py."]
    for row in ROWS.values():
        for element in TYPES:
            write_operation(row, element, folder, lines)
    (folder / "operations.list").write_text("\n".join([*lines, ""]))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
