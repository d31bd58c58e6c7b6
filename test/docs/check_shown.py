"""Documents that show a kernel and what kjit-compile makes of it are right: a code block that starts with `$ kjit-compile
example.kir ...` holds what that command prints for the code block in front of it. Shows the difference and exits 1."""
import difflib
import pathlib
import re
import shlex
import subprocess
import sys

ROOT, COMPILER, FOLDER = (pathlib.Path(argument) for argument in sys.argv[1:])
BLOCK = re.compile(r"^```\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PROMPT = "$ kjit-compile example.kir "

checked = wrong = 0
for path in sorted((ROOT / "docs").rglob("*.md")):
    blocks = BLOCK.findall(path.read_text())
    for kernel, shown in zip(blocks, blocks[1:]):
        if not shown.startswith(PROMPT):
            continue
        command, expected = shown[len(PROMPT):].split("\n", 1)
        (FOLDER / "example.kir").write_text(kernel)
        run = subprocess.run([COMPILER, FOLDER / "example.kir", "--quiet", *shlex.split(command)], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True)
        checked += 1
        if run.returncode or run.stdout != expected:
            wrong += 1
            name = str(path.relative_to(ROOT))
            print("\n".join(difflib.unified_diff(expected.splitlines(), run.stdout.splitlines(), name, "printed", lineterm="")))
print(f"{checked} shown, {wrong} wrong")
sys.exit(1 if wrong or not checked else 0)
