#!/usr/bin/env python3
"""facts.py: compares the list of tapes and sums of derivatives with the code that LLVM gets and makes.

For each kernel of Inputs/facts.kir, `kjit-compile --info` lists the facts of the adjoint. LLVM's IR before optimization has an `alloca` for each array of a thread and an
`atomicrmw` for each atomic sum, and the PTX has the shared arrays. The list must have the same names, bytes and numbers. Tapes in registers must leave no local memory.
"""
import argparse
import collections
import os
import re
import subprocess
import sys

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "Inputs", "facts.kir")
SIZES = {"float": 4, "double": 8, "i8": 1, "i32": 4, "i64": 8}
WORDS = {  # the words of a `check:` comment, and the facts that they represent
    "added": r"sums of `\w+`: plain sums; 0 atomic sums",
    "gathered": r"sums of `\w+`: gathered from \d+ iterations; 0 atomic sums",
    "atomic": r"sums of `\w+`: atomic sums in 2 places; 2 atomic sums",
    "uniform": r"sums of `\w+`: one atomic sum a (warp|thread); 1 atomic sum$",
    "scalar": r"sums of `\w+`: one atomic sum a (warp|thread); 1 atomic sum$",
    "copied": r"array `sums_\w+`: sums of each thread for 5 elements of `\w+`; 20 bytes in each thread",
    "changed": r"sums of `\w+`: changed in place; 0 atomic sums",
    "tape": r"tape `tape_\w+`: .*; entries: at most 20, by `@most\(20\)`; 80 bytes in each thread",
    "halved": r"tape `tape_\w+`: .*; entries: at most \d+, because the loop halves an integer; \d+ bytes in each thread",
    "registers": r"tape `tape_\w+`: .*; entries: \d, a range of constants; \d+ bytes in registers of each thread",
    "log": r"tape `kept_\w+`: .*; entries: at most 9; 36 bytes in each thread",
    "shared": r"array `d_\w+`: derivatives with respect to the elements of `\w+`; 264 bytes in each block; 3 atomic sums",
}


def emit(options, name, chosen, signature, target, *stage):
    command = [options.kjit_compile, SOURCE, "--quiet", "--arch", target, "--kernel", f"adjoint({name}, {chosen})", "--signature", signature, *stage]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"facts.py: {' '.join(command)}\n{done.stderr}")
    return done.stdout


def read_kernels():
    """Yields the name of each kernel, its parameters with their types, and the words for its facts."""
    with open(SOURCE) as file:
        found = re.findall(r"^# check: (.*): (.*)\nkernel (\w+)\(([^)]*)\)", file.read(), re.M)
    for params, words, name, own in found:
        params = [param.split() for param in params.split(",")]
        assert [param[-1] for param in params] == [re.match(r"\w+", one)[0] for one in own.split(", ")], name
        yield name, params, re.split("[,;] ", words)


def list_facts(text):
    """Returns the numbers in the header, the multisets of (array, bytes) and of shared arrays, and the sum of the
    lines' atomic sums."""
    head, *lines = text.splitlines()
    match = re.search(r": (\d+) bytes? of arrays in each thread; (?:(\d+) bytes of tapes in registers; )?(\d+) atomic sums?$", head)
    numbers = [int(number or 0) for number in match.groups()]
    arrays, shared = collections.Counter(), collections.Counter()
    for line in lines:
        array = re.search(r"(?:tape|array) `(\w+)`: .*; (\d+) bytes in (registers of each thread|each thread|each block)", line)
        if array:
            (shared if array[3] == "each block" else arrays)[array[1], int(array[2])] += 1
    return numbers, arrays, shared, sum(int(number) for number in re.findall(r"; (\d+) atomic sums?$", "\n".join(lines), re.M))


def list_allocas(text):
    """Returns the multiset of (name, bytes) of a thread's arrays."""
    made = collections.Counter()
    for name, count, of in re.findall(r"%([\w.]+) = alloca \[(\d+) x (\w+)\]", text):
        made[re.sub(r"\d+$", "", name), int(count) * SIZES[of]] += 1
    return made


def expect(name, what, found, wanted):
    if found != wanted:
        sys.exit(f"facts.py: {name}: {what}: the list says {found}, the code has {wanted}")


def check(options, name, params, words, target):
    floats = [i for i, param in enumerate(params) if len(param) == 1 or param[0] == "f"]
    types = [{"i": "i32[:] C", "f": "f32"}.get(param[0] if len(param) > 1 else "", "f32[:] C") for param in params]
    signature = ", ".join(types + ["f32[:] C"] * len(floats))
    request = name, ", ".join(map(str, floats)), signature, target
    text = emit(options, *request, "--info")
    expect(name, "--emit derivatives", emit(options, *request, "--emit", "derivatives"), text)
    (thread_bytes, register_bytes, atomics), arrays, shared, listed = list_facts(text)
    for word in words:
        if not re.search(WORDS[word], text, re.M):
            sys.exit(f"facts.py: {name}: no fact for the word {word!r} in\n{text}")
    llvm = emit(options, *request, "--emit", "llvm")
    expect(name, "atomic sums", atomics, len(re.findall(r"atomicrmw fadd", llvm)))
    expect(name, "atomic sums of the lines", listed, atomics)
    if target == "cpu":
        return  # a thread's arrays may be in the block's memory
    allocas = list_allocas(llvm)
    own = collections.Counter({one: count for one, count in allocas.items() if re.match("(tape|kept|places|depths|sums|d)_", one[0])})
    expect(name, "arrays of a thread", arrays, own)
    expect(name, "bytes of all arrays", thread_bytes + register_bytes, sum(size * count for (_, size), count in allocas.items()))
    ptx = emit(options, *request, "--emit", "ptx")
    made = collections.Counter((one, int(size)) for one, size in re.findall(r"\.shared .*?\b(d_\w+)\$shared\[(\d+)\]", ptx))
    expect(name, "shared arrays", shared, made)
    if register_bytes and not thread_bytes:
        expect(name, "local memory", [], re.findall(r"__local_depot", ptx))
    found = len(re.findall(r"\b(?:atom|red)\.\S*add\.f32", ptx))  # the sums of a thread-local copy are unrolled
    expect(name, "atomics of the PTX", found, atomics + (4 if "copied" in words else 0))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kjit-compile", required=True)
    options = parser.parse_args()
    used = set()
    for name, params, words in read_kernels():
        used.update(words)
        check(options, name, params, words, "sm_90")
        if "shared" not in words:
            check(options, name, params, words, "cpu")
    if used != set(WORDS):
        sys.exit(f"facts.py: no kernel has the words {sorted(set(WORDS) - used)}")


main()
