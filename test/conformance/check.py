#!/usr/bin/env python3
"""check.py FILE.kir: runs the rows that FILE.py in the same folder describes, with fresh random inputs, and compares
every output with its independent expectation."""
import argparse
import importlib.util
import os
import secrets
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import rows


def load_rows(module):
    path = os.path.splitext(os.path.abspath(module))[0] + ".py"
    spec = importlib.util.spec_from_file_location("described_rows", path)
    described = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(described)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("module", help="the .kir file")
    parser.add_argument("--kjit-run", default=os.environ.get("KJIT_RUN", "kjit-run"), help="the tool, with options if need be")
    parser.add_argument("--device", default="cpu", choices=rows.TARGETS)
    parser.add_argument("--seed", type=int, default=None, help="repeat a run that printed this seed")
    parser.add_argument("--row", default=None, help="only rows whose name contains this")
    arguments = parser.parse_args()
    load_rows(arguments.module)
    seed = secrets.randbits(31) if arguments.seed is None else arguments.seed
    return rows.run_all(arguments.kjit_run, arguments.module, arguments.device, seed, arguments.row)


if __name__ == "__main__":
    sys.exit(main())
