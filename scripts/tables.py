"""Reads the tables in the source, lib/ir/builtins.def and others, for the documentation and for tests."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent

# An element of a matrix product: the type of the fragment's elements, and its bits (rules_matrix.c).
MMA_ELEMENTS = {
    "F16": ("f16", 16), "BF16": ("bf16", 16), "TF32": ("f32", 32), "F32": ("f32", 32), "F64": ("f64", 64), "S8": ("i8", 8),
    "U8": ("u8", 8), "S4": ("i32", 4), "U4": ("u32", 4), "B1": ("u32", 1), "E4M3": ("u8", 8), "E5M2": ("u8", 8), "S32": ("i32", 32),
}


def split_row(text):
    """Returns the columns of a row up to the closing parenthesis; strings lose their quotes."""
    columns, column, depth = [], "", 0
    for token in re.findall(r'"(?:[^"\\]|\\.)*"|[(),]|[^"(),]+', text):
        if token == ")" and not depth:
            break
        if token == "," and not depth:
            columns, column = columns + [column], ""
            continue
        depth += (token == "(") - (token == ")")
        column += token
    return [c[1:-1] if c.startswith('"') else c for c in (" ".join(c.split()) for c in columns + [column])]


def rows(path, macro="X"):
    """Returns the columns of each row `macro(...)` in a table."""
    text = (ROOT / path).read_text()
    for match in re.finditer(rf"(?:^|(?<=\) )){macro}\(", text, re.MULTILINE):
        yield split_row(text[match.end():])


OPTION_TABLES = {"kjit-run": "tools/kjit-run/options.c", "kjit-compile": "tools/kjit-compile/options.c", "kjit-cache": "tools/kjit-cache/main.c"}


def options_of(tool):
    """The options of a tool in the order of its table: dictionaries of group, name, short ("d" or None), value (None: it takes
    none), is_optional. A group consists of all options with its number, at any position in the table."""
    text = (ROOT / OPTION_TABLES[tool]).read_text()
    for header in ("module.h", "limits.h"):  # options that several tools share
        for name, parameters, body in re.findall(r"#define (TOOL_\w+_HELP)(\(.*?\))? \\\n((?:.*\\\n)*.*)", (ROOT / "tools/driver" / header).read_text()):
            text = re.sub(rf"\b{name}\b(?:\((\w+), (\d+)\))?", lambda found: re.sub(r"\bgroup\b", found[2] or "group", body.replace("\\\n", "\n")), text)
    table = re.search(r"option_table\[\] = \{(.*?)^ *\};", text, re.DOTALL | re.MULTILINE)[1]
    word = r'"((?:[^"\\]|\\.)*)"'
    rows = re.findall(rf"\{{\s*(?:{word}|0),\s*(?:'(.)'|\w+),\s*(?:{word}|0),\s*(\w+),\s*((?:{word}\s*)+),?\s*(\d+)?\s*\}}", table)
    groups = {number: eval(documentation) for name, _, _, _, documentation, _, number in rows if not name}
    found = [{"group": groups.get(number, ""), "name": name, "short": short or None, "value": value or None, "is_optional": flags == "OPTION_ARG_OPTIONAL"}
             for name, short, value, flags, _, _, number in rows if name]
    return sorted(found, key=lambda option: list(groups.values()).index(option["group"]) if groups else 0)


def builtins():
    """Returns the built-ins as dictionaries of id, name, names at other scopes, architecture and aliases. An atomic is one entry
    for all scopes."""
    text = (ROOT / "lib/ir/builtins.def").read_text()
    for match in re.finditer(r"^(X|ATOMIC)\(", text, re.MULTILINE):
        row = split_row(text[match.end():])
        if match[1] == "ATOMIC":
            name = f"atomic_{row[1]}"
            yield {"id": f"ATOMIC_{row[0]}", "name": name, "at other scopes": [f"{name}_block", f"{name}_system"], "arch": "", "is for guests": True,
                   "aliases": " ".join(filter(None, row[7:]))}
        else:
            needs = re.match(r"SM(_A)?\((\d+),", row[8])
            yield {"id": row[0], "name": row[1], "at other scopes": [], "arch": needs[2] + ("a" if needs[1] else "") if needs else "",
                   "aliases": row[10], "is for guests": "KJ_GUEST" in row[9]}


def builtin_names():
    return [name for row in builtins() for name in [row["name"]] + row["at other scopes"]]
