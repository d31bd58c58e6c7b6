"""check_symbols.py INCLUDE LIBDIR: compares what the libraries export with what the headers declare."""
import pathlib
import re
import subprocess
import sys

include, libraries = sys.argv[1:]
DEBUGGER = {"__jit_debug_register_code", "__jit_debug_descriptor"}


def exported(library):
    lines = subprocess.run(["nm", "-D", "--defined-only", "%s/%s" % (libraries, library)], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    return {line.split()[-1] for line in lines if " A " not in line}  # A: the names of symbol versions


def soname(library):
    lines = subprocess.run(["readelf", "-d", "%s/%s" % (libraries, library)], check=True, stdout=subprocess.PIPE, text=True).stdout
    return re.search(r"Library soname: \[(.*)\]", lines)[1]


# Checks that every function is in the version node in which it was added.
versions = {name.partition("@@")[0]: name.partition("@@")[2] for name in exported("libkjit.so")}
complaints = ["libkjit.so has %s in the version '%s'" % (name, version) for name, version in versions.items() if not re.fullmatch(r"KJIT_\d+\.\d+", version)]
version = ".".join(re.findall(r"#define KJIT_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", pathlib.Path(include, "kjit/status.h").read_text()))
wanted = {"libkjit.so": "libkjit.so." + version.split(".")[0], "libkjit-compiler.so": "libkjit-compiler.so." + version}
complaints += ["the soname of %s is %s, not %s" % (library, soname(library), name) for library, name in wanted.items() if soname(library) != name]

declared = set()
for header in pathlib.Path(include, "kjit").glob("*.h"):
    declared |= set(re.findall(r"^KJIT_API[^;(]*?\b(kjit_\w+)\(", header.read_text(), re.M))
complaints += ["libkjit.so exports %s" % name for name in versions if not name.startswith("kjit_")]
complaints += ["libkjit-compiler.so exports %s" % name for name in exported("libkjit-compiler.so") - DEBUGGER if not name.startswith("kjit_")]
complaints += ["libkjit.so lacks %s" % name for name in declared - set(versions)]
complaints += ["libkjit.so exports %s, which no header declares" % name for name in set(versions) - declared if name.startswith("kjit_")]
print("\n".join(sorted(complaints)))
sys.exit(bool(complaints) or not declared)
