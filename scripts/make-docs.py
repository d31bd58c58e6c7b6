#!/usr/bin/env python3
"""Makes docs/ir.md, docs/embedding.md, docs/modules/*.md and the other pages that have an .in.md file, and the manual pages from
their .1.in files, from docs/builtins.prose.md, docs/options.prose.md and the tables in the source. With --check, exits 1 if a
file differs from the generated text, or if a built-in or an option has no prose."""
import pathlib
import re
import sys
import textwrap

import tables
from tables import ROOT, rows


def table(head, lines):
    cell = lambda text: str(text).replace("|", "\\|")
    out = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(out + ["| " + " | ".join(cell(c) for c in line) + " |" for line in lines])


MOST_WORDS = 40  # of a cell


def sentences_that_fit(text):
    """Returns (the sentences that fit into a cell, the remaining sentences)."""
    sentences = re.split(r"(?<=[.;])(?<!i\.e\.)(?<!e\.g\.) +(?=[A-Z(`\d])", text)
    count = max([1] + [k for k in range(1, len(sentences) + 1) if len(" ".join(sentences[:k]).split()) <= MOST_WORDS])
    return " ".join(sentences[:count]), " ".join(sentences[count:])


def table_with_notes(head, lines):
    """Returns a table whose second column is prose. Sentences that do not fit into a cell follow below the table, after the row's
    first cell."""
    rows, notes = [], {}
    for first, text, *others in lines:
        text, rest = sentences_that_fit(text)
        rows.append((first, text, *others))
        if rest:
            notes.setdefault(rest, []).append(first)
    return "\n\n".join([table(head, rows), *(paragraph(f"**{', '.join(names)}**: {rest}") for rest, names in notes.items())])


def paragraph(text):
    """Returns the text in lines of 120 characters. No line starts with `+ ` or `- `, which Markdown would read as a list item."""
    text = re.sub(r" ([-+]) (?=\S)", "\0\\1 ", text)
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False).replace("\0", " ")


def operators():
    classes = {"LOGIC": "lazy; bool", "UNARY": "one operand", "COMPARE": "bool", "INT": "integers, bools", "SHIFT": "type of the left operand", "ARITH": "both promoted",
               "DIVIDE": "floats", "POWER": "right-associative; type of the left operand for integer exponents"}
    return table(["operator", "precedence", "operands, result"], [(f"`{t}`", p, classes[c]) for _, t, p, c in rows("include/kjit/ops.def", "KJIT_ROW") if c != "STORE"])


def types():
    return table(["type", "bytes", "what"], [(f"`{t}`", s, c.lower()) for _, t, s, c, _, _ in rows("include/kjit/types.def", "KJIT_ROW")])


def attributes():
    def values(least, most):
        return least if least == most else f"{least} to {most}"
    return table(["attribute", "values", "on", "meaning"], [(f"`@{n}`", values(lo, hi), " ".join(w.strip().lower() for w in p.split("|")), d)
                                                            for _, n, lo, hi, p, d in rows("lib/ir/attributes.def")])


def accuracies():
    """ID: text, from math.def: errors in ULP, f32 and f64."""
    found = {row[0]: "exact" for row in rows("lib/ir/math.def", "EXACT")}
    for name, _, _, _, _, _, _, *n in rows("lib/ir/math.def", "MATH"):
        pairs = [(library, n[k], n[k + 1]) for k, library in ((0, "CPU"), (2, "libdevice"), (4, "libclc")) if n[k] != "NONE"]
        text = "; ".join(f"{library} {a}" if a == b else f"{library} {a}, {b}" for library, a, b in pairs)
        if n[6] != "0":
            text += f"; or {n[6]}" + ("" if n[7] == "0" else f", {n[7]}") + " absolutely"
        found[name] = text
    for name, a, b in rows("lib/ir/math.def", "COMPLEX"):
        found[name] = f"{found[name]}; complex {a}" + ("" if a == b else f", {b}") if name in found else f"complex {a}"
    return found


# The description of products on such elements.
NOTES = {"TF32": "f32 as tf32: the upper 19 bits count", "S4": "i32 and u32: eight 4-bit integers each"}


def product(identifier):
    """Returns the words for a matrix product's prose that come from its rows in mma.def."""
    found = [row for row in rows("lib/typing/mma.def") if row[0] == identifier]
    _, m, n, k, _, *_ = found[0]

    def fragment(kind, count):
        element, bits = tables.MMA_ELEMENTS[kind]
        lanes = count * bits // (32 * int(re.sub(r"\D", "", element)))
        return element if lanes == 1 else f"{element}x{lanes}"

    sizes = [int(m) * int(k), int(k) * int(n), int(m) * int(n)]
    fragments = {}  # architecture: operand types
    for row in found:
        fragments.setdefault(row[8], {})["(" + ", ".join(map(fragment, row[5:8], sizes)) + ")"] = None
    notes = [f"{note}. " for kind, note in NOTES.items() if any(kind in row[5:8] for row in found)]
    if len(fragments) == 1:
        [(arch, types)] = fragments.items()
        text, notes = " ".join(types), [*notes, f"sm_{arch}"]
    else:
        text = ", ".join(f"{' '.join(types)} from sm_{arch}" for arch, types in fragments.items())
    return {"m": m, "n": n, "k": k, "fragments": f"{text}. {''.join(notes)}".rstrip()}


def example(group):
    """Returns the program of a group, without the lines for the test, or None if there is no program."""
    path = ROOT / "test/docs/examples" / (re.sub(r"\W+", "_", group) + ".kir")
    if not path.exists():
        return None
    lines = [line for line in path.read_text().splitlines() if not re.match(r"# (RUN|CHECK|REQUIRES|UNSUPPORTED)[-A-Z]*:", line)]
    return f"<!-- run by: {path.relative_to(ROOT)} -->\n```\n" + "\n".join(lines).strip() + "\n```"


def prose():
    """Groups in their order: heading: (introduction, {name: (form, text)}), from docs/builtins.prose.md."""
    groups = {}
    for part in re.split(r"^### ", (ROOT / "docs/builtins.prose.md").read_text(), flags=re.MULTILINE)[1:]:
        group, body = part.split("\n", 1)
        introduction, *entries = re.split(r"(?<=\n\n)(?=`)", "\n" + body)
        texts = {}
        for entry in entries:
            form, text = entry.split("\n", 1)
            texts[re.match(r"`(\w+)", form)[1]] = (form, " ".join(text.split()))
        groups[group] = (" ".join(introduction.split()), texts)
    return groups


def forms_of(row, form):
    """An atomic is shown with its names at the other scopes."""
    return [form] + [f"`{name}`" for name in row["at other scopes"]]


def section(group, introduction, lines):
    """lines: (ID, form, text, aliases)."""
    exactness = accuracies()
    is_measured = any(line[0] in exactness for line in lines)
    head = ["built-in", "description"] + ["accuracy"] * is_measured + ["also known as"]
    lines = [(form, text) + (exactness.get(name, ""),) * is_measured + (aliases,) for name, form, text, aliases in lines]
    parts = [f"### {group}", paragraph(introduction), example(group), table_with_notes(head, lines)]
    return "\n\n".join(part for part in parts if part)


def describe(row, form, text):
    """A row of the reference: ID, forms, what it does, aliases."""
    if row["id"].startswith("MMA_"):
        text = text.format(**product(row["id"]))
    if row["arch"]:
        first, dot, others = text.partition(". ")
        text = f"{first.rstrip('.')}; sm_{row['arch']}{dot}{others}"
    return row["id"], ", ".join(forms_of(row, form)), text, row["aliases"]


def builtins():
    by_name = {row["name"]: row for row in tables.builtins()}
    return "\n\n".join(section(group, introduction, [describe(by_name[name], *entry) for name, entry in texts.items() if name in by_name])
                       for group, (introduction, texts) in prose().items())


def gaps_in_prose():
    """Returns the errors in docs/builtins.prose.md."""
    names = [row["name"] for row in tables.builtins()]
    told = [name for _, texts in prose().values() for name in texts]
    for name in names:
        if told.count(name) != 1:
            yield f"docs/builtins.prose.md tells of `{name}` {told.count(name)} times"
    for form in (form for _, texts in prose().values() for form, _ in texts.values()):
        if not re.fullmatch(r"`[^`]+`", form):
            yield f"docs/builtins.prose.md: the prose must begin on the line after {form}"
    for name in set(told) - set(names):
        yield f"docs/builtins.prose.md tells of `{name}`, which is no built-in"
    if [name for name in told if name in names] != names:
        yield "docs/builtins.prose.md tells of the built-ins in another order than lib/ir/builtins.def"


def option_prose():
    """Returns the description of each option from docs/options.prose.md: tool: {name: text}."""
    found = {}
    for part in re.split(r"^## ", (ROOT / "docs/options.prose.md").read_text(), flags=re.MULTILINE)[1:]:
        tool, *entries = re.split(r"^### ", part, flags=re.MULTILINE)
        found[tool.strip()] = {name: " ".join(text.split()) for name, text in (entry.split("\n", 1) for entry in entries)}
    return found


def option_form(option):
    value = "" if not option["value"] else f"[={option['value']}]" if option["is_optional"] else f" {option['value']}"
    return (f"-{option['short']}, " if option["short"] else "") + f"--{option['name']}{value}"


def options_as_table(tool):
    texts, parts = option_prose()[tool], []
    plain = lambda text: re.sub(r"See [A-Z]+\.", "See [the tools](tools.md).", re.sub(r"([<>*_\[\]])", r"\\\1", text))
    for group in dict.fromkeys(option["group"] for option in tables.options_of(tool)):
        own = [option for option in tables.options_of(tool) if option["group"] == group]
        parts += [f"### {group}"] if group else []
        parts += [table_with_notes(["option", "description"], [(f"`{option_form(option)}`", plain(texts[option["name"]])) for option in own])]
    return "\n\n".join(parts)


def options_as_manual(tool):
    texts, lines, group = option_prose()[tool], [], ""
    escape = lambda text: re.sub(r"^([.'])", r"\\&\1", text.replace("\\", "\\e").replace("-", "\\-"))
    for option in tables.options_of(tool):
        lines += [f".SS {option['group']}"] if option["group"] != group else []
        group = option["group"]
        lines += [".TP", f".B {escape(option_form(option))}", escape(texts[option["name"]])]
    lines += [".TP", ".B \\-?, \\-\\-help", "Show a summary.", ".TP", ".B \\-V, \\-\\-version", "Show the version."]
    return "\n".join(lines)


def gaps_in_options():
    """Returns the errors in docs/options.prose.md."""
    for tool in tables.OPTION_TABLES:
        names, told = [option["name"] for option in tables.options_of(tool)], option_prose().get(tool, {})
        for name in names:
            if not told.get(name):
                yield f"docs/options.prose.md does not tell of {tool} --{name}"
        for name in set(told) - set(names):
            yield f"docs/options.prose.md tells of {tool} --{name}, which is no option"


def refused():
    """The built-ins that guests may not use."""
    return paragraph(", ".join(f"`{row['name']}`" for row in tables.builtins() if not row["is for guests"]))


def groups_without_example():
    return sorted(group for group in prose() if not example(group))


def comment_rows(body):
    """(declaration, comment) of each function and struct of a module. A comment also holds for the following declarations that
    have no comment. A comment that starts with "Internal:" belongs to functions that users do not call."""
    comment, is_open = [], False
    for line in re.sub(r",\n +(?=const |\w+[,:)])", ", ", body).splitlines():  # parameters on several lines
        declared = re.match(r"(func|struct) (\w+ ?[({].*?[)}])", line)
        if line.startswith("# ") and not line.startswith("# ----"):
            comment = comment + [line[2:]] if is_open else [line[2:]]
            is_open = True
        elif declared and not comment[0].startswith("Internal:"):
            yield f"`{declared[1] + ' ' if declared[1] == 'struct' else ''}{declared[2].strip()}`", " ".join(comment)
        is_open = is_open and line.startswith("#")


def introduction_of_module(name):
    """Returns the head comment of a library module, and its example."""
    head = (ROOT / f"lib/library/{name}.kir").read_text().split("\n\n", 1)[0]
    parts = [paragraph(" ".join(line[2:] for line in part.splitlines() if line.startswith("#"))) for part in head.split("\n#\n")]
    return "\n\n".join(part for part in [*parts, example(f"import {name}")] if part)


def module(name):
    body = (ROOT / f"lib/library/{name}.kir").read_text().split("\n\n", 1)[1]
    return introduction_of_module(name) + "\n\n" + table_with_notes(["declaration", "description"], comment_rows(body))


def library():
    """Returns the text about the modules without a page in docs/modules."""
    names = [path.stem for path in sorted((ROOT / "lib/library").glob("*.kir")) if not (ROOT / f"docs/modules/{path.stem}.in.md").exists()]
    return "\n\n".join(f"## {name}\n\n`lib/library/{name}.kir`\n\n{introduction_of_module(name)}" for name in names)


def statuses():
    return table(["status", "meaning"], [(f"`KJIT_{n}`", t) for n, t in rows("include/kjit/status.def", "KJIT_ROW")])


def limits():
    return table(["limit", "field of `kjit_compile_limits`", "default", "what is counted"],
                 [(f"`{name}`" + (f", in {unit}" if unit else ""), f"`{field}`", f"{int(value) // int(scale):,}" + (f" {unit}" if unit else ""), what)
                  for _, field, value, name, unit, scale, what in rows("include/kjit/limits.def", "KJIT_ROW")])


def device_attributes():
    def on_cpu(value):
        return "cores" if value == "KJ_CPU_CORES" else value
    return table(["`kjit_device_attribute`", "what", "on the CPU"], [(f"`KJIT_DEVICE_ATTRIBUTE_{n}`", t, on_cpu(c)) for n, _, c, t in rows("include/kjit/device.def", "KJIT_ROW")])


def passes():
    """The rows of passes.def."""
    runs_for = {"ALWAYS": "everything", "INTERRUPTIBLE": "interruptible code", "CHECKED": "code with checks of subscripts or divisions", "GPU": "GPUs", "C_FUNCTION": "C functions",
                "CPU_KERNEL": "kernels on the CPU", "WITHOUT_THREAD_LOOPS": "GPUs, C functions", "GPU_NEVER_FAILING": "GPU kernels in which no thread can fail"}
    found = re.findall(r'PASS\("([^"]+)",\s*\w+,\s*(\w+),[^"]*"([^"]+)"\)', (ROOT / "lib/pass/passes.def").read_text().split("*/", 1)[1])
    return table(["pass", "runs for", "what it does"], [(f"`{name}`", runs_for[condition], what) for name, condition, what in found])


def formula_functions():
    """The rows of functions.def; names of one function share a row."""
    found = {}
    for name, least, most, _, _, meaning in rows("runtime/formula/functions.def", "KF_FUNCTION"):
        arguments = "x" if most == "1" else "x, y" if most == "2" else "x, low, high" if name == "clip" else "c, x, y" if most == "3" else "x, ..."
        found.setdefault(meaning, []).append(f"`{name}({arguments})`")
    return table(["function", "result"], [(", ".join(names), meaning) for meaning, names in found.items()])


TABLES = {"@FORMULAS@": formula_functions, "@PASSES@": passes, "@OPS@": operators, "@TYPES@": types, "@ATTRIBUTES@": attributes, "@BUILTINS@": builtins, "@LIBRARY@": library, "@STATUS@": statuses, "@DEVICE@": device_attributes, "@REFUSED@": refused, "@LIMITS@": limits}


def make(source):
    text = source.read_text()
    for mark, generate in TABLES.items():
        text = text.replace(mark, generate()) if mark in text else text
    text = re.sub(r"@MODULE (\w+)@", lambda found: module(found[1]), text)
    text = re.sub(r"@OPTIONS ([\w-]+)@", lambda found: options_as_table(found[1]), text)
    return text.replace("@OPTIONS@", options_as_manual(source.name.split(".")[0])) if source.name.endswith(".1.in") else text


def main():
    gaps = list(gaps_in_options())
    if gaps:
        print("\n".join(gaps))
        return 1
    stale = 0
    for source in sorted([*(ROOT / "docs").rglob("*.in.md"), *(ROOT / "docs/man").glob("*.1.in")]):
        target = source.with_name(source.name.replace(".in.md", ".md").replace(".1.in", ".1"))
        text = make(source)
        if "--check" not in sys.argv:
            target.write_text(text)
        elif not target.exists() or target.read_text() != text:
            print(f"{target.relative_to(ROOT)} is not what {source.name} and the tables give: run scripts/make-docs.py")
            stale = 1
    for gap in gaps_in_prose():
        print(gap)
        stale = 1
    if "--check" in sys.argv:
        for group in groups_without_example():
            print(f"test/docs/examples has no program for the built-ins of the group `{group}`")
            stale = 1
    return stale


sys.exit(main())
