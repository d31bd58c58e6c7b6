"""Test suites of other projects, which run in child processes: what comes out of them, and what is expected.

A child writes one line of JSON to a file for each event: [test, "began", ""] and [test, outcome, reason, seconds]. The test
"*" stands for all tests of the child, if it cannot run any. If a child crashes or takes too long, the test that ran fails, and
the next child goes on after it: a child skips the tests that are already in the file."""
import collections
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile


MINUTES = 4  # time limit for pip; a test of the suite has ten minutes


def install(folder, wanted):
    """Returns a folder with packages that pip has installed, which is made once. Returns None if pip cannot get them, and
    prints the reason."""
    site = os.path.join(folder, "site-" + hashlib.sha256(" ".join(wanted).encode()).hexdigest()[:12])
    if os.path.isdir(site):
        return site
    os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as place:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:",
                   "--no-compile", "--timeout", "20", "--retries", "2", "--target", os.path.join(place, "site"), *wanted]
        try:
            subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=MINUTES * 60, check=True)
        except subprocess.SubprocessError as error:
            reason = " ".join(str(error.stdout or f"no end within {MINUTES} minutes").split())[-400:]
            print(f"SKIPPED: pip cannot fetch the packages: {reason}")
            return None
        os.rename(os.path.join(place, "site"), site)
    return site


def run(command, seconds, outcome_of=lambda outcome, reason: outcome, environment=None):
    """Runs a child and appends the result file to its command. Returns {test: (outcome, reason, seconds)}."""
    found, crashes = {}, 0
    quiet = None if os.environ.get("NUMBA_SUITE_TRACE") else subprocess.DEVNULL
    environment = {**os.environ, "KJIT_DEVICE": os.environ.get("KJIT_DEVICE") or "cpu", "PYTHONDONTWRITEBYTECODE": "1", **(environment or {})}
    with tempfile.NamedTemporaryFile("r", suffix=".jsonl") as results:
        while True:
            begun = None
            try:
                code = subprocess.run([*command, results.name], timeout=seconds, env=environment, stdin=subprocess.DEVNULL,
                                      stdout=quiet, stderr=quiet).returncode
            except subprocess.TimeoutExpired:
                code = "time"
            results.seek(0)
            for line in results:
                test, outcome, *rest = json.loads(line)
                if outcome == "began":
                    begun = test
                    continue
                begun = None
                found[test] = (outcome_of(outcome, rest[0]), rest[0], rest[1] if len(rest) > 1 else 0)
            if begun is None and code != "time":
                # If a child ends between tests in an unexpected way, the remaining tests have no result.
                if code and "*" not in found:
                    found["*"] = ("fail", f"CRASH: the process ended with {code}", 0)
                return found
            crashes += 1
            if begun is None or crashes > 20:
                return found
            reason = f"no end within {seconds} seconds" if code == "time" else f"CRASH: the interpreter ended with {code}"
            found[begun] = ("fail", reason, 0)
            with open(results.name, "a") as file:
                file.write(json.dumps([begun, "fail", reason]) + "\n")


def clean(reason):
    """Returns the reason without the parts that differ between runs."""
    reason = re.sub(r"0x[0-9a-f]+", "0x...", " ".join(reason.split()))
    reason = re.sub(r"\S*/(\w+\.py:\d+)", r"\1", reason)
    return re.sub(r"/[\w.-]+/\S*/", "", reason)[:110].rstrip()  # paths of one machine have no meaning on another


def read_expected(path):
    """{group: {test: (outcome, reason)}}"""
    expected, group = {}, None
    for line in open(path) if os.path.exists(path) else ():
        if line.startswith("  "):
            test, outcome, *reason = line.split(None, 2)
            expected[group][test] = outcome, reason[0].strip() if reason else ""
        elif line.strip() and not line.startswith("#"):
            group = line.strip()
            expected[group] = {}
    return expected


def write_expected(path, head, found):
    """Writes the outcomes. Groups that were not run keep their expected outcomes."""
    rows = {**{g: {t: (*r, 0) for t, r in tests.items()} for g, tests in read_expected(path).items()}, **found}
    with open(path, "w") as out:
        out.write(f"# {head}\n")
        for group in sorted(rows):
            out.write(group + "\n")
            for test, (outcome, reason, _) in sorted(rows[group].items()):
                out.write(f"  {test} {outcome}" + (f" {clean(reason)}" if reason else "") + "\n")


def count(title, found):
    counts = collections.Counter(outcome for tests in found.values() for outcome, _, _ in tests.values())
    print(title + ", ".join(f"{outcome} {number}" for outcome, number in counts.most_common()))


def causes(found, most=60):
    """Prints the reasons of the failures, the most frequent first. Numbers and names in them are ignored."""
    reasons = collections.Counter()
    examples = {}
    for group, tests in found.items():
        for test, (outcome, reason, _) in tests.items():
            if outcome == "fail":
                text = re.sub(r"^\S+\.py:\d+:(\d+:)? ", "", clean(reason).replace("error: ", ""))
                text = re.sub(r"^(\w+): \S+\.py:\d+:(\d+:)? ", r"\1: ", text)
                key = re.sub(r"`[^`]*`|'[^']*'|\d+", "_", text)
                reasons[key] += 1
                examples.setdefault(key, f"{group} {test}")
    for reason, number in reasons.most_common(most):
        print(f"{number:5} {reason}   ({examples[reason]})")


def compare(found, expected, show_failures=False, is_strict=False):
    """Prints the differences from the expected outcomes. Returns the number of differences and crashes. Unless it is
    strict, only a test that passed before and fails now counts."""
    changed = 0
    for group, tests in found.items():
        for test, (outcome, reason, _) in tests.items():
            wanted = expected.get(group, {}).get(test, ("nothing", ""))[0]
            if wanted != outcome and (is_strict or wanted == "pass"):
                changed += 1
                print(f"{group} {test}: {wanted} is expected, {outcome} came: {clean(reason)}")
            elif show_failures and outcome == "fail":
                print(f"{group} {test}: {clean(reason)}")
            if reason.startswith("CRASH"):
                changed += 1
                print(f"{group} {test}: the interpreter crashed")
    return changed
