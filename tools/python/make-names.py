#!/usr/bin/env python3
"""make-names.py SOURCE OUTPUT: kjit/_names.py, the names of built-ins and scalar types from the tables that the
documentation is made from."""
import pathlib
import re
import sys

source, output = map(pathlib.Path, sys.argv[1:])
sys.path.insert(0, str(source / "scripts"))
import tables  # noqa: E402

prose = (source / "docs/builtins.prose.md").read_text()
builtins = {}
for row in tables.builtins():
    told = re.search(rf"^`{row['name']}\b[^`]*`.*\n  (.*)$", prose, re.MULTILINE)
    for name in [row["name"], *row["at other scopes"]]:
        builtins[name] = told[1] if told else ""
types = [row[1] for row in tables.rows("include/kjit/types.def", "KJIT_ROW")]
output.parent.mkdir(parents=True, exist_ok=True)
output.write_text('"""Made by make-names.py from lib/ir/builtins.def and include/kjit/types.def."""\n'
                  f"BUILTINS = {builtins!r}\nTYPES = {types!r}\n")
