#!/usr/bin/env python3
"""check.py: every built-in of builtins.def has a test of its values and a check of its PTX. Names those that have none; compiles a kernel for each row of ptx.py for sm_90, looks for
what the row expects in it, and hands it to ptxas where there is one. Each built-in that computes is also compiled with libclc's math functions, which a machine without the CUDA
toolkit uses."""
import argparse
import concurrent.futures
import glob
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import ptx

TEST = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Tests of values that run on both targets. The accuracy test has the built-ins' names in its table.
VALUE_TESTS = ["conformance/*.kir", "docs/examples/*.kir", "accuracy/reference.c"]
# Checks of PTX in addition to the rows of ptx.py.
PTX_TESTS = ["ptx/*.kir"]
# Sections whose built-ins are tested on all pairs of special values, and the file of this test.
COMPUTING = ("integers", "numbers", "fp8", "complex numbers", "floating point", "approximations")
SPECIAL_TESTS = ["special/*.py"]
# Functions that libclc, which is part of kjit, lacks. On a GPU they need libdevice from the CUDA toolkit.
LIBCLC_LACKS = {"erfinv", "erfcinv", "erfcx", "normcdf", "normcdfinv", "j0", "j1", "y0", "y1", "jn", "yn"}
# These built-ins end the kernel, so they have no value to test.
WITHOUT_VALUE = {"trap", "breakpoint"}


def builtin_names(scripts):
    sys.path.insert(0, scripts)
    import tables

    return tables.builtin_names()


def computing_names(scripts):
    """Returns the built-ins that only compute, from the table's sections with these titles."""
    import tables

    sections = re.split(r"^/\* (.*) \*/$", (tables.ROOT / "lib/ir/builtins.def").read_text(), flags=re.MULTILINE)
    texts = [text for title, text in zip(sections[1::2], sections[2::2]) if title in COMPUTING]
    assert len(texts) == len(COMPUTING), "a section of builtins.def has another name"
    return [name for text in texts for name in re.findall(r'^X\(\w+, "(\w+)"', text, re.MULTILINE)]


def words_of_tests(patterns):
    words = set()
    for pattern in patterns:
        for path in glob.glob(os.path.join(TEST, pattern)):
            text = open(path).read()
            if path.endswith(".c"):
                words.update(name.lower() for pair in re.findall(r"KJ_BUILTIN_(\w+)|(?:CALL1|CALL2|FAST1)\((\w+),", text) for name in pair)
            else:
                words.update(re.findall(r"\w+", re.sub(r"#.*", "", text)))
    return words


def source(row):
    body = "\n".join("  " + line for line in row.statement.strip().splitlines())
    return f"{row.before}\nkernel k(r, x, y, z) {{\n  let i = grid(1)\n{body}\n}}\n"


def run(command):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return None if result.returncode == 0 else " ".join(command) + "\n" + result.stdout


def compile_row(arguments, folder, name, row, *options):
    """Returns the command's failure or None, and the path of the PTX."""
    path, code = os.path.join(folder, name + ".kir"), os.path.join(folder, name + ".ptx")
    open(path, "w").write(source(row))
    types = row.types if isinstance(row.types, tuple) else (row.types,) * 4
    signature = ", ".join(f"{t}[:] C" for t in types)
    return run([arguments.kjit_compile, path, "-q", "-k", "k", "-s", signature, "--arch", row.arch, "--facts", "all", "-o", code, *options]), code


def assemble(arguments, folder, name, row, code):
    return arguments.ptxas and run([arguments.ptxas, "-arch", row.arch, code, "-o", os.path.join(folder, name + ".cubin")])


def check(arguments, folder, name, row):
    failure, code = compile_row(arguments, folder, name, row)
    if failure:
        return None if name in LIBCLC_LACKS and "needs libdevice" in failure else f"{name}: {failure}"
    text = open(code).read()
    missing = [pattern for pattern in row.expected if not re.search(pattern, text)]
    if missing:
        return f"{name}: nothing in the PTX is {missing}:\n{source(row)}\n{text}"
    failure = assemble(arguments, folder, name, row, code)
    return f"{name}: {failure}" if failure else None


def check_libclc(arguments, folder, name, row):
    failure, code = compile_row(arguments, folder, name + ".libclc", row, "--libdevice", "libclc")
    if name in LIBCLC_LACKS:
        refusal = f"`{name}` on a GPU needs libdevice"
        return None if failure and refusal in failure else f"{name} with libclc: not refused by '{refusal}': {failure}"
    failure = failure or assemble(arguments, folder, name, row, code)
    if not failure and ".extern .func" in open(code).read():
        failure = "the PTX calls a function that nothing defines"
    return f"{name} with libclc: {failure}" if failure else None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kjit-compile", required=True)
    parser.add_argument("--ptxas", help="the assembler")
    parser.add_argument("--scripts", required=True, help="the folder of tables.py")
    parser.add_argument("--only", help="one built-in")
    arguments = parser.parse_args()
    names, words, compiled = builtin_names(arguments.scripts), words_of_tests(VALUE_TESTS), words_of_tests(PTX_TESTS)
    failures = [f"{name}: no value in {', '.join(VALUE_TESTS)}" for name in names if name not in words | WITHOUT_VALUE]
    special = words_of_tests(SPECIAL_TESTS)
    failures += [f"{name}: in no expression of {', '.join(SPECIAL_TESTS)}" for name in computing_names(arguments.scripts) if name not in special]
    failures += [f"{name}: no row in ptx.py, and not in {', '.join(PTX_TESTS)}" for name in names if name not in ptx.ROWS and name not in compiled]
    failures += [f"{name}: ptx.py has a row, but there is no such built-in" for name in ptx.ROWS if name not in names]
    failures += [f"{name}: its row in ptx.py does not use it" for name, row in ptx.ROWS.items() if name not in re.findall(r"\w+", source(row))]
    if arguments.only:
        failures = [failure for failure in failures if failure.startswith(arguments.only + ":")]
    rows = {name: row for name, row in ptx.ROWS.items() if name in names and arguments.only in (None, name)}
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        failures += filter(None, pool.map(lambda item: check(arguments, folder, *item), rows.items()))
        computing = [(name, row) for name, row in rows.items() if name in computing_names(arguments.scripts)]
        failures += filter(None, pool.map(lambda item: check_libclc(arguments, folder, *item), computing))
    print("\n".join(failures))
    print(f"{len(names)} built-ins, {len(rows)} compiled, {len(failures)} failures")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
