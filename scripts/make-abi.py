#!/usr/bin/env python3
"""Makes two files from the public headers: test/public/Inputs/abi.txt, the binary interface that applications are compiled
against (every public function, the offset of each field, the value of each constant), and the lists of names in cmake/kjit.map.
With --check, prints the differences between the recorded lists and the headers, and exits 1.

The interface that an application was built with must stay. If the check reports a broken line, correct the header, not the list.
Run this script to record new lines; it puts the names of a later version into that version's node of kjit.map."""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from tables import ROOT, rows

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--check", action="store_true", help="compare, change nothing")
parser.add_argument("--include", type=pathlib.Path, default=ROOT / "include", help="the folder of the headers; default: the tree's")
options = parser.parse_args()
HEADERS = options.include / "kjit"
RECORD = ROOT / "test/public/Inputs/abi.txt"
MAP = ROOT / "cmake/kjit.map"
# Structs with size_bytes that only kjit creates; an application only reads their fields.
HANDED_OUT = {"kjit_import_source", "kjit_cache_entry"}
CC = os.environ.get("CC", "cc")


def compile_with(arguments, text):
    command = [CC, "-std=c11", "-I", str(options.include), "-x", "c", *arguments, "-"]
    return subprocess.run(command, input=text, check=True, stdout=subprocess.PIPE, text=True).stdout


def includes():
    return "".join("#include <kjit/%s>\n" % header.name for header in sorted(HEADERS.glob("*.h")))


def squeeze(text):
    return " ".join(text.split()).replace("( ", "(")


def declarations():
    """Returns the declarations of the headers as one text, without included files and function bodies."""
    text = compile_with(["-E", "-P"], includes())
    text = re.sub(r"__attribute__\(\(.*?\)\)\s?(?=[\w*])", "", text)
    at = text.index("typedef struct kjit_context")
    while at < len(text):
        depth, end, body = 0, at, None
        while depth or text[end] != ";":
            depth += (text[end] == "{") - (text[end] == "}")
            end += 1
            if text[end - 1] == "}" and not depth and text[at:end].lstrip().startswith("static inline"):
                break
        yield text[at:end].strip()
        at = end + 1
        while at < len(text) and text[at].isspace():
            at += 1


def split(text, separator):
    """Splits text at the separators outside of brackets."""
    parts, depth, first = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "({[") - (letter in ")}]")
        if letter == separator and not depth:
            parts.append(text[first:at])
            first = at + 1
    return [part.strip() for part in parts + [text[first:]] if part.strip()]


def fields(body, prefix=""):
    """Returns the path and the type of each field. The fields of a nested union or struct follow it."""
    for member in split(body, ";"):
        inner = re.fullmatch(r"(?:union|struct)\s*\{(.*)\}\s*(\w+)", member, re.S)
        if inner:
            yield prefix + inner[2], "union" if member.startswith("union") else "struct"
            yield from fields(inner[1], prefix + inner[2] + ".")
            continue
        first, *others = split(member, ",")
        called = re.search(r"\(\s*\*\s*(\w+)\s*\)", first)
        named = called or re.search(r"(\w+)\s*((?:\[[^]]*\])*)$", first)
        base = first[:named.start()].rstrip("* \n") + " "
        yield prefix + named[1], squeeze(first)
        for other in others:
            yield prefix + re.search(r"\w+", other)[0], squeeze(base + other)


def read_headers():
    """Returns the structs by name, with their fields; the constants; and the other lines of the binary interface."""
    structs, constants, lines, functions = {}, [], [], set()
    for text in declarations():
        if found := re.fullmatch(r"typedef struct (\w+)\s*\{(.*)\}\s*\w+", text, re.S):
            structs[found[1]] = list(fields(found[2]))
        elif found := re.fullmatch(r"(?:typedef )?enum\s*\w*\s*\{(.*)\}\s*\w*", text, re.S):
            constants += [re.match(r"\w+", item)[0] for item in split(found[1], ",")]
        elif found := re.match(r"(static inline .*?\b(kjit_\w+)\s*\(.*?\))\s*\{", text, re.S):
            lines.append(squeeze(found[1]))
        elif found := re.fullmatch(r"(?!typedef).*?\b(kjit_\w+)\s*\(.*\)", text, re.S):
            lines.append("function " + squeeze(text))
            functions.add(found[1])
        elif found := re.fullmatch(r"typedef .*", text, re.S):
            lines.append(squeeze(text))
        else:
            sys.exit("make-abi.py: what is this: " + text)
    return structs, constants, lines, functions


def measure(structs, constants):
    """Asks the compiler for sizes, offsets and values: the lines of the record."""
    body = []
    for name, members in structs.items():
        body.append('printf("struct %s: %%zu bytes, aligned to %%zu\\n", sizeof(%s), _Alignof(%s));' % (name, name, name))
        for path, text in members:
            body.append('printf("  %s.%s: at %%zu, %%zu bytes: %s\\n", offsetof(%s, %s), sizeof(((%s *)0)->%s));' % (name, path, text, name, path, name, path))
    body += ['printf("%s = %%lld\\n", (long long)%s);' % (name, name) for name in constants]
    program = "#include <stdio.h>\n%sint main(void)\n{\n%s\nreturn 0;\n}\n" % (includes(), "\n".join(body))
    with tempfile.TemporaryDirectory() as folder:
        compile_with(["-o", folder + "/measure"], program)
        return subprocess.run([folder + "/measure"], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()


def version():
    numbers = re.findall(r"#define KJIT_VERSION_(MAJOR|MINOR) (\d+)", (HEADERS / "status.h").read_text())
    return "KJIT_%s.%s" % (dict(numbers)["MAJOR"], dict(numbers)["MINOR"])


def make_map(old, functions):
    """Returns the map with each function in the node of the version that introduced it. Nodes of earlier versions do not change:
    a name that no longer exists there is an error."""
    head = old[:old.index("*/") + 3]
    nodes = {found[1]: set(re.findall(r"\bkjit_\w+(?=;)", found[2])) for found in re.finditer(r"^(KJIT_[\d.]+) \{(.*?)^\}", old, re.S | re.M)}
    own = version()
    earlier = set().union(*(names for node, names in nodes.items() if node != own))
    nodes[own] = functions - earlier
    text, before = head, None
    for node, names in nodes.items():
        text += "%s {\n  global:\n%s" % (node, "".join("    %s;\n" % name for name in sorted(names)))
        text += "%s}%s;\n" % ("" if before else "  local: *;\n", " " + before if before else "")
        before = node
    return text, ["%s is in an earlier node of cmake/kjit.map, and no header declares it" % name for name in sorted(earlier - functions)]


def check_sized(structs):
    """The library knows the structs that may grow, and tests use each of them as old and new applications do."""
    known = {row[1] for row in rows("lib/ir/sized.def")}
    growing = {name for name, members in structs.items() if members[0] == ("size_bytes", "uint32_t size_bytes")}
    tested = (ROOT / "test/public/Inputs/struct_sizes.c").read_text()
    return (["%s starts with size_bytes and has no row in lib/ir/sized.def" % name for name in sorted(growing - known - HANDED_OUT)] +
            ["%s has a row in lib/ir/sized.def and does not start with size_bytes" % name for name in sorted(known - growing)] +
            ["no host of test/public/Inputs/struct_sizes.c uses %s" % name for name in sorted(known) if not re.search(r"\b%s\b" % name, tested)])


def compare(recorded, made):
    """Returns a line for each difference. A recorded line that no longer holds breaks applications, except that counts and the
    sizes of extensible structs may grow."""
    grown = {row[1] for row in rows("lib/ir/sized.def")}
    gone = [line for line in recorded if line not in set(made)]
    new = [line for line in made if line not in set(recorded)]
    may = lambda line: re.match(r"KJIT_\w+_COUNT = ", line) or ((found := re.match(r"struct (\w+):", line)) and found[1] in grown)
    sizes = {found[1]: int(found[2]) for line in recorded if (found := re.match(r"struct (\w+): (\d+)", line))}
    padding = lambda line: (found := re.match(r"  (\w+)\.\w+: at (\d+)", line)) and found[1] in grown and int(found[2]) < sizes.get(found[1], 0)
    return (["broken, hosts were built with: " + line for line in gone if not may(line)] + ["grown, before: " + line for line in gone if may(line)] +
            [("new, where a host has left padding undefined: " if padding(line) else "new: ") + line for line in new])


structs, constants, lines, functions = read_headers()
made = measure(structs, constants) + lines
text, complaints = make_map(MAP.read_text(), functions)
complaints += check_sized(structs)
if options.check:
    recorded = RECORD.read_text().splitlines()
    complaints += compare(recorded, made)
    if not complaints and recorded != made:
        complaints.append("test/public/Inputs/abi.txt has another order than the headers")
    if MAP.read_text() != text:
        complaints.append("cmake/kjit.map does not name the functions that the headers declare")
    if complaints:
        complaints.append("scripts/make-abi.py records what is new")
else:
    RECORD.write_text("\n".join(made) + "\n")
    MAP.write_text(text)
print("\n".join(complaints), end="\n" if complaints else "")
sys.exit(bool(complaints))
