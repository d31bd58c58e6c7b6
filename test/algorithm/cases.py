"""Defines a test case of the algorithms, and runs all cases of a family.

A case is one kjit-run --call with fresh random arrays, and the results that NumPy or an independent loop gives. One
process runs many cases. If the process fails, each case runs in its own process, to find the failing case. Every call
runs twice, with different result arrays, and must give the same bits.
"""
import dataclasses
import os
import shlex
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from share import share_of

MAKERS = []
LARGE_MAKERS = []
LARGEST = 10_000_000  # number of elements in a large case
BATCH = 60  # number of cases in a process
SMALL = 5000  # maximum number of elements in a case that runs with all checks
ROOM_S = 1200  # limit for a process outside of lit; lit itself has a shorter limit


@dataclasses.dataclass
class Expected:
    value: np.ndarray
    rtol: float
    atol: float
    kind: str  # "bf16", which is saved as f32, or None for the value's own type


class Case:
    """call: the text of the call, with {x} in place of each array and result."""

    def __init__(self, name, call, **arrays):
        self.name, self.call = name, call
        self.arrays, self.kinds, self.expected = {}, {}, {}
        for key, value in arrays.items():
            self.array(key, value)

    def array(self, name, value, kind=None):
        """kind: an element type to which the file is converted, or a struct of the module."""
        self.arrays[name] = np.array(value, order="K")
        if kind:
            self.kinds[name] = kind
        return self

    def expect(self, name, value, rtol=0.0, atol=0.0, kind=None):
        """The result has the type and shape of the value."""
        self.expected[name] = Expected(np.asarray(value), rtol, atol, kind)
        return self

    def elements(self):
        return max([value.size for value in [*self.arrays.values(), *[e.value for e in self.expected.values()]]], default=0)

    def runs(self, prefix):
        """Returns the texts of both calls. They write to different arrays."""
        texts = []
        for run in (0, 1):
            names = {name: f"{prefix}{name}" for name in self.arrays}
            names.update({name: f"{prefix}{name}_{run}" for name in self.expected})
            texts.append(self.call.format(**names))
        return texts


def cases(make):
    """Registers make(rng), which returns cases of the current family."""
    MAKERS.append((make, None))
    return make


def some_cases(count):
    """Registers a function that returns many cases. A run draws this number of them at random, or a third of them with all
    checks."""
    def register(make):
        MAKERS.append((make, count))
        return make
    return register


def large_case(make):
    """Registers make(rng, n), which returns one case with n = LARGEST elements and a name that begins with "large". It is
    called when a run draws the case."""
    LARGE_MAKERS.append(make)
    return make


def choose(rng, made, count, largest):
    made = [case for case in made if case.elements() <= largest]
    count = len(made) if count is None else count if largest > SMALL else count // 3
    return made if count >= len(made) else [made[i] for i in sorted(rng.choice(len(made), count, replace=False))]


def describe(seed, only, largest):
    described = []
    for number, (make, count) in enumerate(MAKERS):
        rng = np.random.default_rng([seed, number])
        made = [case for case in make(rng) if only is None or only in case.name]
        described += choose(rng, made, count, largest)
    if largest >= LARGEST:
        wanted = LARGE_MAKERS if only is None or only.startswith("large") else []
        described += [(make, np.random.default_rng([seed, 1000 + number])) for number, make in enumerate(wanted)]
    return list(enumerate(described))


def made(described):
    """Returns (number, Case) pairs. This function creates the large cases."""
    number, case = described
    if isinstance(case, tuple):
        make, rng = case
        case = make(rng, LARGEST)
    return number, case


# ---- running ----

def argument(name, value, kind, folder, saved):
    """Returns the --arg option for an array. saved: paths of saved files by content, because both runs may start with the same
    array."""
    path = saved.setdefault(id(value), os.path.join(folder, f"{name}.npy"))
    if not os.path.exists(path):
        np.save(path, value)
    return ["--arg", f"{name}=@{path}" + (f":as={kind}" if kind else "")]


def case_line(number, case, folder):
    prefix = f"c{number}_"
    line, saves, saved = [], [], {}
    for name, value in case.arrays.items():
        own = [f"{prefix}{name}_{run}" for run in (0, 1)] if name in case.expected else [f"{prefix}{name}"]
        for full in own:
            line += argument(full, value, case.kinds.get(name), folder, saved)
    for text in case.runs(prefix):
        line += ["--call", text]
    for name in case.expected:
        for run in (0, 1):
            saves += ["--save", f"{prefix}{name}_{run}={os.path.join(folder, f'{prefix}{name}_{run}.out.npy')}"]
    return line, saves


def check_result(name, expected, got):
    want = expected.value
    if got.shape != want.shape:
        raise AssertionError(f"{name}: shape {got.shape}, expected {want.shape}")
    dtype = np.dtype("f4") if expected.kind == "bf16" else want.dtype
    if got.dtype != dtype:
        raise AssertionError(f"{name}: type {got.dtype}, expected {dtype}")
    if expected.rtol or expected.atol:
        np.testing.assert_allclose(got, want, rtol=expected.rtol, atol=expected.atol, err_msg=name)
    else:
        np.testing.assert_array_equal(got, want, err_msg=name)


def bits(array):
    """Returns the bytes without a struct's padding, which has no defined value."""
    if array.dtype.names:
        return b"".join(bits(np.ascontiguousarray(array[name])) for name in array.dtype.names)
    return array.tobytes()


def check_case(number, case, folder):
    for name, expected in case.expected.items():
        first, second = (np.load(os.path.join(folder, f"c{number}_{name}_{run}.out.npy")) for run in (0, 1))
        check_result(name, expected, first)
        if bits(first) != bits(second):
            raise AssertionError(f"{name}: two runs gave different bits")


def run_batch(tool, module, device, batch):
    """Returns a list with (case, message) for each failure."""
    with tempfile.TemporaryDirectory() as folder:
        command = [*shlex.split(tool), *([module] if module else []), "--quiet", "--device", device, "--checks", os.environ.get("KJIT_CHECKS", "none")]
        saves = []
        for number, case in batch:
            line, saved = case_line(number, case, folder)
            command += line
            saves += saved
        process = subprocess.run(command + saves, capture_output=True, text=True, errors="replace", timeout=ROOM_S)
        if process.returncode != 0:
            return [(case, f"{case.call}: kjit-run exited with {process.returncode}\n{process.stdout}{process.stderr}") for _, case in batch]
        failures = []
        for number, case in batch:
            try:
                check_case(number, case, folder)
            except (AssertionError, OSError) as error:
                failures.append((case, f"{case.call}: {error}"))
        return failures


def run_all(tool, family, module, device, seed, only, largest):
    described = describe(seed, only, largest)
    if only is None:
        described = share_of(described, family, device)
    failures = []
    for first in range(0, len(described), BATCH):
        batch = [made(one) for one in described[first:first + BATCH]]
        failed = run_batch(tool, module, device, batch)
        if failed and len(batch) > 1:
            failed = [failure for one in batch for failure in run_batch(tool, module, device, [one])]
        failures += failed
    for case, message in failures[:10]:
        print(f"FAILED {family} case \"{case.name}\" on {device}, seed {seed}\n{message}\n", file=sys.stderr)
    print(f"{family} on {device}, seed {seed}: {len(described) - len(failures)} of {len(described)} cases right")
    return 1 if failures or not described else 0
