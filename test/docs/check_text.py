"""Checks texts of the tree, says what is wrong and exits 1: lines of documents are at most 120 columns wide, rows of
tables aside; no line of a paragraph begins with the sign of a list; a cell of a table has at most 40 words; files that
documents and comments name are there, and so is what documents link to, also within a page."""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])
COLUMNS = 120
MOST_WORDS = 40  # maximum number of words in a table cell, so that a reader can take it in next to the other cells
FOLDERS = "cmake|docs|examples|include|lib|runtime|scripts|test|tools"
# A path from the root of the tree; a path with `*` stands for any file that it matches.
PATH = re.compile(rf"(?<![\w/.<-])(?:{FOLDERS})/[\w./*-]+")
# A source file by its name alone, or by its path in lib or runtime. System headers such as <math.h> do not count.
NAME = re.compile(r"(?<![\w/.<*-])(?:\w+/)*\w+\.(?:c|h|def)\b(?!>)")
LINK = re.compile(r"\]\(([\w./-]+\.\w+|)(?:#([^)]*))?\)")
BARE = re.compile(r"\[`?[\w./-]+\.md`?\]\(")  # readers of the site see no files
GENERATED = "docs/reference/"  # scripts/make-site.sh makes it, and follows links to it
# The first line of a code block that is a file of the document's own (check_pages.py).
OWN = re.compile(r"^```\w*\n(?:/\*|//|#|%) *([\w./-]+\.\w+)[: ]", re.MULTILINE)
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
SOURCES = ("lib", "runtime", "include", "tools", "test")
BUILT = ("lib/kjit", "lib/pkgconfig", "lib/cmake")  # paths in an installation
OUTSIDE = {"cuda.h", "ltests.h", "nvtxTypes.h", "stdint.h"}  # files of the system and of other projects


def documents():
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def sources():
    return (p for folder in SOURCES for p in sorted((ROOT / folder).rglob("*")) if p.suffix in (".c", ".h", ".def"))


NAMES = {path.name for path in sources()}


def line_of(text, found):
    return text.count("\n", 0, found.start()) + 1


def missing(text, needs_suffix):
    """Returns the files that the text names and that do not exist. needs_suffix: considers only paths that end like a
    file name."""
    for found in PATH.finditer(text):
        path = found[0].rstrip("./-")
        if path.startswith(BUILT) or (needs_suffix and not re.search(r"\.\w+$", path)):
            continue
        if not any(ROOT.glob(path)):
            yield line_of(text, found), path
    for found in NAME.finditer(text):
        path = pathlib.PurePath(found[0])
        if path.parts[0] in FOLDERS.split("|") or path.name in OUTSIDE:
            continue
        folders = ("lib", "runtime", "include", "test", "tools")
        is_there = path.name in NAMES if len(path.parts) == 1 else any((ROOT / f / path).exists() for f in folders)
        if not is_there:
            yield line_of(text, found), found[0]


def places(path):
    """Returns the possible targets of links in a document: its headings in lower case, with hyphens between the
    words."""
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-")
            for heading in re.findall(r"^#+ (.+)", text, re.MULTILINE)}


def broken(path, target, place):
    """Returns whether a link in the document has no target."""
    file = (path.parent / target).resolve() if target else path
    if str(file).startswith(str(ROOT.resolve() / GENERATED)):
        return False
    return not file.exists() or (place and file.suffix == ".md" and place not in places(file))


def interrupting_items(text):
    """Returns the numbers of lines that Markdown reads as a list item although they continue a paragraph, such as `b -
    1` if the line is wrapped before the minus sign."""
    lines = re.sub(r"^```.*?^```$", lambda found: "\n" * found[0].count("\n"), text, flags=re.DOTALL | re.MULTILINE).splitlines()
    for number, (before, line) in enumerate(zip(lines, lines[1:]), 2):
        if re.match(r"[-+*] ", line) and re.match(r"[^\s|#<>]", before) and not re.match(r"(?:[-+*]|\d+\.) ", before):
            yield number


def complain(path, line, what):
    print(f"{path.relative_to(ROOT)}:{line}: {what}")
    return 1


def check_document(path):
    text, wrong = path.read_text(), 0
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > COLUMNS and not line.startswith(("|", "<!-- first: ")):
            wrong += complain(path, number, f"{len(line)} columns; a line has at most {COLUMNS}, rows of tables aside")
        for cell in re.split(r"(?<!\\)\|", line)[1:-1] if line.startswith("|") else ():
            if len(cell.split()) > MOST_WORDS:
                wrong += complain(path, number, f"a cell of {len(cell.split())} words; a cell has at most {MOST_WORDS}, and the rest stands below the table")
    for number in interrupting_items(text):
        wrong += complain(path, number, "the line continues a paragraph, but its first sign makes it an item of a list")
    own = set(OWN.findall(text))
    for number, named in missing(text, False):
        wrong += named not in own and complain(path, number, f"there is no {named}")
    for found in BARE.finditer(text):
        wrong += complain(path, line_of(text, found), f"the link shows the name of a file: {found[0][1:-2]}")
    for found in LINK.finditer(text):
        if broken(path, found[1], found[2]):
            wrong += complain(path, line_of(text, found), f"the link leads nowhere: {found[0][2:-1]}")
    return wrong


def check_source(path):
    text, wrong = path.read_text(), 0
    for comment in COMMENT.finditer(text):
        first = text.count("\n", 0, comment.start())
        for number, named in missing(comment[0], True):
            wrong += complain(path, first + number, f"the comment names {named}, which is not there")
    return wrong


sys.exit(1 if sum(check_document(p) for p in documents()) + sum(check_source(p) for p in sources()) else 0)
