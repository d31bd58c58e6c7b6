#!/usr/bin/env python3
"""make-names.py SOURCE OUTPUT: writes kjit/_names.py and, next to it, the stubs in __init__.pyi. The names of built-ins and
scalar types come from the tables for the documentation, and the names of the checks from the header."""
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
# The names that kjit-run --checks takes, too.
checks = {name.lower().replace("_", "-"): int(bits)
          for name, bits in re.findall(r"^  KJIT_CHECK_(\w+) = (\d+)", (source / "include/kjit/status.h").read_text(), re.MULTILINE)}
types = [row[1] for row in tables.rows("include/kjit/types.def", "KJIT_ROW")]
output.parent.mkdir(parents=True, exist_ok=True)
output.write_text('"""Made by make-names.py from lib/ir/builtins.def, include/kjit/types.def and status.h."""\n'
                  f"BUILTINS = {builtins!r}\nTYPES = {types!r}\nCHECKS = {checks!r}\n")

# Writes stubs next to the package. Type checkers and editors take the names of the package from these stubs.
header = (source / "tools/python/kjit/stub.in.pyi").read_text()
words = "\n".join(f"{name}: Any" for name in builtins if name not in types and f"\ndef {name}(" not in header)
errors = re.findall(r'\("(\w+)", "KJIT_ERROR_\w+"((?:, \w+)*), "', (source / "tools/python/kjit/_errors.py").read_text())
classes = "\n".join(f"class {name}({bases[2:] if 'ProgramError' in bases else 'Error' + bases}): ..." for name, bases in errors)
scalars = "\n".join(f"{name}: DType" for name in types if name != "bool")
(output.parent / "__init__.pyi").write_text(f"{header}\n{classes}\n\n{scalars}\n\n{words}\n")
