"""check_reference.py ROOT MARKDOWN MAN: each public name has a place in the reference with words of its own. The names
come from where scripts/make-reference.py does not look: functions, fields and constants from the list of what hosts are
compiled against (test/public/Inputs/abi.txt, which a compiler made), macros from the headers, classes and methods of
kjit.hpp from its text."""
import pathlib
import re
import sys

ROOT, MARKDOWN, MAN = map(pathlib.Path, sys.argv[1:4])
NOT_OF_THE_API = re.compile(r"KJIT_(ROW|API|CHECK|STAGE_ENUM|\w+_H|H)$")
wrong = []


def read_pages(folder, suffix):
    return {path.name.removesuffix(suffix): path.read_text() for path in folder.glob(f"*{suffix}")}


def rows_of(page):
    """Returns the names that a Markdown page describes in the rows of its tables, with their descriptions."""
    return {name: words for name, words in re.findall(r"^\| `((?:[^`\\]|\\.)+)` \| (.*?) \|$", page, re.MULTILINE) if words}


def entries_of(page):
    """Returns the same for a manual page."""
    return {name.replace("\\-", "-"): words for name, words in re.findall(r'^\.TP\n\.B "(.+)"\n(\S.*)$', page, re.MULTILINE)}


def need(name, pages, what):
    """Returns whether a page with this name exists and has a description."""
    for kind, found in pages.items():
        page = found.get(name, "")
        body = page.split("```\n", 2)[-1] if kind == "Markdown" else page.partition("\n.SH DESCRIPTION\n")[2] + page.partition("\n.SH ERRORS\n")[2]
        if not re.search(r"\w{2}", body):
            wrong.append(f"{what} {name} has no page with a description ({kind})")


pages = {"Markdown": read_pages(MARKDOWN, ".md"), "man": read_pages(MAN, ".3")}
rows = {name: rows_of(page) for name, page in pages["Markdown"].items()}
entries = {name: entries_of(page) for name, page in pages["man"].items()}
constants = {"Markdown": {c for found in rows.values() for c in found}, "man": {c for found in entries.values() for c in found}}
count = 0
for line in (ROOT / "test/public/Inputs/abi.txt").read_text().splitlines():
    count += 1
    if found := re.match(r"struct (\w+)", line):
        need(found[1], pages, "the struct")
    elif found := re.match(r"  (\w+)\.([\w.]+):", line):
        field = found[2].split(".")[-1]
        for kind, table in (("Markdown", rows), ("man", entries)):
            if field not in table.get(found[1], {}):
                wrong.append(f"the page of {found[1]} does not say what {found[2]} is ({kind})")
    elif found := re.match(r"(KJIT_\w+) = ", line):
        for kind, names in constants.items():
            if found[1] not in names:
                wrong.append(f"no page says what {found[1]} is ({kind})")
    elif found := re.match(r"(?:function|static inline|static) .*?\b(kjit_\w+)\(", line):
        need(found[1], pages, "the function")
    elif found := re.match(r"typedef .*?\b(kjit_\w+)(?:;|$|\)?\()", line):
        need(found[1], pages, "the type")
    else:
        sys.exit(f"check_reference: abi.txt has a line of a new kind: {line}")
for header in sorted((ROOT / "include/kjit").glob("*.h")):
    for name in re.findall(r"^#define (\w+)", header.read_text(), re.MULTILINE):
        if not NOT_OF_THE_API.match(name):
            count += 1
            need(name, pages, "the macro")
# Reads kjit.hpp and the files in cpp/: declarations without indentation outside of namespace detail, and public
# methods, which are indented by two blanks.
text = "\n".join(path.read_text() for path in sorted((ROOT / "include/kjit/cpp").glob("*.hpp")))
text = re.sub(r"/\*.*?\*/|^#.*?(?<!\\)$", "", text, flags=re.DOTALL | re.MULTILINE)
text = re.sub(r"^struct \w+ \{\};$", "", text, flags=re.MULTILINE)
text = re.sub(r"^namespace detail \{.*?^\} // namespace detail$", "", text, flags=re.DOTALL | re.MULTILINE)
for template, name, body in re.findall(r"^(template <.*?>\s)?(?:class|struct) (?:KJIT_API )?(\w+)(?: :[^{]*)?(?= \{).*?$(.*?)^\};$", text, re.DOTALL | re.MULTILINE):
    for kind, found in pages.items():
        page = found.get(f"kjit-{name}" if kind == "Markdown" else f"kjit::{name}", "")
        told = (rows_of if kind == "Markdown" else entries_of)(page)
        methods = set(re.findall(r"^  (?!private|return|throw)[\w:<>,\s*&]*?\b(\w+|operator\(\))\((?=[^;{]*\)[\w\s]*(?:\{|:|$))", re.split(r"^private:", body, flags=re.MULTILINE)[0], re.MULTILINE))
        count += 1 + len(methods)
        if not page:
            wrong.append(f"kjit::{name} has no page ({kind})")
        for method in sorted(name for name in methods - {"static_assert", "data", "owned", "with_arguments"} if not name.endswith("_")):  # not an initializer of a field
            if not any(f"{method}(" in prototype for prototype in told):
                wrong.append(f"the page of kjit::{name} does not say what {method} is ({kind})")
print("\n".join(wrong + [f"{count} names, {len(wrong)} wrong"]))
sys.exit(bool(wrong) or count < 700)
