"""Common code of the examples' scripts: writes inputs and expected results to files, and runs kjit-run, which runs the program
and checks its results."""
import argparse
import os
import secrets
import shlex
import shutil
import subprocess
import sys
import tempfile

import numpy as np


class Program:
    """A .kir file with its inputs, its launches and the expected results, which are computed independently."""

    def __init__(self, module, description, options=lambda parser: None):
        parser = argparse.ArgumentParser(description=description)
        parser.add_argument("--kjit-run", default=os.environ.get("KJIT_RUN", "kjit-run"), help="the tool; default: KJIT_RUN, else the one on PATH")
        parser.add_argument("--device", default="auto", choices=["auto", "cpu", "cuda"])
        parser.add_argument("--seed", type=int, default=None, help="repeat a run that printed this seed")
        options(parser)
        self.options = parser.parse_args()
        self.module = module
        self.seed = secrets.randbits(31) if self.options.seed is None else self.options.seed
        self.rng = np.random.default_rng(self.seed)
        self.folder = tempfile.mkdtemp(prefix="kjit-example-")
        self.command = []

    def file(self, name):
        return os.path.join(self.folder, name)

    def array(self, name, value):
        """Adds an argument with the contents of a NumPy array."""
        np.save(self.file(name + ".npy"), value)
        self.command += ["--arg", f"{name}=@{self.file(name + '.npy')}"]
        return value

    def vectors(self, name, value, element="f32"):
        """Like `array`, for an array of vectors: the last dimension contains the lanes."""
        np.save(self.file(name + ".npy"), value)
        self.command += ["--arg", f"{name}=@{self.file(name + '.npy')}:as={element}x{value.shape[-1]}"]
        return value

    def value(self, name, text):
        """Adds an argument in the form of kjit-run's command line."""
        self.command += ["--arg", f"{name}={text}"]

    def launch(self, text):
        self.command += ["--launch", text]

    def call(self, text):
        """Adds an algorithm over whole arrays. Its results need no separate arguments."""
        self.command += ["--call", text]

    def expect(self, name, value):
        """Adds a check: the result must be close to these values, within rtol and atol of `run`."""
        np.save(self.file(name + ".expected.npy"), value)
        self.command += ["--check", f"{name}={self.file(name + '.expected.npy')}"]

    def tool(self, *more, device=None):
        """Returns the command line of kjit-run for everything added so far."""
        return [*shlex.split(self.options.kjit_run), self.module, "--device", device or self.options.device, *self.command, *more]

    def run(self, rtol=0.0, atol=0.0, more=()):
        """Runs kjit-run. The script exits with the status of the check."""
        try:
            print(f"{os.path.basename(self.module)}: seed {self.seed}", flush=True)
            status = subprocess.run(self.tool("--rtol", f"{rtol:g}", "--atol", f"{atol:g}", *more)).returncode
            print(f"{os.path.basename(self.module)}: {'the results are right' if status == 0 else f'FAILED, exit status {status}'}")
            return status
        finally:
            self.close()

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)


def beside(script, name):
    return os.path.join(os.path.dirname(os.path.abspath(script)), name)
