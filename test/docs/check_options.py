"""Every option that a tool's --help lists is in its manual page, in docs/tools.md and in docs/options.md; names those that
are not and exits 1. --help prints the table that the program reads them by; make-docs.py makes the manual pages and
docs/options.md of the source of that table."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(sys.argv[1])
COMMON = {"help", "usage", "version"}  # the manual pages and docs/tools.md say that every tool has these options


def options_of(tool):
    text = subprocess.run([tool, "--help"], stdout=subprocess.PIPE, check=True, text=True).stdout
    for line in text.split("\nMandatory or optional")[0].splitlines():
        option = re.match(r"( +)(-\w, )?--[a-z-]+\S*(  +\S)?", line)
        # the line is indented further, so it continues the description of the option above
        if option and (len(option[1]) > 6) == bool(option[3]):
            raise SystemExit(f"{tool} --help has an option and its meaning apart, or out of place: `{line}`")
    return sorted(set(re.findall(r"^ +(?:-\w, )?--([\w-]+)", text, re.MULTILINE)) - COMMON)


wrong = 0
told, listed = (ROOT / "docs/tools.md").read_text(), (ROOT / "docs/options.md").read_text()
for tool in sys.argv[2:]:
    name = pathlib.Path(tool).name
    own = re.search(rf"^## {name}\n(.*?)(?=^## |\Z)", listed, re.DOTALL | re.MULTILINE)[1]
    manual = (ROOT / f"docs/man/{name}.1").read_text().replace("\\-", "-")
    for option in options_of(tool):
        for place, text in ((f"docs/man/{name}.1", manual), ("docs/tools.md", told), ("docs/options.md", own)):
            if not re.search(rf"--{option}\b(?!-)", text):
                print(f"{name} --{option} is not in {place}")
                wrong = 1
sys.exit(wrong)
