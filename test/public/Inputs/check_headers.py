"""check_headers.py INCLUDE CC CXX: compiles each header of INCLUDE/kjit alone, in three languages."""
import pathlib
import subprocess
import sys

include, cc, cxx = sys.argv[1:]
strict = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-I", include]
languages = [[cc, "-x", "c", "-std=c99", *strict], [cc, "-x", "c", "-std=c11", *strict], [cxx, "-x", "c++", "-std=c++11", *strict]]
failed = 0
for header in sorted(pathlib.Path(include, "kjit").glob("*.h")):
    for command in languages:
        source = "#include <kjit/%s>\nint main(%s) { return 0; }\n" % (header.name, "void")
        failed += subprocess.run([*command, "-"], input=source, text=True).returncode != 0
sys.exit(failed != 0)
