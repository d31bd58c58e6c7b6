"""Large kernels: huge, deep, wide, and growing while they are compiled; and kernels that need much memory."""
import random

from kernels import CHECKED, Kernel, kind, shape, size, somewhere

TYPES = ["f32", "f64", "i32", "u8", "i64", "f32x4", "c128", "f16"]


def kernel_of(statements, rng):
    return Kernel("kernel k(r, x, n) {\nvar s = x[0]\nvar a = r[0]\n%s\nx[1] = s\nr[1] = a\n}" % "\n".join(statements), **shape(rng))


def statement(rng, i):
    return rng.choice([
        "s = s * x[%d] + 1" % (i % 1000), "a = (a ^ r[%d]) * 3" % (i % 1000), "if x[%d] > s { s = s + x[%d] } else { s = s - 1 }" % (i % 999, i % 998), "for j in range(len(x)) { s = s * x[j] + 1 }",
        "x[%d] = s" % (i % 1000), "s = sin(s)", "while s > 1e30 { s = s * 0.5 }", "a = a // (r[%d] | 1)" % (i % 1000), "let v%d = x[n // %d] * s\n s = s + v%d" % (i, i + 2, i), "r[a & 255] = a",
        "s = s > 3 ? s * 0.5 : s + x[%d]" % (i % 1000), "atomic_add(r[%d], a)" % (i % 1000), "for j in range(16) @unroll { s = s + x[j] * %d }" % i,
    ])


# ---- huge ----

@kind("huge")
def one_statement_often(rng):
    first = rng.randrange(10**6)
    count = size(rng, 100, 100000)
    chosen = rng.randrange(2**32)
    return kernel_of([statement(random.Random(chosen), first + i) for i in range(count)], rng)


@kind("huge")
def many_statements(rng):
    return kernel_of([statement(rng, i) for i in range(size(rng, 100, 100000))], rng)


@kind("huge")
def plain_loops(rng):
    body = rng.choice(["s = s * x[j] + 1", "x[j] = x[j] + 1", "a += r[j]", "if x[j] > s { s = x[j] }"])
    return kernel_of(["for j in range(len(x)) { %s }" % body] * size(rng, 100, 6000), rng)


@kind("huge")
def unrolled(rng):
    depth = rng.randint(1, 6)
    body = rng.choice(["s = s * x[i0] + 1", "r[(i0 * 7) & 255] = i32(i0)", "s = sin(s) + x[i0 & 255]", "x[i0 & 255] += 1", "if s > i0 { s = s * 0.5 }", "print(i0)", "while s > i0 { s = s * 0.5 }"])
    loops = "".join("for i%d in range(%d) @unroll { " % (d, size(rng, 3, 10**rng.randint(1, 9))) for d in reversed(range(depth)))
    return kernel_of([loops + body + "}" * depth], rng)


@kind("huge")
def unrolled_in_functions(rng):
    depth = rng.randint(2, 12)
    functions = ["func f0(s) { return s * 1.5 + 1 }"]
    for d in range(1, depth):
        functions.append("func f%d(s) @inline { var t = s\n for i in range(%d) @unroll { t = f%d(t) }\n return t }" % (d, rng.randint(2, 100), d - 1))
    return Kernel("\n".join(functions) + "\nkernel k(r, x, n) { x[0] = f%d(x[1]) }" % (depth - 1), **shape(rng))


@kind("huge")
def tuple_of_many(rng):
    count = size(rng, 10, 200000)
    items = rng.choice([lambda i: str(i), lambda i: "x[%d]" % (i % 1000), lambda i: "x[0] + %d" % i, lambda i: "(x[%d], 2)" % (i % 1000)])
    use = rng.choice(["x[0] = t[0]", "let t2 = t\n x[1] = t2[%d]" % (count // 2), "let u = (t, t)\n x[2] = u[1][0]", "var w = t\n while x[0] > 3 { w = t }"])
    return Kernel("kernel k(r, x, n) { let t = (%s)\n%s }" % (", ".join(items(i) for i in range(count)), use), **shape(rng))


@kind("huge")
def struct_of_many(rng):
    count = size(rng, 10, 50000)
    fields = "; ".join("f%d: %s" % (i, rng.choice(TYPES)) for i in range(count))
    use = rng.choice(["var p = zero(P)\n p.f0 = %s(p.f1)\n x[0] = 1", "local t: P[100]\n t[n & 63].f1 = t[n & 31].f1\n x[0] = 1", "shared t: P[10]\n t[0] = t[1]\n x[0] = 1", "print(zero(P))", "x[0] = sizeof(P)"])
    return Kernel("struct P { %s }\nkernel k(r, x, n) { %s }" % (fields, use.replace("%s", "dtype(p.f0)")), **shape(rng))


@kind("huge")
def arrays_in_structs(rng):
    return Kernel("struct P { a: %s[%d]; b: f32[%d, %d] }\nkernel k(r, x, n) { var p = zero(P)\n p.a[n & 7] = p.a[0]\n var q = p\n q.b[0, n & 3] = 2\n x[0] = q.b[0, 1] }"
                  % (rng.choice(TYPES), size(rng, 10, 10**10), size(rng, 1, 1000), size(rng, 1, 10**6)), **shape(rng))


@kind("huge", contexts=CHECKED)
def constants(rng):
    count = size(rng, 10, 400000)
    items = ", ".join(rng.choice(["1", "2.5", "-3", "1e30"]) for _ in range(count))
    return Kernel(rng.choice([
        "const T = {%s}\nkernel k(r, x, n) { x[0] = T[n %% %d] }" % (items, count), "const T: f32[%d] = {%s}\nkernel k(r, x, n) { for i in grid_range(len(T)) { x[i %% 1000] = T[i] } }" % (count, items),
        "const T = (%s)\nkernel k(r, x, n) { x[0] = T[0] }" % items, "const T: f32[%d] = {}\nkernel k(r, x, n) { x[0] = T[n] }" % 10**rng.randint(1, 19),
        "const T = {%s}\nkernel k(r, x, n) { x[0] = 1 }" % ", ".join("{1, {2, 3}}" for _ in range(count // 10 + 1)),
    ]), **shape(rng))


@kind("huge")
def numbers(rng):
    digits = size(rng, 10, 10**6)
    number = rng.choice(["1" * digits, "0." + "0" * digits + "1", "1e" + "9" * min(digits, 100), "0x" + "f" * digits, "1" + "_0" * digits, "1e-" + "9" * 30, "0b" + "10" * digits, "." + "3" * digits + "e5", "9" * digits + "e-%d" % digits,
                         "2 ** 10000000000", "2 ** 2 ** 2 ** 2 ** 2 ** 2", "1 << 99999999999", "(1 << 62) * 4", "10 ** 400", "%d ** 30000" % rng.randint(2, 9), "1e308 * 10.0", "(-128i8) // -1i8", "-9223372036854775808", "x[0] ** 1000000007", "x[0] ** -2147483648",
                         "3 ** n", "popc(2 ** 63)", "0xfffffffffffffffff", "1.5f16 ** 70000", "r[0] ** 4294967297"])
    return Kernel(somewhere(rng, "x[0] = f32(%s)" % number), **shape(rng))


@kind("huge", contexts=CHECKED)
def extents(rng):
    big = rng.choice([2**31, 2**32, 2**33 + 1, 2**60, 2**62, 2**63 - 1, 2**63, 2**64, 10**30, 65536, 10**6])
    body = rng.choice([
        "let v = reshape(x, %d, n)\n x[0] = v[0, 0]", "let v = view(f32[%d], y)\n x[0] = v[n]", "let v = view(f32[%d, 65536, 4], y)\n x[0] = v[n, 1, 0]", "let v = x[0:%d]\n x[0] = v[0]", "let v = x[0:%d:2]\n x[0] = v[n * n]",
        "let v = vector(f32, %d)(1)\n x[0] = v[0]", "let v = x[%d]\n x[0] = v", "let v = reshape(x, n * n * n * n * n * n * n, %d)\n x[0] = v[0, 0]", "for i in range(%d) @unroll { x[0] = i }", "x[0] = shfl_sync(0xffffffffu32, x[0], %d)",
    ]) % big
    return Kernel("kernel k(r, x, n) { shared y: f32[16]\n %s }" % body, **shape(rng))


# ---- deep ----

NESTS = [("(", "x[0]", ")"), ("-", "x[0]", ""), ("not ", "true", ""), ("~", "r[0]", ""), ("(1, ", "x[0]", ")"), ("x[i32(", "x[0]", ")]"), ("sin(", "x[0]", ")"), ("f(", "x[0]", ")"), ("x[0] ** ", "2", ""), ("x[0] > 1 ? 2 : ", "3", ""), ("(x[0] + ", "1", ")"),
         ("(", "1", " - x[0])"), ("select(true, 1, ", "2", ")"), ("f32(", "n", ")"), ("min(x[0], ", "1", ")"), ("true and (", "false", ")"), ("len(x[", "0", ":])"), ("dtype(", "x", ")(1)"), ("bind_back(f, ", "1", ")"),
         ("n == 0 or x[0] > 1 and x[0] < 2 + 1 * f(", "1", ")")]


@kind("deep")
def expressions(rng):
    before, core, after = rng.choice(NESTS)
    depth = size(rng, 50, 200000)
    ends = after * (depth if rng.random() < 0.8 else rng.randint(0, depth))
    return Kernel("func f(v) { return v }\nkernel k(r, x, n) { let v = %s%s%s\n x[0] = f32(v) }" % (before * depth, core, ends), **shape(rng))


@kind("deep")
def mixed_expressions(rng):
    text = "x[0]"
    for _ in range(size(rng, 50, 3000)):
        before, _core, after = rng.choice(NESTS[:-2])
        text = before + text + after
    return Kernel("func f(v) { return v }\nkernel k(r, x, n) { x[0] = f32(%s) }" % text, **shape(rng))


@kind("deep")
def long_chains(rng):
    operator = rng.choice([" + ", " * ", " and ", " - ", " | ", " == ", " ** ", " // ", " << ", ", "])
    item = rng.choice(["x[0]", "n", "1", "true", "x[n & 7] * 2", "f(1)"])
    return Kernel("func f(v) { return v }\nkernel k(r, x, n) { x[0] = f32(%s) }" % operator.join([item] * size(rng, 100, 100000)), **shape(rng))


@kind("deep")
def blocks(rng):
    depth = size(rng, 50, 100000)
    before = rng.choice(["if x[0] > 1 { ", "while x[0] > 1 { ", "for i in range(n) { ", "if true { ", "if x[0] > 1 {} else { ", "for i in block_range(3) { ", "for i in range(2) @unroll { ", "for i, j in range(2, n) { "])
    return Kernel("kernel k(r, x, n) { %s x[0] = 1 %s }" % (before * depth, "}" * (depth if rng.random() < 0.8 else rng.randint(0, depth))), **shape(rng))


@kind("deep")
def else_ifs(rng):
    count = size(rng, 50, 30000)
    return Kernel("kernel k(r, x, n) { %s { x[0] = 0 } }" % "".join("if r[%d] == %d { x[%d] = %d } else " % (i % 1000, i, i % 999, i) for i in range(count)), **shape(rng))


@kind("deep")
def loops(rng):
    depth = rng.randint(3, 120)
    names = ["i%d" % d for d in range(depth)]
    heads = "".join(rng.choice(["for %s in range(2) { ", "for %s in range(n) { if n > 5 { break }\n ", "for %s in range(1) { "]) % name for name in names)
    return Kernel("kernel k(r, x, n) { %s r[%s & 255] += 1 %s }" % (heads, names[-1], "}" * depth), **shape(rng))


@kind("deep")
def types(rng):
    depth = size(rng, 10, 100000)
    return Kernel(rng.choice([
        "kernel k(r, x, n) { let p = bitcast(f32%s, u64(8))\n x[0] = 1 }" % ("*" * depth), "kernel k(r, x, n: %sf32%s) { x[0] = 1 }" % ("(" * depth, ")" * depth),
        "struct S0 { a: f32 }\n" + "\n".join("struct S%d { a: S%d }" % (i + 1, i) for i in range(depth)) + "\nkernel k(r, x, n) { var v = zero(S%d)\n let w = v\n x[0] = 1 }" % depth,
        "struct S0 { a: f32 }\n" + "\n".join("struct S%d { a: S%d* }" % (i + 1, i) for i in range(depth)) + "\nkernel k(r, x, n) { var v = zero(S%d)\n x[0] = 1 }" % depth,
        "\n".join("struct S%d { a: S%d }" % (i, i + 1) for i in range(depth)) + "\nkernel k(r, x, n) { x[0] = sizeof(S0) }", "struct S { a: S }\nkernel k(r, x, n) { x[0] = sizeof(S) }",
        "struct A { a: B }\nstruct B { a: A[2] }\nkernel k(r, x, n) { var v = zero(A)\n x[0] = 1 }", "kernel k(r, x, n) { x[0] = sizeof(%sf32%s) }" % ("vector(" * depth, ", 2)" * depth),
        "kernel k(r, x, n: f32%s) { x[0] = 1 }" % ("[:]" * depth), "kernel k(r, x, n) { let v = %sx%s\n x[0] = 1 }" % ("dtype(" * depth, ")" * depth), "kernel k(r, x, n) { let t = %s1,%s\n let u = t\n x[0] = 1 }" % ("(" * depth, ",)" * (depth - 1) + ")"),
    ]), **shape(rng))


@kind("deep")
def calls(rng):
    depth = size(rng, 20, 20000)
    body = rng.choice(["return f%d(v)", "return f%d(v) + 1", "let w = f%d(v * 2)\n return w", "return f%d((v, 1))[0]", "if v > 3 { return f%d(v) }\n return v"])
    attribute = rng.choice(["", " @inline", " @noinline"])
    functions = ["func f0(v) { return %s }" % ("v" if "(v, 1)" not in body else "v")] + ["func f%d(v)%s { %s }" % (i + 1, attribute, body % i) for i in range(depth)]
    if rng.random() < 0.5:
        functions.reverse()
    return Kernel("\n".join(functions) + "\nkernel k(r, x, n) { let v = f%d(x[0])\n x[0] = 1 }" % depth, **shape(rng))


@kind("deep")
def constants_of_constants(rng):
    depth = size(rng, 20, 50000)
    lines = ["const C0 = 1"] + ["const C%d = %s" % (i + 1, rng.choice(["C%d + 1", "C%d * 2", "-C%d", "(C%d, 1)[0]"]) % i) for i in range(depth)]
    if rng.random() < 0.5:
        lines.reverse()
    if rng.random() < 0.2:
        lines.append("const A = B\nconst B = A")
    return Kernel("\n".join(lines) + "\nkernel k(r, x, n) { x[0] = C%d }" % depth, **shape(rng))


@kind("deep")
def imports(rng):
    depth = size(rng, 10, 3000)
    last = rng.choice(["", "import \"m0\"", "import \"m1\"\nimport \"missing\"", "func last() {", "import \"hostile.kir\""])
    sources = [("m%d" % i, "import \"m%d\"\nfunc f%d(v) { return f%d(v) + 1 }" % (i + 1, i, i + 1)) for i in range(depth)] + [("m%d" % depth, last + "\nfunc f%d(v) { return v }" % depth)]
    return Kernel("import \"m0\"\nkernel k(r, x, n) { x[0] = f0(x[1]) }", sources, **shape(rng))


# ---- wide ----

@kind("wide")
def parameters(rng):
    count = size(rng, 100, 20000)
    kinds = [rng.choice("rxn") for _ in range(count)]
    use = rng.choice(["", " ".join("x0[0] = x0[0] + f32(%s)\n" % ("p%d" % i if kinds[i - 1] == "n" else "p%d[1]" % i) for i in range(1, min(count, 500)))])
    return Kernel("kernel k(x0, %s) { x0[0] = 1\n%s }" % (", ".join("p%d" % (i + 1) for i in range(count)), use), arguments="x" + "".join(kinds), **shape(rng))


@kind("wide")
def arguments(rng):
    count = size(rng, 100, 50000)
    return Kernel(rng.choice(["func f(%s) { return p0 }\nkernel k(r, x, n) { x[0] = f(%s) }" % (", ".join("p%d" % i for i in range(count)), ", ".join(["x[1]"] * count)), "kernel k(r, x, n) { x[0] = max(%s) }" % ", ".join(["x[1]"] * count),
                              "func f(v) { return v }\nkernel k(r, x, n) { x[0] = f(%s) }" % ", ".join(["1"] * count), "func f(v) { return v }\nkernel k(r, x, n) { let g = bind_back(f, %s)\n x[0] = 1 }" % ", ".join(["1"] * count),
                              "kernel k(r, x, n) { x[%s] = 1 }" % ", ".join(["0"] * count), "kernel k(r, x, n) { %s = %s }" % (", ".join("x[%d]" % (i % 1000) for i in range(count)), ", ".join(["1"] * count))]), **shape(rng))


@kind("wide")
def names(rng):
    name = rng.choice(["a", "ab", "_", "x1"]) * size(rng, 100, 10**6)
    return Kernel(rng.choice(["kernel k(r, x, n) { let %s = x[0]\n x[1] = %s }", "func %s(v) { return v }\nkernel k(r, x, n) { x[0] = %s(1) }", "struct %s { a: f32 }\nkernel k(r, x, n) { x[0] = zero(%s).a }", "kernel k(r, x, n) { x[0] = %s + %s }",
                              "const %s = 1\nkernel k(r, x, n) { x[0] = %s }", "kernel k(r, x, n) { let v = zero(%s)\n %s() }", "kernel k(r, x, %s) { x[0] = %s }", "import \"%s\"\nkernel k(r, x, n) { x[0] = 1 } # %s",
                              "kernel k(r, x, n) { raise \"%s\" } # %s", "kernel k(r, x, n) { assert n < 0, \"%s\" } # %s", "kernel k(r, x, n) { ptx(i32, \"%s\", \"%s\") }", "kernel k(r, x, n) @%s { } # %s", "struct S { a: f32 }\nkernel k(r, x, n) { x[0] = zero(S).%s } # %s"]) % (name, name), **shape(rng))


@kind("wide")
def declarations(rng):
    count = size(rng, 100, 50000)
    line = rng.choice(["func f%d(v) { return v }", "kernel k%d(r) { r[0] = 1 }", "struct S%d { a: f32 }", "const C%d = 1.5", "func f(v) { return v } # %d", "extern func e%d(v: f32) -> f32", "import \"m%d\"", "extern const E%d: i32", "const T%d = {1, 2, 3}"])
    sources = [("m%d" % i, "func g%d(v) { return v }" % i) for i in range(count)] if line.startswith("import") else []
    return Kernel("\n".join(line % i for i in range(count)) + "\nkernel k(r, x, n) { x[0] = 1 }", sources[:3000], **shape(rng))


@kind("wide")
def instances(rng):
    count = size(rng, 100, 10000)
    return Kernel(rng.choice(["func f(const c, v) { return v * c }\nkernel k(r, x, n) { var s = x[0]\n%s\n x[1] = s }" % "\n".join("s = f(%d, s)" % i for i in range(count)),
                              "func f(const c, v) @noinline { return v * c }\nkernel k(r, x, n) { var s = x[0]\n%s\n x[1] = s }" % "\n".join("s = f(%d, s)" % i for i in range(count)),
                              "func f(t) { return t[0] }\nkernel k(r, x, n) { %s }" % "\n".join("x[0] = f((%s))" % ", ".join(["x[1]"] * (i + 2)) for i in range(min(count, 600))),
                              "func f(v) { return v }\nkernel k(r, x, n) { %s }" % "\n".join("shared s%d: f32[%d]\n s%d[0] = x[0]" % (i, i + 1, i) for i in range(count))]), **shape(rng))


@kind("wide")
def lines(rng):
    return Kernel("kernel k(r, x, n) { %s x[0] = 1 %s }" % (rng.choice([" ", "\t", "x[0] = 1; ", "# ", "()", "é", "let y = 2; "]) * size(rng, 1000, 10**6), rng.choice(["", "$", "y +", "\n" * 100000 + "@"])), **shape(rng))


@kind("wide")
def locals_of_one_kernel(rng):
    count = size(rng, 100, 20000)
    return Kernel("kernel k(r, x, n) { %s\n%s }" % ("\n".join("var v%d = x[%d]" % (i, i % 1000) for i in range(count)), "\n".join("while x[0] > %d { v%d = v%d * 2 }\n x[%d] = v%d" % (i, i, i, i % 1000, i) for i in range(count))), **shape(rng))


# ---- growing ----

@kind("growing")
def types_of_a_recursion(rng):
    return Kernel(rng.choice([
        "func f(t) { return f((t, t)) }\nkernel k(r, x, n) { f(x[0]) }", "func f(t) { return f((t, 1)) }\nkernel k(r, x, n) { f(1) }", "func f(const c, v) { return f(c + 1, v) }\nkernel k(r, x, n) { x[0] = f(0, x[1]) }",
        "func f(const c, v) { if c < 100000 { return f(c + 1, v) }\n return v }\nkernel k(r, x, n) { x[0] = f(0, x[1]) }", "func f(const c, v) { if c == 0 { return v }\n return f(c - 1, v) + f(c - 1, v * 2) }\nkernel k(r, x, n) { x[0] = f(%d, x[1]) }" % rng.randint(5, 60),
        "func f(const c, v) @inline { if c == 0 { return v }\n return f(c - 1, v) + f(c - 1, v * 2) }\nkernel k(r, x, n) { x[0] = f(%d, x[1]) }" % rng.randint(5, 60), "func f(T: type, v) { return f(vector(T, 2), v) }\nkernel k(r, x, n) { x[0] = f(f32, x[1]) }",
        "func f(T: type, v) { return f(T*, v) }\nkernel k(r, x, n) { x[0] = f(f32, x[1]) }", "func f(g: func, v) { return f(bind_back(g, v), v) }\nfunc h(a, b) { return a }\nkernel k(r, x, n) { x[0] = f(h, x[1]) }",
        "func f(const c, v) { return f(2 * c, (v, c))[0] }\nkernel k(r, x, n) { let a = f(1, x[1]) }", "func f(v) { return g((v,)) }\nfunc g(v) { return f((v, v)) }\nkernel k(r, x, n) { let a = f(x[1]) }", "func f(v) { return f(v[1:]) }\nkernel k(r, x, n) { f(x) }",
        "func f(const c, const d) { if c == 0 { return d + 1 }\n if d == 0 { return f(c - 1, 1) }\n return f(c - 1, f(c, d - 1)) }\nkernel k(r, x, n) { x[0] = f(%d, %d) }" % (rng.randint(2, 4), rng.randint(2, 9)),
        "func f(g: func) { return g(g) }\nkernel k(r, x, n) { x[0] = f(f) }", "func f(const c, a) { local t: f32[c]\n t[0] = a\n return f(c * 2, t[0]) }\nkernel k(r, x, n) { x[0] = f(1, x[1]) }",
    ]), **shape(rng))


@kind("growing")
def doubled_tuples(rng):
    levels = rng.randint(5, 45)
    how = rng.choice(["let t%d = (t%d, t%d)", "var t%d = (t%d, t%d)", "let t%d = f(t%d, t%d)"])
    use = rng.choice(["x[0] = 1", "let u = t%d\n x[0] = 1" % levels, "print(t%d)" % levels, "var u = t%d\n while x[0] > 1 { u = t%d }" % (levels, levels), "x[0] = t%d%s" % (levels, "[1]" * levels)])
    return Kernel("func f(a, b) { return (a, b) }\nkernel k(r, x, n) { let t0 = x[0]\n%s\n%s }" % ("\n".join(how % (i + 1, i, i) for i in range(levels)), use), **shape(rng))


@kind("growing")
def doubled_structs(rng):
    levels = rng.randint(5, 60)
    use = rng.choice(["var v = zero(S%d)\n let w = v\n x[0] = 1", "x[0] = sizeof(S%d)", "print(zero(S%d))", "local t: S%d[4]\n t[0] = t[1]\n x[0] = 1", "shared t: S%d[4]\n t[0] = t[1]\n x[0] = 1"]) % levels
    field = rng.choice(["a: S%d; b: S%d", "a: S%d[2]", "a: S%d[64]; b: S%d"])
    lines = ["struct S%d { %s }" % (i + 1, field.replace("%d", str(i))) for i in range(levels)]
    return Kernel("struct S0 { a: f32 }\n" + "\n".join(lines) + "\nkernel k(r, x, n) { %s }" % use, **shape(rng))


@kind("growing")
def doubled_calls(rng):
    levels = rng.randint(5, 60)
    attribute = rng.choice(["", " @inline", " @noinline"])
    body = rng.choice(["return f%d(v) + f%d(v * 2)", "return f%d(f%d(v))", "let a = f%d(v)\n let b = f%d(a + v)\n return a * b", "if v > 3 { return f%d(v) }\n return f%d(v + 1)", "return f%d(v) * f%d(1.5)", "return v > 2 ? f%d(v * 2) : f%d(v - 1)"])
    last = rng.choice(["return v * 1.5", "return sin(v)", "return v ** 7", "var t = v\n while t > 3 { t = t * 0.5 }\n return t"])
    return Kernel("func f0(v) { %s }\n" % last + "\n".join("func f%d(v)%s { %s }" % (i + 1, attribute, body % (i, i)) for i in range(levels)) + "\nkernel k(r, x, n) { x[0] = f%d(x[1]) }" % levels, **shape(rng))


@kind("growing")
def doubled_funcs(rng):
    levels = rng.randint(5, 40)
    return Kernel("func twice0(f: func, v) { return f(f(v)) }\nfunc one(v) { return v + 1 }\n" + "\n".join("func twice%d(f: func, v) { return twice%d(bind_back(back%d, f), v) }\nfunc back%d(v, f: func) { return f(f(v)) }" % (i + 1, i, i, i) for i in range(levels))
                  + "\nkernel k(r, x, n) { x[0] = twice%d(one, x[1]) }" % levels, **shape(rng))


@kind("growing")
def doubled_constants(rng):
    levels = rng.randint(5, 64)
    how = rng.choice(["const C%d = C%d * C%d", "const C%d = (C%d, C%d)", "const C%d = C%d + C%d", "const C%d = {C%d, C%d}", "const C%d = C%d ** C%d", "const C%d = C%d << C%d"])
    return Kernel("const C0 = 3\n" + "\n".join(how % (i + 1, i, i) for i in range(levels)) + "\nkernel k(r, x, n) { let v = C%d\n x[0] = 1 }" % levels, **shape(rng))


@kind("growing")
def squared_expressions(rng):
    levels = rng.randint(5, 64)
    how = rng.choice(["let v%d = v%d * v%d", "let v%d = v%d + v%d", "let v%d = (v%d, v%d)[0]", "let v%d = v%d ** v%d", "let v%d = select(x[1] > 0, v%d, v%d)", "let v%d = x[0] > 0 ? v%d : v%d"])
    return Kernel("kernel k(r, x, n) { let v0 = %s\n%s\n x[0] = f32(v%d) }" % (rng.choice(["x[0]", "3", "2.5", "n", "r[0]"]), "\n".join(how % (i + 1, i, i) for i in range(levels)), levels), **shape(rng))


# ---- allocating ----

@kind("allocating")
def local_arrays(rng):
    count = size(rng, 10, rng.choice([10**4, 10**6, 10**18]))
    element = rng.choice(TYPES)
    return Kernel(rng.choice(["kernel k(r, x, n) { local t: %s[%d]\n t[n & 7] = t[0]\n x[0] = 1 }" % (element, count), "kernel k(r, x, n) { local t: %s[%d, %d, 3]\n x[0] = 1\n t[0, n & 1, 0] = t[0, 0, 0] }" % (element, size(rng, 1, 10**10), size(rng, 1, 10**10)),
                              "func f(v) @noinline { local t: %s[%d]\n t[0] = %s(v)\n return t[0] }\nkernel k(r, x, n) { let v = f(1)\n x[0] = 1 }" % (element, count, element),
                              "kernel k(r, x, n) { %s }" % "\n".join("local t%d: f64[%d]\n t%d[n & 3] = x[%d]\n x[%d] = t%d[n & 1]" % (i, min(count, 8000), i, i % 1000, i % 999, i) for i in range(rng.randint(2, 200))),
                              "func f(n: i32) -> f64 { local t: f64[%d]\n t[n & 3] = 1\n if n == 0 { return 1 }\n return f(n - 1) + t[0] }\nkernel k(r, x, n) { x[0] = f(%d) }" % (min(count, 8000), size(rng, 1, 10**6))]), **shape(rng))


@kind("allocating")
def frames_of_a_chain(rng):
    count = rng.randint(2, 63)
    lines = ["func f0(n) @noinline { return n }"] + ["func f%d(n) @noinline { local t: f64[%d]\n t[n & 63] = n\n t[(n * 3) & 63] = f%d(n + 1)\n return i64(t[n & 63]) }" % (i + 1, size(rng, 64, 8000), i) for i in range(count)]
    start = rng.choice(["", "syncthreads()\n", "grid_sync()\n"])
    return Kernel("\n".join(lines) + "\nkernel k(r, x, n) { %s r[0] = i32(f%d(n)) }" % (start, count), is_cooperative="grid" in start, **shape(rng))


@kind("allocating")
def shared_arrays(rng):
    extent = rng.choice([str(size(rng, 10, 10**18)), "n", "n * n", "n * n * n * n * n * n", "blockDim.x * n * 100000", "len(x) * 4000000000", "n - 2000", "-n", "%d, %d" % (size(rng, 1, 10**6), size(rng, 1, 10**6)), "n, n, n, n, n, n, n, n", "1 << n", "9223372036854775807"])
    zeros = ", ".join(["0"] * (extent.count(",") + 1))
    return Kernel("kernel k(r, x, n) { shared t: %s[%s]\n t[%s] = t[%s]\n syncthreads()\n x[0] = 1 }" % (rng.choice(TYPES), extent, zeros, zeros), **shape(rng))


@kind("allocating", contexts=CHECKED)
def launches(rng):
    shared = rng.choice([0, 2**20, 2**31, 2**32 + 5, 2**63, 2**64 - 1])
    text = rng.choice(["kernel k(r, x, n) { shared t: f32[]\n t[0] = 1\n x[0] = t[0] }", "kernel k(r, x, n) { shared t: f64[]\n shared u: i32[]\n t[n] = 1\n u[n * n] = 3 }", "kernel k(r, x, n) { x[0] = 1 }", "kernel k(r, x, n) { shared s: i32\n s = 1\n syncthreads()\n r[0] = s }"])
    big = lambda: rng.choice([1, 64, 1024, 65535, 2**31 - 1, 2**32 - 1, 2**31])
    return Kernel(text, grid=(rng.choice([1, 2, 2**31 - 1, 2**32 - 1]), rng.choice([1, 65535, 65536, 2**32 - 1]), 1) if rng.random() < 0.5 else (1, 1, 1), block=(big(), rng.choice([1, 1, 64, 2**31]), 1), shared_bytes=shared)


@kind("allocating")
def own_launches(rng):
    number = lambda: rng.choice(["1", "0", "-1", "1024", "1025", "4294967296", "9223372036854775807", "n", "n * n * n * n * n * n * n", "len(x)", "n - n", "1 << 40", "n // 0", "n % 0", "-n", "2147483647"])
    attributes = rng.choice(["@block(%s)", "@block(%s, %s)", "@block(1) @grid(%s)", "@block(64) @grid(%s, %s, %s)", "@cluster(%s)", "@launch_bounds(%s)", "@launch_bounds(%s, %s)", "@max_registers(%s)", "@block(%s, %s, %s) @grid(%s)"])
    while "%s" in attributes:
        attributes = attributes.replace("%s", number(), 1)
    return Kernel("kernel k(r, x, n) %s { x[0] = 1\n r[threadIdx.x & 7] = 1 }" % attributes, grid=(0, 0, 0), block=(0, 0, 0))


@kind("allocating")
def alignments(rng):
    number = rng.choice(["0", "-1", "3", "1024", "2048", "4294967296", "1 << 62", "n", "1.5", "x", "9223372036854775808"])
    return Kernel(rng.choice(["struct S @align(%s) { a: f32 }\nkernel k(r, x, n) { local t: S[10]\n t[0] = t[1]\n x[0] = sizeof(S) }", "kernel k(r, x, n) { shared t: f32[10] @align(%s)\n t[0] = 1\n x[0] = t[0] }",
                              "kernel k(r, x, n) { local t: f32[10] @align(%s)\n t[n & 3] = 1\n x[0] = t[0] }", "struct S { a: f32 }\nstruct T @align(%s) { a: S[900] }\nkernel k(r, x, n) { x[0] = sizeof(T) }"]) % number, **shape(rng))
