"""`python -m kjit.as_numba program.py arguments` runs a program with kjit in the place of numba; `kjit.as_numba()` does so in a block."""

import sys
import types

from . import _as_numba


class _Callable(types.ModuleType):
    """The module that an import of kjit.as_numba gives, which can be called as kjit.as_numba can."""

    def __call__(self):
        return _as_numba.as_numba()


sys.modules[__name__].__class__ = _Callable

if __name__ == "__main__":
    _as_numba.run(sys.argv[1:])
