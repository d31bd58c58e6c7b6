#!/usr/bin/env python3
"""gpu_branches.py: the library's code for GPUs, run on the CPU with all checks, races included.

The modules of lib/library choose their code with `target == cpu` and `target == gpu`. A file of the name that a module is imported by takes its place where it is beside the importing one. So the
modules are copied beside the rows of the conformance table, with the conditions replaced by what they are on a GPU, and the rows run with checks. That is the same source text
as on a GPU, with the barriers and syncwarps of its many threads. Then barriers are taken out of the copies, one at a time, and the checks must find each.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
LIBRARY = os.path.join(HERE, "..", "..", "lib", "library")
# Wide accesses through pointers, which the race check does not follow. These funcs have no barriers. The CPU code does
# the same with single elements.
POINTERS = "block.kir"
RUNS_ON = '"--device", device'  # like `row` in rows.py, but with a GPU's launches, which run on the CPU
USUAL = "bounds,division,assert,barrier,races"
ALL = USUAL + ",uninitialized"
# The file with the rows, the rows' names, and the checks. Some modules read local words through pointers, which the
# check for uninitialized memory does not follow, or copy values that are not set yet and that nothing uses.
ROWS = [("scans", "many", USUAL), ("scans", "by key", USUAL), ("scans", "columns", USUAL), ("selects", "many", USUAL), ("segments", "another", USUAL), ("segments", "by key", USUAL),
        ("reductions", "every size", ALL), ("reductions", "rows", USUAL), ("merge_sorts", "in place", ALL), ("radix_sorts", "few i32", ALL), ("segment_sorts", "", ALL)]
# Barriers that the test removes: the module, the start of the func, the barrier's number in the func, and the rows that
# run it.
MUTATIONS = [("look_back.kir", "func look_back_tile(", 0, "selects", "many"), ("scan.kir", "func scan_before(", 1, "scans", "many"),
             ("segments.kir", "func segments_fill(", 1, "segments", "another"), ("reduce.kir", "func reduce_warps(", 0, "reductions", "every size"),
             ("merge_sort.kir", "func merge_sort_tiles(", 0, "merge_sorts", "in place"), ("sort_segments.kir", "func segment_sort_shared(", 0, "segment_sorts", "")]


def as_on_gpu(name, text):
    text = re.sub(r"\btarget == cpu\b", "false", text)
    if name != POINTERS:
        text = re.sub(r"\btarget (== gpu|!= cpu)\b", "true", text)
    return text


def without_barrier(text, func, which):
    start = text.index("\n" + func) + 1
    body = text[start:text.index("\n}", start)]
    at = [found.start() for found in re.finditer(r"\bsyncthreads\(\)", body)][which]
    return text[:start] + body[:at] + body[at + len("syncthreads()"):] + text[start + len(body):]


def prepare(folder, mutation=None):
    for name in os.listdir(HERE):
        path = os.path.join(HERE, name)
        if name.endswith((".py", ".kir")):
            shutil.copy(path, folder)
    with open(os.path.join(HERE, "rows.py"), encoding="utf-8") as file:
        text = file.read()
    assert text.count(RUNS_ON) == 1
    with open(os.path.join(folder, "rows.py"), "w", encoding="utf-8") as file:
        file.write(text.replace(RUNS_ON, '"--device", "cpu"'))
    shutil.copytree(os.path.join(HERE, "Inputs"), os.path.join(folder, "Inputs"), dirs_exist_ok=True)
    shutil.copy(os.path.join(HERE, "..", "share.py"), folder)
    for name in os.listdir(LIBRARY):
        if not name.endswith(".kir"):
            continue
        with open(os.path.join(LIBRARY, name), encoding="utf-8") as file:
            text = as_on_gpu(name, file.read())
        if mutation and mutation[0] == name:
            text = without_barrier(text, mutation[1], mutation[2])
        with open(os.path.join(folder, name.removesuffix(".kir")), "w", encoding="utf-8") as file:
            file.write(text)


def run(kjit_run, folder, module, rows, checks, seed):
    environment = dict(os.environ, KJIT_CHECKS=checks)
    return subprocess.run([sys.executable, os.path.join(folder, "check.py"), os.path.join(folder, module + ".kir"), "--row", rows, "--kjit-run", kjit_run, "--device", "cuda", "--seed", str(seed)],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kjit-run", default=os.environ.get("KJIT_RUN", "kjit-run"))
    parser.add_argument("--seed", type=int, default=20261128)
    parser.add_argument("modules", nargs="*", help="some of the rows' files; all unless given")
    arguments = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        prepare(folder)
        for module, rows, checks in ROWS:
            if arguments.modules and module not in arguments.modules:
                continue
            found = run(arguments.kjit_run, folder, module, rows, checks, arguments.seed)
            print(found.stdout)
            failed += found.returncode != 0
    for name, func, which, module, rows in MUTATIONS:
        if arguments.modules and module not in arguments.modules:
            continue
        with tempfile.TemporaryDirectory() as folder:
            prepare(folder, (name, func, which))
            found = run(arguments.kjit_run, folder, module, rows, "races", arguments.seed)
            if not found.returncode or "a race: " not in found.stdout:
                failed += 1
                print(f"barrier {which} of {func} in {name} is not missed:\n{found.stdout}")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
