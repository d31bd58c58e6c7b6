"""check_macros.py INCLUDE CC CXX: checks that each header leaves the application's macros unchanged and defines only
macros that begin with KJIT_."""
import pathlib
import subprocess
import sys

include, cc, cxx = sys.argv[1:]
# Names that applications use for macros, and the names in kjit's own tables and parameters.
HOST = ["X", "ROW", "A", "T", "N", "I", "S", "CHECK", "API", "COUNT", "END", "OK", "BOOL", "AND", "OR", "NOT", "DIV", "PTX", "ASM", "KIR", "LLVM", "TYPED", "FLOAT", "INT", "F32", "I8"]
languages = [[cc, "-x", "c", "-std=c99"], [cc, "-x", "c", "-std=c11"], [cxx, "-x", "c++", "-std=c++11"]]
failed = 0


def macros(command, text):
    lines = subprocess.run([*command, "-I", include, "-E", "-dM", "-"], input=text, text=True, check=True, stdout=subprocess.PIPE).stdout.splitlines()
    return {line.split()[1].partition("(")[0]: line for line in lines}


defined = "".join("#define %s(a) a macro %s of the host, a\n" % (name, name) for name in HOST)
for header in sorted(pathlib.Path(include, "kjit").glob("*.h")):
    line = "#include <kjit/%s>\n" % header.name
    for command in languages:
        failed += subprocess.run([*command, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-I", include, "-"], input=defined + line, text=True).returncode != 0
        plain = defined.replace("(a)", "")
        failed += subprocess.run([*command, "-fsyntax-only", "-I", include, "-"], input=plain + line, text=True).returncode != 0
    before, after = macros(languages[0], "#include <stddef.h>\n#include <stdint.h>\n" + defined), macros(languages[0], "#include <stddef.h>\n#include <stdint.h>\n" + defined + line)
    lost = [name for name in before if after.get(name) != before[name]]
    added = [name for name in after if name not in before and not name.startswith("KJIT_")]
    if lost or added:
        print("%s: takes away %s, adds %s" % (header.name, lost, added))
        failed += 1
sys.exit(failed != 0)
