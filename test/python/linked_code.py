# RUN: env KJIT_DEVICE=cpu %kjit-python %s
# RUN: %if cuda %{ env KJIT_DEVICE=cuda %kjit-python %s %}
"""Code of other languages that is linked with kernels. With a GPU the kernels run, and NumPy computes the values once more. Without
a GPU they are linked to machine code if NVRTC and nvJitLink are found, in a toolkit or in the packages nvidia-cuda-nvrtc and
nvidia-nvjitlink; then every function has to be found with its parameters. The refusals are tested everywhere."""
import ctypes
import glob
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import warnings

import numpy as np
import seeds

import kjit
from kjit import cuda
from kjit.cuda import errors, linking, types

seed = seeds.seed
random = np.random.default_rng(seed)
print("seed", seed)
on_gpu = os.environ.get("KJIT_DEVICE") == "cuda"
folder = tempfile.mkdtemp()


def find_library(stem):
    """Returns a CUDA library, or None."""
    linking._open_packaged(stem)
    for name in (f"lib{stem}.so.13", f"lib{stem}.so.12", *glob.glob(f"/usr/local/cuda*/lib64/lib{stem}.so.1[23]")):
        try:
            return ctypes.CDLL(name)
        except OSError:
            pass
    return None


nvrtc, nvjitlink = find_library("nvrtc"), find_library("nvJitLink")
capability = cuda.get_current_device().compute_capability if on_gpu else (9, 0)
target = "%d%d" % capability


def compile_cuda(text, stage, *options):
    """Returns NVRTC's output for a text: "PTX", "CUBIN" or "LTOIR"."""
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"made.cu", 0, None, None) == 0
    given = (ctypes.c_char_p * (len(options) + 1))(b"-rdc=true", *(option.encode() for option in options))
    assert nvrtc.nvrtcCompileProgram(program, len(given), given) == 0
    assert getattr(nvrtc, f"nvrtcGet{stage}Size")(program, ctypes.byref(size)) == 0
    made = ctypes.create_string_buffer(size.value)
    assert getattr(nvrtc, f"nvrtcGet{stage}")(program, made) == 0
    return made.raw.rstrip(b"\0") if stage == "PTX" else made.raw


def write(name, content):
    path = os.path.join(folder, name)
    with open(path, "wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
    return path


def refused(kind, text, call, *arguments):
    try:
        call(*arguments)
    except kind as error:
        assert text in str(error), error
        return
    raise AssertionError(f"{kind.__name__} was not raised: {text}")


def launch(kernel, *arguments):
    """Runs the kernel, or links it if nothing can run it. Returns whether it ran."""
    if on_gpu:
        kernel[1, 64](*arguments)
        return True
    signature = ", ".join(types.typeof(argument).text for argument in arguments)
    cubin = kernel._kernel.inspect("cubin", signature, f"sm_{target}", lines=False)
    assert cubin[:4] == b"\x7fELF" and cubin[18] == 190, cubin[:20]
    return False


# ---- every format gives the same results ----

def check_formats():
    a, b = (int(v) for v in random.integers(-50, 50, 2))
    text = f'extern "C" __device__ int scaled(int *r, int x) {{ *r = {a} * x + {b}; return 0; }}\n'
    files = {"f.cu": text}
    if nvrtc:
        files["f.ptx"] = compile_cuda(text, "PTX", f"-arch=compute_{target}")
        files["f.cubin"] = compile_cuda(text, "CUBIN", f"-arch=sm_{target}")
    if nvrtc and nvjitlink:
        files["f.ltoir"] = compile_cuda(text, "LTOIR", f"-arch=compute_{target}", "-dlto")
    compiler = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    paths = [write(name, content) for name, content in files.items()]
    for option, name in (("-dc", "f.o"), ("-fatbin", "f.fatbin")) if os.access(compiler, os.X_OK) else ():
        path = os.path.join(folder, name)
        command = [compiler, "-rdc=true", f"-arch=sm_{target}", option, paths[0], "-o", path]
        if subprocess.run(command, capture_output=True).returncode == 0:  # nvcc needs a C++ compiler
            paths.append(path)
    if os.path.join(folder, "f.o") in paths:
        subprocess.run(["ar", "rcs", "f.a", "f.o"], check=True, cwd=folder)
        paths.append(os.path.join(folder, "f.a"))
    x = random.integers(-1000, 1000, 40).astype(np.int32)
    for path in paths:
        objects = (path, linking.LinkableCode.from_path(path))
        assert linking.LinkableCode.from_path_or_obj(objects[1]) is objects[1]
        for code in objects:
            scaled = cuda.declare_device("scaled", "int32(int32)", link=code)

            @cuda.jit
            def kernel(r, x):
                i = cuda.grid(1)
                if i < len(r):
                    r[i] = scaled(x[i])

            r = np.zeros_like(x)
            if launch(kernel, r, x):
                np.testing.assert_array_equal(r, a * x + b)
    print("formats:", " ".join(sorted(os.path.basename(path) for path in paths)))


# ---- parameters and results of every type, with both ABIs ----

C_TYPES = {"bool": "bool", "i8": "signed char", "i16": "short", "i32": "int", "i64": "long long", "u8": "unsigned char",
           "u16": "unsigned short", "u32": "unsigned", "u64": "unsigned long long", "f32": "float", "f64": "double"}


def random_values(kind, count):
    dtype = np.dtype({"bool": "bool"}.get(kind) or kind[0] + str(int(kind[1:]) // 8))
    if kind == "bool" or kind[0] == "f":
        return random.integers(0, 2 if kind == "bool" else 100, count).astype(dtype)
    return random.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, count, dtype=dtype, endpoint=True)


def check_types(abi):
    kinds = [str(kind) for kind in random.permutation(list(C_TYPES))]
    result = str(random.choice(["i64", "f64", "u8", "bool"]))
    # The terms are exact, because each argument gives a small number.
    terms = " + ".join(f"(long long)(a{i}) % 16 * {i + 1}" for i in range(len(kinds)))
    parameters = [f"{C_TYPES[kind]} a{i}" for i, kind in enumerate(kinds)]
    value = f"(({C_TYPES[result]})((({terms}) % 100 + 100) % 100))"
    if abi == "c":
        text = f'extern "C" __device__ {C_TYPES[result]} mix({", ".join(parameters)}) {{ return {value}; }}'
    else:
        parameters.insert(0, f"{C_TYPES[result]} *r")
        text = f'extern "C" __device__ int mix({", ".join(parameters)}) {{ *r = {value}; return 0; }}'
    signature = types.Signature(types.BY_TEXT[result], [types.BY_TEXT[kind] for kind in kinds])
    mix = cuda.declare_device("mix", signature, link=cuda.CUSource(text, name="mix.cu"), abi=abi)

    @cuda.jit
    def kernel(r, a, b, c, d, e, f, g, h, k, m, n):
        i = cuda.grid(1)
        if i < len(r):
            r[i] = mix(a[i], b[i], c[i], d[i], e[i], f[i], g[i], h[i], k[i], m[i], n[i])

    columns = [random_values(kind, 50) for kind in kinds]
    r = np.zeros(50, random_values(result, 1).dtype)
    if not launch(kernel, r, *columns):
        return
    # C's remainder has the sign of the dividend
    total = np.zeros(50, np.int64)
    for i, (kind, column) in enumerate(zip(kinds, columns)):
        total += np.fmod(column.astype(np.int64), 16) * (i + 1)
    wanted = ((np.fmod(total, 100) + 100) % 100).astype(r.dtype)
    np.testing.assert_array_equal(r, wanted)


# ---- functions that call each other, and where they are linked ----

TWICE = 'extern "C" __device__ int twice(int *r, int x) { *r = 2 * x; return 0; }'
FOUR = """extern "C" __device__ int twice(int *r, int x);
extern "C" __device__ int four(int *r, int x) { int y; twice(&y, x); *r = 2 * y; return 0; }"""


def check_calls():
    twice_code, four_code = cuda.CUSource(TWICE, name="twice.cu"), cuda.CUSource(FOUR, name="four.cu")
    twice = cuda.declare_device("twice", "int32(int32)", link=twice_code)
    x = random.integers(-1000, 1000, 60).astype(np.int32)
    for kind in (set, tuple, list):
        four = cuda.declare_device("four", "int32(int32)", link=kind([four_code, twice_code]))

        @cuda.jit
        def inner(v):
            return twice(v) + 1

        # twice.cu is an input of both functions, and is linked once.
        @cuda.jit
        def kernel(r, x):
            i = cuda.grid(1)
            if i < len(r):
                r[i] = four(x[i]) + inner(x[i]) + inner(twice(x[i]))

        r = np.zeros_like(x)
        if launch(kernel, r, x):
            np.testing.assert_array_equal(r, 4 * x + 2 * x + 1 + 4 * x + 1)
    bare = cuda.declare_device("four", "int32(int32)")

    @cuda.jit(link=[write("twice.cu", TWICE), write("four.cu", FOUR)])
    def of_kernel(r, x):
        i = cuda.grid(1)
        if i < len(r):
            r[i] = bare(x[i])

    r = np.zeros_like(x)
    if launch(of_kernel, r, x):
        np.testing.assert_array_equal(r, 4 * x)


def check_same_names():
    """Functions with the same name in different code, in kernels with the same name."""
    x = random.integers(-1000, 1000, 30).astype(np.int32)
    for _ in range(2):
        for factor in (3, 5):
            text = f'extern "C" __device__ int times(int *r, int x) {{ *r = {factor} * x; return 0; }}'
            times = cuda.declare_device("times", "int32(int32)", link=cuda.CUSource(text))

            @cuda.jit
            def kernel(r, x):
                i = cuda.grid(1)
                if i < len(r):
                    r[i] = times(x[i])

            r = np.zeros_like(x)
            if launch(kernel, r, x):
                np.testing.assert_array_equal(r, factor * x)


# ---- arrays ----

def check_pointers():
    text = """extern "C" __device__ int total(float *r, float *x, int n)
    { float sum = 0; for (int i = 0; i < n; i++) sum += x[i]; *r = sum; return 0; }
    extern "C" __device__ int first(void *r, float *x) { x[0] = x[1]; return 0; }"""
    code = cuda.CUSource(text, name="arrays.cu")
    total = cuda.declare_device("total", "float32(CPointer(float32), int32)", link=code)
    first = cuda.declare_device("first", types.void(types.CPointer(types.float32)), link=code)

    @cuda.jit
    def kernel(r, x, n):
        if cuda.grid(1) == 0:
            r[0] = total(x, len(x))
            r[1] = total(x[n:], len(x) - n)
            first(x[n:])

    x, r, n = random.integers(0, 100, 20).astype(np.float32), np.zeros(2, np.float32), int(random.integers(1, 10))
    wanted = [x.sum(), x[n:].sum(), x[n + 1]]
    if launch(kernel, r, x, n):
        assert [*r, x[n]] == wanted
    try:
        import cffi
    except ImportError:
        return
    ffi = cffi.FFI()

    @cuda.jit
    def with_cffi(r, x, n):
        if cuda.grid(1) == 0:
            p = ffi.from_buffer(x[n:])
            r[0] = total(p, len(x) - n)

    wanted = x[n:].sum()
    if launch(with_cffi, r, x, n):
        assert r[0] == wanted


def check_headers():
    os.mkdir(os.path.join(folder, "include"))
    write("include/extra.cuh", "__device__ inline int plus(int x) { return x + EXTRA; }")
    write("beside.cuh", "#define EXTRA 7")
    path = write("headers.cu", '#include "beside.cuh"\n#include <extra.cuh>\n'
                 'extern "C" __device__ int plus7(int *r, int x) { *r = plus(x); return 0; }')
    cuda.config.CUDA_NVRTC_EXTRA_SEARCH_PATHS = os.path.join(folder, "include")
    plus7 = cuda.declare_device("plus7", "int32(int32)", link=path)

    @cuda.jit
    def kernel(r, x):
        i = cuda.grid(1)
        if i < len(r):
            r[i] = plus7(x[i])

    x = random.integers(-1000, 1000, 30).astype(np.int32)
    r = np.zeros_like(x)
    if launch(kernel, r, x):
        np.testing.assert_array_equal(r, x + 7)
    cuda.config.CUDA_NVRTC_EXTRA_SEARCH_PATHS = ""


def check_status():
    """If a function returns an error, its thread raises a kernel error."""
    text = 'extern "C" __device__ int positive(int *r, int x) { *r = x; return x <= 0; }'
    positive = cuda.declare_device("positive", "int32(int32)", link=cuda.CUSource(text))

    @cuda.jit
    def kernel(r, x):
        i = cuda.grid(1)
        if i < len(r):
            r[i] = positive(x[i])

    x = np.arange(1, 11, dtype=np.int32)
    r = np.zeros_like(x)
    if launch(kernel, r, x):
        np.testing.assert_array_equal(r, x)
        x[3] = -1

        def fail():
            kernel[1, 64](r, x)
            cuda.synchronize()

        refused(kjit.Error, "positive returned an error", fail)


# ---- rejected code, which needs a compiler ----

def check_code_errors():
    bar = cuda.declare_device("bar", "int32(int32)")
    x = np.zeros(4, np.int32)

    def make(*link):
        @cuda.jit(link=list(link))
        def kernel(r, x):
            r[0] = bar(x[0])

        return kernel

    path = write("error.cu", '\nextern "C" __device__ int bar(int *r, int x) {\n  SYNTAX ERROR\n}\n')
    refused(kjit.Error, f'{path}(3): error: identifier "SYNTAX" is undefined', launch, make(path), x, x)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        launch(make(cuda.CUSource('extern "C" __device__ int bar(int *r, int x) { int unused; return 0; }', name="warn.cu")), x, x)
    assert any("NVRTC log messages" in str(w.message) and "never referenced" in str(w.message) for w in caught), caught
    other = 'extern "C" __device__ int other(int *r, int x) { return 0; }'
    refused(kjit.Error, "bar", launch, make(cuda.CUSource(other)), x, x)
    good = 'extern "C" __device__ int bar(int *r, int x) { *r = x; return 0; }'
    twice = make(cuda.CUSource(good, name="a.cu"), cuda.CUSource(good + " ", name="b.cu"))
    refused(kjit.Error, "`bar` is defined twice in the code that is linked: by `a.cu` and by `b.cu`", launch, twice, x, x)
    named = cuda.declare_device("named", "int32(int32)", link=cuda.CUSource(good.replace("bar", "named")))
    code = textwrap.dedent("""
        @cuda.jit
        def named(r, x):
            r[0] = function(x[0])
    """)
    path, names = write("named.py", code), {"cuda": cuda, "function": named}
    exec(compile(code, path, "exec"), names)
    refused(kjit.Error, "has the same name as the kernel", launch, names["named"], x, x)
    twins = [cuda.declare_device("twin", "int32(int32)", abi="c", link=cuda.CUSource(f'extern "C" __device__ int twin(int x) {{ return {n}; }}'))
             for n in (1, 2)]
    first, second = twins

    @cuda.jit
    def confused(r, x):
        r[0] = first(x[0]) + second(x[0])

    refused(kjit.Error, "two extern functions `twin` are bound to different functions", launch, confused, x, x)


# ---- code that is rejected everywhere ----

def check_refusals():
    code = cuda.CUSource(TWICE, name="twice.cu")
    twice, bare = cuda.declare_device("twice", "int32(int32)", link=code), cuda.declare_device("bare", "int32(int32)")
    assert twice.name == "twice" and twice.sig.return_type == types.int32 and twice.sig.args == (types.int32,)
    refused(TypeError, "which only kernels can call", twice, 3)
    refused(TypeError, "Return type", cuda.declare_device, "f", "(float32[:],)")
    refused(TypeError, "Return type", cuda.declare_device, "f", (types.float32[:],))
    refused(NotImplementedError, "Unsupported ABI: d", lambda: cuda.declare_device("f", "int32()", abi="d"))
    refused(ValueError, "not a valid name of a C function", cuda.declare_device, "a b", "int32()")
    refused(RuntimeError, "Don't know how to link file with extension .cuh", cuda.declare_device, "f", "int32()", "header.cuh")
    refused(RuntimeError, "Don't know how to link file with no extension", cuda.declare_device, "f", "int32()", "data")
    refused(errors.LinkerError, "nonexistent.a not found", cuda.declare_device, "f", "int32()", "nonexistent.a")
    refused(TypeError, "Expected path to file or a LinkableCode", cuda.declare_device, "f", "int32()", [b"\x7fELF"])
    refused(TypeError, "Expected path to file or a LinkableCode", cuda.declare_device, "f", "int32()", 5)
    refused(NotImplementedError, "setup_callback", lambda: cuda.CUSource("", setup_callback=print))
    refused(TypeError, "takes a string or bytes", cuda.CUSource, 5)
    refused(TypeError, "no format", cuda.LinkableCode, "")
    refused(ValueError, "link keyword invalid", lambda: cuda.jit(lambda: None, device=True, link=[code]))
    assert cuda.CUSource("a").name == "<unnamed-cu>" and cuda.Cubin(b"a", name="n").name == "n"

    @cuda.jit
    def unlinked(r, x):
        r[0] = bare(x[0])

    @cuda.jit
    def wrong(r, x):
        r[0] = taking(x[0])

    @cuda.jit(link=[cuda.Cubin(b"no cubin", name="none.cubin")])
    def no_cubin(r, x):
        r[0] = bare(x[0])

    x = np.zeros(4, np.int32)
    refused(errors.LinkerError, "no linked code defines `bare`", lambda: unlinked[1, 1](x, x))
    taking = cuda.declare_device("taking", "int32(complex64)", link=code)
    refused(NotImplementedError, "taking has the type complex64", lambda: wrong[1, 1](x, x))
    refused(kjit.Error, "none.cubin is not a cubin", lambda: no_cubin[1, 1](x, x))
    waits = cuda.CUSource('extern "C" __device__ int waiting(int *r) { *r = 0; return 0; }', name="waiting.cu")
    waiting = cuda.declare_device("waiting", "int32()", link=waits, use_cooperative=True)

    @cuda.jit("void(int32[:])")
    def cooperative(r):
        r[0] = waiting()

    assert cooperative.overloads[cooperative.signatures[0]].cooperative
    assert "twice" in cuda.compile_ptx(lambda v: twice(v), (types.int32,), device=True, cc=capability)[0]


def check_on_cpu():
    twice = cuda.declare_device("twice", "int32(int32)", link=cuda.CUSource(TWICE, name="twice.cu"))

    @cuda.jit
    def calling(r, x):
        r[0] = twice(x[0])

    @cuda.jit(link=[cuda.CUSource("no CUDA C")])
    def not_calling(r, x):
        r[0] = x[0] + 1

    x, r = random.integers(0, 100, 4).astype(np.int32), np.zeros(4, np.int32)
    refused(kjit.Error, "`twice` is linked code for GPUs (twice.cu), which cannot run on the CPU", lambda: calling[1, 1](r, x))
    not_calling[1, 1](r, x)
    assert r[0] == x[0] + 1


def check_missing_library():
    twice = cuda.declare_device("twice", "int32(int32)", link=cuda.CUSource(TWICE, name="twice.cu"))

    @cuda.jit
    def kernel(r, x):
        r[0] = twice(x[0])

    wanted = "nvidia-nvjitlink" if nvrtc else "twice.cu is CUDA C, which needs the library NVRTC: install the Python package nvidia-cuda-nvrtc"
    refused(kjit.Error, wanted, launch, kernel, np.zeros(1, np.int32), np.zeros(1, np.int32))


try:
    check_refusals()
    if not on_gpu:
        check_on_cpu()
    if nvrtc and (nvjitlink or on_gpu):
        for check in (check_formats, check_calls, check_same_names, check_pointers, check_headers, check_status, check_code_errors):
            check()
        for abi in ("numba", "c"):
            for _ in range(4 if on_gpu else 2):
                check_types(abi)
    else:
        check_missing_library()
        print("nothing was linked: there is no", "nvJitLink" if nvrtc else "NVRTC")
finally:
    shutil.rmtree(folder)
print("linked_code: good", file=sys.stderr)
