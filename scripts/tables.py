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
    """The columns of a row up to the parenthesis that ends it; strings lose their quotes."""
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
    """The columns of each row macro(...) of a table."""
    text = (ROOT / path).read_text()
    for match in re.finditer(rf"(?:^|(?<=\) )){macro}\(", text, re.MULTILINE):
        yield split_row(text[match.end():])


def builtins():
    """The built-ins as the reference has them, an atomic once: dictionaries of id, name, names at other scopes, architecture,
    aliases."""
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
