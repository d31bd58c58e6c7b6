"""Kernels that are obviously wrong: kernels that fail while they run, and texts that are not kernels."""


import endless  # noqa: F401 (for the texts of its kinds)
import large  # noqa: F401 (for the texts of its kinds)
from kernels import CHECKED, KINDS, Kernel, kind, shape, size, somewhere

TEXTS = [
    "import \"m\"\n# a comment\nkernel k(r, x, n) {\n  for i in grid_range(len(r)) {\n    r[i] = i32(x[i] * 2.5e-3) + (n > 3 ? 1 : -0x1f)\n  }\n}\n",
    "const SIZE = 16\nconst T = {1, 2, 3}\nstruct P @align(16) { a: f32x4; b: f64[3]; c: const f32* }\nfunc f(g: func, v: f32, const c = 3) -> f32 @inline { return g(v) ** c }\n"
    "kernel k(r, x, n) @block(64) @general(x) {\n  shared t: f32[SIZE, 2] @align(16)\n  local u: P[4]\n  var s, q = 0., 1\n  while s < 3 and not (q == 2) { s += f(sin, x[q]); q <<= 1; if s > 1e3 { break } else if q > 7 { continue } }\n"
    "  syncthreads()\n  t[0, 1] = s\n  u[0].a.xy = f32x2(1, 2)\n  assert s >= 0, \"s is positive\"\n  print(\"s\", s, (1, T[2]))\n  atomic_add(r[0], 1, relaxed)\n  x[1:5:2][0] = t[0, -1]\n  if n < 0 { raise \"negative\" }\n}\n",
    "extern func e(x: f32) -> f32\nextern const N: i32\nfunc h(T: type, v) { return bitcast(u32, T(v)) }\nkernel k(r, x: f32[::1], n: i64) { for i, j in grid_range(4, 5) { r[i * 5 + j] = i32(h(f32, x[i])) } }\n",
]


# ---- while they run ----

@kind("wrong", ("KERNEL",), contexts=CHECKED)
def outside(rng):
    index = rng.choice(["n", "-n - 1", "n * n", "1 << 40", "-9223372036854775807 - n", "u64(18446744073709551615) - u64(n - 1000)", "i64(x[0]) + 99999", "9223372036854775807 - n + 1000", "n + threadIdx.x", "r[0] + 1000", "-1 - threadIdx.x"])
    access = rng.choice(["r[%s] = 1", "r[0] = r[%s]", "r[%s] += 1", "atomic_add(r[%s], 1)", "x[%s] = sin(x[%s])", "let v = x[0:%s]\n x[0] = v[0] + v[len(v) - 1]", "local t: f32[16]\n t[%s] = 1\n x[0] = t[%s]", "shared t: f32[16]\n t[%s] = 1", "reshape(x, 10, 100)[0, %s] = 1",
                         "print(x[%s])", "x[0] = x[r[%s]]", "let p = pointer(r[%s])\n r[0] = 1"]).replace("%s", index)
    return Kernel("kernel k(r, x, n) { %s }" % access, **shape(rng))


@kind("wrong", ("KERNEL", "OK"), contexts=CHECKED)
def outside_in_places(rng):
    return Kernel(somewhere(rng, rng.choice(["r[n] = 1", "r[0] = r[-n - 5]", "x[n * n] += 1", "let t = x[5:n + 7]\n t[n] = 2", "r[_i] = 1".replace("_i", "n + 3")])), **shape(rng))


@kind("wrong", ("KERNEL", "OK", "TYPE", "ARGUMENT"), contexts=CHECKED)
def slices(rng):
    number = lambda: rng.choice(["n", "-n", "0", "5", "-1", "n * n * n", "9223372036854775807", "z", "1 << 62", "n - 2 * n", "r[0]"])
    return Kernel("kernel k(r, x, n, z) { let v = x[%s:%s:%s]\n for i in range(min(len(v), 5)) { v[i] = 1 }\n x[0] = len(v) }" % (number(), number(), number()), arguments="rxnz", **shape(rng))


@kind("wrong", ("KERNEL", "OK", "TYPE"))
def divisions(rng):
    left, right = rng.choice([("n", "z"), ("l", "-1"), ("i32(-2147483648)", "o"), ("l", "o"), ("x[0]", "x[1] - 1"), ("r[0]", "z"), ("u64(n)", "u64(z)"), ("i8(-128)", "i8(o)"), ("l", "z"), ("n", "0"), ("f16(1)", "f16(z)")])
    operator = rng.choice(["//", "%", "div_trunc", "rem_trunc", "ceil_div"])
    value = "%s(%s, %s)" % (operator, left, right) if operator[0].isalpha() else "(%s) %s (%s)" % (left, operator, right)
    return Kernel("kernel k(r, x, n, l, z, o) { let v = %s\n x[0] = f32(v) }" % value, arguments="rxnlzo", **shape(rng))


@kind("wrong", ("OK", "TYPE", "KERNEL", "SYNTAX"))
def arithmetic(rng):
    value = rng.choice(["n << n", "n >> -1", "1 << o", "o >> l", "l * l", "-l", "abs(l)", "l - 1", "i32(x[0] * 1e30)", "u8(-1e30)", "i64(nan)", "i32(inf)", "u64(-inf)", "o ** o", "z ** z", "z ** -1", "l ** n", "sqrt(-1.0)", "log(0.0 * x[0])", "x[0] ** 1e30", "popc(l)", "clz(z)",
                       "ctz(z)", "f16(1e30 * x[0])", "bitcast(f32, 0x7f800001u32)", "i8(1000 * o)", "fma(inf, z, nan)", "sin(1e300)", "exp(1e300)", "lgamma(-5.)", "i64(9.3e18 * f64(x[0]))", "nan == nan", "min(nan, nan)", "(l // o) + (l % o)", "rem_trunc(l, o)"])
    return Kernel("kernel k(r, x, n, l, z, o) { let v = %s\n x[0] = f32(v)\n r[0] = i32(f64(v)) }" % value, arguments="rxnlzo", **shape(rng))


@kind("wrong", ("KERNEL",))
def raising(rng):
    body = rng.choice(["raise \"all\"", "if threadIdx.x >= 0 { raise \"é%s%n\\n\" }", "for i in grid_range(len(r)) { raise \"in a range\" }", "syncthreads()\n raise \"behind a barrier\"", "for i in range(n) { if i == 5 { raise \"later\" } }", "w(r)", "while true { raise \"once\" }",
                       "shared s: i32\n s = 1\n if threadIdx.x == 0 { raise \"one\" }\n syncthreads()\n r[0] = s"])
    return Kernel("func w(r) @noinline { r[0] = 1\n raise \"in a func\" }\nkernel k(r, x, n) { %s }" % body, grid=(rng.choice([1, 100, 5000]), 1, 1), block=(rng.choice([1, 64, 256]), 1, 1))


@kind("wrong", ("KERNEL", "OK"))
def asserting(rng):
    return Kernel(somewhere(rng, "assert %s, \"%s\"" % (rng.choice(["n < 0", "x[0] == nan", "false", "r[0] > 5 and r[1] < 0", "n == 1001"]), rng.choice(["no", "%s%d%n", "é" * 300, "\\\"\\n", ""]))), **shape(rng))


@kind("wrong", ("OK", "INTERRUPTED", "KERNEL"))
def nans(rng):
    return Kernel("kernel k(r, x, n) { var v = x[0] * nan\n var i = 0\n while %s { v = v * 2 - 1\n i += 1 }\n r[0] = i }" % rng.choice(["not (v > 3)", "v != v", "v < 5", "v == v", "not (v <= v)"]), **shape(rng))


@kind("wrong", ("OK", "KERNEL"))
def uninitialized(rng):
    return Kernel("kernel k(r, x, n) { %s t: %s[64]\n let i = t[n & 31]\n x[n & 31] = f32(i)\n t[i32(f32(i)) & 7] = i }" % (rng.choice(["shared", "local"]), rng.choice(["f32", "i32", "u8", "f64"])), **shape(rng))


@kind("wrong", ("OK", "KERNEL", "TYPE"), contexts=CHECKED)
def views(rng):
    return Kernel("kernel k(r, x, n) { %s raw: u8[64]\n let v = view(%s[%s], raw[%s:])\n v[0] = v[%s]\n x[0] = 1 }" % (rng.choice(["shared", "local"]), rng.choice(["f32", "f64", "u64x2", "i16"]), rng.choice(["4", "16", "100", "n", "-1", "n * n", "1 << 60"]), rng.choice(["0", "1", "60", "64", "n", "-1"]),
                  rng.choice(["0", "3", "n", "-1"])), **shape(rng))


@kind("wrong")
def pointers_to_nowhere(rng):
    """Does nothing that cannot be checked because it is behind a pointer. Other tests check that such accesses are
    rejected."""
    return Kernel(rng.choice(["kernel k(r, x, n) { let p = pointer(x[0])\n x[1] = p[1] }", "kernel k(r, x, n) { let p = bitcast(f32*, u64(8))\n x[0] = f32(bitcast(u64, p)) }", "kernel k(r, x, n: f32*) { x[0] = 1 }", "kernel k(r, x, n) { let v = view(f32[4], pointer(x[3]))\n x[0] = v[1] }",
                              "kernel k(r, x, n) { local t: f32[4]\n t[0] = 1\n let p = pointer(t[0])\n x[0] = p[0] }", "func f(v) { local t: f32[4]\n t[0] = v\n return pointer(t[0]) }\nkernel k(r, x, n) { let p = f(x[0])\n r[0] = 1 }"]), **shape(rng))


# ---- texts that are not kernels ----

NO_KERNEL = ("SYNTAX", "NAME", "TYPE", "ARGUMENT", "UNSUPPORTED", "IO", "OK", "KERNEL", "INTERRUPTED", "LAUNCH", "COMPILE", "LIMIT")


@kind("malformed", NO_KERNEL, contexts=CHECKED)
def truncated(rng):
    text = rng.choice(TEXTS)
    return Kernel(text[:rng.randrange(len(text))], **shape(rng))


@kind("malformed", NO_KERNEL, contexts=CHECKED)
def flipped_bytes(rng):
    text = bytearray(rng.choice(TEXTS).encode())
    for _ in range(size(rng, 1, 50)):
        text[rng.randrange(len(text))] = rng.randrange(256)
    return Kernel(bytes(text), **shape(rng))


@kind("malformed", NO_KERNEL, contexts=CHECKED)
def shuffled_words(rng):
    words = rng.choice(TEXTS).replace("(", " ( ").replace(")", " ) ").replace("[", " [ ").split(" ")
    for _ in range(size(rng, 1, 30)):
        i, j = rng.randrange(len(words)), rng.randrange(len(words))
        words[i], words[j] = rng.choice([(words[j], words[i]), (words[j], words[j]), ("", words[j])])
    return Kernel(" ".join(words), **shape(rng))


@kind("malformed", NO_KERNEL, contexts=CHECKED)
def words_at_random(rng):
    words = ["kernel", "func", "k", "(", ")", "{", "}", "[", "]", "let", "var", "x", "=", "+", "-", "1", "2.5", "\"s\"", "for", "in", "range", "if", "else", "while", "@", "inline", ",", ":", ";", "\n", "struct", "const", "shared", "local", "f32", "*", "**", "return", "import", "type", ".", "?", "#"]
    return Kernel("".join(rng.choice(words) + rng.choice(["", " "]) for _ in range(size(rng, 1, 20000))), **shape(rng))


@kind("malformed", NO_KERNEL)
def bytes_at_random(rng):
    return Kernel(bytes(rng.randrange(256) for _ in range(size(rng, 1, 20000))), **shape(rng))


@kind("malformed", NO_KERNEL)
def texts_of_nothing(rng):
    return Kernel(rng.choice([b"", b"\0", b"\n" * 100000, b" ", b"#", b"\xef\xbb\xbf", b"\xef\xbb\xbfkernel k(r, x, n) { x[0] = 1 }", b"\r\r\r", b"kernel k(r, x, n) {\r\n x[0] = 1 \r\n}\r\n", b"\xff\xfe", b"kernel", b"kernel k", b"{" * 100000, b"\"", b"\"\\", b"kernel k(r, x, n) { x[0] = 1 }\0hidden",
                              b"kernel k(r, x, n) {}", b"import \"\"", b"import \"/etc/passwd\"", b"import \"../../x\\u0000y\"", b"/* */", b"kernel k(r, x, n) { x[0] = 1 }" * 2, b"func k() {}"]), **shape(rng))


@kind("malformed", NO_KERNEL, contexts=CHECKED)
def encodings(rng):
    bad = rng.choice([b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80", b"\x80", b"\xe2\x82", b"\0", b"\x1b[31m", b"\xe2\x80\xae", b"\x7f", b"\x07", b"\xf4\x90\x80\x80", "é".encode(), "𝒳".encode(), b"\xc2\x85"])
    text = rng.choice([b"kernel k(r, x, n) { raise \"%s\" }", b"kernel k(r, x, n) { x[0] = 1 } # %s", b"kernel k(r, x, n) { x%s[0] = 1 }", b"func %s(v) { return v }\nkernel k(r, x, n) { x[0] = %s(1) }", b"import \"%s\"\nkernel k(r, x, n) {}", b"kernel k(r, x, n) { print(\"%s\") }",
                       b"kernel k(r, x, n) { undefined() } # %s", b"kernel k(r, x, n) { assert n < 0, \"%s\" }", b"kernel k(r, x, n) { let v = 1 %s 2 }", b"struct %s { a: f32 }\nkernel k(r, x, n) { let v = zero(%s) }"])
    return Kernel(text.replace(b"%s", bad), **shape(rng))


@kind("malformed", ("SYNTAX", "NAME", "TYPE", "ARGUMENT", "UNSUPPORTED", "IO"))
def wrong_declarations(rng):
    return Kernel(rng.choice([
        "kernel k(r, x, n) { y[0] = 1 }", "kernel k(r, x, n) { x[0] = \"text\" }", "kernel k(r, x, n) { x = 1 }", "kernel k(r, x) { x[0] = 1 }", "kernel k(r, x, n, y) { x[0] = 1 }", "kernel k(r, r, r) { r[0] = 1 }", "kernel other(r, x, n) { x[0] = 1 }",
        "kernel k(r, x, n) { return 5 }", "kernel k(r, x, n) { break }", "kernel k(r, x, n) { x[0][0] = 1 }", "kernel k(r: f64[:], x, n) { r[0] = 1 }", "kernel k(r, x, n) { k(r, x, n) }", "func f(v) { return f(v) }\nkernel k(r, x, n) { x[0] = f(1) }",
        "kernel k(r, x, n) { x.y.z = 1 }", "kernel k(r, x, n) { let a: f99 = 1 }", "kernel k(r, x, n) { r[0] = 1.5 }", "kernel k(r, x, n) { for i in grid_range(n) { syncthreads() } }", "kernel k(r, x, n) { for i in x { r[0] = 1 } }", "kernel k(r, x, n) { if x { r[0] = 1 } }",
        "extern func e(v: f32) -> f32\nkernel k(r, x, n) { x[0] = e(1) }", "extern const N: i32\nkernel k(r, x, n) { x[0] = N }", "import \"nowhere\"\nkernel k(r, x, n) { x[0] = 1 }", "kernel k(r, x, n) @block(0) @block(1) @inline { x[0] = 1 }", "kernel k(r, x, n) { x[0] = x }",
        "kernel k(r, x, n) { 1 = x[0] }", "kernel k(r, x, n) { let x = 1\n x[0] = 1 }", "kernel k(r, x, n) { x[0] = zero(Nothing) }", "struct S { a: f32; a: f32 }\nkernel k(r, x, n) { x[0] = 1 }", "kernel k(r, x, n) { let a, b = 1 }", "kernel k(r, x, n) { x[\"a\"] = 1 }",
        "kernel k(r, x, n) { x[1.5] = 1 }", "kernel k(r, x, n) { atomic_add(1, 1) }", "kernel k(r, x, n) { local t: f32[n]\n x[0] = 1 }", "kernel k(r, x, n) { print() }", "kernel k(r, x, n) { x[0] = f32x5(1) }", "kernel k(r, x, n) { while true { let a = b\n let b = a } }",
    ]), **shape(rng))


@kind("malformed", NO_KERNEL + ("MEMORY",))
def other_kinds_cut(rng):
    """A kernel of another kind, whose text loses or repeats a part."""
    name = rng.choice([name for name, row in KINDS.items() if name.split(".")[0] in ("endless", "deep", "wide", "growing", "recursion") and "cuda" in row.targets])
    kernel = KINDS[name].make(rng)
    text = kernel.text if isinstance(kernel.text, bytes) else kernel.text.encode()
    text = text[:100000]
    at, length = rng.randrange(len(text) + 1), size(rng, 1, 100)
    kernel.text = text[:at] + rng.choice([b"", text[at:at + length] * 2, b"}", b"("]) + text[at + length:]
    return kernel
