"""Runs what pages show, as their readers would: in a folder of its own for each page, with the tools and the library of
this build, or, with the argument `installed`, with those that are installed and the system's compilers.

A code block whose first line is a comment that begins with the name of a file (`/* axpy.c: ... */`, `# axpy.kir: ...`)
is that file. A block of the language `console` has commands behind `$ `, each followed by what it prints; `...` stands
for any text, and alone on a line for any lines. Comments in front of a block say more:

  <!-- exit: 3 -->             the last command of the block ends with this status; without, all end with 0
  <!-- first: COMMAND -->      what is done before the block and not shown; $SOURCE is the tree
  <!-- part of: FILE -->       the block's lines stand in this file of the page, or of the tree
  <!-- run by: TEST -->        that test, or the files under that folder, run what the block shows
  <!-- not run: REASON -->     why nothing runs it

Any other block is an error, and so are a file that no command of its page names, and names of the API (`kjit_launch`,
`KJIT_F32`) that the headers do not have."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap

BLOCK = re.compile(r"(?:^<!-- (exit|first|part of|run by|not run): (.*?) -->\n+)?^```([\w+-]*)\n(.*?)^```$",
                   re.DOTALL | re.MULTILINE)
FILE = re.compile(r"(?:/\*|//|#|%)\s*([\w-][\w./-]*\.\w+|CMakeLists\.txt)(?=[:\s])")
COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


NAME = re.compile(r"(?<![\w/])((?:kjit_|KJIT_)\w*[A-Za-z0-9])\b(?![*=])(?:\.(\w+))?")


def inner_names(root):
    """Names that only the architecture pages may contain."""
    headers = (path for folder in ("lib", "runtime") for path in (root / folder).rglob("*.h"))
    return {word for path in headers for word in re.findall(r"\w+", path.read_text())}


def names_of_api(root):
    """Returns the names in the headers, including the names that tables in the headers define."""
    text = "".join(path.read_text() for path in sorted(path for path in (root / "include/kjit").rglob("*") if path.is_file()))
    text += " KJIT_DEVICE KJIT_CPU_DEVICES KJIT_FUSE KJIT_PLAIN_CODE "  # environment variables of the Python package
    options = (path.read_text() for path in (*root.glob("CMakeLists.txt"), *root.glob("*/*/CMakeLists.txt")))
    text += " ".join(re.findall(r"^\s*(?:set|option)\((KJIT_\w+)", "".join(options), re.MULTILINE))
    rows = re.findall(r"^\s*(?:KJIT_)?ROW\((\w+)", text, re.MULTILINE)
    made = {prefix + row for prefix in ("KJIT_", "KJIT_OP_", "KJIT_STAGE_", "KJIT_DEVICE_ATTRIBUTE_") for row in rows}
    return set(re.findall(r"\w+", text)) | made


# The progress lines that the tools print if a step takes more than a second, as on a busy machine.
PROGRESS = re.compile(r"^kjit-\w+: [\w ,]+: \d+ s(, \d+ of \d+)?\n", re.MULTILINE)


def make_tools(folder, root, options):
    """Creates a folder with the compilers, Python and kjit's pkg-config file, as if kjit were installed."""
    folder.mkdir(parents=True)
    warnings = " -Wall -Wextra -Werror"
    for name, command in (("cc", options["cc"] + warnings), ("c++", options["cxx"] + warnings), ("python3", options["python"])):
        (folder / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        (folder / name).chmod(0o755)
    (folder / "kjit.pc").write_text(f"Name: kjit\nDescription: kernels\nVersion: 0\nCflags: -I{root}/include\n"
                                    f"Libs: -L{options['libdir']} -lkjit -Wl,-rpath,{options['libdir']}\n")
    environment = dict(os.environ, PKG_CONFIG_PATH=str(folder), PYTHONDONTWRITEBYTECODE="1", SOURCE=str(root))
    environment["PATH"] = os.pathsep.join([str(folder), options["bindir"], environment.get("PATH", "")])
    return environment


def pattern(expected):
    """Returns a regular expression for the output of a command."""
    lines = []
    for line in expected.splitlines():
        lines.append(r"(?:.*\n)*?" if line.strip() == "..." else re.escape(line).replace(r"\.\.\.", ".*") + r"[ ]*\n")
    return "".join(lines)


class Page:
    def __init__(self, path, root, folder, environment, names):
        self.path, self.root, self.folder, self.environment, self.names = path, root, folder, environment, names
        self.text = path.read_text()
        self.files, self.commands, self.wrong = {}, [], 0

    def complain(self, position, what):
        print(f"{self.path.relative_to(self.root)}:{self.text.count(chr(10), 0, position) + 1}: {what}")
        self.wrong += 1

    def run(self, position, block, status):
        commands = COMMAND.findall(block)
        if not commands:
            self.complain(position, "no command in a block of the console")
        for k, (command, expected) in enumerate(commands):
            self.commands.append(command)
            done = subprocess.run(["bash", "-c", command], cwd=self.folder, env=self.environment, text=True,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  timeout=600)
            wanted = status if k + 1 == len(commands) else 0
            if done.returncode != wanted:
                self.complain(position, f"`{command}` ended with {done.returncode}, expected {wanted}:\n{done.stdout}")
            elif not re.fullmatch(pattern(expected), PROGRESS.sub("", done.stdout)):
                self.complain(position, f"`{command}` printed\n{textwrap.indent(done.stdout, '    ')}")

    def look_up(self, position, name, block):
        """Returns whether the lines are in the file, with any indentation."""
        path = self.folder / name if name in self.files else self.root / name
        strip = lambda text: "\n".join(line.strip() for line in text.strip().splitlines())
        if not path.exists():
            self.complain(position, f"there is no {name}")
        elif strip(block) not in strip(path.read_text()):
            self.complain(position, f"{name} has no such lines")

    def save(self, name, block):
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(block)
        self.files[name] = block

    def check(self):
        self.folder.mkdir(parents=True)
        # Creates files before commands read them, because a page may explain a part before it shows the whole file.
        blocks = [(found.start(4), *found.groups()) for found in BLOCK.finditer(self.text)]
        for position, mark, value, language, block in blocks:
            name = FILE.match(block)
            if mark == "first":
                self.run(position, f"$ {value}\n", 0)
            if mark in (None, "exit", "first") and language != "console" and name:
                self.save(name[1], block)
            elif mark in (None, "exit", "first") and language == "console":
                self.run(position, block, int(value) if mark == "exit" else 0)
            elif mark == "run by":
                if not (self.root / value).exists():
                    self.complain(position, f"there is no {value}")
            elif mark not in ("part of", "not run"):
                self.complain(position, "nothing runs this block, and no comment says why")
        for position, mark, value, language, block in blocks:
            if mark == "part of":
                self.look_up(position, value, block)
        for name in self.files:
            used = [command for command in self.commands if name in command]
            if not used and not any(name in text for other, text in self.files.items() if other != name):
                self.complain(self.text.find(name), f"no command of the page names {name}")
        for found in NAME.finditer(self.text):
            for name in filter(None, found.groups()):
                if name not in self.names and name not in ("c", "h", "kir"):
                    self.complain(found.start(), f"the headers have no {name}")
        return self.wrong


def main():
    root, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    options = dict(argument.split("=", 1) for argument in sys.argv[3:] if "=" in argument)
    shutil.rmtree(folder, ignore_errors=True)
    environment = dict(os.environ) if "installed" in sys.argv else make_tools(folder / "tools", root, options)
    pages = sorted({page for name in sys.argv[3:] if "=" not in name and name != "installed" for page in root.glob(name)
                   if not page.name.endswith((".in.md", ".prose.md"))})
    wrong, names, inner = 0, names_of_api(root), inner_names(root)
    for page in pages:
        wrong += Page(page, root, folder / page.relative_to(root), environment,
                      names | inner if "architecture" in page.parts else names).check()
    print(f"{len(pages)} pages, {wrong} wrong")
    return 1 if wrong or not pages else 0


sys.exit(main())
