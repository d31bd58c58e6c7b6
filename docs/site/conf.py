"""Sphinx with MyST makes the site from the same Markdown that GitHub shows. The menu has the pages that index.md links to
(scripts/make-site.sh)."""
import json
import pathlib
import re
import shutil

from docutils import nodes
from pygments.lexer import RegexLexer, words
from pygments.token import Comment, Keyword, Name, Number, String, Text

project = "kjit"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "index"
exclude_patterns = ["**.in.md", "**.prose.md", "site", "man"]
html_theme = "furo"
html_title = "kjit"
html_static_path = ["static"]
html_css_files = ["kjit.css"]
smartquotes = False  # messages are quoted as they are
html_show_sourcelink = False
html_copy_source = False
html_show_copyright = False
html_use_index = False  # sections of the reference, whose pages have their own lists
myst_heading_anchors = 4
highlight_language = "kir"


class KernelIR(RegexLexer):
    """The language of code blocks without a language."""
    name, aliases = "kir", ["kir"]
    tokens = {"root": [
        (r"#.*", Comment), (r'"[^"\n]*"', String), (r"\$ .*", Text), (r"@\w+", Name.Decorator),
        (words(("kernel", "func", "extern", "const", "struct", "import", "default", "let", "var", "shared", "local", "if",
                "else", "while", "for", "in", "break", "continue", "return", "assert", "raise", "print", "and", "or",
                "not", "true", "false"), r"\b", r"\b"), Keyword),
        (r"\b(?:bool|[iu](?:8|16|32|64)|b?f16|f32|f64|c64|c128)\b(?:x\d+)?", Keyword.Type),
        (r"\b\d[\w.]*", Number), (r"\w+", Name), (r"\s+", Text), (r".", Text)]}


def add_menu(app, document, source):
    """The lists of links on the first page form the menu, with a section for each heading. The architecture page lists its own
    pages, and the list of headers its own."""
    text, parts = source[0], []
    if document == "index":
        for heading, body in re.findall(r"^## (.+)\n((?:(?!## ).*\n)*)", text, re.MULTILINE):
            parts.append((heading, re.findall(r"^- \[[^\]]*\]\(([\w./-]+)\.md\)", body, re.MULTILINE)))
    elif document == "architecture":
        parts.append(("", sorted(f"architecture/{path.stem}" for path in pathlib.Path(app.srcdir, "architecture").glob("*.md") if ".in" not in path.suffixes)))
    elif document == "reference/index":
        parts.append(("", re.findall(r"^- \[[^\]]*\]\(([\w./-]+)\.md\)", text, re.MULTILINE)))
    elif re.match(r"reference/kjit[_-]|reference/KJIT_", document):
        source[0] = "---\norphan: true\n---\n" + text  # reached from the page of its header
    for heading, pages in parts:
        caption = f":caption: {heading}\n" if heading else ""
        source[0] += f"\n```{{toctree}}\n:hidden:\n{caption}\n" + "\n".join(pages) + "\n```\n"


def bring_scripts(app, failure):
    """Copies the files that a style sheet, such as Debian's Furo, imports from the server's folder of shared scripts. A site that
    is served from a folder or opened as files has no such folder."""
    for sheet in pathlib.Path(app.outdir, "_static").rglob("*.css") if failure is None else ():
        text = sheet.read_text()
        for name in re.findall(r"url\(/javascript/([^)]+)\)", text):
            shutil.copy(pathlib.Path("/usr/share/javascript") / name, sheet.parent / pathlib.Path(name).name)
            text = text.replace(f"/javascript/{name}", pathlib.Path(name).name)
        sheet.write_text(text)


def link_names(app, tree, document):
    """An API name in a page becomes a link to the name's page, also if a member or arguments follow the name."""
    pages = json.loads(pathlib.Path(app.srcdir, "reference/names.json").read_text())
    for literal in list(tree.findall(nodes.literal)):
        name = re.match(r"((?:kjit|KJIT)(?:_|::)\w+)(?:\.\w+|\(.*\))?$", literal.astext(), re.DOTALL)
        page = name and pages.get(name[1])
        if page and f"reference/{page}" != document and not isinstance(literal.parent, (nodes.reference, nodes.title)):
            uri = app.builder.get_relative_uri(document, f"reference/{page}")
            literal.replace_self(nodes.reference("", "", literal.deepcopy(), refuri=uri, internal=True))


def setup(app):
    app.add_lexer("kir", KernelIR)
    app.connect("source-read", add_menu)
    app.connect("doctree-resolved", link_names)
    app.connect("build-finished", bring_scripts)
