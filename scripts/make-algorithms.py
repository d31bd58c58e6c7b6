#!/usr/bin/env python3
"""Makes the interfaces of the algorithms from the table runtime/algorithm/algorithms.def: the C++ functions in
include/kjit/cpp/algorithms.hpp, the calls of the Python package in tools/python/src/algorithm_calls.inc, and the rows of
`kjit-run --call` in tools/kjit-run/algorithm_calls.inc. With --check, exits 1 if a file differs from the generated text, or if a
row does not agree with the headers that kjit/algorithm.h includes."""

import argparse
import re
import subprocess
import sys

from tables import ROOT, rows

TABLE = "runtime/algorithm/algorithms.def"
HEAD = "/* Made by scripts/make-algorithms.py from runtime/algorithm/algorithms.def. Do not edit. */\n"


class Argument:
    """One argument of a row: kind, name, and the default or the argument that it depends on."""

    def __init__(self, text):
        text, _, self.default = (part.strip() for part in text.partition("="))
        self.kind, _, self.name = text.partition(" ")
        self.is_optional = self.kind.endswith("?")
        self.kind = self.kind.rstrip("?")
        self.name = self.name or self.kind

    def is_result(self):
        return self.kind in ("result", "results")


class Algorithm:
    def __init__(self, columns):
        self.name, arguments, options, self.text = columns
        self.text = self.text.replace('\\"', '"')
        self.arguments = [Argument(part) for part in arguments[1:-1].split(",")]
        self.options = [part.strip() for part in options[1:-1].split(",") if part.strip()]
        self.is_by_hand = any(a.kind == "csr_result" for a in self.arguments)


def algorithms():
    return [Algorithm(columns) for columns in rows(TABLE, "ALGORITHM")]


# ---- agreement with the header ----

C_TYPES = {
    "result": "const kjit_operand *",
    "results": "const kjit_operand *",
    "written": "const kjit_operand *",
    "update": "const kjit_operand *",
    "input": "const kjit_operand *",
    "inputs": "const kjit_operand *",
    "called": "const kjit_operand *",
    "count": "size_t ",
    "operator": "const kjit_operator *",
    "operators": "const kjit_operator *",
    "func": "kjit_function *",
    "integer": "int64_t ",
    "element": "int64_t ",
    "seed": "uint64_t ",
    "flags": "uint32_t ",
    "real": "double ",
    "text": "const char *",
    "indices": "const uint32_t *",
    "csr": "const kjit_csr *",
    "coo": "const kjit_coo *",
    "csr_result": "const kjit_csr *",
}
C_NAMES = {"operator": "operator_"}


def gaps(table):
    """Returns the differences between the table and the headers."""
    index = (ROOT / "include/kjit/algorithm.h").read_text()
    text = "".join((ROOT / "include" / name).read_text() for name in re.findall(r"#include <(kjit/\w+\.h)>", index))
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    declared = {
        name: " ".join(parameters.split())
        for name, parameters in re.findall(r"KJIT_CHECK kjit_status\s+kjit_(\w+)\(\s*kjit_context \*context,(.*?)\);", text, re.DOTALL)
    }
    for each in table:
        expected = []
        for a in each.arguments:
            if a.kind == "count":
                array = next(b for b in each.arguments if b.name == a.name and b is not a)
                shares = each.name in ("reduce_several", "pairs_gradient")  # one number is the count of two arrays
                name = (
                    "count"
                    if shares and array.kind in ("operators", "indices")
                    else {"results": "result_count", "inputs": "operand_count" if array.name == "x" else f"{array.name}_count"}[array.kind]
                )
            else:
                several = {("results", "r"): "results", ("inputs", "x"): "operands"}
                name = several.get((a.kind, a.name), C_NAMES.get(a.name, a.name))
            expected.append(C_TYPES[a.kind] + name)
        expected = ", ".join([*expected, "const kjit_algorithm_options *options"])
        found = declared.pop(each.name, None)
        if found != expected:
            yield f"{TABLE}: {each.name}: the header has ({found}), the row has ({expected})"
    declared = [name for name in declared if name not in ("cg", "lsmr")]  # these two have their own structs of options
    yield from (f"{TABLE} has no row for kjit_{name}" for name in declared)


# ---- C++ ----

CPP_TYPES = {
    "result": "const target &",
    "results": "const targets &",
    "written": "const target &",
    "update": "const target &",
    "input": "const operand &",
    "inputs": "const operands &",
    "called": "const operand &",
    "operator": "const operation &",
    "operators": "const std::vector<operation> &",
    "func": "const callable &",
    "integer": "std::int64_t ",
    "element": "std::int64_t ",
    "seed": "std::uint64_t ",
    "flags": "std::uint32_t ",
    "real": "double ",
    "text": "const std::string &",
    "indices": "const std::vector<std::uint32_t> &",
    "csr": "const csr &",
}
# Names that C++ reserves, or that are names of kjit.hpp.
CPP_NAMES = {"operator": "op", "operators": "ops", "function": "func", "mean": "center", "expression": "letters", "count": "number"}
CALL = "call_"  # the name of the variable for the call in the generated C++


def cpp_name(a):
    return CPP_NAMES.get(a.name, a.name)


def element_count(each, a):
    """Returns the number of elements that a func of the call takes, as a C++ expression."""
    return "x.size()" if each.name == "map" else "2"


def cpp_value(each, a, results):
    """Returns the argument of the C call. results: the text for a result, or None if the caller passes the results."""
    name = cpp_name(a)
    if a.kind == "count":
        array = next(b for b in each.arguments if b.name == a.name and b is not a)
        return "n" if array.kind == "results" and results is not None else f"{cpp_name(array)}.size()"
    if a.is_result() and results is not None:
        return "every" if a.kind == "results" else f"r[{results.index(a)}]"
    if a.kind == "operator" or a.kind == "operators":
        return f"{name}_c"
    if a.kind == "func":
        return f"{name}_c"
    if a.kind == "text":
        return f"{name}.c_str()"
    if a.kind == "indices":
        return f"{name}.data()"
    if a.kind == "csr":
        return f"&{name}_c"
    return f"{name}.get()" if a.kind in ("result", "results", "written", "update", "input", "inputs", "called") else name


def signature(arguments, defaults):
    return ", ".join([f"{CPP_TYPES[a.kind]}{cpp_name(a)}" for a in arguments] + ["const options &given" + (" = {}" if defaults else "")])


def cpp_function(each, creates):
    """Returns the function of a row, or the function that creates its results, and variants without the last arguments, which can
    be omitted."""
    results = [a for a in each.arguments if a.is_result()]
    taken = [a for a in each.arguments if a.kind != "count" and not (creates and a.is_result())]
    if not creates:  # results come first
        taken.sort(key=lambda a: not a.is_result())
    name = each.name + ("_into" if results and not creates else "")
    kind = (
        "void"
        if not creates
        else "created"
        if results[0].kind == "results"
        else "any_array"
        if len(results) == 1
        else f"results<{len(results)}>"
    )
    lines = [
        f"inline {kind} {name}({signature(taken, True)})",
        "{",
        f'detail::call {CALL}("kjit::{name}", given);',
        f"{CALL}.start({', '.join(cpp_name(a) for a in taken)});",
    ]
    for a in taken:
        if a.kind in ("operator", "operators"):
            lines.append(f"const kjit_operator *const {cpp_name(a)}_c = {CALL}.of({cpp_name(a)});")
        if a.kind == "func":
            lines.append(f"kjit_function *const {cpp_name(a)}_c = {CALL}.of({cpp_name(a)}, {element_count(each, a)});")
        if a.kind == "csr":
            lines.append(f"const kjit_csr {cpp_name(a)}_c = {cpp_name(a)}.get();")
    call = ", ".join([f"{CALL}.context()", *(cpp_value(each, a, results if creates else None) for a in each.arguments), f"{CALL}.given()"])
    if creates:
        uses_all = results[0].kind == "results"
        uses_count = any(cpp_value(each, a, results) == "n" for a in each.arguments)
        parameters = ", ".join(
            [
                "const kjit_operand *const *" + ("" if uses_all else "r"),
                "const kjit_operand *" + ("every" if uses_all else ""),
                "std::size_t" + (" n" if uses_count else ""),
            ]
        )
        wanted = "nullptr"
        if any(a.is_optional and a.default for a in results):
            wanted = "wanted"
            needs = {a.name: a for a in each.arguments}
            lines.append(
                "const bool wanted[] = { "
                + ", ".join(f"{cpp_name(needs[a.default])}.get() != nullptr" if a.default else "true" for a in results)
                + " };"
            )
        count = 0 if uses_all else len(results)
        lines.append(
            ("return" if uses_all else "const created made =")
            + f" {CALL}.create({count}, {wanted}, [&]({parameters}) {{ return kjit_{each.name}({call}); }});"
        )
        if not uses_all:
            lines.append(
                "return made[0];" if len(results) == 1 else "return { { " + ", ".join(f"made[{i}]" for i in range(len(results))) + " } };"
            )
    else:
        lines.append(f"{CALL}.run([&] {{ return kjit_{each.name}({call}); }});")
    lines.append("}")
    what = each.text[0].upper() + each.text[1:]
    if results and not creates:
        comment = f"Like kjit::{each.name}, but writes to existing arrays"
    else:
        comment = f"{what} (kjit_{each.name})"
    text = [f"/* {comment}. */", *lines]

    # Without the last arguments, the options follow immediately.
    def omitted(a):
        return a.default or "none" if (a.is_optional and a.kind in ("func", "input")) or (a.default and not a.is_result()) else None

    shorter = list(taken)
    while shorter and omitted(shorter[-1]):
        shorter.pop()
    if len(shorter) < len(taken):
        passed = [cpp_name(a) for a in shorter] + [omitted(a) for a in taken[len(shorter) :]] + ["given"]
        text += [
            "/* The same call with defaults for the last arguments. */",
            f"inline {kind} {name}({signature(shorter, True)})",
            "{",
            f"{'return ' * (kind != 'void')}{name}({', '.join(passed)});",
            "}",
        ]
    return text


def make_cpp(table):
    lines = [
        "/* kjit/cpp/algorithms.hpp: a C++ function for each algorithm of kjit/algorithm.h. Include kjit/kjit.hpp,",
        " * which includes this file.",
        " *",
        " * Made by scripts/make-algorithms.py from runtime/algorithm/algorithms.def. Do not edit. */",
        "#ifndef KJIT_CPP_ALGORITHMS_HPP",
        "#define KJIT_CPP_ALGORITHMS_HPP",
        "",
        "#include <kjit/cpp/sparse_matrix.hpp>",
        "",
        "namespace kjit {",
        "",
    ]
    for each in table:
        if each.is_by_hand:
            continue
        if any(a.is_result() for a in each.arguments):
            lines += [*cpp_function(each, True), *cpp_function(each, False), ""]
        else:
            lines += [*cpp_function(each, False), ""]
    text = "\n".join([*lines, "} // namespace kjit", "#endif", ""])
    return text


def formatted(path, text):
    """Returns the C++ file as clang-format writes it."""
    if not path.endswith(".hpp"):
        return text
    return subprocess.run(
        ["clang-format", "--style=file", f"--assume-filename={path}"], input=text, text=True, check=True, stdout=subprocess.PIPE, cwd=ROOT
    ).stdout


def squeeze(text):
    """Returns the text without the white space that clang-format changes, so that a check does not need clang-format."""
    return re.sub(r"[\s*]", "", text)


# ---- the Python package ----

LETTERS = {
    "result": "r",
    "results": "R",
    "written": "r",
    "update": "r",
    "input": "x",
    "inputs": "X",
    "called": "x",
    "operator": "o",
    "operators": "O",
    "func": "f",
    "integer": "i",
    "element": "i",
    "seed": "i",
    "flags": "i",
    "real": "d",
    "text": "s",
    "indices": "I",
    "csr": "xxxii",
}
FIELDS = {
    "r": "operands",
    "R": "operands",
    "x": "operands",
    "X": "operands",
    "o": "operators",
    "O": "operators",
    "f": "function",
    "i": "integer",
    "d": "real",
    "s": "text",
    "I": "integers",
}
CASTS = {"seed": "(uint64_t)", "flags": "(uint32_t)"}


def make_python(table):
    calls, found = [], []
    for each in table:
        if each.is_by_hand:
            continue
        letters, places, values = "", {}, []
        for a in each.arguments:
            if a.kind != "count":
                places[a.name] = len(letters)
                letters += LETTERS[a.kind]
        for a in each.arguments:
            at = places[a.name]
            if a.kind == "count":
                values.append(f"a[{at}].count")
            elif a.kind == "csr":
                values.append(f"(const kjit_csr[]){{ csr_of(&a[{at}]) }}")
            else:
                values.append(f"{CASTS.get(a.kind, '')}a[{at}].{FIELDS[LETTERS[a.kind]]}")
        calls.append(f"CALL({each.name}, kjit_{each.name}(context, {', '.join(values)}, options))")
        found.append(f'ROW({each.name}, "{letters}")')
    return HEAD + "/* clang-format off */\n#ifdef CALL\n" + "\n".join(calls) + "\n#else\n" + "\n".join(found) + "\n#endif\n"


# ---- the shell ----

# The role of an argument in a call of the shell, and the field of run_argument that contains its value.
ROLES = {
    "result": ("RESULT", "operands"),
    "results": ("RESULT", "operands"),
    "written": ("WRITTEN", "operands"),
    "update": ("IN_PLACE", "operands"),
    "input": ("INPUT", "operands"),
    "inputs": ("INPUT", "operands"),
    "called": ("CALLED", "operands"),
    "operator": ("OPERATOR", "operator_"),
    "operators": ("OPERATOR", "operators"),
    "func": ("FUNCTION", "function"),
    "integer": ("INTEGER", "integer"),
    "element": ("ELEMENT", "integer"),
    "seed": ("BITS", "integer"),
    "flags": ("INTEGER", "integer"),
    "real": ("REAL", "real"),
    "text": ("TEXT", "text"),
    "csr": ("MATRIX", "matrix"),
}
SHELL_NAMES = {"function": "func", "operators": "operator"}
REPEATED = ("results", "inputs", "operators")
# The shell's `pairs` has any number of results. Its `sort`, which also does what sort_pairs does, is written by hand. It has
# no csr_to_coo, because the arrays of a matrix that the shell converted can have more elements than the matrix has entries.
SHELL_ROWS = {"pairs_several": "pairs", "pairs": None, "sort": None, "sort_pairs": None, "csr_to_coo": None}


def has_shell_call(each):
    """Returns whether the shell can write all arguments of the algorithm."""
    return SHELL_ROWS.get(each.name, each.name) and all(a.kind in ROLES or a.kind == "count" for a in each.arguments)


def shell_parameters(each):
    """Returns the arguments in the order of the shell: inputs that take all remaining arguments come last."""
    taken = [a for a in each.arguments if a.kind != "count"]
    return [a for a in taken if a.kind != "inputs"] + [a for a in taken if a.kind == "inputs"]


def is_optional_in_shell(a, first, following):
    """Results are matched from left to right: the first one is required, and any before a required result."""
    if a.is_result():
        return a is not first and a.is_optional and all(b.is_optional for b in following if b.is_result())
    return a.is_optional or bool(a.default) or a.kind == "inputs"


def shell_value(a, at):
    """Returns an argument of the C call. at: the index of its parameter; for a count, the index of the counted array."""
    if a.kind == "count":
        return f"a[{at}].count"
    value = f"a[{at}].{ROLES[a.kind][1]}"
    if a.kind in ("operator", "csr"):
        return "&" + value
    if a.kind == "real" and a.default not in ("", "0"):  # a missing number is 0
        return f"(a[{at}].count ? {value} : {a.default})"
    return CASTS.get(a.kind, "") + value


def shell_options(each):
    names = set(each.options) - {"in_place", "waits"}
    if "axes" in names:
        names.add("axis")
    if any(a.kind in ("operator", "operators") for a in each.arguments):
        names.add("commutes")
    return " | ".join(f"1u << RUN_{name.upper()}" for name in sorted(names)) or "0"


def make_shell(table):
    calls, found = [], []
    for each in table:
        if not has_shell_call(each):
            continue
        parameters = shell_parameters(each)
        places = {a.name: at for at, a in enumerate(parameters)}
        values = [shell_value(a, places[a.name]) for a in each.arguments]
        name = SHELL_ROWS.get(each.name, each.name)
        calls.append(f"CALL({name}, kjit_{each.name}(context, {', '.join(values)}, options))")
        rows = []
        for at, a in enumerate(parameters):
            flags = is_optional_in_shell(a, parameters[0], parameters[at + 1 :]), a.kind in REPEATED
            rows.append(f'{{ "{SHELL_NAMES.get(a.name, a.name)}", RUN_{ROLES[a.kind][0]}, {", ".join(str(flag).lower() for flag in flags)} }}')
        facts = ", ".join(str(fact in each.options).lower() for fact in ("in_place", "waits"))
        found.append(f"ROW({name}, {shell_options(each)}, {facts}, {', '.join(rows)})")
    return HEAD + "/* clang-format off */\n#ifdef CALL\n" + "\n".join(calls) + "\n#else\n" + "\n".join(found) + "\n#endif\n"


FILES = {
    "include/kjit/cpp/algorithms.hpp": make_cpp,
    "tools/python/src/algorithm_calls.inc": make_python,
    "tools/kjit-run/algorithm_calls.inc": make_shell,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare, change nothing")
    options = parser.parse_args()
    table = algorithms()
    wrong = list(gaps(table))
    for path, make in FILES.items():
        text = make(table)
        if not options.check:
            (ROOT / path).write_text(formatted(path, text))
        elif not (ROOT / path).exists() or squeeze((ROOT / path).read_text()) != squeeze(text):
            wrong.append(f"{path} is not current: run scripts/make-algorithms.py")
    print("\n".join(wrong + [f"{len(table)} algorithms, {len(wrong)} wrong"]))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
