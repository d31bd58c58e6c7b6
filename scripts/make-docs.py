#!/usr/bin/env python3
"""Makes docs/ir.md and docs/embedding.md from their .in.md files and the tables in the source; with --check, exits 1 when one is not what would be made."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def rows(path):
    """The columns of each X(...) row; strings lose their quotes."""
    for line in (ROOT / path).read_text().splitlines():
        if line.startswith("X("):
            yield [a[1:-1] if a.startswith('"') else a for a in re.findall(r'"(?:[^"\\]|\\.)*"|[^,\s][^,]*(?=,|$)', line[2:line.rindex(")")])]


def table(head, lines):
    cell = lambda text: str(text).replace("|", "\\|")
    out = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(out + ["| " + " | ".join(cell(c) for c in line) + " |" for line in lines])


def operators():
    classes = {"LOGIC": "lazy; bool", "UNARY": "one operand", "COMPARE": "bool", "INT": "integers, bools", "SHIFT": "type of the left operand", "ARITH": "both promoted",
               "DIVIDE": "floats", "POWER": "right-associative; type of the left operand for integer exponents"}
    return table(["operator", "precedence", "operands, result"], [(f"`{t}`", p, classes[c]) for _, t, p, c in rows("include/kjit/ops.def") if c != "STORE"])


def types():
    return table(["type", "bytes", "what"], [(f"`{t}`", s, {"COMPLEX": "complex (not supported yet)"}.get(c, c.lower())) for _, t, s, c, _, _ in rows("include/kjit/types.def")])


def attributes():
    def values(least, most):
        return least if least == most else f"{least} to {most}"
    return table(["attribute", "values", "on", "meaning"], [(f"`@{n}`", values(lo, hi), " ".join(w.strip().lower() for w in p.split("|")), d)
                                                            for _, n, lo, hi, p, d in rows("lib/ir/attributes.def")])


def builtins():
    groups = {}
    for _, name, least, most, _, _, _, flags, aliases, group, doc in rows("lib/ir/builtins.def"):
        arguments, _, text = doc.partition(": ") if ": " in doc and int(most) > 0 else ("", "", doc)
        form = name if "KJ_NAME" in flags else f"{name}({arguments})"
        groups.setdefault(group, []).append((f"`{form}`", text, aliases))
    return "\n\n".join(f"### {group}\n\n" + table(["built-in", "what it does", "also known as"], lines) for group, lines in groups.items())


def statuses():
    return table(["status", "meaning"], [(f"`KJIT_{n}`", t) for n, t in rows("include/kjit/status.def")])


TABLES = {"@OPS@": operators, "@TYPES@": types, "@ATTRIBUTES@": attributes, "@BUILTINS@": builtins, "@STATUS@": statuses}


def make(source):
    text = source.read_text()
    for mark, generate in TABLES.items():
        text = text.replace(mark, generate()) if mark in text else text
    return text


def main():
    stale = 0
    for source in sorted((ROOT / "docs").glob("*.in.md")):
        target = source.with_name(source.name.replace(".in.md", ".md"))
        text = make(source)
        if "--check" not in sys.argv:
            target.write_text(text)
        elif not target.exists() or target.read_text() != text:
            print(f"{target.relative_to(ROOT)} is not what {source.name} and the tables give: run scripts/make-docs.py")
            stale = 1
    return stale


sys.exit(main())
