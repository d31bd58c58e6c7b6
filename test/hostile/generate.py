"""Writes hostile kernels to stdout, as hostile.c reads them.

    generate.py [--seed N] [--count N] [--each] [--kind TEXT] [--device cpu|cuda] [--number N] [--list]

--count kernels of kinds drawn at random, 500 unless told otherwise; --each: and one of each kind before. --kind: only kinds whose name has one of the texts in it, which commas separate. --number: only that one of the kernels,
as it is numbered in the output of all. --text: the kernels' texts instead, to look at. The whole list:

    generate.py --each > kernels && hostile cpu kernels
"""
import argparse
import sys

import endless  # noqa: F401 (the modules of kinds add rows to KINDS)
import large  # noqa: F401
import faulty  # noqa: F401
import kernels


def drawn_names(options):
    names = [name for name, row in kernels.KINDS.items() if any(part in name for part in options.kind.split(",")) and options.device in row.targets]
    rng = kernels.rng_of(options.seed, "names", 0)
    return (names if options.each else []) + [rng.choice(names) for _ in range(options.count)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=20261123)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--each", action="store_true")
    parser.add_argument("--kind", default="")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--number", type=int)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--text", action="store_true")
    options = parser.parse_args()
    if options.list:
        print("\n".join(kernels.KINDS))
        return
    for number, name in enumerate(drawn_names(options)):
        if options.number not in (None, number):
            continue
        kernel = kernels.KINDS[name].make(kernels.rng_of(options.seed, name, number))
        kernels.give_rule(kernels.rng_of(options.seed, name + " rule", number), name, kernel)
        text = kernel.text if isinstance(kernel.text, bytes) else kernel.text.encode()
        sys.stdout.buffer.write(text if options.text else kernels.record(number, name, kernel))


if __name__ == "__main__":
    main()
