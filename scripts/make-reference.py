#!/usr/bin/env python3
"""Makes a page for each function, type and macro of the public headers: Markdown for the site (scripts/make-site.sh), and
man(3) pages.

    make-reference.py [--markdown FOLDER] [--man FOLDER] [--include FOLDER]

Doxygen reads the headers, of which it gets the comments as text (--filter): they are sentences in plain words and have
no commands of its own. Exits 1 where a page would have nothing to say."""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap
import xml.etree.ElementTree as xml

from tables import ROOT, rows

DOXYFILE = """
INPUT = {include}/kjit
FILE_PATTERNS = *.h
INPUT_FILTER = "{python} {script} --filter"
OUTPUT_DIRECTORY = {output}
GENERATE_HTML = NO
GENERATE_LATEX = NO
GENERATE_XML = YES
XML_PROGRAMLISTING = NO
OPTIMIZE_OUTPUT_FOR_C = YES
EXTRACT_ALL = YES
EXTRACT_STATIC = YES
MACRO_EXPANSION = YES
INCLUDE_PATH = {include}
PREDEFINED = KJIT_API= KJIT_CHECK=
QUIET = YES
WARN_IF_UNDOCUMENTED = NO
WARN_AS_ERROR = YES
"""
KINDS = {"function": "Functions", "type": "Types", "define": "Macros"}
# Macros that are no part of the API but of how the headers are written.
INTERNAL = re.compile(r"KJIT_(ROW|API|CHECK|VERSION_MINOR|VERSION_PATCH|\w+_H|STAGE_ENUM|STAGES)$")


def turn(found):
    """A comment as Doxygen takes it: in front of what it is about, or behind it. Titles of sections stay out, and so does
    what a header says of itself. Lines stay lines, so that places are those of the header."""
    body, text = found[0], found.string
    if found.start() == 0 or re.match(r"/\* (?:----|clang-format)", body):
        return body
    line = text[text.rfind("\n", 0, found.start()) + 1:found.start()]
    words = re.sub(r"\n *\*(?!/) ?", "\n", body[2:-2])
    return ("/**" if not line.strip() else "/**<") + f" \\verbatim {words}\\endverbatim */"


def filter_header(path):
    print(re.sub(r"/\*.*?\*/", turn, pathlib.Path(path).read_text(), flags=re.DOTALL), end="")


def introduction_of(header):
    """What the header says of itself."""
    comment = re.match(r"/\* (?:kjit/[\w.]+: )?(.*?)\*/", header.read_text(), re.DOTALL)[1]
    return paragraphs_of(re.sub(r"\n \* ?", "\n", comment[0].upper() + comment[1:]))


def words_of(element):
    """What the comment of an entry says."""
    return paragraphs_of("".join(element.find("detaileddescription").itertext()))


def paragraphs_of(text):
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n", text) if part.strip()]


def declaration_of(member, header):
    """A type as it stands in the header; a function as its prototype, a parameter a line where it is long."""
    place = member.find("location")
    if member.get("kind") != "function":
        lines = header.read_text().splitlines()
        first, last = int(place.get("bodystart") or place.get("line")), int(place.get("bodyend") or -1)
        last = last if last >= first else int(place.get("line"))
        if member.tag == "compounddef" or member.get("kind") == "enum":
            return "\n".join(lines[first - 1:last])
        return "\n".join(lines[int(place.get("line")) - 1:max(last, int(place.get("line")))])
    head = re.sub(r"^static ", "", member.find("definition").text.replace("* ", "*"))
    arguments = member.find("argsstring").text.replace("* ", "*")
    whole = head + arguments + ";"
    if len(whole) <= 80:
        return whole
    return head + "(\n" + ",\n".join("    " + part.strip() for part in re.split(r",(?![^()]*\))", arguments[1:-1])) + ");"


class Entry:
    def __init__(self, kind, name, header, declaration, paragraphs):
        self.kind, self.name, self.header, self.declaration = kind, name, header, declaration
        self.description, self.errors, self.constants = [], None, []
        for paragraph in paragraphs:
            text, mark, errors = paragraph.partition("Errors: ")
            self.description += [text.strip()] if text.strip() else []
            self.errors = errors.strip() if mark else self.errors

    def summary(self):
        """The first sentence."""
        text = self.description[0] if self.description else self.name.split("_", 1)[1].replace("_", " ")
        return re.split(r"(?<=[a-z0-9)\]`])\.(?: |$)", text)[0].rstrip(".")


def read_headers(include):
    """All entries, and what each header says of itself."""
    with tempfile.TemporaryDirectory() as folder:
        settings = DOXYFILE.format(include=include, python=sys.executable, script=pathlib.Path(__file__).resolve(),
                                   output=folder)
        subprocess.run(["doxygen", "-"], input=settings, text=True, check=True)
        compounds = [xml.parse(path).getroot().find("compounddef") for path in sorted(pathlib.Path(folder, "xml").glob("*.xml"))
                     if re.match(r"struct|\w+_8h\.xml", path.name)]
    entries, introductions = {}, {}
    for compound in compounds:
        path = include / "kjit" / pathlib.Path(compound.find("location").get("file")).name
        header = path.name
        if compound.get("kind") == "struct":
            name = compound.find("compoundname").text
            entries[name] = Entry("type", name, header, declaration_of(compound, path), words_of(compound))
            continue
        introductions[header] = introduction_of(path)
        for member in compound.iter("memberdef"):
            kind, name = member.get("kind"), member.find("name").text
            if INTERNAL.match(name or "") or kind not in ("function", "define", "enum", "typedef"):
                continue
            if kind == "enum" and not re.match(r"\w", name or ""):
                name = member.find("enumvalue/name").text  # the first of constants without a type
            entry = Entry(kind if kind in KINDS else "type", name, header, declaration_of(member, path), words_of(member))
            entry.constants = [value.find("name").text for value in member.findall("enumvalue")]
            if name not in entries or kind == "enum":
                entries[name] = entry
    return entries, introductions


def values_from_tables(entry):
    """Constants that a header makes of a table: rows of a name and what it is."""
    tables = {"kjit_status": [(f"KJIT_{n}", t) for n, t in rows("include/kjit/status.def", "KJIT_ROW")],
              "kjit_device_attribute": [(f"KJIT_DEVICE_ATTRIBUTE_{n}", t)
                                        for n, _, _, t in rows("include/kjit/device.def", "KJIT_ROW")]}
    return tables.get(entry.name, [])


def write_markdown(folder, entries, introductions):
    folder.mkdir(parents=True, exist_ok=True)
    pages = {constant: name for name, entry in entries.items() for constant in entry.constants}
    pages.update({name: name for name in entries})
    link = lambda name: f"[`{name}`]({pages[name]}.md)" if name in pages else f"`{name}`"

    def prose(text, own):
        text = re.sub(r"([<>*_|\[\]])", r"\\\1", text)
        return re.sub(r"\b(?:kjit|KJIT)\\_[\w\\]*\w", lambda found: "`" + found[0].replace("\\", "") + "`"
                      if found[0].replace("\\", "") == own else link(found[0].replace("\\", "")), text)
    for name, entry in entries.items():
        parts = [f"# {name}", f"In [`<kjit/{entry.header}>`]({entry.header}.md).", f"```c\n{entry.declaration}\n```"]
        parts += [prose(text, name) for text in entry.description]
        parts += [f"**Errors:** {prose(entry.errors, name)}"] if entry.errors else []
        parts += ["\n".join(["| constant | what |", "|---|---|"] + [f"| `{a}` | {prose(b, name)} |" for a, b in
                                                                   values_from_tables(entry)])] if values_from_tables(entry) else []
        (folder / f"{name}.md").write_text("\n\n".join(parts) + "\n")
    for header, introduction in introductions.items():
        parts = [f"# kjit/{header}"] + [prose(text, None) for text in introduction]
        for kind, title in KINDS.items():
            own = [entry for entry in entries.values() if (entry.header, entry.kind) == (header, kind)]
            table = [f"| {link(entry.name)} | {prose(entry.summary(), entry.name)} |" for entry in own]
            parts += [f"## {title}", "\n".join(["| | |", "|---|---|"] + table)] if own else []
        (folder / f"{header}.md").write_text("\n\n".join(parts) + "\n")
    names = sorted(header for header in introductions)
    (folder / "index.md").write_text("# Reference\n\nA page for each function, type and macro of the C API, made from "
                                     "the comments in the headers.\n\n" + "\n".join(
                                         f"- [kjit/{name}]({name}.md)" for name in names) + "\n")


def write_man(folder, entries):
    folder.mkdir(parents=True, exist_ok=True)
    version = ".".join(re.findall(r"KJIT_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", (ROOT / "include/kjit/status.h").read_text()))
    escape = lambda text: re.sub(r"(?m)^([.'])", r"\\&\1", text.replace("\\", "\\e").replace("-", "\\-"))
    fold = lambda text: escape(textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False))
    for name, entry in entries.items():
        also = sorted({word for text in entry.description + [entry.errors or "", entry.declaration]
                       for word in re.findall(r"\b(?:kjit|KJIT)_\w+", text) if word in entries} - {name})
        parts = [f'.TH {name.upper()} 3 "" "kjit {version}" "kjit"', ".SH NAME", f"{name} \\- {escape(entry.summary())}",
                 ".SH SYNOPSIS", ".nf", f"#include <kjit/{entry.header}>", ".PP", escape(entry.declaration), ".fi",
                 ".SH DESCRIPTION"]
        parts += "\n.PP\n".join(fold(text) for text in entry.description).splitlines()
        for constant, what in values_from_tables(entry):
            parts += [".TP", f".B {constant}", fold(what)]
        parts += [".SH ERRORS", fold(entry.errors)] if entry.errors else []
        parts += [".SH SEE ALSO", ",\n".join(f".BR {word} (3)" for word in also).replace("(3),", "(3),")] if also else []
        (folder / f"{name}.3").write_text("\n".join(parts) + "\n")


def gaps(entries, include):
    """Functions of the headers without a page, and pages that say nothing."""
    for header in sorted((include / "kjit").glob("*.h")):
        code = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.DOTALL)
        for name in re.findall(r"(?:KJIT_API|static inline)[^;{(]*?\b(kjit_\w+)\s*\(", code):
            if name not in entries:
                yield f"{header.name}: there is no page for {name}"
    for entry in entries.values():
        if not entry.description and not entry.errors:
            yield f"{entry.header}: no comment says what {entry.name} is"


def main():
    if sys.argv[1:2] == ["--filter"]:
        return filter_header(sys.argv[2])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markdown", type=pathlib.Path)
    parser.add_argument("--man", type=pathlib.Path)
    parser.add_argument("--include", type=pathlib.Path, default=ROOT / "include", help="the headers")
    options = parser.parse_args()
    entries, introductions = read_headers(options.include.resolve())
    missing = list(gaps(entries, options.include))
    print("\n".join(missing) if missing else f"{len(entries)} pages of {len(introductions)} headers")
    if options.markdown:
        write_markdown(options.markdown, entries, introductions)
    if options.man:
        write_man(options.man, entries)
    return 1 if missing else 0


sys.exit(main())
