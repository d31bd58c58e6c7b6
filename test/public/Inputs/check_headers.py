"""check_headers.py INCLUDE CC CXX: compiles each header of INCLUDE/kjit alone, in three languages. It compiles .hpp
files in two versions of C++."""
import pathlib
import subprocess
import sys

include, cc, cxx = sys.argv[1:]
strict = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-I", include]
languages = [[cc, "-x", "c", "-std=c99", *strict], [cc, "-x", "c", "-std=c11", *strict], [cxx, "-x", "c++", "-std=c++11", *strict]]
of_cxx = [[cxx, "-x", "c++", "-std=" + version, "-Wconversion", "-Wsign-conversion", "-Wshadow", *strict] for version in ("c++17", "c++20")]
failed = 0
for header in sorted([*pathlib.Path(include, "kjit").glob("*.h*"), *pathlib.Path(include, "kjit").glob("cpp/*.hpp")]):
    for command in of_cxx if header.suffix == ".hpp" else languages:
        source = "#include <kjit/%s>\nint main(%s) { return 0; }\n" % (header.relative_to(pathlib.Path(include, "kjit")), "void")
        failed += subprocess.run([*command, "-"], input=source, text=True).returncode != 0
sys.exit(failed != 0)
