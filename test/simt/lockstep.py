#!/usr/bin/env python3
"""lockstep.py --kjit-run KJIT_RUN [--seed N] [--count N]: random kernels full of barriers, warp operations, divergent control flow, early exits and synchronizing functions,
run on the CPU target and by an interpreter that steps all threads of a block together under a mask. Results must be equal. A kernel that differs is printed with its seed."""
import argparse
import os
import random
import secrets
import shlex
import subprocess
import sys
import tempfile

import numpy as np

VARIABLES = 4
EXTENT = 8  # size of the local array


def wrap(x):
    return (x + 2**31) % 2**32 - 2**31


class Block:
    """The state of one block's threads: the values that a generated kernel computes, as the interpreter keeps them."""

    def __init__(self, shape, index, n):
        self.size = shape[0] * shape[1] * shape[2]
        self.shape, self.index, self.n = shape, index, n
        self.shared = [0] * self.size
        self.local = [[0] * EXTENT for _ in range(self.size)]


# ---- expressions: text for the kernel, and a function of (block, variables of the thread, thread) ----

OPS = {
    "+": lambda a, b: wrap(a + b), "-": lambda a, b: wrap(a - b), "*": lambda a, b: wrap(a * b), "&": lambda a, b: a & b, "|": lambda a, b: a | b, "^": lambda a, b: a ^ b,
}
COMPARISONS = {"<": lambda a, b: a < b, ">": lambda a, b: a > b, "==": lambda a, b: a == b, "!=": lambda a, b: a != b, "<=": lambda a, b: a <= b}


class Maker:
    def __init__(self, rng, dropped=()):
        self.rng = rng
        self.dropped = dropped  # numbers of statements that are left out, to reduce a failing kernel
        self.names = self.statements = 0
        self.functions = []

    def fresh(self, prefix):
        self.names += 1
        return f"{prefix}{self.names}"

    def leaf(self, names, uniform_only=False):
        choices = ["constant", "n", "block"]
        if not uniform_only:
            choices += ["thread", "variable", "variable", "variable"]
        kind = self.rng.choice(choices)
        if kind == "constant":
            value = self.rng.randint(-20, 20)
            return f"({value})", lambda b, v, t: value
        if kind == "n":
            return "n", lambda b, v, t: b.n
        if kind == "block":
            return "i32(blockIdx.x)", lambda b, v, t: b.index
        if kind == "thread":
            return "i32(thread_rank)", lambda b, v, t: t
        name = self.rng.choice(names)
        return name, lambda b, v, t: v[name][t]

    def expression(self, names, depth=2, uniform_only=False):
        if depth == 0 or self.rng.random() < 0.3:
            return self.leaf(names, uniform_only)
        if self.rng.random() < 0.15:
            c = self.condition(names, depth - 1, uniform_only)
            x, y = self.expression(names, depth - 1, uniform_only), self.expression(names, depth - 1, uniform_only)
            return f"({c[0]} ? {x[0]} : {y[0]})", lambda b, v, t: x[1](b, v, t) if c[1](b, v, t) else y[1](b, v, t)
        op = self.rng.choice(list(OPS))
        x, y = self.expression(names, depth - 1, uniform_only), self.expression(names, depth - 1, uniform_only)
        return f"({x[0]} {op} {y[0]})", lambda b, v, t: OPS[op](x[1](b, v, t), y[1](b, v, t))

    def condition(self, names, depth=1, uniform_only=False):
        op = self.rng.choice(list(COMPARISONS))
        x, y = self.expression(names, depth, uniform_only), self.expression(names, depth, uniform_only)
        modulus = self.rng.choice([2, 3, 5])
        if self.rng.random() < 0.5:
            return f"({x[0]} % {modulus} == {y[0]} % {modulus})", lambda b, v, t: x[1](b, v, t) % modulus == y[1](b, v, t) % modulus
        return f"({x[0]} {op} {y[0]})", lambda b, v, t: COMPARISONS[op](x[1](b, v, t), y[1](b, v, t))


# ---- statements: lines, and run(block, variables, active, exits) -> active ----
# exits: {"break": set, "continue": set, "return": set, "kernel": set, "result": list}


def run_all(parts, block, variables, active, exits):
    for part in parts:
        if not active:
            break
        active = part(block, variables, active, exits)
    return active


class Context:
    def __init__(self, names, in_loop=False, is_uniform=True, in_function=False, budget=None, depth=0):
        self.names, self.in_loop, self.is_uniform, self.in_function, self.depth = names, in_loop, is_uniform, in_function, depth
        self.writable = [n for n in names]

    def inner(self, **changes):
        c = Context(list(self.names), self.in_loop, self.is_uniform, self.in_function, depth=self.depth + 1)
        c.writable = list(self.writable)
        for key, value in changes.items():
            setattr(c, key, value)
        return c


def indent(lines):
    return ["  " + line for line in lines]


def make_assign(m, c):
    name, e = m.rng.choice(c.writable), m.expression(c.names)

    def run(block, variables, active, exits):
        values = {t: e[1](block, variables, t) for t in active}
        for t, value in values.items():
            variables[name][t] = value
        return active
    return [f"{name} = {e[0]}"], run


def make_let(m, c):
    name, e = m.fresh("l"), m.expression(c.names)
    c.names.append(name)

    def run(block, variables, active, exits):
        column = variables.setdefault(name, [0] * block.size)
        for t in active:
            column[t] = e[1](block, variables, t)
        return active
    return [f"let {name} = {e[0]}"], run


def make_local(m, c):
    name, index = m.rng.choice(c.writable), m.expression(c.names)
    e = m.expression(c.names)

    def run(block, variables, active, exits):
        for t in active:
            block.local[t][index[1](block, variables, t) & (EXTENT - 1)] = e[1](block, variables, t)
            variables[name][t] = wrap(variables[name][t] + block.local[t][e[1](block, variables, t) & (EXTENT - 1)])
        return active
    return [f"mine[{index[0]} & {EXTENT - 1}] = {e[0]}", f"{name} += mine[{e[0]} & {EXTENT - 1}]"], run


def make_exchange(m, c):
    """The elements of threads that do not arrive keep their values. (Not all of these barriers would be legal on a GPU.
    Under a mask they have the effect that the interpreter has.)"""
    name, e, by = m.rng.choice(c.writable), m.expression(c.names), m.rng.randint(0, 40)

    def run(block, variables, active, exits):
        for t in active:
            block.shared[t] = e[1](block, variables, t)
        for t in active:
            variables[name][t] = wrap(variables[name][t] + block.shared[(t + by) % block.size])
        return active
    lines = [f"s[thread_rank] = {e[0]}", "syncthreads()", f"{name} += s[(thread_rank + {by}) % (blockDim.x * blockDim.y * blockDim.z)]", "syncthreads()"]
    return lines, run


def make_count(m, c):
    name, p, kind = m.rng.choice(c.writable), m.condition(c.names), m.rng.choice(["count", "and", "or"])

    def run(block, variables, active, exits):
        votes = [bool(p[1](block, variables, t)) for t in active]
        value = {"count": sum(votes), "and": int(all(votes)), "or": int(any(votes))}[kind]
        for t in active:
            variables[name][t] = wrap(variables[name][t] + value)
        return active
    call = f"syncthreads_{kind}({p[0]})"
    return [f"{name} += {call if kind == 'count' else f'({call} ? 1 : 0)'}"], run


def bits_of(active, warp, holds=lambda t: True):
    return sum(1 << (t % 32) for t in active if t // 32 == warp and holds(t))


def make_vote(m, c):
    name, p, kind = m.rng.choice(c.writable), m.condition(c.names), m.rng.choice(["ballot", "all", "any", "eq"])
    mask = m.rng.choice([0xffffffff, 0x0f0f1234])

    def run(block, variables, active, exits):
        holds = {t: bool(p[1](block, variables, t)) for t in active}
        for t in active:
            here = bits_of(active, t // 32) & mask
            yes = bits_of(active, t // 32, lambda u: holds[u]) & mask
            value = {"ballot": yes & 0xffff, "all": int(yes == here), "any": int(yes != 0), "eq": int(yes in (0, here))}[kind]
            variables[name][t] = wrap(variables[name][t] + value)
        return active
    call = f"{kind}_sync({mask:#x}, {p[0]})"
    return [f"{name} += {f'i32({call} & 0xffff)' if kind == 'ballot' else f'({call} ? 1 : 0)'}"], run


def make_shuffle(m, c):
    """The value that an inactive lane passes is undefined, so it is not used."""
    name, value, mode = m.rng.choice(c.writable), m.rng.choice(c.names), m.rng.choice(["sync", "up_sync", "down_sync", "xor_sync"])
    by = m.expression(c.names, 1) if m.rng.random() < 0.4 else (lambda k: (f"({k})", lambda b, v, t: k))(m.rng.randint(0, 31))
    width = m.rng.choice([32, 32, 16, 4])
    here, lane, source, got = m.fresh("h"), m.fresh("p"), m.fresh("q"), m.fresh("g")
    forms = {
        "sync": ("(({l}) & ~({w} - 1)) | ({b} & ({w} - 1))", lambda l, b, w: (l & ~(w - 1)) | (b & (w - 1))),
        "up_sync": ("{l} - {b} >= (({l}) & ~({w} - 1)) ? {l} - {b} : {l}", lambda l, b, w: l - b if l - b >= (l & ~(w - 1)) else l),
        "down_sync": ("{l} + {b} <= ({l} | ({w} - 1)) ? {l} + {b} : {l}", lambda l, b, w: l + b if l + b <= (l | (w - 1)) else l),
        "xor_sync": ("({l} ^ {b}) <= ({l} | ({w} - 1)) ? {l} ^ {b} : {l}", lambda l, b, w: l ^ b if (l ^ b) <= (l | (w - 1)) else l),
    }
    text, compute = forms[mode]

    def run(block, variables, active, exits):
        old = list(variables[value])
        changed = {}
        for t in active:
            lane_, by_ = t % 32, by[1](block, variables, t) & 31
            from_ = t - lane_ + compute(lane_, by_, width)
            if from_ in active:
                changed[t] = wrap(variables[name][t] + old[from_])
        for t, result in changed.items():
            variables[name][t] = result
        return active
    step = m.fresh("b")
    lines = [f"let {here} = activemask()", f"let {lane} = i32(laneid)", f"let {step} = {by[0]} & 31", f"let {source} = " + text.format(l=lane, b=step, w=width),
             f"let {got} = shfl_{mode}({here}, {value}, {step}{'' if width == 32 else f', {width}'})", f"if ({here} >> u32({source})) & 1 != 0 {{ {name} += {got} }}"]
    return lines, run


def make_if(m, c):
    is_uniform = m.rng.random() < 0.4
    p = m.condition(c.names, uniform_only=is_uniform)
    inner = dict(is_uniform=c.is_uniform and is_uniform)
    yes, run_yes = make_list(m, c.inner(**inner))
    has_else = m.rng.random() < 0.5
    no, run_no = make_list(m, c.inner(**inner)) if has_else else ([], [])

    def run(block, variables, active, exits):
        holds = [t for t in active if p[1](block, variables, t)]
        fails = [t for t in active if t not in set(holds)]
        after = run_all(run_yes, block, variables, holds, exits) if holds else []
        after += run_all(run_no, block, variables, fails, exits) if fails else []
        return sorted(after)
    return [f"if {p[0]} {{", *indent(yes), *(["} else {", *indent(no)] if has_else else []), "}"], run


def loop(block, variables, active, exits, body, before):
    """before(active) -> the threads that start the next iteration."""
    inner = {**exits, "break": set(), "continue": set()}
    left = []
    going = list(active)
    while True:
        stay = before(going)
        left += [t for t in going if t not in set(stay)]
        if not stay:
            break
        inner["continue"] = set()
        after = run_all(body, block, variables, stay, inner)
        going = sorted(set(after) | inner["continue"])
    return sorted(set(left) | inner["break"])


def make_while(m, c):
    is_uniform = m.rng.random() < 0.5
    limit = m.expression(c.names, 1, uniform_only=is_uniform)
    counter = m.fresh("k")
    inside = c.inner(in_loop=True, is_uniform=c.is_uniform and is_uniform)
    inside.names.append(counter)
    body, parts = make_list(m, inside)

    def run(block, variables, active, exits):
        column = variables.setdefault(counter, [0] * block.size)
        for t in active:
            column[t] = 0

        def before(going):
            stay = [t for t in going if column[t] < (limit[1](block, variables, t) & 3)]
            for t in stay:
                column[t] += 1
            return stay
        return loop(block, variables, active, exits, parts, before)
    return [f"var {counter} = i32(0)", f"while {counter} < ({limit[0]} & 3) {{", f"  {counter} += 1", *indent(body), "}"], run


def make_for(m, c):
    is_uniform = m.rng.random() < 0.5
    first, span = m.expression(c.names, 1, uniform_only=is_uniform), m.expression(c.names, 1, uniform_only=is_uniform)
    step = m.rng.choice([1, 1, 2, -1, -3])
    name = m.fresh("at")
    inside = c.inner(in_loop=True, is_uniform=c.is_uniform and is_uniform)
    inside.names.append(name)
    body, parts = make_list(m, inside)

    def run(block, variables, active, exits):
        column = variables.setdefault(name, [0] * block.size)
        ranges = {}
        for t in active:
            start = first[1](block, variables, t) & 7
            ranges[t] = iter(range(start, start + step * (span[1](block, variables, t) & 3), step))

        def before(going):
            stay = []
            for t in going:
                value = next(ranges[t], None)
                if value is not None:
                    column[t] = value
                    stay.append(t)
            return stay
        return loop(block, variables, active, exits, parts, before)
    start, stop = f"({first[0]} & 7)", f"({first[0]} & 7) + {step} * ({span[0]} & 3)"
    return [f"for {name} in range({start}, {stop}, {step}) {{", *indent(body), "}"], run


def make_jump(m, c):
    kinds = (["break", "continue"] * 2 if c.in_loop else []) + (["return"])
    kind = m.rng.choice(kinds)
    is_uniform = m.rng.random() < 0.3
    p = m.condition(c.names, uniform_only=is_uniform)
    value = m.expression(c.names, 1)

    def run(block, variables, active, exits):
        holds = [t for t in active if p[1](block, variables, t)]
        if kind == "return":
            if c.in_function:
                for t in holds:
                    exits["result"][t] = value[1](block, variables, t)
            else:
                for t in holds:
                    for k in range(VARIABLES):
                        exits["out"][t][k] = variables[f"v{k}"][t]
        exits[kind].update(holds)
        return [t for t in active if t not in set(holds)]
    if kind != "return":
        text = kind
    elif c.in_function:
        text = f"return {value[0]}"
    else:
        text = "; ".join([f"out[grid_rank, {k}] = v{k}" for k in range(VARIABLES)] + ["return"])
    return [f"if {p[0]} {{ {text} }}"], run


def make_call(m, c):
    usable = [f for f in m.functions if c.is_uniform or not f["needs_uniform"]]
    if not usable or c.in_function:
        return make_assign(m, c)
    f = m.rng.choice(usable)
    name, args = m.rng.choice(c.writable), [m.expression(c.names, 1) for _ in range(2)]

    def run(block, variables, active, exits):
        own = {"a": [0] * block.size, "b": [0] * block.size, "x": [0] * block.size}
        for t in active:
            own["a"][t], own["b"][t] = args[0][1](block, variables, t), args[1][1](block, variables, t)
            own["x"][t] = own["a"][t]
        inner = {"return": set(), "break": set(), "continue": set(), "result": [0] * block.size}
        saved = block.shared, block.local
        block.shared, block.local = f["shared"].setdefault(id(block), [0] * block.size), [[0] * EXTENT for _ in range(block.size)]
        for t in run_all(f["run"], block, own, list(active), inner):
            inner["result"][t] = f["value"][1](block, own, t)
        block.shared, block.local = saved
        for t in active:
            variables[name][t] = wrap(variables[name][t] + inner["result"][t])
        return active
    return [f"{name} += {f['name']}({args[0][0]}, {args[1][0]}, n)"], run


def make_list(m, c):
    lines, parts = [], []
    simple = [make_assign, make_assign, make_let, make_local, make_vote, make_shuffle, make_call]
    for _ in range(m.rng.randint(1, 4)):
        choices = list(simple)
        if c.is_uniform:
            choices += [make_exchange, make_exchange, make_count]
        if c.depth < 3:
            choices += [make_if, make_if, make_while, make_for]
        if c.depth > 0:
            choices += [make_jump]
        m.statements += 1
        number = m.statements
        more, run = m.rng.choice(choices)(m, c)
        if number not in m.dropped:
            lines += more
            parts.append(run)
    return lines, parts


def make_function(m):
    c = Context(["a", "b", "x"], in_function=True)
    c.writable = ["x"]
    c.depth = 1
    body, parts = make_list(m, c)
    value = m.expression(c.names, 1)
    name = m.fresh("func")
    text = "\n".join(body)
    needs = "syncthreads" in text
    lines = [f"func {name}(a: i32, b: i32, n: i32) {{"]
    if "s[" in text:
        lines.append("  shared s: i32[1024]")
    lines.append(f"  local mine: i32[{EXTENT}]")
    lines.append(f"  for z in range({EXTENT}) {{ mine[z] = 0 }}")
    if "s[" in text:
        # also the elements of threads that have left
        lines += ["  for z in range(blockDim.x * blockDim.y * blockDim.z) { s[z] = 0 }", "  syncthreads()"]
    lines += ["  var x = a", *indent(body), f"  return {value[0]}", "}"]
    zero = lambda block, variables, active, exits: [block.shared.__setitem__(t, 0) for t in range(block.size)] and active
    m.functions.append({"name": name, "lines": lines, "run": [zero, *parts] if "s[" in text else parts, "value": value, "needs_uniform": needs, "shared": {}})


def make_kernel(seed, dropped=()):
    m = Maker(random.Random(seed), dropped)
    for _ in range(m.rng.randint(0, 2)):
        make_function(m)
    c = Context([f"v{k}" for k in range(VARIABLES)])
    body, parts = [], []
    for _ in range(m.rng.randint(2, 4)):
        more, run = make_list(m, c)
        body += more
        parts += run
    lines = [line for f in m.functions for line in f["lines"]]
    lines += ["kernel test(out, n: i32) {", "  shared s: i32[1024]", f"  local mine: i32[{EXTENT}]"]
    lines += ["  let threads = blockDim.x * blockDim.y * blockDim.z", "  let grid_rank = blockIdx.x * threads + thread_rank"]
    lines += [f"  for z in range({EXTENT}) {{ mine[z] = 0 }}", "  s[thread_rank] = 0"]
    lines += [f"  var v{k} = i32(thread_rank * {k + 3} + blockIdx.x)" for k in range(VARIABLES)]
    lines += ["  syncthreads()"]
    lines += indent(body)
    lines += [f"  out[grid_rank, {k}] = v{k}" for k in range(VARIABLES)] + ["}"]
    return "\n".join(lines) + "\n", parts, m.functions, m.statements


def interpret(parts, functions, shape, blocks, n):
    size = shape[0] * shape[1] * shape[2]
    results = []
    for index in range(blocks):
        block = Block(shape, index, n)
        variables = {f"v{k}": [wrap(t * (k + 3) + index) for t in range(size)] for k in range(VARIABLES)}
        exits = {"return": set(), "break": set(), "continue": set(), "out": [[0] * VARIABLES for _ in range(size)], "result": None}
        for f in functions:
            f["shared"] = {}
        for t in run_all(parts, block, variables, list(range(size)), exits):
            exits["out"][t] = [variables[f"v{k}"][t] for k in range(VARIABLES)]
        results += exits["out"]
    return np.array(results, dtype=np.int32)


SHAPES = [(1, 1, 1), (7, 1, 1), (32, 1, 1), (33, 1, 1), (64, 1, 1), (100, 1, 1), (5, 3, 1), (1, 8, 1), (16, 4, 1), (3, 5, 4), (1, 1, 9), (40, 2, 1)]


def check(kjit_run, seed, folder, dropped=()):
    text, parts, functions, _ = make_kernel(seed, dropped)
    rng = random.Random(seed ^ 0x5eed)
    path = os.path.join(folder, "test.kir")
    with open(path, "w") as file:
        file.write(text)
    for shape in rng.sample(SHAPES, 2):
        n, blocks = rng.randint(-3, 9), 2
        size = shape[0] * shape[1] * shape[2] * blocks
        saved = os.path.join(folder, "out.npy")
        command = [*shlex.split(kjit_run), path, "--quiet", "--device", "cpu", "--arg", f"out=zeros:i32[{size}, {VARIABLES}]", "--launch",
                   f"test[{blocks}, {shape[0]}x{shape[1]}x{shape[2]}](out, {n})", "--save", f"out={saved}"]
        process = subprocess.run(command, capture_output=True, text=True, timeout=60)
        where = f"seed {seed}, block {shape}, n {n}"
        if process.returncode:
            return f"{where}: kjit-run exited with {process.returncode}\n{process.stderr}\n{text}"
        expected, got = interpret(parts, functions, shape, blocks, n), np.load(saved)
        if not np.array_equal(expected, got):
            wrong = np.argwhere(expected != got)
            first = tuple(wrong[0])
            return f"{where}: {len(wrong)} wrong, first out{list(first)} = {got[first]}, expected {expected[first]}\n{text}"
    return None


def make_smaller(kjit_run, seed, folder):
    """Leaves out statements, each with its nested ones, as long as the result stays wrong."""
    dropped = set()
    message = None
    for number in range(make_kernel(seed)[3], 0, -1):
        smaller = check(kjit_run, seed, folder, dropped | {number})
        if smaller and " wrong, " in smaller:
            dropped, message = dropped | {number}, smaller
    return message


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kjit-run", default="kjit-run")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--count", type=int, default=20)
    options = parser.parse_args()
    first = secrets.randbits(24) if options.seed is None else options.seed
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, first + options.count):
            message = check(options.kjit_run, seed, folder)
            if message:
                print((" wrong, " in message and make_smaller(options.kjit_run, seed, folder)) or message)
                return 1
    print(f"{options.count} kernels from seed {first}: all right")
    return 0


if __name__ == "__main__":
    sys.exit(main())
