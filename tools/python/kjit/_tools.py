"""The programs of the shell, kjit-run, kjit-compile and kjit-cache, which a wheel brings along: pip makes a command for each."""

import os
import sys


def _run(name):
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", name)
    if not os.path.exists(program):
        sys.exit(f"{name}: this package of Python has no programs, only wheels have: {program} does not exist")
    os.execv(program, [name, *sys.argv[1:]])


def run():
    """kjit-run, in this process."""
    _run("kjit-run")


def compile():
    """kjit-compile, in this process."""
    _run("kjit-compile")


def cache():
    """kjit-cache, in this process."""
    _run("kjit-cache")
