#!/usr/bin/env python3
"""Makes a page for each function, type and macro in the public headers, with a description of each constant and member: Markdown
for the site (scripts/make-site.sh), and man(3) pages.

    make-reference.py [--markdown FOLDER] [--man FOLDER] [--include FOLDER]

Doxygen reads the headers through a filter (--filter), which passes their comments as plain text, because the comments contain no
Doxygen commands. Exits 1 if a page, a constant or a member has no description."""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap
import xml.etree.ElementTree as xml

from tables import ROOT, rows, split_row

DOXYFILE = """
INPUT = {include}/kjit
FILE_PATTERNS = {patterns}
RECURSIVE = YES
INPUT_FILTER = "{python} {script} --filter"
OUTPUT_DIRECTORY = {output}
GENERATE_HTML = NO
GENERATE_LATEX = NO
GENERATE_XML = YES
XML_PROGRAMLISTING = NO
OPTIMIZE_OUTPUT_FOR_C = {is_c}
EXTRACT_ALL = YES
EXTRACT_STATIC = YES
MACRO_EXPANSION = YES
INCLUDE_PATH = {include}
PREDEFINED = KJIT_API= KJIT_CHECK= __cplusplus=201703L __cpp_lib_mdspan=1
QUIET = YES
WARN_IF_UNDOCUMENTED = NO
WARN_AS_ERROR = YES
"""
KINDS = {"function": "Functions", "type": "Types", "define": "Macros"}
# Macros that the headers use internally and that are not part of the API.
INTERNAL = re.compile(r"KJIT_(ROW|API|CHECK|(\w+_)?H(PP)?|STAGE_ENUM)$")


def turn(found):
    """Returns a comment in the form that Doxygen needs, before or after the declaration that it describes. Section titles and the
    header's own description are left out. The number of lines does not change, so that line numbers are those of the header."""
    body, text = found[0], found.string
    if found.start() == 0 or re.match(r"/\* (?:----|clang-format)", body):
        return body
    line = text[text.rfind("\n", 0, found.start()) + 1:found.start()]
    words = re.sub(r"\n *\*(?!/) ?", "\n", body[2:-2])
    return ("/**" if not line.strip() else "/**<") + f" \\verbatim {words}\\endverbatim */"


def filter_header(path):
    text = re.sub(r"/\*.*?\*/", turn, pathlib.Path(path).read_text(), flags=re.DOTALL)
    # Doxygen misreads specializations of templates. They have no page, so the filter removes them.
    print(re.sub(r"^template <[^{;]*?>\s*struct \w+<.*?^};$", lambda found: re.sub(r"[^\n]", "", found[0]), text,
                 flags=re.DOTALL | re.MULTILINE), end="")


def introduction_of(header):
    """Returns the header's own description."""
    comment = re.match(r"/\* (?:kjit/[\w.]+: )?(.*?)\*/", header.read_text(), re.DOTALL)[1]
    begin = comment if comment.startswith("kjit") else comment[0].upper() + comment[1:]
    return paragraphs_of(re.sub(r"\n \* ?", "\n", begin))


def words_of(element):
    """Returns the text of an entry's comment."""
    return paragraphs_of("".join(element.find("detaileddescription").itertext()))


def paragraphs_of(text):
    """Lines that are all indented are an example."""
    parts = [part.strip("\n") for part in re.split(r"\n\s*\n", text) if part.strip()]
    return [f"```cpp\n{textwrap.dedent(part)}\n```" if re.match(r"  \s*\S", part) and "\n" in part else " ".join(part.split())
            for part in parts]


def declaration_of(member, header):
    """Returns the declaration of a type as in the header, or the prototype of a function. A long prototype has one parameter on
    each line."""
    place = member.find("location")
    if member.get("kind") != "function":
        lines = header.read_text().splitlines()
        first, last = int(place.get("bodystart") or place.get("line")), int(place.get("bodyend") or -1)
        last = last if last >= first else int(place.get("line"))
        if member.tag == "compounddef" or member.get("kind") == "enum":
            last = next(line for line in range(last, len(lines) + 1) if "}" in lines[line - 1])
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
        self.description, self.errors = [], None
        self.constants, self.members = [], []  # pairs: a name or C++ prototype, and its description
        for paragraph in paragraphs:
            text, mark, errors = paragraph.partition("Errors: ")
            self.description += [text.strip()] if text.strip() else []
            self.errors = errors.strip() if mark else self.errors

    def summary(self):
        """Returns the first sentence of the description."""
        text = self.description[0] if self.description else self.name
        return re.split(r"(?<=[a-z0-9)\]`])\.(?: |$)", text)[0].rstrip(".")


def pairs_of(members, header):
    """Returns the names of fields or constants with their descriptions. All names in one declaration share its comment."""
    text = re.sub(r"/\*.*?\*/", lambda found: re.sub(r"[^\n]", " ", found[0]), header.read_text(), flags=re.DOTALL)
    lines = text.splitlines(keepends=True)

    def position(member):
        place = member.find("location")
        return sum(map(len, lines[:int(place.get("line")) - 1])) + int(place.get("column")) - 1
    groups, before = [], 0
    for member in members:
        here = position(member) if member.tag == "memberdef" else 0
        if not groups or not here or ";" in text[before:here]:
            groups.append([])
        groups[-1].append((member.find("name").text, " ".join(words_of(member))))
        before = here
    shared = lambda group: next((words for _, words in group if words), "")
    return [(name, words or shared(group)) for group in groups for name, words in group]


def compounds_of(include, patterns, is_c):
    """Returns the entries that Doxygen finds in the named headers."""
    with tempfile.TemporaryDirectory() as folder:
        settings = DOXYFILE.format(include=include, python=sys.executable, script=pathlib.Path(__file__).resolve(),
                                   output=folder, patterns=patterns, is_c="YES" if is_c else "NO")
        subprocess.run(["doxygen", "-"], input=settings, text=True, check=True)
        return [xml.parse(path).getroot().find("compounddef") for path in sorted(pathlib.Path(folder, "xml").glob("*.xml"))
                if re.match(r"struct|class|namespace|\w+_8h(pp)?\.xml", path.name)]


def read_headers(include):
    """Returns all entries of the C interface, and the description of each header."""
    entries, introductions = {}, {}
    for compound in compounds_of(include, "*.h", True):
        path = include / "kjit" / pathlib.Path(compound.find("location").get("file")).name
        header = path.name
        if compound.get("kind") == "struct":
            name = compound.find("compoundname").text
            entries[name] = Entry("type", name, header, declaration_of(compound, path), words_of(compound))
            entries[name].members = pairs_of(compound.iter("memberdef"), path)
            continue
        introductions[header] = introduction_of(path)
        for member in compound.iter("memberdef"):
            kind, name = member.get("kind"), member.find("name").text
            if INTERNAL.match(name or "") or kind not in ("function", "define", "enum", "typedef"):
                continue
            if kind == "enum" and not re.match(r"\w", name or ""):
                name = member.find("enumvalue/name").text  # the first constant of a group without a type
            entry = Entry(kind if kind in KINDS else "type", name, header, declaration_of(member, path), words_of(member))
            entry.constants = pairs_of(member.findall("enumvalue"), path)
            made = words_from_tables(name, include)
            entry.constants = [*made.items()] + [pair for pair in entry.constants if pair[0] not in made]
            if name not in entries or kind == "enum":
                entries[name] = entry
    return entries, introductions


def words_from_tables(name, include):
    """Returns the descriptions of constants that a header makes from a table."""
    table = lambda file, prefix, words: {f"KJIT_{prefix}{row[0]}": words(row)
                                         for row in rows(include / "kjit" / file, "KJIT_ROW")}
    if name == "kjit_status":
        return table("status.def", "", lambda row: row[1])
    if name == "kjit_error_code":
        return table("error_codes.def", "CODE_", lambda row: row[1])
    if name == "kjit_phrase_code":
        return table("phrases.def", "PHRASE_", lambda row: row[1])
    if name == "kjit_device_attribute":
        return table("device.def", "DEVICE_ATTRIBUTE_", lambda row: row[3])
    if name == "kjit_op":
        return table("ops.def", "OP_", lambda row: f"`{row[1]}`")
    if name == "KJIT_ANY":
        return table("types.def", "", lambda row: f"`{row[1]}`, {row[2]} byte{'s' if row[2] != '1' else ''}")
    if name == "kjit_stage":
        text = (include / "kjit/compile.h").read_text().replace("\\\n", "")
        return {f"KJIT_STAGE_{row[0]}": f"`{row[1]}`: {row[-1]}"
                for row in map(split_row, re.findall(r"\bROW\((?=[A-Z])(.*)", re.sub(r"\s+ROW\(", "\nROW(", text)))}
    return {}


def prototype_of(member):
    """Returns a C++ declaration in one line."""
    text = lambda element: " ".join("".join(element.itertext()).split()) if element is not None else ""
    template = member.find("templateparamlist")
    head = ""
    if template is not None:
        default = lambda p: f" = {text(p.find('defval'))}" if p.find("defval") is not None else ""
        head = "template <" + ", ".join(f"{text(p.find('type'))} {text(p.find('declname'))}".strip() + default(p)
                                        for p in template.findall("param")) + "> "
    static = "static " if member.get("static") == "yes" else ""
    explicit = "explicit " if member.get("explicit") == "yes" else ""
    line = f"{head}{static}{explicit}{text(member.find('type'))} {text(member.find('name'))}{text(member.find('argsstring'))}"
    line = re.sub(r"\b(?:inline|KJIT_API)\b", "", re.sub(r"(?<! )=(?! )", " = ", line))
    line = re.sub(r" ?(&&|& &|[&*]) ?(?=[\w.])", lambda found: " " + found[1].replace(" ", ""), line)
    return re.sub(r"< | (?=>)", lambda found: found[0].strip(), " ".join(line.split())).replace("detail::", "")


def read_cpp(include):
    """Returns the entries of kjit.hpp: its classes with their public members, including members of a handle's base class, and its
    functions."""
    path = include / "kjit/kjit.hpp"
    compounds = {compound.find("compoundname").text: compound for compound in compounds_of(include, "*.hpp", False)}
    entries = {}

    def public(compound):
        return [(prototype_of(member), " ".join(words_of(member))) for member in compound.iter("memberdef")
                if member.get("prot") == "public" and member.get("kind") in ("function", "variable")
                and not member.find("name").text.startswith("~") and not re.search(r"=\s*delete$", "".join(member.find("argsstring").itertext()) if member.find("argsstring") is not None else "")]
    for name, compound in compounds.items():
        if compound.get("kind") == "namespace" and name == "kjit":
            for member in compound.iter("memberdef"):
                own = f"kjit::{member.find('name').text}"
                if member.get("kind") == "function" and not own.startswith("kjit::operator"):
                    if own in entries:  # an overload
                        entries[own].declaration += f"\n{prototype_of(member)};"
                        continue
                    entries[own] = Entry("function", own, path.name, prototype_of(member) + ";", words_of(member))
        elif compound.get("kind") in ("class", "struct") and re.fullmatch(r"kjit::\w+", name):
            base = compound.find("basecompoundref")
            between = []  # members of the common base class of arrays
            if base is not None and "array_base" in (base.text or ""):
                common = compounds["kjit::detail::array_base"]
                between = [pair for pair in public(common) if pair[1]]
                base = common.find("basecompoundref")
            handle = re.match(r"(?:kjit::)?(detail::(?:owned|borrowed))\s*<\s*(\w+)", base.text or "") if base is not None else None
            members = public(compound) + between
            if handle:  # members that a handle inherits from its base class; a kernel has its own constructor
                own = name.split("::")[1]
                inherited = [(re.sub(r"\b(owned|borrowed)\(", f"{own}(", text.replace("T *", f"{handle[2]} *")), words)
                             for text, words in public(compounds["kjit::" + handle[1]]) if words]
                members += [pair for pair in inherited if not pair[0].startswith("explicit") or own != "kernel"]
            template = "".join(prototype_of(compound).partition("> ")[:2])
            lines = [f"{template.strip()}\n" * bool(template.strip()) + f"{compound.get('kind')} {name.split('::')[1]} {{"]
            lines += [f"  {text};" for text, _ in members] + ["};"]
            entries[name] = Entry("type", name, path.name, "\n".join(lines), words_of(compound))
            entries[name].members = members
    return entries, {path.name: introduction_of(path)}


def file_of(name):
    """A colon in a link would end the name of a protocol."""
    return name.replace("::", "-")


def pages_that_teach():
    """Returns the title of each page with programs or tables of names, and the API names on the page."""
    paths = [path for pattern in ("tutorial.md", "from/*.md", "howto/*.md", "cpp.md", "algorithms.md", "troubleshooting.md")
             for path in sorted((ROOT / "docs").glob(pattern)) if ".in" not in path.suffixes]  # such files are sources of pages
    texts = {str(path.relative_to(ROOT / "docs")): path.read_text() for path in paths}
    return {name: (title_of(text), set(re.findall(r"\bkjit(?:_|::)\w+", text))) for name, text in texts.items()}


def title_of(text):
    return text.splitlines()[0].lstrip("# ")


def write_markdown(folder, entries, introductions):
    folder.mkdir(parents=True, exist_ok=True)
    pages = {constant: name for name, entry in entries.items() for constant, _ in entry.constants}
    pages.update({name: file_of(name) for name in entries})
    (folder / "names.json").write_text(json.dumps(pages))  # for links from other pages of the site
    teaching = pages_that_teach()
    link = lambda name: f"[`{name}`]({pages[name]}.md)" if name in pages else f"`{name}`"

    def prose(text, own):
        if text.startswith("```"):
            return text
        plain = lambda part: re.sub(r"\b(?:kjit|KJIT)(?:\\_|::)[\w\\]*\w", lambda found: "`" + found[0].replace("\\", "") + "`"
                                    if found[0].replace("\\", "") == own else link(found[0].replace("\\", "")),
                                    re.sub(r"([<>*_|\[\]])", r"\\\1", part))
        linked = "".join(part if k % 2 else plain(part) for k, part in enumerate(re.split(r"(`[^`]+`)", text)))
        linked = re.sub(r"(?<![\w/`(])(\w+\.h)\b(?!\.md)", lambda found: f"[{found[1]}]({found[1]}.md)"
                        if found[1] in introductions else found[1], linked)
        return re.sub(r"(?<![\w/])docs/([\w/-]+)\.md", title, linked)  # a page of the site

    def title(found):
        return f"[{title_of((ROOT / found[0]).read_text())}](../{found[1]}.md)"

    def errors(text, own):
        """Errors are named without their prefix."""
        known = lambda name: {f"KJIT_{name}", f"KJIT_ERROR_{name}"} & pages.keys()
        return re.sub(r"(?<![\w`\[])[A-Z][A-Z_\\]+[A-Z](?![\w`\]])", lambda found: f"[{found[0]}](kjit_status.md)"
                      if known(found[0].replace("\\", "")) else found[0], prose(text, own))

    def others(entry):
        """Returns the names that a declaration uses, and the pages that show it in use."""
        names = [name for name in dict.fromkeys(re.findall(r"\b(?:kjit|KJIT)_\w+", entry.declaration))
                 if name in pages and pages[name] != pages[entry.name]]
        shown = [f"[{title}](../{page})" for page, (title, used) in teaching.items() if entry.name in used]
        return ([f"**See also:** {', '.join(map(link, names))}."] if names and entry.header.endswith(".h") else []) + \
               ([f"**Shown in:** {', '.join(shown)}."] if shown else [])

    def table(head, pairs, own):
        cell = lambda text: text.replace("|", "\\|")
        return "\n".join([f"| {head} | what |", "|---|---|"] + [f"| `{cell(a)}` | {prose(b, own)} |" for a, b in pairs])
    for name, entry in entries.items():
        language = "cpp" if entry.header.endswith("hpp") else "c"
        parts = [f"# {name}", f"In [`<kjit/{entry.header}>`]({entry.header}.md).", f"```{language}\n{entry.declaration}\n```"]
        parts += [prose(text, name) for text in entry.description]
        parts += [f"**Errors:** {errors(entry.errors, name)}"] if entry.errors else []
        parts += [table("constant", entry.constants, name)] if entry.constants else []
        parts += [table("member", entry.members, name)] if entry.members else []
        parts += others(entry)
        (folder / f"{pages[name]}.md").write_text("\n\n".join(parts) + "\n")
    for header, introduction in introductions.items():
        parts = [f"# kjit/{header}"] + [prose(text, None) for text in introduction]
        for kind, title in KINDS.items():
            own = [entry for entry in entries.values() if (entry.header, entry.kind) == (header, kind)]
            table = [f"| {link(entry.name)} | {prose(entry.summary(), entry.name)} |" for entry in own]
            parts += [f"## {title}", "\n".join(["| | |", "|---|---|"] + table)] if own else []
        (folder / f"{header}.md").write_text("\n\n".join(parts) + "\n")
    about = lambda name: re.split(r"(?<=[\w)])\.(?: |$)", prose(introductions[name][0], None))[0]
    (folder / "index.md").write_text("# Reference\n\nA page for each function, type and macro of the C API, and for each "
                                     "class and function of kjit.hpp, made from the comments in the headers. Each header has "
                                     "a list of what is in it; the rules that hold for all functions are in "
                                     "[kjit/status.h](status.h.md).\n\n" + "\n".join(
                                         f"- [kjit/{name}]({name}.md): {about(name)}." for name in sorted(introductions)) + "\n")


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
        parts += "\n.PP\n".join(fold(text.replace("`", "")) for text in entry.description).splitlines()
        for member, what in entry.constants + entry.members:
            parts += [".TP", f'.B "{escape(member)}"', fold(what)]
        parts += [".SH ERRORS", fold(entry.errors)] if entry.errors else []
        parts += [".SH SEE ALSO", ",\n".join(f".BR {word} (3)" for word in also).replace("(3),", "(3),")] if also else []
        (folder / f"{name}.3").write_text("\n".join(parts) + "\n")


def gaps(entries, include):
    """Returns the functions of the headers without a page, and the pages without a description."""
    for header in sorted((include / "kjit").glob("*.h")):
        code = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.DOTALL)
        for name in re.findall(r"(?:KJIT_API|static inline)[^;{(]*?\b(kjit_\w+)\s*\(", code):
            if name not in entries:
                yield f"{header.name}: there is no page for {name}"
    for entry in entries.values():
        if not entry.description:
            yield f"{entry.header}: no comment says what {entry.name} is"
        elif re.match(r"the same\b(?! elements)", entry.description[0], re.IGNORECASE):
            yield f"{entry.header}: the comment of {entry.name} begins with what stands above it, and its page stands alone"
        for name, words in entry.constants + entry.members:
            if not words:
                yield f"{entry.header}: no comment says what {name} of {entry.name} is"


def main():
    if sys.argv[1:2] == ["--filter"]:
        return filter_header(sys.argv[2])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markdown", type=pathlib.Path)
    parser.add_argument("--man", type=pathlib.Path)
    parser.add_argument("--include", type=pathlib.Path, default=ROOT / "include", help="the headers")
    options = parser.parse_args()
    entries, introductions = read_headers(options.include.resolve())
    for found, of_cpp in zip((entries, introductions), read_cpp(options.include.resolve())):
        found.update(of_cpp)
    missing = list(gaps(entries, options.include))
    print("\n".join(missing) if missing else f"{len(entries)} pages of {len(introductions)} headers")
    if options.markdown:
        write_markdown(options.markdown, entries, introductions)
    if options.man:
        write_man(options.man, entries)
    return 1 if missing else 0


sys.exit(main())
