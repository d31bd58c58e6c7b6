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
    return table(["type", "bytes", "what"], [(f"`{t}`", s, c.lower()) for _, t, s, c, _, _ in rows("include/kjit/types.def")])


def attributes():
    def values(least, most):
        return least if least == most else f"{least} to {most}"
    return table(["attribute", "values", "on", "meaning"], [(f"`@{n}`", values(lo, hi), " ".join(w.strip().lower() for w in p.split("|")), d)
                                                            for _, n, lo, hi, p, d in rows("lib/ir/attributes.def")])


def accuracies():
    """ID: text, from accuracy.def: errors in ULP, f32 and f64."""
    source = (ROOT / "lib/ir/accuracy.def").read_text().split("*/", 1)[1]
    found = {name: "exact" for name in re.findall(r"EXACT\((\w+)\)", source)}
    for name, numbers in re.findall(r"\bA\((\w+), ([^)]*)\)", source):
        n = [word.strip() for word in numbers.split(",")]
        pairs = [(library, n[k], n[k + 1]) for k, library in ((0, "CPU"), (2, "libdevice"), (4, "libclc")) if n[k] != "NONE"]
        text = "; ".join(f"{library} {a}" if a == b else f"{library} {a}, {b}" for library, a, b in pairs)
        if n[6] != "0":
            text += f"; or {n[6]}" + ("" if n[7] == "0" else f", {n[7]}") + " absolutely"
        found[name] = text
    for name, a, b in re.findall(r"COMPLEX\((\w+), ([\d.]+), ([\d.]+)\)", source):
        found[name] = f"{found[name]}; complex {a}" + ("" if a == b else f", {b}") if name in found else f"complex {a}"
    return found


def example(group):
    """The program of a group, without the lines that are the test's; None: there is none."""
    path = ROOT / "test/docs/examples" / (re.sub(r"\W+", "_", group) + ".kir")
    if not path.exists():
        return None
    lines = [line for line in path.read_text().splitlines() if not re.match(r"# (RUN|CHECK|REQUIRES|UNSUPPORTED)[-A-Z]*:", line)]
    return "```\n" + "\n".join(lines).strip() + "\n```"


def section(group, rows):
    """rows: (ID, form, text, aliases)."""
    exactness = accuracies()
    is_measured = any(row[0] in exactness for row in rows)
    head = ["built-in", "what it does"] + ["accuracy"] * is_measured + ["also known as"]
    lines = [(form, text) + (exactness.get(name, ""),) * is_measured + (aliases,) for name, form, text, aliases in rows]
    parts = [f"### {group}", example(group), table(head, lines)]
    return "\n\n".join(part for part in parts if part)


def builtins():
    groups = {}
    for identifier, name, least, most, _, _, _, flags, aliases, group, doc in rows("lib/ir/builtins.def"):
        arguments, _, text = doc.partition(": ") if ": " in doc and int(most) > 0 else ("", "", doc)
        form = name if "KJ_NAME" in flags else f"{name}({arguments})"
        groups.setdefault(group, []).append((identifier, f"`{form}`", text, aliases))
    return "\n\n".join(section(group, lines) for group, lines in groups.items())


def groups_without_example():
    groups = {row[9] for row in rows("lib/ir/builtins.def")}
    return sorted(group for group in groups if not example(group))


def library():
    """Functions and structs of the modules that kjit brings along, each with the comment above it or above the one before."""
    parts = []
    for path in sorted((ROOT / "lib/library").glob("*.kir")):
        head, body = path.read_text().split("\n\n", 1)
        introduction = " ".join(line[2:] for line in head.splitlines())
        comment, rows, is_open = [], [], False
        for line in body.splitlines():
            declared = re.match(r"(func|struct) (\w+ ?[({].*?[)}])", line)
            if line.startswith("# ") and not line.startswith("# ----"):
                comment = comment + [line[2:]] if is_open else [line[2:]]
                is_open = True
            elif declared and not declared[2].startswith("random_"):
                rows.append((f"`{declared[1] + ' ' if declared[1] == 'struct' else ''}{declared[2].strip()}`", " ".join(comment)))
            is_open = is_open and line.startswith("#")
        parts.append(f"### `import \"{path.stem}\"`\n\n{introduction}\n\n" + table(["declaration", "what it is"], rows))
    return "\n\n".join(parts)


def statuses():
    return table(["status", "meaning"], [(f"`KJIT_{n}`", t) for n, t in rows("include/kjit/status.def")])


def device_attributes():
    def on_cpu(value):
        return "cores" if value == "KJ_CPU_CORES" else value
    return table(["`kjit_device_attribute`", "what", "on the CPU"], [(f"`KJIT_DEVICE_{n}`", t, on_cpu(c)) for n, _, c, t in rows("include/kjit/device.def")])


TABLES = {"@OPS@": operators, "@TYPES@": types, "@ATTRIBUTES@": attributes, "@BUILTINS@": builtins, "@LIBRARY@": library, "@STATUS@": statuses, "@DEVICE@": device_attributes}


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
    if "--check" in sys.argv:
        for group in groups_without_example():
            print(f"test/docs/examples has no program for the built-ins of the group `{group}`")
            stale = 1
    return stale


sys.exit(main())
