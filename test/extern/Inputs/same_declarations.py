"""same_declarations.py CALLER.ptx FOLDER: checks that a file in the folder defines every function that the caller
declares extern, with the same parameters and result."""
import glob
import os
import re
import sys


def functions(text, kind):
    """name -> (result, parameters), each a list of types."""
    found = {}
    for result, name, parameters in re.findall(kind + r" \.func\s*(\([^)]*\))?\s*(\w+)\s*(\([^)]*\))?", text):
        found[name] = tuple(re.findall(r"\.param (?:\.align \d+ )?\.(\w+)", part) for part in (result, parameters))
    return found


wanted = functions(open(sys.argv[1]).read(), r"\.extern")
defined = {}
for path in glob.glob(os.path.join(sys.argv[2], "*.ptx")):
    defined.update(functions(open(path).read(), r"\.visible"))
wanted = {name: types for name, types in wanted.items() if name.startswith("k_")}
assert len(wanted) == 8, wanted
for name, types in wanted.items():
    assert defined[name] == types, (name, types, defined[name])
