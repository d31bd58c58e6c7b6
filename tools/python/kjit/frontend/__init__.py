"""Functions of Python as text of the kernel IR: source.py finds their source, scope.py decides where variables are
declared, emit.py, loops.py and expression.py write statements and expressions, module.py puts a module together with its
line map."""
