"""Annotates the code of kernels with the Python lines that it was compiled from."""

import os
import re

# Lines in PTX and assembly that give the source line of the following code, and the tables of
# source files.
_LOC = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)\s+\d+.*$")
_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"(?:\s+"([^"]*)")?.*$')
_DEBUG = re.compile(r"^\s*\.section\s+\.debug_")
_NOISE = re.compile(r"^(?:\$L__(?:tmp|func_begin|func_end|info_string)\d*:|\.L(?:tmp|func_begin|func_end)\d+:)\s*$")
# In LLVM IR: an instruction's location, and the metadata nodes that locations consist of.
_DBG = re.compile(r",? !dbg !(\d+)")
_NODE = re.compile(r"^!(\d+) = (?:distinct )?(!DI\w+\(.*\))$")
_DEBUG_NODE = re.compile(r"^!(?:\d+ = (?:distinct )?!DI|llvm\.dbg|\d+ = !\{i32 \d+, !\"(?:Debug Info|Dwarf) Version\")")
_MARKS = {"ptx": "//", "sass": "//", "asm": "#", "llvm": ";", "llvm-opt": ";", "kir": "#"}
STAGES_WITH_LINES = ("llvm", "llvm-opt", "ptx", "asm")


class _Beside:
    """Inserts a Python line before the code that was compiled from it, whenever the line changes."""

    def __init__(self, stage, sources):
        self.mark, self.sources = _MARKS[stage], {s.file: s for s in sources}
        self.lines, self.last = [], None

    def add(self, text, file, number):
        place = (file, number) if number else None
        if place and place != self.last and text.strip():
            source = self.sources.get(file) or next(
                (s for f, s in self.sources.items() if os.path.basename(f) == os.path.basename(file or "")), None
            )
            quoted = source.quote(number) if source else None
            if quoted is not None:
                self.lines.append(f"{self.mark} {os.path.basename(source.file)}:{number}: {quoted.strip()}")
            self.last = place
        self.lines.append(text)

    def text(self):
        return "\n".join(self.lines).rstrip("\n") + "\n"


def _of_assembly(text, beside):
    lines, files = text.split("\n"), {}
    for line in lines:
        found = _FILE.match(line)
        if found:
            files[found[1]] = os.path.join(found[2], found[3]) if found[3] else found[2]
    file = number = None
    for line in lines:
        if _DEBUG.match(line):
            break  # the rest of the text is debug information
        found = _LOC.match(line)
        if found:
            file, number = files.get(found[1]), int(found[2])
        elif not _FILE.match(line) and not _NOISE.match(line):
            beside.add(line, file, number)


def _of_llvm(text, beside):
    nodes = {found[1]: found[2] for found in map(_NODE.match, text.split("\n")) if found}

    def field(node, name):
        found = re.search(rf"\b{name}: !?(\d+)", nodes.get(node, ""))
        return found[1] if found else None

    def file_of(node):
        for _ in range(100):
            file = field(node, "file")
            if file:
                named = re.search(r'filename: "([^"]*)"', nodes.get(file, ""))
                return named[1] if named else None
            node = field(node, "scope")
            if node is None:
                return None
        return None

    for line in text.split("\n"):
        if _DEBUG_NODE.match(line):
            continue
        found = _DBG.search(line)
        place = (
            (file_of(found[1]), int(field(found[1], "line") or 0))
            if found and not line.startswith("define")
            else (None, 0)
        )
        beside.add(_DBG.sub("", line), *place)


def annotate(stage, text, made):
    """Returns the text of a stage with Python lines as comments. made: the module of kernel IR that
    the text was compiled from."""
    if stage == "kir":
        beside = _Beside(stage, made.sources)
        for line, place in zip(made.plain.split("\n"), made.lines):
            beside.add(line, *(place[:2] if place else (None, 0)))
        return beside.text()
    if stage not in STAGES_WITH_LINES:
        return text
    beside = _Beside(stage, made.sources)
    (_of_llvm if stage.startswith("llvm") else _of_assembly)(text, beside)
    return beside.text()
