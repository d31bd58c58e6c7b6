#!/usr/bin/env python3
"""check.py FAMILY.py: runs the cases in a family of algorithms on fresh random data with kjit-run --call, and compares every
result with NumPy's."""
import argparse
import importlib.util
import os
import secrets
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cases


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("family", help="the .py file; Inputs/FAMILY.kir has its funcs")
    parser.add_argument("--module", default=None, help="another file of funcs")
    parser.add_argument("--kjit-run", default=os.environ.get("KJIT_RUN", "kjit-run"), help="the tool, with options if need be")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--seed", type=int, default=None, help="repeat a run that printed this seed")
    parser.add_argument("--case", default=None, help="only cases whose name contains this")
    parser.add_argument("--small", action="store_true", help="only cases of few elements, as with all checks")
    arguments = parser.parse_args()
    name = os.path.splitext(os.path.basename(arguments.family))[0]
    module = arguments.module or os.path.join(os.path.dirname(os.path.abspath(arguments.family)), "Inputs", f"{name}.kir")
    spec = importlib.util.spec_from_file_location("described_cases", arguments.family)
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    seed = secrets.randbits(31) if arguments.seed is None else arguments.seed
    largest = cases.SMALL if arguments.small else sys.maxsize
    return cases.run_all(arguments.kjit_run, name, module if os.path.exists(module) else None, arguments.device, seed, arguments.case, largest)


if __name__ == "__main__":
    sys.exit(main())
