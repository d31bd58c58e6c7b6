# RUN: %kjit-python %s
"""The stubs name what the package has, and are Python."""
import ast
import os

import kjit

with open(os.path.join(os.path.dirname(kjit.__file__), "__init__.pyi")) as file:
    tree = ast.parse(file.read())
names = {n.name for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))} | {n.target.id for n in tree.body if isinstance(n, ast.AnnAssign)}
missing = {n for n in kjit.__all__ if n not in names and n != "bool"}
more = {n for n in names if not hasattr(kjit, n) and n != "Const"}
assert not missing and not more, (missing, more)
