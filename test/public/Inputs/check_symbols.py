"""check_symbols.py INCLUDE LIBDIR: compares what the libraries export with what the headers declare."""
import pathlib
import re
import subprocess
import sys

include, libraries = sys.argv[1:]
DEBUGGER = {"__jit_debug_register_code", "__jit_debug_descriptor"}


def exported(library):
    lines = subprocess.run(["nm", "-D", "--defined-only", "%s/%s" % (libraries, library)], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    return {line.split()[-1] for line in lines}


declared = set()
for header in pathlib.Path(include, "kjit").glob("*.h"):
    declared |= set(re.findall(r"^KJIT_API[^;(]*?\b(kjit_\w+)\(", header.read_text(), re.M))
complaints = ["libkjit.so exports %s" % name for name in exported("libkjit.so") if not name.startswith("kjit_")]
complaints += ["libkjit-compiler.so exports %s" % name for name in exported("libkjit-compiler.so") - DEBUGGER if not name.startswith("kjit_")]
complaints += ["libkjit.so lacks %s" % name for name in declared - exported("libkjit.so")]
complaints += ["libkjit.so exports %s, which no header declares" % name for name in exported("libkjit.so") - declared if name.startswith("kjit_")]
print("\n".join(sorted(complaints)))
sys.exit(bool(complaints) or not declared)
