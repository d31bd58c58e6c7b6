"""`python -m kjit.as_numba program.py arguments` runs a program with kjit in place of numba.
`kjit.as_numba()` is the same for a `with` block."""

import sys
import types

from . import _as_numba


class _Callable(types.ModuleType):
    """The class of this module, which makes the module itself callable like the function
    kjit.as_numba."""

    def __call__(self):
        return _as_numba.as_numba()


sys.modules[__name__].__class__ = _Callable

if __name__ == "__main__":
    _as_numba.run(sys.argv[1:])
