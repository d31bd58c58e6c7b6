"""Prints every .kir file in the given folders with kjit-compile --emit kir, then prints the printed text again. Both
texts must be equal. If kjit rejects a file, the message must have file, line and column. At least --least files must be
printed."""
import argparse
import glob
import os
import re
import subprocess
import sys
import tempfile

options = argparse.ArgumentParser()
options.add_argument("--kjit-compile", required=True)
options.add_argument("--least", type=int, required=True)
options.add_argument("folders", nargs="+")
options = options.parse_args()


def emit(path):
    done = subprocess.run([options.kjit_compile, path, "--emit", "kir"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    return done.returncode, done.stdout, done.stderr.decode(errors="replace")


def check(path, folder):
    status, text, errors = emit(path)
    if status:
        return None if re.search(r"^%s:\d+:\d+: error: " % re.escape(path), errors, re.M) else "refused without a place: " + errors
    printed = os.path.join(folder, "printed.kir")
    with open(printed, "wb") as file:
        file.write(text)
    status, again, errors = emit(printed)
    if status:
        return "the printed text does not parse: " + errors
    return "" if again == text else "the printed text prints as another one"


count = failures = 0
with tempfile.TemporaryDirectory() as folder:
    for path in sorted(p for root in options.folders for p in glob.glob(os.path.join(root, "**", "*.kir"), recursive=True)):
        problem = check(path, folder)
        count += problem == ""
        failures += bool(problem)
        if problem:
            print("%s: %s" % (path, problem))
print("%d files printed" % count)
sys.exit(failures > 0 or count < options.least)
