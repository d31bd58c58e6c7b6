"""Kernels that do not end, or that would end only after the application has given up: loops, waits, recursion, printed
lines."""
from kernels import CHECKED, Kernel, kind, shape, size, somewhere

ENDS = ("INTERRUPTED",)
STUCK = ("INTERRUPTED", "KERNEL")  # the CPU detects threads that wait for each other, and full stacks
WAITING = STUCK + ("UNSUPPORTED",)  # some checks do not support kernels whose warps wait


@kind("endless", ENDS)
def while_true(rng):
    body = rng.choice([
        "while true {}", "while 1 {}", "while n > 0 {}", "while true { continue }", "while true { r[0] = r[1] + 1 }",
        "var i = 0i64\n while true { i = i + 1\n r[0] = i32(i) }", "while true { while true { if n == 0 { break } } }",
        "while true { for i in range(3) { x[i] = x[i] * 0.5 + sin(x[i + 1]) } }", "var v = x[0]\n while v == v or true { v = v * 1.5 }\n x[1] = v",
        "var i = 1i32\n while i != 0 { i = (i * 3) | 1 }\n r[0] = i", "while true { if r[0] == 123456 { return } }",
        "while true { while n == 0 {}\n r[blockIdx.x] += 1 }", "var a, b = 0i64, 1i64\n while a != -1 { a, b = b & 65535, a + b }\n r[3] = i32(b)",
    ])
    if "return" in body or rng.random() < 0.5:
        return Kernel("kernel k(r, x, n) { %s }" % body, **shape(rng))
    return Kernel(somewhere(rng, body), **shape(rng))


@kind("endless", ENDS)
def long_range(rng):
    count = rng.choice([4 * 10**12, 2**62, 2**63 - 1, 10**15])
    text = rng.choice([
        "kernel k(r, h) { for i in grid_range(%d) { r[i & 255] = i32(i) } }" % count,
        "kernel k(r, h) { for i, j in grid_range(%d, 1000) { r[j & 255] = i32(i) } }" % (4 * 10**11),
        "kernel k(r, h) { for i, j, l in grid_range(1000000, 1000000, 1000000) { r[j & 255] = i32(i + l) } }",
        "kernel k(r, h) { for i in block_range(%d) { r[i & 255] = i32(i) } }" % count,
        "kernel k(r, h) { var s = 0i64\n for i in range(h) { s = (s ^ i) * 3 }\n r[0] = i32(s) }",
        "kernel k(r, h) { var s = 0i64\n for i in range(0i64, h, 7) { s = (s ^ i) * 3 }\n r[0] = i32(s) }",
        "kernel k(r, h) { for i in range(h, 0i64, -1) { r[i & 255] = 1 } }",
        "kernel k(r, h) { for i in range(h) { for j in range(h) { r[(i + j) & 255] = 1 } } }",
        "kernel k(r, h) { for i in range(h) { for j in range(5) @unroll { r[(i + j) & 255] = 1 } } }",
        "kernel k(r, h) { for i in range(h) @unroll(%d) { r[i & 255] = r[(i + 1) & 255] + 1 } }" % rng.choice([2, 3, 8, 100]),
        "kernel k(r, h) { for i in range(0i64, h, h // h) { r[i & 255] = 1 } }",
        "kernel k(r, h) { for i in grid_range(h) { for j in range(100) { r[(i ^ j) & 255] += 1 } } }",
    ])
    return Kernel(text, arguments="rh", **shape(rng))


@kind("endless", ENDS)
def long_calls(rng):
    """Library functions, which no interrupt reaches, with the arguments for which they take longest."""
    order = rng.choice(["2147483647", "-2147483648i64", "i32(h)", "2147483647 - n", "n * 16777259", "257", "256"])
    argument = rng.choice(["1e10", "2147483647.0", "f64(h)", "1e300", "1e-300", "5e-324", "-3e9", "0.0", "inf", "x[1] + 2147480000"])
    argument = "f64(%s)" % argument
    call = rng.choice([
        "jn(%s, %s)" % (order, argument), "yn(%s, %s)" % (order, argument), "jn(%s, f32(%s))" % (order, argument), "yn(%s, f32(%s))" % (order, argument),
        "fmod(f64(1e308), %s)" % argument, "remainder(f64(1e308), %s)" % argument, "fmod(%s, f64(5e-324))" % argument, "lgamma(%s)" % argument, "tgamma(%s)" % argument, "sin(%s) + tan(%s)" % (argument, argument),
        "pow(%s, %s)" % (argument, argument), "f64(h ** h)", "f64((h + 1) ** (h - 7))", "erfinv(%s)" % argument, "normcdfinv(%s)" % argument, "erfcx(%s)" % argument, "hypot(%s, f64(1e300))" % argument,
    ])
    return Kernel("kernel k(r, x, n, h) { while true { x[threadIdx.x & 255] += f32(%s) } }" % call, arguments="rxnh", **shape(rng))


@kind("endless", ENDS)
def nested_ranges(rng):
    depth = rng.randint(5, 9)
    names = ["i%d" % d for d in range(depth)]
    loops = "".join("for %s in range(n%s) { " % (name, rng.choice(["", " + 1", " * 2"])) for name in names)
    return Kernel("kernel k(r, x, n) { %s r[(%s) & 255] += 1 %s }" % (loops, " ^ ".join(names), "}" * depth), **shape(rng))


@kind("endless", ENDS)
def spin(rng):
    body = rng.choice([
        "while atomic_add(r[0], 0i32) != 77 {}", "while atomic_load(r[0]) != 77 {}", "while atomic_load(r[0], acquire) != 77 {}",
        "while atomic_cas(r[0], 77i32, 78i32) != 77 {}\n r[1] = 1", "while atomic_exch(r[0], 5i32) != 77 {}", "while atomic_max(r[0], 0i32) != 77 { threadfence() }",
        "while atomic_load_system(r[0]) != 77 {}", "while atomic_or(r[0], 2i32) != 77 { nanosleep(1000) }", "while ldcv(r[0]) != 77 {}",
        "while atomic_load(r[0]) != 77 { syncwarp() }",
    ])
    return Kernel("kernel k(r, x, n) { %s }" % body, **shape(rng))


@kind("endless", STUCK)
def lock_held(rng):
    return Kernel("kernel k(r, x, n) { shared lock: i32\n if threadIdx.x == 0 { lock = 0 }\n syncthreads()\n while atomic_cas(lock, 0, 1) != 0 {}\n r[0] += 1 }",
                  block=(rng.choice([2, 32, 64, 100]), 1, 1), grid=(2, 1, 1))


@kind("endless", WAITING)
def mbarrier(rng):
    wait = rng.choice(["mbarrier_wait_parity(b[0], 0u32)", "mbarrier_wait(b[0], mbarrier_arrive(b[0]))", "while not mbarrier_test_wait_parity(b[0], 0u32) {}",
                       "while not mbarrier_try_wait_parity(b[0], 0u32) {}", "if threadIdx.x > 0 { mbarrier_wait_parity(b[0], 0u32) }\n mbarrier_wait_parity(b[0], 0u32)"])
    return Kernel("kernel k(r, x, n) { shared b: u64[1]\n if threadIdx.x == 0 { mbarrier_init(b[0], %d) }\n syncthreads()\n %s\n r[0] = 1 }" % (rng.choice([100, 1000, 2**20 - 1]), wait),
                  block=(rng.choice([2, 32, 64]), 1, 1))


@kind("endless", STUCK + ("OK", "TYPE", "UNSUPPORTED", "LAUNCH"))
def grid_sync(rng):
    body = rng.choice([
        "while true { grid_sync()\n r[blockIdx.x] = r[255] + 1 }", "if blockIdx.x == 1 { while true { r[1] = 1 } }\n grid_sync()\n r[0] = 1",
        "if blockIdx.x == 0 { grid_sync() }\n r[0] = 1", "if threadIdx.x == 0 { grid_sync() } else { while atomic_load(r[9]) != 5 {} }", "for i in range(blockIdx.x) { grid_sync() }\n r[0] = 1",
        "if threadIdx.x < 2 { grid_sync() } else { syncthreads() }",
    ])
    return Kernel("kernel k(r, x, n) { %s }" % body, grid=(rng.choice([2, 5, 8]), 1, 1), block=(rng.choice([2, 32, 64]), 1, 1), is_cooperative=True)


@kind("endless", STUCK + ("OK", "TYPE"))
def barriers(rng):
    meet = rng.choice(["syncthreads()", "r[0] = syncthreads_count(x[0] > 0)", "r[1] = i32(syncthreads_or(n > 3))"])
    body = rng.choice([
        "if threadIdx.x %% 2 == 0 { %s } else { while true { r[2] = 1 } }", "while threadIdx.x != 77777 { %s }", "for i in range(threadIdx.x) { %s }", "if threadIdx.x == 3 { while true {} }\n %s",
        "while true { %s\n if threadIdx.x == 5 { continue }\n r[1] = 1 }", "if threadIdx.x == 1 { return }\n while true { %s }", "if threadIdx.x < 1 { raise \"gone\" }\n while true { %s }",
        "for i in range(n * n * n * n * n * n) { %s }",
    ]) % meet
    return Kernel("kernel k(r, x, n) { %s\n r[0] = 2 }" % body, block=(rng.choice([8, 33, 64, 256]), 1, 1), grid=(rng.choice([1, 3]), 1, 1))


@kind("endless", WAITING + ("OK", "TYPE"))
def named_barriers(rng):
    body = rng.choice([
        "if threadIdx.x < 32 { barrier_sync(1, 64)\n barrier_sync(2, 64) } else { barrier_sync(2, 64)\n barrier_sync(1, 64) }", "if threadIdx.x < 32 { barrier_sync(3, 64) }", "barrier_sync(1, 96)",
        "if threadIdx.x < 32 { while true {} }\n barrier_sync(1, 64)", "while true { barrier_sync(1, 64) }", "if threadIdx.x < 32 { barrier_sync(1, 64) } else { syncthreads() }",
    ])
    return Kernel("kernel k(r, x, n) { %s\n r[0] = 1 }" % body, block=(64, 1, 1))


@kind("endless", STUCK + ("OK", "UNSUPPORTED"))
def warps(rng):
    body = rng.choice([
        "while true { v = shfl_xor_sync(0xffffffffu32, v, 1) + 1\n if any_sync(0xffffffffu32, v == 0) { r[0] = v } }", "if v == 5 { while true { r[1] = 1 } }\n r[0] = shfl_xor_sync(0xffffffffu32, v, 1)",
        "while any_sync(0xffffffffu32, n > 0) { v = v + 1 }", "while ballot_sync(0xffffffffu32, true) != 5 { v = v * 3 }", "if v < 7 { syncwarp() } else { while true { v = reduce_add_sync(0xffffffffu32, v) } }",
        "while match_any_sync(0xffffffffu32, v & 1) != 0 { v = v + 2 }",
    ])
    return Kernel("kernel k(r, x, n) { var v = i32(threadIdx.x)\n %s\n r[1] = v }" % body, block=(rng.choice([32, 64]), 1, 1), grid=(rng.choice([1, 4]), 1, 1))


@kind("endless", STUCK + ("OK", "UNSUPPORTED", "LAUNCH"))
def clusters(rng):
    body = rng.choice(["while true { cluster_sync()\n r[blockIdx.x] = 1 }", "if blockIdx.x == 1 { while true { r[1] = 1 } }\n cluster_sync()", "if cluster_rank == 0 { cluster_sync() } else { while true {} }",
                       "if threadIdx.x == 0 { cluster_wait() } else { cluster_arrive()\n cluster_wait() }"])
    return Kernel("kernel k(r, x, n) @cluster(%d) { %s }" % (rng.choice([2, 4]), body), grid=(4, 1, 1), block=(rng.choice([1, 32, 64]), 1, 1))


@kind("endless", ENDS, targets=("cpu",))
def grid(rng):
    text = rng.choice([
        "kernel k(r, x, n) @grid(2147483647, 65535, 65535) @block(1) { r[blockIdx.x & 255] = 1 }", "kernel k(r, x, n) @grid(2147483647, 65535, 65535) @block(256) { shared s: i32\n s = 1\n syncthreads()\n r[5] = s }",
        "kernel k(r, x, n) @grid(2147483647, 65535, 65535) @block(1024) {}", "kernel k(r, x, n) @grid(2147483647) @block(1024) { r[threadIdx.x & 7] = i32(sin(x[threadIdx.x & 7]) * 100) }",
    ])
    return Kernel(text, grid=(0, 0, 0), block=(0, 0, 0))


@kind("recursion", STUCK + ("OK",))
def endless_recursion(rng):
    text = rng.choice([
        "func f(n: i64) -> i64 { return f(n + 1) + 1 }\nkernel k(r, x, n) { r[0] = i32(f(n)) }", "func f(n: i64) -> i64 { return f(n + 1) }\nkernel k(r, x, n) { r[0] = i32(f(n)) }",
        "func f(n: i64) -> i64 { return g(n) * 3 }\nfunc g(n: i64) -> i64 { return f(n + 1) - 1 }\nkernel k(r, x, n) { r[0] = i32(f(n)) }",
        "func f(r: i32[:], n: i64) { r[n & 7] += 1\n f(r, n + 1)\n r[1] += 1 }\nkernel k(r, x, n) { f(r, n) }", "func f(r: i32[:], n: i64) { r[n & 7] += 1\n f(r, n + 1) }\nkernel k(r, x, n) { f(r, n) }",
        "func f(n: i64) -> f64 { local t: f64[%d]\n t[n & 3] = f(n + 1)\n return t[(n + 1) & 3] }\nkernel k(r, x, n) { x[0] = f(n) }" % rng.choice([4, 100, 4000, 8000]),
        "func f(a: f64, b: f64, c: (i32, f32x4), n: i64) -> f64 { if n < 0 { return a }\n return f(b, a * 1.5, (1, f32x4(2)), n + 1) + b }\nkernel k(r, x, n) { x[0] = f(1., 2., (1, f32x4(0)), n) }",
        "func f(n: i64) -> i64 @noinline { if n == 0 { return 1 }\n return f(n * 2 + 1) + f(n + 2) }\nkernel k(r, x, n) { r[0] = i32(f(n)) }",
    ])
    return Kernel(text, **shape(rng))


@kind("recursion", STUCK)
def chained_recursions(rng):
    """Several recursions in sequence, each nearly as deep as is allowed. The functions between them are not
    recursive."""
    lines = ["func f0(n: i64) -> i64 { return f0(n + 1) + 1 }"]
    for i in range(rng.randint(1, 30)):
        lines.append("func g%d(n: i64) -> i64 @noinline { local t: f64[%d]\n t[n & 3] = 1\n return f%d(0) + i64(t[0]) }" % (i, rng.choice([4, 100, 4000]), i))
        lines.append("func f%d(n: i64) -> i64 { if n > %d { return g%d(n) }\n return f%d(n + 1) + 1 }" % (i + 1, rng.choice([10, 1000, 4000]), i, i + 1))
    return Kernel("\n".join(lines) + "\nkernel k(r, x, n) { r[0] = i32(f%d(0)) }" % (len(lines) // 2), **shape(rng))


@kind("recursion", STUCK)
def long_recursion(rng):
    text = rng.choice([
        "func fib(n: i32) -> i64 { if n < 2 { return 1 }\n return fib(n - 1) + fib(n - 2) }\nkernel k(r, x, n) { r[0] = i32(fib(%d)) }" % rng.randint(80, 300),
        "func a(m: i64, n: i64) -> i64 { if m == 0 { return n + 1 }\n if n == 0 { return a(m - 1, 1) }\n return a(m - 1, a(m, n - 1)) }\nkernel k(r, x, n) { r[0] = i32(a(%d, 5)) }" % rng.randint(4, 9),
        "func h(r: i32[:], n: i32, a: i32, b: i32) { if n == 0 { return }\n h(r, n - 1, b, a)\n r[a & 3] += b\n h(r, n - 1, a, b) }\nkernel k(r, x, n) { h(r, 64, 1, 2) }",
        "func t(n: i32) -> i32 { if n == 0 { return 1 }\n var s = 0\n for i in range(10) { s += t(n - 1) }\n return s }\nkernel k(r, x, n) { r[0] = t(40) }",
    ])
    return Kernel(text, **shape(rng))


@kind("recursion", STUCK + ("OK",))
def deep_recursion(rng):
    depth = size(rng, 1000, 10**9)
    return Kernel("func f(x: f32[:], n: i64) -> f32 { if n == 0 { return 0 }\n return f(x, n - 1) * 0.5 + x[n & 255] }\nkernel k(r, x, n) { x[0] = f(x, %d) }" % depth, **shape(rng))


@kind("printing", ENDS)
def endless_lines(rng):
    line = rng.choice(['print("line")', 'print("x", x[0], n)', 'print(1.5, 2, true, x[1], (1, 2.5, (x[2], n)))', 'print("%s")' % ("y" * size(rng, 10, 3000)), 'print(f32x4(x[0]), zero(P))'])
    return Kernel("struct P { a: f32; b: i32x4; c: f64[5] }\nkernel k(r, x, n) { while true { %s } }" % line, **shape(rng))


@kind("printing", ENDS)
def lines_of_many_threads(rng):
    return Kernel("kernel k(r, x, h) { for i in range(h) { print(\"thread\", threadIdx.x, blockIdx.x, i) } }", arguments="rxh", grid=(rng.choice([1, 64, 1000]), 1, 1), block=(rng.choice([1, 64, 256]), 1, 1))


@kind("printing", ENDS, targets=("cpu",))
def lines_of_a_huge_range(rng):
    return Kernel("kernel k(r, x, h) { for i in grid_range(h) { print(i, x[i & 255]) } }", arguments="rxh", grid=(rng.choice([1, 64]), 1, 1), block=(rng.choice([1, 64]), 1, 1))


@kind("printing", STUCK)
def lines_of_a_recursion(rng):
    return Kernel("func f(n: i64) -> i64 { print(\"at\", n)\n let v = f(n + 1)\n print(\"left\", v)\n return v + 1 }\nkernel k(r, x, n) { r[0] = i32(f(n)) }", **shape(rng))


@kind("printing")
def large_lines(rng):
    count = size(rng, 10, 20000)
    line = rng.choice([lambda: '"%s"' % ("z" * count * 50), lambda: ", ".join('"%s", x[%d]' % ("a" * rng.randint(0, 20), i % 1000) for i in range(count)),
                       lambda: "(" + ", ".join("x[%d]" % (i % 1000) for i in range(count)) + ")", lambda: "zero(L)", lambda: '"' + "\\n\\t\\\"" * count + '"', lambda: '"%s%n%d{}\\u0000"'])()
    return Kernel("struct L { a: f64[%d] }\nkernel k(r, x, n) { print(%s) }" % (min(count, 8000), line), **shape(rng))


@kind("printing", ("KERNEL", "INTERRUPTED"))
def lines_and_failures(rng):
    return Kernel("kernel k(r, x, n) { for i in range(%d) { print(\"before\", i) }\n raise \"%s\" }" % (size(rng, 1, 1000), "m" * size(rng, 1, 2000)), grid=(rng.choice([1, 50]), 1, 1), block=(64, 1, 1))


@kind("wrong", ("KERNEL", "INTERRUPTED"), contexts=CHECKED)
def failing_forever(rng):
    return Kernel("kernel k(r, x, n) { for i in range(n * n * n * n * n) { r[%s] = 1 } }" % rng.choice(["i", "-1 - i", "i * i", "n - 2 * i"]), **shape(rng))
