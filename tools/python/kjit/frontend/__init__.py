"""Translates Python functions to kernel IR text. source.py finds a function's source, scope.py
decides where variables are declared, emit.py, loops.py and expression.py write statements and
expressions, and module.py joins the texts to a module with a line map."""
