"""Puts kjit in place of numba for the rest of the process, for programs that are not changed."""
import kjit


def take():
    context = kjit.as_numba()
    context.__enter__()
    return context
