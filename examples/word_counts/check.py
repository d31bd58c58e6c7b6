#!/usr/bin/env python3
"""Compares the counts of word_counts with collections.Counter, for the project's pages and sources or the given files, for random
text, and for very short texts."""
import argparse
import collections
import glob
import os
import random
import re
import secrets
import subprocess
import sys
import tempfile

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789äöüßéñλжü日本"
OTHERS = " \n\t.,;:!?'\"()[]{}@`^~_-+*/\\\0\x7f"


def expected(files):
    """Returns the expected output. Among equal counts, Counter keeps the order of first occurrence."""
    text = b" ".join(open(file, "rb").read() for file in files)
    counts = collections.Counter(re.findall(rb"[a-z0-9\x80-\xff]+", text.lower()))
    lines = [b"%d words, %d different ones" % (counts.total(), len(counts))]
    return lines + [b"%d\t%s" % (count, word) for word, count in counts.most_common()]


def random_text(generator, length):
    return "".join(generator.choice(LETTERS if generator.random() < 0.7 else OTHERS) for _ in range(length)).encode()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--seed", type=int, default=secrets.randbits(31))
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()
    print(f"seed {options.seed}")
    generator = random.Random(options.seed)
    own = [file for pattern in ("README.md", "LICENSE", "docs/*.md", "include/kjit/*.h", "examples/README.md", "examples/*/*") for file in sorted(glob.glob(os.path.join(ROOT, pattern))) if os.path.isfile(file)]
    texts = [b"", b"\n .,", b"x", b"One one ONE", b"a" * 5000 + b" " + b"a" * 5001, random_text(generator, 20_000)]
    with tempfile.TemporaryDirectory() as folder:
        cases = [options.files or own]
        for k, text in enumerate(texts):
            cases.append([os.path.join(folder, f"{k}.txt")])
            with open(cases[-1][0], "wb") as file:
                file.write(text)
        for files in cases:
            process = subprocess.run([options.program, options.device, "--all", *files], stdout=subprocess.PIPE)
            found, wanted = process.stdout.rstrip(b"\n").split(b"\n"), expected(files)
            if process.returncode or found != wanted:
                first = next((k for k, (x, y) in enumerate(zip(found, wanted)) if x != y), min(len(found), len(wanted)))
                sys.exit(f"{files}: exit status {process.returncode}, {len(found)} lines, expected {len(wanted)}; line {first + 1}: {found[first:first + 1]}, expected {wanted[first:first + 1]}")
            print(f"{len(files)} files: {wanted[0].decode()}: right")


if __name__ == "__main__":
    main()
