#!/usr/bin/env python3
"""Compares the PTX of each atomic operation with the tables in docs/ir.md.

The reference names the operations, their types, the scopes and the memory orders. The test compiles
every operation, type, scope and order for each architecture: in global memory, in shared memory and
through a pointer, with and without a use of the result. In the PTX, every access to the element must
be atomic, with the size of the type and the scope of the operation. The access must have the memory
order, or a fence of the same scope must be next to it. The offset of an element must be part of the
address, and a constant integer part of the instruction. kjit must reject types and orders that the
reference does not name. If ptxas is installed, it must accept the PTX."""
import argparse
import concurrent.futures
import itertools
import os
import re
import subprocess
import sys
import tempfile

ARCHES = ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"]
BITS = {"bool": 8, "i8": 8, "u8": 8, "i16": 16, "u16": 16, "i32": 32, "u32": 32, "i64": 64, "u64": 64,
        "f16": 16, "bf16": 16, "f32": 32, "f64": 64, "c64": 64, "f16x2": 32, "u8x8": 64, "f32x2": 64, "u32x4": 128, "f64x2": 128,
        "boolx4": 32, "f32x3": 96}
# components of the types that the reference calls vectors and structs
WHOLE = ["f16x2", "u8x8", "f32x2", "u32x4", "f64x2"]
WIDE_ARCH = 90  # exchanges of 128 bits
SCOPES = {"": "gpu", "_block": "cta", "_system": "sys"}
SAME_SCOPE = {"gl": "gpu", "cta": "cta", "sys": "sys"}  # of membar
PLACES = {"global": "x[0]", "shared": "s[0]", "pointer": "p[0]"}
OFFSET = 3  # for the element of x that constants are combined with
CONSTANT = 5


class Promise:
    """Returns for one operation the number of its operands, its types, and its possible orders."""

    def __init__(self, name, operands, types):
        self.name, self.operands, self.types = name, operands, types
        self.writes, self.reads = name != "atomic_load", name != "atomic_store"

    def may_have(self, order):
        if order == "acq_rel":
            return self.reads and self.writes
        return {"acquire": self.reads, "release": self.writes}.get(order, True)


def read_reference(path):
    """Returns the documented operations by name, and the memory orders."""
    texts, operands, orders = {}, {}, []
    for line in open(path):
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        forms = re.findall(r"`(\w+)(?:\((.*?)\))?`", cells[0]) if cells else []
        if len(cells) > 1 and cells[1].startswith("a memory order"):
            orders.append(forms[0][0])
        for name, arguments in forms if forms and forms[0][0].startswith("atomic_") else []:
            texts[name] = cells[1]
            operands[name] = len((arguments or forms[0][1]).split(",")) - 1
    def types_of(name):
        same = re.search(r"\b(?:as|types of) (atomic_\w+)", texts[name])
        if same:
            return types_of(same[1])
        words = re.findall(r"\w+", texts[name])
        return [word for word in words if word in BITS] + (WHOLE if "vectors and structs" in texts[name] else [])
    return {name: Promise(re.sub("_(block|system)$", "", name), operands[name], types_of(name)) for name in texts}, orders


def scope_of(name):
    return SCOPES[re.search("(_block|_system|)$", name)[0]]


class Case:
    def __init__(self, name, promise, kind, order, place, is_used):
        self.name, self.promise, self.type, self.order, self.place = name, promise, kind, order, place
        self.is_used = is_used and promise.reads

    def is_for(self, arch):
        is_exchange = self.promise.reads and self.promise.writes
        return BITS[self.type] < 128 or not is_exchange or int(arch.removeprefix("sm_")) >= WIDE_ARCH

    def text(self):
        is_constant = self.place == "constant" and self.type in ("i32", "u32", "i64", "u64")
        place = f"x[{OFFSET}]" if self.place == "constant" else PLACES[self.place]
        arguments = [place] + [str(CONSTANT) if is_constant else "v"] * self.promise.operands
        arguments += [self.order] if self.order else []
        return ("r[0] = " if self.is_used else "") + f"{self.name}({', '.join(arguments)})"

    def __str__(self):
        return f"{self.text()} of {self.type} in {self.place} memory"


def cases_of(promises, orders, kind):
    """Tests all orders in global memory. With the default order, tests other memory, constants, and uses of the
    result."""
    for name, promise in promises.items():
        if kind not in promise.types:
            continue
        for place, is_used in itertools.product(PLACES, (True, False)):
            yield Case(name, promise, kind, None, place, is_used)
        yield Case(name, promise, kind, None, "constant", True)
        for order in orders:
            if promise.may_have(order):
                yield Case(name, promise, kind, order, "global", True)


def source(kind, statements):
    lines = "".join(f'  ptx_effect("// case {i}")\n  {text}\n' for i, text in enumerate(statements))
    return (f"kernel k(r, x, y) @block(32) {{\n  shared s: {kind}[8]\n  let p = pointer(x[8])\n  let v = y[0]\n"
            f"  s[laneid & 7] = v\n{lines}  ptx_effect(\"// case {len(statements)}\")\n  r[1] = s[1]\n}}\n")


# An instruction: its name, and the qualifiers that the test compares.
INSTRUCTION = re.compile(r"^\s*(?:@%p\d+\s+)?(atom|red|ld|st|fence|membar)\.([\w.:]+)(.*)", re.MULTILINE)


class Access:
    def __init__(self, name, qualifiers, rest):
        words = qualifiers.replace("::", ":").split(".")
        self.text = f"{name}.{qualifiers}{rest}".strip()
        self.name, self.words = name, words
        self.scope = next((w for w in words if w in SCOPES.values()), None)
        self.order = next((w for w in words if w in ("relaxed", "acquire", "release", "acq_rel", "sc", "weak")), None)
        widths = [re.fullmatch(r"(?:b|s|u|f|bf)(\d+)", word) for word in words]
        self.bits = next((int(width[1]) for width in widths if width), None)
        if name in ("atom", "red"):  # PTX's default qualifiers
            self.scope, self.order = self.scope or "gpu", self.order or "relaxed"
        if name == "membar":
            self.name, self.scope, self.order = "fence", SAME_SCOPE[words[0]], "sc"
        self.is_private = any(w in ("param", "local", "const") for w in words)

    def is_weak(self):
        return self.name in ("ld", "st") and self.order in (None, "weak")


def find_unfolded(case, accesses):
    """Returns the error of an atomic with a constant at an offset, if the instruction does not contain both, or
    None."""
    at = f"+{OFFSET * BITS[case.type] // 8}]"
    is_counter = case.promise.name in ("atomic_inc", "atomic_dec")
    count = case.promise.operands if case.type in ("i32", "u32") or case.type in ("i64", "u64") and not is_counter else 0
    for access in accesses:
        if at not in access.text:
            return f"the offset is not in the address: {access.text}"
        if not re.search(rf"(, -?{CONSTANT}){{{count}}};$", access.text):
            return f"the constant is not in the instruction: {access.text}"
    return None


def find_wrong(case, text):
    """Returns how the PTX of a case differs from the documentation, or None."""
    found = [a for a in (Access(*m.groups()) for m in INSTRUCTION.finditer(text)) if not a.is_private]
    scope, bits = scope_of(case.name), BITS[case.type]
    strong = [i for i, a in enumerate(found) if a.name != "fence" and not a.is_weak()]
    weak = [a.text for a in found if a.is_weak()]
    results = [a for a in found if a.is_weak() and a.name == "st"]
    if len(weak) != case.is_used or len(results) != len(weak):
        return f"plain accesses: {weak}"
    if not strong:
        return "there is no atomic access"
    for access in (found[i] for i in strong):
        if access.scope != scope:
            return f"the scope is {access.scope}, not {scope}: {access.text}"
        if access.bits != bits:
            return f"{bits} bits are accessed as {access.bits}: {access.text}"
    updates = [found[i] for i in strong if found[i].name in ("atom", "red")]
    if case.promise.reads and case.promise.writes and not updates:
        return "nothing is read and written at once"
    unfolded = find_unfolded(case, [found[i] for i in strong]) if case.place == "constant" else None
    if unfolded:
        return unfolded
    before = [a for a in found[:strong[0]] if a.name == "fence"]
    after = [a for a in found[strong[-1] + 1:] if a.name == "fence"]
    for fence in before + after:
        if fence.scope != scope:
            return f"a fence of the scope {fence.scope}, not {scope}: {fence.text}"
    own = {found[i].order for i in strong}
    order = case.order or "relaxed"
    if order == "relaxed" and (before or after or own - {"relaxed"}):
        return "a relaxed operation orders other accesses"
    if order in ("release", "acq_rel", "seq_cst") and case.promise.writes and not (before or own & {"release", "acq_rel"}):
        return "what precedes it is not ordered before it"
    if order in ("acquire", "acq_rel", "seq_cst") and case.promise.reads and not (after or own & {"acquire", "acq_rel"}):
        return "what follows it is not ordered after it"
    if order == "seq_cst" and not any(fence.order == "sc" for fence in before):
        return "nothing orders it among all operations that are seq_cst"
    return None


def run(command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def compile_kernel(arguments, folder, name, kind, arch, statements):
    path, code = os.path.join(folder, name + ".kir"), os.path.join(folder, name + ".ptx")
    open(path, "w").write(source(kind, statements))
    signature = ", ".join([f"{kind}[:] C"] * 3)
    result = run([arguments.kjit_compile, path, "-q", "-s", signature, "--arch", arch, "-e", "ptx", "-o", code])
    return code, result


def check(arguments, folder, cases, kind, arch):
    """Returns the failures of all cases for a type on an architecture."""
    cases = [case for case in cases if case.is_for(arch)]
    code, result = compile_kernel(arguments, folder, f"{kind}_{arch}", kind, arch, [case.text() for case in cases])
    if result.returncode:
        return [f"{arch}: {result.stdout}"]
    texts = re.split(r"// case \d+\n", open(code).read())[1:-1]
    if len(texts) != len(cases):
        return [f"{arch}, {kind}: the PTX has {len(texts)} of {len(cases)} cases"]
    failures = [(case, find_wrong(case, text)) for case, text in zip(cases, texts)]
    failures = [f"{arch}: {case}: {wrong}" for case, wrong in failures if wrong]
    if arguments.ptxas:
        result = run([arguments.ptxas, "-arch", arch, "-O1", code, "-o", os.devnull])
        failures += [f"{arch}, {kind}: {result.stdout}"] if result.returncode else []
    return failures


def check_refusals(arguments, folder, promises, orders):
    """Tests one operation of each rule with each type and order that the reference does not allow."""
    failures = []
    rules = {(promise.name, tuple(promise.types)): name for name, promise in promises.items() if scope_of(name) == "gpu"}
    for name in rules.values():
        promise = promises[name]
        tries = [Case(name, promise, kind, None, "global", True) for kind in BITS if kind not in promise.types]
        tries += [Case(name, promise, promise.types[0], order, "global", True) for order in orders if not promise.may_have(order)]
        wide = (Case(name, promise, kind, None, "global", True) for kind in promise.types)
        tries += [case for case in wide if not case.is_for("sm_80")]
        for case in tries:
            arch = "sm_90" if case.type not in promise.types or case.is_for("sm_80") else "sm_80"
            _, result = compile_kernel(arguments, folder, f"{name}_refused", case.type, arch, [case.text()])
            if result.returncode <= 0 or f"`{name}`" not in result.stdout:
                failures.append(f"{case} is not refused by name: {result.stdout}")
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kjit-compile", required=True)
    parser.add_argument("--reference", required=True, help="docs/ir.md")
    parser.add_argument("--ptxas", help="the assembler")
    parser.add_argument("--arch", action="append", help="only this one")
    arguments = parser.parse_args()
    promises, orders = read_reference(arguments.reference)
    assert len(promises) >= 45 and len(orders) == 5, "the reference no longer names the atomics as this test reads it"
    kinds = [kind for kind in BITS if any(kind in promise.types for promise in promises.values())]
    cases = {kind: list(cases_of(promises, orders, kind)) for kind in kinds}
    arches = arguments.arch or ARCHES
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(check, arguments, folder, cases[kind], kind, arch) for arch in arches for kind in kinds]
        failures = check_refusals(arguments, folder, promises, orders) if not arguments.arch else []
        for job in jobs:
            failures += job.result()
    print("\n".join(failures))
    print(f"{len(promises)} atomics, {sum(map(len, cases.values())) * len(arches)} cases, {len(failures)} failures")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
