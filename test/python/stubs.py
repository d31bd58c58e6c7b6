# RUN: %kjit-python %s %srcdir %t
"""The stubs of kjit and kjit.cuda have the same names as the packages, are valid Python, and for kjit.cuda are up to
date with tools/python/make-stubs.py."""
import ast
import os
import subprocess
import sys

import kjit
import kjit.cuda

source, made = sys.argv[1:]
here = os.path.dirname(kjit.__file__)


def named(path):
    """Returns the names in a stub."""
    with open(path) as file:
        body = ast.parse(file.read()).body
    names = {n.name for n in body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    names |= {n.target.id for n in body if isinstance(n, ast.AnnAssign)}
    names |= {a.asname for n in body if isinstance(n, ast.ImportFrom) for a in n.names if a.asname}
    return {n for n in names if n[0] != "_"} | {"__version__"}


names = named(os.path.join(here, "__init__.pyi"))
missing = {n for n in kjit.__all__ if n not in names and n != "bool"}
more = {n for n in names if not hasattr(kjit, n)}
assert not missing and not more, (missing, more)

stub = os.path.join(here, "cuda", "__init__.pyi")
subprocess.run([sys.executable, os.path.join(source, "tools/python/make-stubs.py"), made], check=True)
with open(stub) as file, open(made) as wanted:
    assert file.read() == wanted.read(), "kjit/cuda/__init__.pyi: run tools/python/make-stubs.py"
names = named(stub) - {"__version__"}
missing = {n for n, v in vars(kjit.cuda).items() if n[0] != "_" and type(v).__name__ != "module"} - names
assert not missing and not {n for n in names if not hasattr(kjit.cuda, n)}, missing
