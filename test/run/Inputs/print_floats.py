"""print_floats.py KJIT-RUN KJIT-COMPILE DIRECTORY DEVICE: floats as text, by the kernel's `print`, by --print and as literals of canonical kernel IR.

Numbers of random bit patterns, near powers of two and powers of ten. f64 is compared with Python's repr. For the narrow types exact fractions decide: the text reads back as the
number, no decimal with fewer digits does, and none with as many digits is nearer.
"""
import decimal
import fractions
import math
import random
import struct
import subprocess
import sys

run, compiler, directory, device = sys.argv[1:]
draw = random.Random(20261128)
COUNT = 1500
# Name: bits, bits of precision, exponent of the smallest number, bits of the mantissa, unsigned integers of NumPy.
FORMATS = {"f64": (64, 53, -1074, 52, "u8"), "f32": (32, 24, -149, 23, "u4"), "f16": (16, 11, -24, 10, "u2"), "bf16": (16, 8, -133, 7, "u2")}


def patterns(name):
    """Random bits, subnormal numbers, powers of two and adjacent numbers, all with both signs."""
    bits, _, _, mantissa, _ = FORMATS[name]
    powers = [(draw.randrange(1 << bits - 1 - mantissa) << mantissa) + draw.choice([-1, 0, 0, 1]) for _ in range(COUNT // 3)]
    tiny = [draw.randrange(1 << draw.randrange(1, mantissa + 1)) for _ in range(COUNT // 6)]
    found = [pattern % (1 << bits - 1) for pattern in powers + tiny + [draw.getrandbits(bits - 1) for _ in range(COUNT // 2)]]
    return [0, 1 << bits - 1] + [pattern | draw.getrandbits(1) << bits - 1 for pattern in found]


def value_of(name, pattern):
    """Returns the exact value as a float: f64 can represent each format."""
    bits, precision, least, mantissa, _ = FORMATS[name]
    sign, field, rest = -1 if pattern >> bits - 1 else 1, pattern >> mantissa & (1 << bits - 1 - mantissa) - 1, pattern & (1 << mantissa) - 1
    if field == (1 << bits - 1 - mantissa) - 1:
        return math.nan if rest else sign * math.inf
    return math.copysign(math.ldexp(rest + (1 << mantissa) * (field > 0), least + max(field, 1) - 1), sign)


def ends(name, value):
    """Returns the decimals between which every decimal reads back as the value, and whether the ends do."""
    _, precision, least, _, _ = FORMATS[name]
    step = max(math.frexp(value)[1] - precision, least)
    whole = int(math.ldexp(value, -step))
    half, exact = fractions.Fraction(2) ** step / 2, fractions.Fraction(value)
    return exact - (half / 2 if whole == 1 << precision - 1 and step > least else half), exact + half, whole % 2 == 0


def is_shortest(name, value, text):
    if math.isnan(value) or math.isinf(value) or value == 0:
        return text == {"nan": "nan", "inf": "inf", "-inf": "-inf", "0.0": "0.0", "-0.0": "-0.0"}[repr(value)]
    if text.startswith("-") != (value < 0):
        return False
    low, high, is_closed = ends(name, abs(value))
    exact = fractions.Fraction(abs(value))

    def reads_back(number):
        return low <= number <= high if is_closed else low < number < high

    parts = decimal.Decimal(text.lstrip("-")).normalize().as_tuple()
    unit, number = fractions.Fraction(10) ** parts.exponent, int("".join(map(str, parts.digits)))
    neighbours = [number * unit - unit, number * unit + unit]
    if not reads_back(number * unit) or any(reads_back(n) and abs(n - exact) < abs(number * unit - exact) for n in neighbours if len(parts.digits) == len(str(n / unit))):
        return False
    below = exact // (10 * unit) * 10 * unit
    return len(parts.digits) == 1 or not (reads_back(below) or reads_back(below + 10 * unit))


def write_array(path, kind, patterns):
    header = repr({"descr": f"<{kind}", "fortran_order": False, "shape": (len(patterns),)}).encode()
    header += b" " * (53 - len(header) % 64 + (64 if len(header) % 64 > 53 else 0)) + b"\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + struct.pack(f"<{len(patterns)}{ {'u8': 'Q', 'u4': 'I', 'u2': 'H'}[kind] }", *patterns))


def output(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout


wrong = 0


def check(what, name, pattern, text):
    global wrong
    value = value_of(name, pattern)
    if what == "--save" and math.isfinite(value) and text.lstrip("-").isdigit() and float(text) == value:
        return  # files contain whole numbers with all digits
    is_right = text == repr(value) if name == "f64" and what == "print" else is_shortest(name, value, text if "n" in text or set(text) & set(".e") else text + ".0")
    if not is_right:
        wrong += 1
        print(f"{what}: {name} {pattern:#x} is {text}, Python's f64 {value!r}")


for name, (bits, _, _, _, kind) in FORMATS.items():
    numbers = patterns(name)
    array = f"{directory}/{name}.npy"
    write_array(array, kind, numbers)
    source = f"{directory}/{name}.kir"
    with open(source, "w") as file:
        file.write(f"kernel k(r, x) @grid(1) @block(1) {{\n  for i in range(len(x)) {{\n    r[i] = bitcast({name}, x[i])\n    print(r[i], (r[i],), c128(r[i], 0))\n  }}\n}}\n")
    lines = output(run, source, "--device", device, "--arg", f"x=@{array}", "--arg", f"r=zeros:{name}[{len(numbers)}]", "--launch", "k(r, x)", "--save", f"r={directory}/{name}.csv").splitlines()
    printed = [line.split(" ")[0] for line in lines]
    assert len(printed) == len(numbers)
    for pattern, text, line in zip(numbers, printed, lines):
        check("print", name, pattern, text)
        assert line.split(" ")[1] == f"({text},)", line
        if name == "f64":
            assert line.split(" ")[2][1:-4] == (text[:-2] if text.endswith(".0") else text), line
    saved = open(f"{directory}/{name}.csv").read().split()
    for pattern, text in zip(numbers, saved):
        check("--save", name, pattern, text)
    finite = [pattern for pattern in numbers if math.isfinite(value_of(name, pattern)) and not pattern >> bits - 1][:300]
    with open(source, "w") as file:
        file.write("kernel k(r) @grid(1) @block(1) {\n" + "".join(f"  r[0] = {value_of(name, pattern)!r}{name}\n" for pattern in finite) + "}\n")
    literals = [line.split("= ")[1] for line in output(compiler, source, "--emit", "kir").splitlines() if "= " in line]
    assert len(literals) == len(finite)
    for pattern, text in zip(finite, literals):
        assert text.endswith(name)
        check("literal", name, pattern, text[:-len(name)])
sys.exit(wrong != 0)
