"""Rows of the conformance table: what a row is, and how a file's rows run.

A row names kernels of one .kir file, gives them inputs, launches them and states what the outputs must hold. All rows of a file run in one kjit-run
process; only when that fails does each row run on its own, so that the failing one is named. Outputs are saved by kjit-run and compared here.
"""
import collections
import os
import re
import shlex
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, os.path.join(os.environ.get("KJIT_SOURCE_DIR") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."), "test"))
from share import share_of

ROWS = []
TARGETS = ("cpu", "cuda")
ROOM_S = 1200  # limit for a process outside of lit; lit itself has a shorter limit
DRAWS = 4  # maximum number of draws: an input equals its own result by chance in about one of a thousand rows


NUMPY_OF = {"i8": "i1", "u8": "u1", "i16": "i2", "u16": "u2", "f16": "f2", "i32": "i4", "u32": "u4", "f32": "f4", "bf16": "f4", "i64": "i8", "u64": "u8", "f64": "f8"}
Check = collections.namedtuple("Check", "names run unchanged")


class Row:
    """Builds one row: its arrays and scalars, its launches in order, and its expectations."""

    def __init__(self, name, describe, targets):
        self.name, self.describe, self.targets = name, describe, targets
        self.arrays, self.scalars, self.launches, self.checks = {}, {}, [], []
        self.vectors = {}

    def array(self, name, value):
        """Declares an array argument. The value's memory order (C or F) determines the argument's layout. The row gets
        a copy, so later changes to the caller's array do not reach the kernel."""
        value = np.asanyarray(value)
        self.arrays[name] = snapshot(value)
        return value

    def arrays_of(self, **values):
        for name, value in values.items():
            self.array(name, value)

    def vectors_of(self, kind, **values):
        """Declares arrays of vectors, such as "f32x4". The last dimension of the value contains the vector
        components."""
        self.arrays_of(**values)
        self.vectors.update({name: kind for name in values})

    def structs_of(self, kind, **values):
        """Declares arrays of the module's structs, from NumPy's structured arrays."""
        self.vectors_of(kind, **values)

    def zeros(self, name, count, dtype):
        """Declares large arrays that kjit-run creates, so that they are never saved as files."""
        self.scalars[name] = f"zeros:{dtype}[{count}]"

    def launch(self, kernel, configuration, *arguments):
        """configuration: "grid, block" or "grid, block, dynamic bytes", or "" if kjit chooses it. Arguments: names from
        this row, literals, or names of funcs."""
        self.launches.append((kernel, configuration, arguments))

    def expect(self, name, value, rtol=0.0, atol=0.0, unchanged=False):
        """Expects these contents of the array after all launches, exactly or within tolerances. NaN equals NaN.
        unchanged: the launches must not change the array, so it may start with the expected values."""
        value = snapshot(np.asanyarray(value))

        def check(results):
            got = results[name]
            want = value.astype(got.dtype) if value.dtype != got.dtype else value
            if got.shape != want.shape:
                raise AssertionError(f"{name}: shape {got.shape}, expected {want.shape}")
            if rtol or atol:
                np.testing.assert_allclose(got, want, rtol=rtol, atol=atol, err_msg=name)
            else:
                np.testing.assert_array_equal(got, want, err_msg=name)

        self.checks.append(Check((name,), check, unchanged))

    def verify(self, names, check, unchanged=False):
        """check(arrays...) asserts conditions that a single expected array cannot express. unchanged: as for expect."""
        self.checks.append(Check(tuple(names), lambda results: check(*[results[name] for name in names]), unchanged))

    def idle_check(self):
        """Returns a message if the first check passes with the initial contents of the outputs, because the row would
        then pass without a kernel. Otherwise returns None."""
        for check in self.checks:
            if self.passes_at_start(check) == check.unchanged:
                continue
            what = "say unchanged, but are to change" if check.unchanged else "have what is expected before anything is launched: start with other values, or say unchanged=True"
            return f"row \"{self.name}\": the outputs {', '.join(check.names)} {what}"
        return None

    def passes_at_start(self, check):
        try:
            with np.errstate(all="ignore"):
                check.run({name: self.start_of(name) for name in check.names})
            return True
        except Exception:  # if no kernel has computed the values, the check may fail with any exception
            return False

    def start_of(self, name):
        """Returns the arguments that the check would get if no kernel ran."""
        if name in self.arrays:
            return self.arrays[name]
        maker, dtype, count = re.fullmatch(r"(\w+):(\w+)\[(\d+)\]", self.scalars[name]).groups()
        assert maker == "zeros"
        return np.zeros(int(count), NUMPY_OF[dtype])


def snapshot(value):
    """Returns a read-only copy of all bytes, including the padding of structs."""
    order = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
    return np.ndarray(value.shape, value.dtype, value.tobytes(order), order=order)


def row(name, targets=TARGETS):
    """Registers describe(row, rng) as a row of the current file."""
    def register(describe):
        ROWS.append((name, describe, targets))
        return describe
    return register


def some(rng, items, count):
    """Returns this number of the items, in order. Each item needs its own compilations, and each run takes different
    items."""
    items = list(items)
    return [items[i] for i in sorted(rng.choice(len(items), min(count, len(items)), replace=False).tolist())]


def wrap(values, dtype):
    """Reduces Python integers to an integer type, as kjit's arithmetic wraps."""
    bits = np.dtype(dtype).itemsize * 8
    reduced = [int(v) & ((1 << bits) - 1) for v in values]
    return np.array(reduced, dtype=f"u{bits // 8}").view(dtype)


def describe_row(seed, number):
    """Builds the row with inputs from the seed. Random inputs can equal their own result by chance, for example if a
    scan in place has one element. In this case new inputs are drawn. A row that would pass without a kernel in every
    draw is rejected."""
    name, describe, targets = ROWS[number]
    for draw in range(DRAWS):
        r = Row(name, describe, targets)
        describe(r, np.random.default_rng([seed, number, draw]))
        idle = r.idle_check()
        if idle is None:
            return r
    raise SystemExit(f"{idle} (seed {seed}, {DRAWS} draws)")


def describe_rows(seed, device, only):
    return [(number, describe_row(seed, number)) for number, (name, _, targets) in enumerate(ROWS) if device in targets and (only is None or only in name)]


def command_line(kjit_run, module, device, described, folder):
    # the table's rows run without checks
    command = [*shlex.split(kjit_run), module, "--device", device, "--checks", os.environ.get("KJIT_CHECKS", "none")]
    saves = []
    for number, r in described:
        prefix = f"r{number}_"
        saved = {name for check in r.checks for name in check.names}
        for name, value in r.arrays.items():
            path = os.path.join(folder, f"{prefix}{name}.npy")
            np.save(path, value)
            kind = f":as={r.vectors[name]}" if name in r.vectors else ""
            command += ["--arg", f"{prefix}{name}=@{path}{kind}"]
        for name, text in r.scalars.items():
            command += ["--arg", f"{prefix}{name}={text}"]
        for kernel, configuration, arguments in r.launches:
            own = r.arrays.keys() | r.scalars.keys()
            # a name, or a view such as "x[1:]"
            names = ", ".join(prefix + str(a) if str(a).partition("[")[0] in own else str(a) for a in arguments)
            command += ["--launch", f"{kernel}[{configuration}]({names})" if configuration else f"{kernel}({names})"]
        for name in sorted(saved):
            saves += ["--save", f"{prefix}{name}={os.path.join(folder, f'{prefix}{name}.out.npy')}"]
    return command + saves


def run_rows(kjit_run, module, device, described):
    """Runs the rows in one process. Returns a list with (row, message) for each failure."""
    with tempfile.TemporaryDirectory() as folder:
        command = command_line(kjit_run, module, device, described, folder)
        process = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=ROOM_S)
        if process.returncode != 0:
            text = f"kjit-run exited with {process.returncode}\n{process.stdout}{process.stderr}"
            return [(r, text) for _, r in described]
        failures = []
        for number, r in described:
            for check in r.checks:
                try:
                    check.run({name: np.load(os.path.join(folder, f"r{number}_{name}.out.npy")) for name in check.names})
                except (AssertionError, OSError) as error:
                    failures.append((r, str(error)))
        return failures


def run_all(kjit_run, module, device, seed, only=None):
    described = describe_rows(seed, device, only)
    if only is None:
        described = share_of(described, os.path.basename(module), device, os.environ.get("KJIT_CHECKS", "none"))
    failures = run_rows(kjit_run, module, device, described)
    if failures and len(described) > 1:
        failures = [failure for d in described for failure in run_rows(kjit_run, module, device, [d])]
    for r, message in failures:
        print(f"FAILED {os.path.basename(module)} row \"{r.name}\" on {device}, seed {seed}\n{message}\n", file=sys.stderr)
    failed = len({r.name for r, _ in failures})
    print(f"{os.path.basename(module)} on {device}, seed {seed}: {len(described) - failed} of {len(described)} rows right")
    return 1 if failures else 0
