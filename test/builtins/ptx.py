"""What each built-in becomes in PTX: name: (statement over the arrays r, x, y, z and the position i, regular expressions that the PTX must match). Types: of the arrays."""
import collections

Row = collections.namedtuple("Row", "statement expected types before arch")


def row(statement, *expected, types="f32", before="", arch="sm_90"):
    return Row(statement, expected, types, before, arch)


WITH_IDENTITY = "func seven(like) { return dtype(like)(7) }\nfunc plus(x, y) @identity(seven) { return x + y }"

ROWS = {
    # positions
    "threadIdx": row("r[i] = threadIdx.y", r"%tid\.y", types="i32"),
    "blockIdx": row("r[i] = blockIdx.y", r"%ctaid\.y", types="i32"),
    "blockDim": row("r[i] = blockDim.y", r"%ntid\.y", types="i32"),
    "gridDim": row("r[i] = gridDim.y", r"%nctaid\.y", types="i32"),
    "grid": row("let a, b = grid(2)\nr[i] = b", r"%ctaid\.y", r"%ntid\.y", r"%tid\.y", types="i32"),
    "gridsize": row("r[i] = gridsize(1)", r"%nctaid\.x", r"%ntid\.x", types="i32"),
    "thread_rank": row("r[i] = thread_rank", r"%tid\.z", r"mad|mul", types="i32"),
    "warp_rank": row("r[i] = warp_rank", r"%tid\.z", r"shr\.", types="i32"),
    "laneid": row("r[i] = laneid", r"%laneid", types="i32"),
    "warpsize": row("r[i] = warpsize", r"\b32;", types="i32"),
    # literals
    "inf": row("r[i] = inf", r"0f7F800000|2139095040"),
    "nan": row("r[i] = nan", r"0f7FC00000|2143289344"),
    "pi": row("r[i] = pi", r"0f40490FDB|1078530011"),
    # arrays and types
    "len": row("r[i] = len(x)", r"ld\.param\.b32|ld\.param\.b64|ld\.param\.v2", types="i32"),
    "dtype": row("r[i] = dtype(x)(y[i])", r"cvt\.rzi?\.[su]32\.f32", types=("i32", "i32", "f32", "f32")),
    "vector": row("let v = vector(dtype(x), 4)(1)\nbitcast(vector(dtype(r), 4)*, pointer(r[4 * i]))[0] = v * x[i]", r"st\.global\.v4\.b32"),
    "zero": row("r[i] = zero(dtype(x))", r"st\.global\.b32\s+\[.*\], 0|mov\.b32\s+%r\d+, 0"),
    "sizeof": row("r[i] = sizeof(f64)", r"\b8;", types="i32"),
    "is_float": row("r[i] = is_float(dtype(x)) ? 7 : 9", r"\b7;|0f40E00000|1088421888"),
    "is_integer": row("r[i] = is_integer(dtype(x)) ? 7 : 9", r"\b7;", types="i32"),
    "is_signed": row("r[i] = is_signed(dtype(x)) ? 7 : 9", r"\b7;", types="i32"),
    "is_complex": row("r[i] = is_complex(dtype(x)) ? 9 : 7", r"\b7;", types="i32"),
    "is_vector": row("r[i] = is_vector(vector(dtype(x), 2)) ? 7 : 9", r"\b7;", types="i32"),
    "is_struct": row("r[i] = is_struct(dtype(x)) ? 9 : 7", r"\b7;", types="i32"),
    "is_array": row("r[i] = is_array(x) and not is_array(x[0]) ? 7 : 9", r"\b7;", types="i32"),
    "is_tuple": row("r[i] = is_tuple((x, i)) and not is_tuple(x) ? 7 : 9", r"\b7;", types="i32"),
    "is_pointer": row("r[i] = is_pointer(dtype(x)*) ? 7 : 9", r"\b7;", types="i32"),
    "bitcast": row("r[i] = bitcast(i32, y[i]) + 1", r"add\.s32", types=("i32", "i32", "f32", "f32")),
    "identity_of": row("r[i] = identity_of(plus, x[i])", r"\b7;", types="i32", before=WITH_IDENTITY),
    "has_identity": row("r[i] = has_identity(plus) and not has_identity(max) ? 7 : 9", r"\b7;", types="i32", before=WITH_IDENTITY),
    "jvp": row("r[i] = jvp(square)(x[i], y[i])[1]", r"fma\.rn\.f32|add\.(rn\.)?f32", before="func square(v) { return v * v }"),
    "vjp": row("r[i] = vjp(square)(x[i], y[i])[1]", r"fma\.rn\.f32|add\.(rn\.)?f32", before="func square(v) { return v * v }"),
    "grad": row("r[i] = grad(square)(x[i])", r"add(?:\.rn)?\.f32\s+%\w+, (%\w+), \1;", before="func square(v) { return v * v }"),
    "no_diff": row("r[i] = grad(held)(x[i])", r"mov|st\.global", before="func held(v) { return v * no_diff(v) }"),
    "adjoint": row("adjoint(squares)(y, x, z, r)", r"fma\.rn\.f32|add\.(rn\.)?f32",
                   before="kernel squares(y, x) { for j in grid_range(y.size) { y[j] = x[j] * x[j] } }"),
    "bind_back": row("r[i] = call(bind_back(max, x[i]), y[i])", r"max\.f32", before="func call(f: func, v) { return f(v) }"),
    "is_aligned": row("r[i] = is_aligned(pointer(x[0]), 32) ? 1 : 2", r"and\.b64|and\.b32"),
    "select": row("r[i] = select(x[i] > 0, y[i], z[i])", r"selp\."),
    "refer": row("let t = refer(x[i])\nr[i] = t", r"ld\.global"),
    "transpose": row("let t = transpose(x)\nr[i] = t[i]", r"ld\.global"),
    "reshape": row("let m = reshape(x, 2, 4)\nr[i] = m[1, 2]", r"ld\.global.*\+24\]"),
    # barriers and fences
    "syncthreads": row("r[i] = 1\nsyncthreads()", r"bar(rier)?\.(cta\.)?sync"),
    "syncthreads_count": row("r[i] = syncthreads_count(x[i] > 0)", r"bar(rier)?\.(cta\.)?red\S*\.popc", types="i32"),
    "syncthreads_and": row("r[i] = syncthreads_and(x[i] > 0) ? 1 : 0", r"bar(rier)?\.(cta\.)?red\S*\.and", types="i32"),
    "syncthreads_or": row("r[i] = syncthreads_or(x[i] > 0) ? 1 : 0", r"bar(rier)?\.(cta\.)?red\S*\.or", types="i32"),
    "syncwarp": row("syncwarp(0xff)", r"bar\.warp\.sync"),
    "threadfence": row("r[i] = 1\nthreadfence()\nr[i + 1] = 2", r"(fence\.acq_rel|fence\.sc|membar)\.(gpu|gl)"),
    "threadfence_block": row("r[i] = 1\nthreadfence_block()\nr[i + 1] = 2", r"(fence\.acq_rel|fence\.sc|membar)\.cta"),
    "threadfence_system": row("r[i] = 1\nthreadfence_system()\nr[i + 1] = 2", r"(fence\.acq_rel|fence\.sc|membar)\.sys"),
    # warp
    "shfl_sync": row("r[i] = shfl_sync(0xffffffff, x[i], 3)", r"shfl\.sync\.idx\.b32"),
    "shfl_up_sync": row("r[i] = shfl_up_sync(0xffffffff, x[i], 3)", r"shfl\.sync\.up\.b32"),
    "shfl_down_sync": row("r[i] = shfl_down_sync(0xffffffff, x[i], 3)", r"shfl\.sync\.down\.b32"),
    "shfl_xor_sync": row("r[i] = shfl_xor_sync(0xffffffff, x[i], 3)", r"shfl\.sync\.bfly\.b32"),
    "all_sync": row("r[i] = all_sync(0xffffffff, x[i] > 0) ? 1 : 0", r"vote\.sync\.all"),
    "any_sync": row("r[i] = any_sync(0xffffffff, x[i] > 0) ? 1 : 0", r"vote\.sync\.any"),
    "eq_sync": row("r[i] = eq_sync(0xffffffff, x[i] > 0) ? 1 : 0", r"vote\.sync\.uni"),
    "ballot_sync": row("r[i] = ballot_sync(0xffffffff, x[i] > 0)", r"vote\.sync\.ballot", types="u32"),
    "activemask": row("r[i] = activemask()", r"activemask\.b32", types="u32"),
    "match_any_sync": row("r[i] = match_any_sync(0xffffffff, x[i])", r"match\.any\.sync\.b32", types="u32"),
    "match_all_sync": row("let m, p = match_all_sync(0xffffffff, x[i])\nr[i] = m", r"match\.all\.sync\.b32", types="u32"),
    "reduce_add_sync": row("r[i] = reduce_add_sync(0xffffffff, x[i])", r"redux\.sync\.add\.[su]32", types="i32"),
    "reduce_min_sync": row("r[i] = reduce_min_sync(0xffffffff, x[i])", r"redux\.sync\.min\.s32", types="i32"),
    "reduce_max_sync": row("r[i] = reduce_max_sync(0xffffffff, x[i])", r"redux\.sync\.max\.u32", types="u32"),
    "reduce_and_sync": row("r[i] = reduce_and_sync(0xffffffff, x[i])", r"redux\.sync\.and\.b32", types="u32"),
    "reduce_or_sync": row("r[i] = reduce_or_sync(0xffffffff, x[i])", r"redux\.sync\.or\.b32", types="u32"),
    "reduce_xor_sync": row("r[i] = reduce_xor_sync(0xffffffff, x[i])", r"redux\.sync\.xor\.b32", types="u32"),
    "elect_sync": row("r[i] = elect_sync(0xffffffff) ? 1 : 0", r"elect\.sync|brev|%lanemask|%laneid", types="i32"),
    "lanemask_eq": row("r[i] = lanemask_eq()", r"%lanemask_eq", types="u32"),
    "lanemask_le": row("r[i] = lanemask_le()", r"%lanemask_le", types="u32"),
    "lanemask_ge": row("r[i] = lanemask_ge()", r"%lanemask_ge", types="u32"),
    "lanemask_gt": row("r[i] = lanemask_gt()", r"%lanemask_gt", types="u32"),
    "lanemask_lt": row("r[i] = lanemask_lt()", r"%lanemask_lt", types="u32"),
    # memory
    "ldca": row("r[i] = ldca(x[i])", r"ld\.(global\.)?ca|ld\.global\.(nc\.)?b32"),
    "ldcg": row("r[i] = ldcg(x[i])", r"ld\.global\.cg"),
    "ldcs": row("r[i] = ldcs(x[i])", r"ld\.global\.cs"),
    "ldlu": row("r[i] = ldlu(x[i])", r"ld\.global\.lu"),
    "ldcv": row("r[i] = ldcv(x[i])", r"ld\.global\.cv|ld\.volatile|ld\.relaxed"),
    "ldg": row("r[i] = ldg(x[i])", r"ld\.global\.nc"),
    "stcg": row("stcg(r[i], 1)", r"st\.global\.cg"),
    "stcs": row("stcs(r[i], 1)", r"st\.global\.cs"),
    "stwb": row("stwb(r[i], 1)", r"st\.global(\.wb)?\.[bf]"),
    "stwt": row("stwt(r[i], 1)", r"st\.global\.wt"),
    "prefetch": row("prefetch(x[i])", r"prefetch\.global\.L2"),
    "prefetch_l1": row("prefetch_l1(x[i])", r"prefetch\.global\.L1"),
    # time and control
    "clock64": row("r[i] = clock64()", r"%clock64", types="i64"),
    "globaltimer": row("r[i] = globaltimer()", r"%globaltimer", types="i64"),
    "nanosleep": row("nanosleep(100)", r"nanosleep\.u32"),
    "trap": row("if x[i] > 0 { trap() }", r"\btrap;"),
    "breakpoint": row("breakpoint()", r"\bbrkpt;"),
    "assume": row("assume(x[i] >= 0)\nr[i] = x[i] // 4", r"shr\.[us]32", types="i32"),
    # the target
    "target": row("r[i] = target == gpu ? 7 : 9", r"\b7;", types="i32"),
    "cpu": row("r[i] = target == cpu ? 7 : 9", r"\b9;", types="i32"),
    "gpu": row("r[i] = target == gpu ? 7 : 9", r"\b7;", types="i32"),
    "arch": row("r[i] = arch", r"\b90;", types="i32"),
    "vector_bytes": row("r[i] = vector_bytes", r"\b16;", types="i32"),
    # integers
    "popc": row("r[i] = popc(x[i])", r"popc\.b32", types="i32"),
    "clz": row("r[i] = clz(x[i])", r"clz\.b32", types="i32"),
    "ctz": row("r[i] = ctz(x[i])", r"popc\.b32|brev\.b32", types="i32"),
    "ffs": row("r[i] = ffs(x[i])", r"popc\.b32|brev\.b32|bfind", types="i32"),
    "brev": row("r[i] = brev(x[i])", r"brev\.b32", types="i32"),
    "mulhi": row("r[i] = mulhi(x[i], y[i])", r"mul\.hi\.s32", types="i32"),
    "ceil_div": row("r[i] = ceil_div(x[i], 8)", r"shr\.", types="i32"),
    "div_trunc": row("r[i] = div_trunc(x[i], y[i])", r"div\.s32", types="i32"),
    "rem_trunc": row("r[i] = rem_trunc(x[i], y[i])", r"rem\.s32|div\.s32", types="i32"),
    "bswap": row("r[i] = bswap(x[i])", r"prmt\.b32", types="i32"),
    "byte_perm": row("r[i] = byte_perm(x[i], y[i], z[i])", r"prmt\.b32", types="u32"),
    "funnelshift_l": row("r[i] = funnelshift_l(x[i], y[i], z[i])", r"shf\.l\.wrap\.b32", types="u32"),
    "funnelshift_r": row("r[i] = funnelshift_r(x[i], y[i], z[i])", r"shf\.r\.wrap\.b32", types="u32"),
    "funnelshift_lc": row("r[i] = funnelshift_lc(x[i], y[i], z[i])", r"shf\.l\.clamp\.b32", types="u32"),
    "funnelshift_rc": row("r[i] = funnelshift_rc(x[i], y[i], z[i])", r"shf\.r\.clamp\.b32", types="u32"),
    "dp4a": row("r[i] = dp4a(x[i], y[i], z[i])", r"dp4a\.s32\.s32", types="i32"),
    "sad": row("r[i] = sad(x[i], y[i], z[i])", r"sad\.u32", types="u32"),
    # numbers
    "abs": row("r[i] = abs(x[i])", r"abs\.f32"),
    "min": row("r[i] = min(x[i], y[i])", r"min\.f32"),
    "max": row("r[i] = max(x[i], y[i])", r"max\.f32"),
    # ---- floating point: instructions, or inlined library code ----
    "sqrt": row("r[i] = sqrt(x[i])", r"sqrt\.rn\.f32"),
    "rsqrt": row("r[i] = rsqrt(x[i])", r"rsqrt\.approx\.f32"),
    "floor": row("r[i] = floor(x[i])", r"cvt\.rmi\.f32"),
    "ceil": row("r[i] = ceil(x[i])", r"cvt\.rpi\.f32"),
    "trunc": row("r[i] = trunc(x[i])", r"cvt\.rzi\.f32"),
    "rint": row("r[i] = rint(x[i])", r"cvt\.rni\.f32"),
    "round": row("r[i] = round(x[i])", r"cvt\.rzi\.f32"),
    "copysign": row("r[i] = copysign(x[i], y[i])", r"copysign\.f32|lop3|and\.b32"),
    "fma": row("r[i] = fma(x[i], y[i], z[i])", r"fma\.rn\.f32"),
    "fma_rz": row("r[i] = fma_rz(x[i], y[i], z[i])", r"fma\.rz\.f32"),
    "fma_ru": row("r[i] = fma_ru(x[i], y[i], z[i])", r"fma\.rp\.f64", types="f64"),
    "fma_rd": row("r[i] = fma_rd(x[i], y[i], z[i])", r"fma\.rm\.f32"),
    "saturate": row("r[i] = saturate(x[i])", r"cvt\.(rn\.)?sat\.f32|\.sat\.f32"),
    "isnan": row("r[i] = isnan(x[i]) ? 1 : 0", r"setp\.nan\.f32"),
    "isinf": row("r[i] = isinf(x[i]) ? 1 : 0", r"setp\.eq\.f32", r"0f7F800000"),
    "isfinite": row("r[i] = isfinite(x[i]) ? 1 : 0", r"setp\.lt\.f32|setp\.[gn]eu?\.f32", r"0f7F800000"),
    "isnormal": row("r[i] = isnormal(x[i]) ? 1 : 0", r"setp\.(lt|ge)u?\.(f32|u32)", r"0f00800000|0f7F800000|8388608"),
    "signbit": row("r[i] = signbit(x[i]) ? 1 : 0", r"setp\.(lt|gt)\.s32|shr\.u32"),
    "lround": row("r[i] = lround(x[i])", r"cvt\.rzi\.s64\.f32", types=("i64", "f32", "f32", "f32")),
    "lrint": row("r[i] = lrint(x[i])", r"cvt\.(rzi|rni)\.s64\.f32", types=("i64", "f32", "f32", "f32")),
    "fdim": row("r[i] = fdim(x[i], y[i])", r"sub\.(rn\.)?f32", r"setp\."),
    "quotient": row("r[i] = quotient(x[i], y[i])", r"div\.rn\.f32"),
    "fast_divide": row("r[i] = fast_divide(x[i], y[i])", r"div\.approx\.f32"),
    "fast_sin": row("r[i] = fast_sin(x[i])", r"sin\.approx|fma\.rn\.f32"),
    "fast_cos": row("r[i] = fast_cos(x[i])", r"cos\.approx|fma\.rn\.f32"),
    "fast_exp": row("r[i] = fast_exp(x[i])", r"ex2\.approx|fma\.rn\.f32"),
    "fast_log": row("r[i] = fast_log(x[i])", r"lg2\.approx|fma\.rn\.f32"),
    "fast_log2": row("r[i] = fast_log2(x[i])", r"lg2\.approx|fma\.rn\.f32"),
}

CALLS = ["cbrt", "rcbrt", "exp", "exp2", "exp10", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh",
         "atanh", "erf", "erfc", "tgamma", "lgamma", "sinpi", "cospi", "erfinv", "erfcinv", "erfcx", "normcdf", "normcdfinv", "j0", "j1", "y0", "y1", "fast_tan", "fast_exp10", "fast_log10"]
ROWS.update({name: row(f"r[i] = {name}(x[i])", r"(fma\.rn|mul(\.rn)?|ex2\.approx|lg2\.approx|div\.\w+)(\.ftz)?\.f32", r"st\.global") for name in CALLS})
ROWS.update({name: row(f"r[i] = {name}(x[i], y[i])", r"(fma\.rn|mul(\.rn)?|lg2\.approx|div\.\w+)(\.ftz)?\.f32", r"st\.global") for name in ["pow", "atan2", "hypot", "fmod", "remainder", "fast_pow"]})
ROWS.update({
    "logb": row("r[i] = logb(x[i])", r"clz\.b32|cvt\.rn\.f32\.s32|shr"),
    "nextafter": row("r[i] = nextafter(x[i], y[i])", r"add\.s32", r"selp|bra"),
    "remquo": row("let a, b = remquo(x[i], y[i])\nr[i] = a + f32(b)", r"cvt\.rni\.f32", r"and\.b32"),
    "ldexp": row("r[i] = ldexp(x[i], 3)", r"mul(\.rn)?\.f32|0f41000000"),
    "frexp": row("let m, e = frexp(x[i])\nr[i] = m * f32(e)", r"and\.b32|lop3|bfe"),
    "modf": row("let f, w = modf(x[i])\nr[i] = f * w", r"cvt\.rzi\.f32"),
    "sincos": row("let s, c = sincos(x[i])\nr[i] = s * c", r"fma\.rn\.f32"),
    "sincospi": row("let s, c = sincospi(x[i])\nr[i] = s * c", r"fma\.rn\.f32"),
    "ilogb": row("r[i] = ilogb(x[i])", r"shr|bfe|clz", types=("i32", "f32", "f32", "f32")),
    "jn": row("r[i] = jn(3, x[i])", r"fma\.rn\.f32"),
    "yn": row("r[i] = yn(3, x[i])", r"fma\.rn\.f32"),
})

# atomics: every scope of every operation
OPERATIONS = {
    "add": ("i32", r"(atom|red)\S*\.add\.[su]32"), "sub": ("i32", r"(atom|red)\S*\.add\.[su]32"), "min": ("i32", r"(atom|red)\S*\.min\.s32"), "max": ("u32", r"(atom|red)\S*\.max\.u32"),
    "nanmin": ("f32", r"atom\S*\.cas\.b32|(atom|red)\S*\.min"), "nanmax": ("f32", r"atom\S*\.cas\.b32|(atom|red)\S*\.max"), "and": ("u32", r"(atom|red)\S*\.and\.b32"),
    "or": ("u32", r"(atom|red)\S*\.or\.b32"), "xor": ("u32", r"(atom|red)\S*\.xor\.b32"), "inc": ("u32", r"(atom|red)\S*\.inc\.u32"), "dec": ("u32", r"(atom|red)\S*\.dec\.u32"),
    "exch": ("u32", r"atom\S*\.exch\.b32"),
}
SCOPES = {"": r"", "_block": r"\.cta", "_system": r"\.sys"}
for suffix, scope in SCOPES.items():
    for operation, (types, expected) in OPERATIONS.items():
        ROWS[f"atomic_{operation}{suffix}"] = row(f"r[i] = atomic_{operation}{suffix}(x[0], y[i])", expected, *([scope] if scope else []), types=types)
    ROWS[f"atomic_cas{suffix}"] = row(f"r[i] = atomic_cas{suffix}(x[0], y[i], z[i])", r"atom\S*\.cas\.b32", *([scope] if scope else []), types="i32")
    ROWS[f"atomic_load{suffix}"] = row(f"r[i] = atomic_load{suffix}(x[0], acquire)", r"ld\.acquire" + (scope or r"\.gpu"), types="i32")
    ROWS[f"atomic_store{suffix}"] = row(f"atomic_store{suffix}(r[0], y[i], release)", r"st\.release" + (scope or r"\.gpu"), types="i32")
ROWS.update({
    "relaxed": row("r[i] = atomic_load(x[0], relaxed)", r"ld\.relaxed\.gpu", types="i32"),
    "acquire": row("r[i] = atomic_load(x[0], acquire)", r"ld\.acquire\.gpu", types="i32"),
    "release": row("atomic_store(r[0], 1, release)", r"st\.release\.gpu", types="i32"),
    "acq_rel": row("r[i] = atomic_add(x[0], 1, acq_rel)", r"atom\S*\.acq_rel\.gpu|fence\.acq_rel\.gpu", types="i32"),
    "seq_cst": row("r[i] = atomic_add(x[0], 1, seq_cst)", r"fence\.sc\.gpu", types="i32"),
})

# parts of values
ROWS.update({
    "real": row("r[i] = real(c64(x[i], y[i]))", r"ld\.global", r"st\.global"),
    "imag": row("r[i] = imag(c64(x[i], y[i]))", r"ld\.global", r"st\.global"),
    "conj": row("r[i] = imag(conj(c64(x[i], y[i])))", r"neg\.f32|sub\.(rn\.)?f32|xor\.b32"),
    "arg": row("r[i] = arg(c64(x[i], y[i]))", r"fma\.rn\.f32|div"),
    "any": row("r[i] = any(i32x2(x[i], y[i]) > 0) ? 1 : 0", r"setp\.[gl]t\.s32", types="i32"),
    "all": row("r[i] = all(i32x2(x[i], y[i]) > 0) ? 1 : 0", r"setp\.[gl][te]\.s32|min\.s32", types="i32"),
    "pointer": row("let p = pointer(x[i])\nr[i] = p[1]", r"ld(\.global)?(\.nc)?\.b32"),
    "view": row("let p = pointer(x[i])\nlet v = view(f32[2, 2], p)\nr[i] = v[1, 1]", r"ld(\.global)?(\.nc)?\.b32.*\+12\]"),
    "to_e4m3": row("r[i] = to_e4m3(y[i])", r"cvt\.rn\.satfinite\.e4m3x2\.f32|selp", types=("u8", "u8", "f32", "f32")),
    "to_e5m2": row("r[i] = to_e5m2(y[i])", r"cvt\.rn\.satfinite\.e5m2x2\.f32|selp", types=("u8", "u8", "f32", "f32")),
    "from_e4m3": row("r[i] = from_e4m3(x[i])", r"cvt\.rn\.f16x2\.e4m3x2|selp", types=("f32", "u8", "f32", "f32")),
    "from_e5m2": row("r[i] = from_e5m2(x[i])", r"cvt\.rn\.f16x2\.e5m2x2|shl|selp", types=("f32", "u8", "f32", "f32")),
})

# clusters and the grid
ROWS.update({
    "clusterIdx": row("r[i] = clusterIdx.x", r"%clusterid\.x", types="i32"),
    "clusterDim": row("r[i] = clusterDim.x", r"%cluster_nctaid\.x", types="i32"),
    "clusterGridDim": row("r[i] = clusterGridDim.x", r"%nclusterid\.x", types="i32"),
    "clusterBlockIdx": row("r[i] = clusterBlockIdx.x", r"%cluster_ctaid\.x", types="i32"),
    "cluster_rank": row("r[i] = cluster_rank", r"%cluster_ctarank", types="i32"),
    "cluster_size": row("r[i] = cluster_size", r"%cluster_nctarank", types="i32"),
    "grid_sync": row("r[i] = 1\ngrid_sync()", r"atom\S*\.add", r"bar(rier)?\.(cta\.)?sync"),
    "cluster_sync": row("r[i] = 1\ncluster_sync()", r"barrier\.cluster\.arrive", r"barrier\.cluster\.wait"),
    "cluster_arrive": row("r[i] = 1\ncluster_arrive()\ncluster_wait()", r"barrier\.cluster\.arrive"),
    "cluster_wait": row("r[i] = 1\ncluster_arrive()\ncluster_wait()", r"barrier\.cluster\.wait"),
    "barrier_sync": row("barrier_sync(3, 64)", r"bar(rier)?\.(cta\.)?sync"),
    "barrier_arrive": row("barrier_arrive(3, 64)", r"bar(rier)?\.(cta\.)?arrive"),
    "fence_proxy_async": row("fence_proxy_async()", r"fence\.proxy\.async"),
    "fence_mbarrier_init": row("fence_mbarrier_init()", r"fence\.mbarrier_init\.release\.cluster"),
    "shared_address": row("shared s: i32[8]\ns[threadIdx.x] = 1\nr[i] = i32(shared_address(s[2]))", r"st\.global", types="i32"),
    "map_shared_rank": row("shared s: f32[8]\ns[threadIdx.x] = 1\ncluster_sync()\nlet other = map_shared_rank(s, 1)\nr[i] = other[0]", r"mapa"),
})

BARRIER = "shared bar: u64\nif threadIdx.x == 0 { mbarrier_init(bar, 1) }\nsyncthreads()\n"
ROWS.update({
    "mbarrier_init": row(BARRIER, r"mbarrier\.init\.shared(::cta)?\.b64"),
    "mbarrier_inval": row(BARRIER + "mbarrier_inval(bar)", r"mbarrier\.inval\.shared(::cta)?\.b64"),
    "mbarrier_arrive": row(BARRIER + "r[i] = mbarrier_arrive(bar)", r"mbarrier\.arrive\S*shared(::cta)?\.b64", types="u64"),
    "mbarrier_expect_tx": row(BARRIER + "mbarrier_expect_tx(bar, 64)", r"mbarrier\.expect_tx"),
    "mbarrier_arrive_expect_tx": row(BARRIER + "r[i] = mbarrier_arrive_expect_tx(bar, 64)", r"mbarrier\.arrive\.expect_tx", types="u64"),
    "mbarrier_test_wait": row(BARRIER + "r[i] = mbarrier_test_wait(bar, mbarrier_arrive(bar)) ? 1 : 0", r"mbarrier\.test_wait\S*shared", types="i32"),
    "mbarrier_test_wait_parity": row(BARRIER + "r[i] = mbarrier_test_wait_parity(bar, 0) ? 1 : 0", r"mbarrier\.test_wait\.parity", types="i32"),
    "mbarrier_try_wait": row(BARRIER + "r[i] = mbarrier_try_wait(bar, mbarrier_arrive(bar)) ? 1 : 0", r"mbarrier\.try_wait\S*shared", types="i32"),
    "mbarrier_try_wait_parity": row(BARRIER + "r[i] = mbarrier_try_wait_parity(bar, 0) ? 1 : 0", r"mbarrier\.try_wait\.parity", types="i32"),
    "mbarrier_wait": row(BARRIER + "mbarrier_wait(bar, mbarrier_arrive(bar))", r"mbarrier\.(try|test)_wait"),
    "mbarrier_wait_parity": row(BARRIER + "mbarrier_wait_parity(bar, 0)", r"mbarrier\.(try|test)_wait\.parity"),
    "mbarrier_pending_count": row(BARRIER + "r[i] = mbarrier_pending_count(mbarrier_arrive(bar))", r"mbarrier\.pending_count\.b64", types="i32"),
})

TILE = "shared s: f32[256] @align(128)\n"
ROWS.update({
    "cp_async": row(TILE + "cp_async(s[4 * threadIdx.x], x[4 * i], 4)\ncp_async_commit()\ncp_async_wait()\nr[i] = s[0]", r"cp\.async\.c[ga]\.shared\.global.*, 16"),
    "cp_async_commit": row(TILE + "cp_async(s[threadIdx.x], x[i], 1)\ncp_async_commit()\ncp_async_wait()\nr[i] = s[0]", r"cp\.async\.commit_group"),
    "cp_async_wait": row(TILE + "cp_async(s[threadIdx.x], x[i], 1)\ncp_async_commit()\ncp_async_wait(1)\nr[i] = s[0]", r"cp\.async\.wait_group 1"),
    "cp_async_arrive": row(BARRIER + TILE + "cp_async(s[threadIdx.x], x[i], 1)\ncp_async_arrive(bar)", r"cp\.async\.mbarrier\.arrive"),
    "cp_async_bulk": row(BARRIER + TILE + "cp_async_bulk(s[0], x[0], 64, bar)", r"cp\.async\.bulk\.shared::cluster\.global"),
    "cp_async_bulk_commit": row(TILE + "s[0] = 1\ncp_async_bulk(r[0], s[0], 64)\ncp_async_bulk_commit()\ncp_async_bulk_wait()", r"cp\.async\.bulk\.commit_group"),
    "cp_async_bulk_wait": row(TILE + "s[0] = 1\ncp_async_bulk(r[0], s[0], 64)\ncp_async_bulk_commit()\ncp_async_bulk_wait()", r"cp\.async\.bulk\.wait_group 0"),
    "cp_async_bulk_wait_read": row(TILE + "s[0] = 1\ncp_async_bulk(r[0], s[0], 64)\ncp_async_bulk_commit()\ncp_async_bulk_wait_read(2)", r"cp\.async\.bulk\.wait_group\.read 2"),
})

# tensor cores: a fragment of each shape
FRAGMENTS = {
    "m8n8k4": "f64 f64 f64x2", "m8n8k16": "i8x4 i8x4 i32x2", "m8n8k16_sat": "i8x4 u8x4 i32x2", "m8n8k32": "i32 i32 i32x2", "m8n8k32_sat": "i32 u32 i32x2", "m8n8k128_xor": "u32 u32 i32x2",
    "m8n8k128_and": "u32 u32 i32x2", "m16n8k4": "f32x2 f32 f32x4", "m16n8k8": "f16x4 f16x2 f32x4", "m16n8k16": "bf16x8 bf16x4 f32x4", "m16n8k16_sat": "i8x8 i8x4 i32x4",
    "m16n8k32": "i8x16 i8x8 i32x4", "m16n8k32_sat": "u8x16 i8x8 i32x4", "m16n8k64": "i32x4 i32x2 i32x4", "m16n8k64_sat": "i32x4 u32x2 i32x4", "m16n8k128_xor": "u32x2 u32 i32x4",
    "m16n8k128_and": "u32x2 u32 i32x4", "m16n8k256_xor": "u32x4 u32x2 i32x4", "m16n8k256_and": "u32x4 u32x2 i32x4",
}
FRAGMENTS.update({f"m16n8k16_{kinds}": "u8x8 u8x4 f32x4" for kinds in ("e4m3", "e5m2", "e4m3_e5m2", "e5m2_e4m3")})
FRAGMENTS.update({f"m16n8k32_{kinds}": "u8x16 u8x8 f32x4" for kinds in ("e4m3", "e5m2", "e4m3_e5m2", "e5m2_e4m3")})


def fragment(types, array):
    element = types.split("x")[0]
    value = f"{element}({array}[i])"
    return value if element == types else f"{types}({value})"


for shape, types in FRAGMENTS.items():
    a, b, c = types.split()
    statement = f"let d = mma_{shape}({fragment(a, 'x')}, {fragment(b, 'y')}, {fragment(c, 'z')})\nr[i] = f32(d.x)"
    ROWS[f"mma_{shape}"] = row(statement, r"mma\.sync\.aligned\." + shape.split("_")[0] + (r"\S*satfinite" if "sat" in shape else ""))

for count, vector in ((1, "f16x2"), (2, "f16x4"), (4, "f16x8")):
    for suffix in ("", "_trans"):
        rows_of = "shared s: f16[32, 8] @align(16)\ns[laneid, 0] = f16(x[i])\n"
        pattern = rf"matrix\.sync\.aligned\.(m8n8\.)?x{count}{suffix.replace('_', '.')}|matrix\.sync\.aligned\.x{count}{suffix.replace('_', '.')}"
        ROWS[f"ldmatrix_x{count}{suffix}"] = row(rows_of + f"syncwarp()\nlet v = ldmatrix_x{count}{suffix}(s[laneid, 0])\nr[i] = f32(v.x)", "ld" + pattern.replace("|", "|ld"))
        ROWS[f"stmatrix_x{count}{suffix}"] = row(rows_of + f"stmatrix_x{count}{suffix}(s[laneid, 0], {vector}(f16(y[i])))\nsyncwarp()\nr[i] = f32(s[0, laneid % 8])", "st" + pattern.replace("|", "|st"))

for kind, element, sums in (("f16", "f16", "f32"), ("bf16", "bf16", "f32"), ("tf32", "f32", "f32"), ("s8", "i8", "i32"), ("u8", "u8", "i32"), ("e4m3", "u8", "f32"), ("e5m2", "u8", "f32")):
    multiply = f"""shared a: {element}[4096] @align(1024)
shared b: {element}[4096] @align(1024)
local acc: {sums}[8]
for k in range(8) @unroll {{ acc[k] = 1 }}
a[threadIdx.x] = {element}(x[i])
fence_proxy_async()
syncthreads()
let da = matrix_descriptor(a[0], 128, 256, 0)
wgmma_fence(acc)
wgmma_{kind}(acc, da, matrix_descriptor(b[0], 128, 256, 0))
wgmma_commit()
wgmma_wait(acc)
r[i] = f32(acc[0])"""
    ROWS[f"wgmma_{kind}"] = row(multiply, r"wgmma\.mma_async\.sync\.aligned\.m64n16k", arch="sm_90a")
    if kind == "f16":
        ROWS["wgmma_fence"] = row(multiply, r"wgmma\.fence\.sync\.aligned", arch="sm_90a")
        ROWS["wgmma_commit"] = row(multiply, r"wgmma\.commit_group\.sync\.aligned", arch="sm_90a")
        ROWS["wgmma_wait"] = row(multiply, r"wgmma\.wait_group\.sync\.aligned\s+0", arch="sm_90a")
        ROWS["matrix_descriptor"] = row(multiply, r"wgmma\.mma_async", arch="sm_90a")

ROWS.update({
    "cp_async_tensor": row(BARRIER + TILE + "cp_async_tensor(s, x[0], bar)\nmbarrier_wait_parity(bar, 0)\nr[i] = s[threadIdx.x]", r"cp\.async\.bulk\.tensor\.1d\.shared::cluster\.global"),
    "cp_async_tensor_store": row(TILE + "s[threadIdx.x] = 1\ncp_async_tensor_store(r[0], s)\ncp_async_bulk_commit()\ncp_async_bulk_wait()", r"cp\.async\.bulk\.tensor\.1d\.global\.shared::cta"),
})
