"""The command-line programs kjit-run, kjit-compile and kjit-cache that a wheel contains. pip
creates a command for each."""

import os
import sys


def _run(name):
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", name)
    if not os.path.exists(program):
        sys.exit(f"{name}: {program} does not exist, because this installation has no command-line programs; only wheels contain them")
    os.execv(program, [name, *sys.argv[1:]])


def run():
    """Replaces this process by kjit-run."""
    _run("kjit-run")


def compile():
    """Replaces this process by kjit-compile."""
    _run("kjit-compile")


def cache():
    """Replaces this process by kjit-cache."""
    _run("kjit-cache")
