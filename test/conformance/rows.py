"""Rows of the conformance table: what a row is, and how a file's rows run.

A row names kernels of one .kir file, gives them inputs, launches them and states what the outputs must hold. All rows of a file run in one kjit-run
process; only when that fails does each row run on its own, so that the failing one is named. Outputs are saved by kjit-run and compared here.
"""
import os
import shlex
import subprocess
import sys
import tempfile

import numpy as np

ROWS = []
TARGETS = ("cpu", "cuda")


class Row:
    """One row while it is described: arrays and scalars, launches in order, expectations."""

    def __init__(self, name, describe, targets):
        self.name, self.describe, self.targets = name, describe, targets
        self.arrays, self.scalars, self.launches, self.checks = {}, {}, [], []
        self.vectors = {}

    def array(self, name, value):
        """An array argument; its memory order (C or F) is the argument's layout."""
        value = np.asanyarray(value)
        self.arrays[name] = value
        return value

    def arrays_of(self, **values):
        for name, value in values.items():
            self.array(name, value)

    def vectors_of(self, kind, **values):
        """Arrays of vectors, "f32x4": the last dimension of the value is that of the lanes."""
        self.arrays_of(**values)
        self.vectors.update({name: kind for name in values})

    def structs_of(self, kind, **values):
        """Arrays of structs of the module, numpy's structured arrays."""
        self.vectors_of(kind, **values)

    def zeros(self, name, count, dtype):
        """Large arrays that are never saved as files: kjit-run makes them."""
        self.scalars[name] = f"zeros:{dtype}[{count}]"

    def launch(self, kernel, configuration, *arguments):
        """configuration: "grid, block", "grid, block, dynamic bytes", or "" where kjit chooses. Arguments: names of this row, literals, names of funcs."""
        self.launches.append((kernel, configuration, arguments))

    def expect(self, name, value, rtol=0.0, atol=0.0):
        """The array after all launches, exactly or within tolerances; NaN equals NaN."""
        value = np.asanyarray(value)

        def check(results):
            got = results[name]
            want = value.astype(got.dtype) if value.dtype != got.dtype else value
            if got.shape != want.shape:
                raise AssertionError(f"{name}: shape {got.shape}, expected {want.shape}")
            if rtol or atol:
                np.testing.assert_allclose(got, want, rtol=rtol, atol=atol, err_msg=name)
            else:
                np.testing.assert_array_equal(got, want, err_msg=name)

        self.checks.append(((name,), check))

    def verify(self, names, check):
        """check(arrays...) asserts what cannot be said as one expected array."""
        self.checks.append((tuple(names), lambda results: check(*[results[name] for name in names])))


def row(name, targets=TARGETS):
    """Registers describe(row, rng) as a row of the file being loaded."""
    def register(describe):
        ROWS.append((name, describe, targets))
        return describe
    return register


def wrap(values, dtype):
    """Python integers reduced into an integer type, as kjit's arithmetic wraps."""
    bits = np.dtype(dtype).itemsize * 8
    reduced = [int(v) & ((1 << bits) - 1) for v in values]
    return np.array(reduced, dtype=f"u{bits // 8}").view(dtype)


def describe_rows(seed, device):
    described = []
    for number, (name, describe, targets) in enumerate(ROWS):
        if device not in targets:
            continue
        r = Row(name, describe, targets)
        describe(r, np.random.default_rng([seed, number]))
        described.append((number, r))
    return described


def command_line(kjit_run, module, device, described, folder):
    command = [*shlex.split(kjit_run), module, "--device", device, "--checks", os.environ.get("KJIT_CHECKS", "none")]  # the table is of unchecked mode
    saves = []
    for number, r in described:
        prefix = f"r{number}_"
        saved = {name for names, _ in r.checks for name in names}
        for name, value in r.arrays.items():
            path = os.path.join(folder, f"{prefix}{name}.npy")
            np.save(path, value)
            kind = f":as={r.vectors[name]}" if name in r.vectors else ""
            command += ["--arg", f"{prefix}{name}=@{path}{kind}"]
        for name, text in r.scalars.items():
            command += ["--arg", f"{prefix}{name}={text}"]
        for kernel, configuration, arguments in r.launches:
            own = r.arrays.keys() | r.scalars.keys()
            # a name, or a view of one: "x[1:]"
            names = ", ".join(prefix + str(a) if str(a).partition("[")[0] in own else str(a) for a in arguments)
            command += ["--launch", f"{kernel}[{configuration}]({names})" if configuration else f"{kernel}({names})"]
        for name in sorted(saved):
            saves += ["--save", f"{prefix}{name}={os.path.join(folder, f'{prefix}{name}.out.npy')}"]
    return command + saves


def run_rows(kjit_run, module, device, described):
    """Runs the rows in one process. Returns a list of (row, message) for what failed."""
    with tempfile.TemporaryDirectory() as folder:
        command = command_line(kjit_run, module, device, described, folder)
        process = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=120)
        if process.returncode != 0:
            text = f"kjit-run exited with {process.returncode}\n{process.stdout}{process.stderr}"
            return [(r, text) for _, r in described]
        failures = []
        for number, r in described:
            for names, check in r.checks:
                try:
                    check({name: np.load(os.path.join(folder, f"r{number}_{name}.out.npy")) for name in names})
                except (AssertionError, OSError) as error:
                    failures.append((r, str(error)))
        return failures


def run_all(kjit_run, module, device, seed, only=None):
    described = [d for d in describe_rows(seed, device) if only is None or only in d[1].name]
    failures = run_rows(kjit_run, module, device, described)
    if failures and len(described) > 1:
        failures = [failure for d in described for failure in run_rows(kjit_run, module, device, [d])]
    for r, message in failures:
        print(f"FAILED {os.path.basename(module)} row \"{r.name}\" on {device}, seed {seed}\n{message}\n", file=sys.stderr)
    failed = len({r.name for r, _ in failures})
    print(f"{os.path.basename(module)} on {device}, seed {seed}: {len(described) - failed} of {len(described)} rows right")
    return 1 if failures else 0
