"""check_call_table.py KJIT-RUN FILE: compares the table of algorithms and options in a documentation file with the
messages of kjit-run about unknown ones."""
import re
import subprocess
import sys


def says(call):
    """Returns the first line of the error of a call."""
    found = subprocess.run([sys.argv[1], "--device", "cpu", "--call", call], capture_output=True, text=True)
    return found.stderr.splitlines()[0]


def names_of(algorithm):
    """Returns the options that the call takes in addition to operands. kjit-run reports them only if each result has a
    name on the left side."""
    for count in range(6):
        left = ", ".join(f"r{i}" for i in range(count))
        text = says(f"{left}{' = ' if left else ''}{algorithm}(nothing=1)")
        found = re.search(r"has no option 'nothing'(?:; it has (.*))?$", text)
        if found:
            return found[1].split(", ") if found[1] else []
    raise SystemExit(f"{algorithm}: {text}")


rows = re.findall(r"^\| (.*) \|(.*)\|$", open(sys.argv[2], encoding="utf-8").read(), re.MULTILINE)
first = next(i for i, row in enumerate(rows) if (row[0], row[1].strip()) == ("algorithm", "options"))
wrong = []
for algorithm in re.search("there are (.*)$", says("r = no_algorithm_of_this_name_at_all()"))[1].split(", "):
    row = next((row for row in rows[first:] if re.search(rf"\b{algorithm}\(", row[0])), None)
    if row is None:
        wrong.append(f"{algorithm} is not in the table")
        continue
    known = names_of(algorithm)
    missing = [name for name in known if not re.search(rf"\b{name}\b", " ".join(row))]
    others = set().union(*(names_of(other) for other in re.findall(r"(\w+)\(", row[0]) if other not in ("f", "func")))
    extra = [name for name in re.findall(r"`(\w+)`", row[1]) if name not in others and name != "pairs_smallest"]
    if missing or extra:
        wrong.append(f"{algorithm}: the table lacks {missing}, and has {extra}")
sys.exit("\n".join(wrong) or 0)
