"""other_headers.py older|newer INCLUDE SIZED_DEF OUTPUT: writes a copy of the public headers in which each struct that
can grow has its oldest form (older), or two more fields (newer)."""
import pathlib
import re
import shutil
import sys

which, include, table, output = sys.argv[1:]
last_fields = dict(re.findall(r"^X\(\w+, (\w+), (\w+)\)", pathlib.Path(table).read_text(), re.M))
shutil.copytree(include, output)
left = set(last_fields)
for header in pathlib.Path(output, "kjit").glob("*.h"):

    def change(found):
        """Returns the struct with other fields at its end."""
        body, name = found[1], found[2]
        if name not in last_fields:
            return found[0]
        left.discard(name)
        if which == "newer":
            return "typedef struct %s {%s  void *newer;\n  uint64_t newer_too;\n} %s;" % (name, body, name)
        plain = re.sub(r"/\*.*?\*/", lambda comment: " " * len(comment[0]), body, flags=re.S)
        field = last_fields[name]
        end = max(plain.index(";", at.start()) for at in re.finditer(r"\b%s\b(?=[,;[)])" % field, plain))
        return "typedef struct %s {%s\n} %s;" % (name, body[:end + 1], name)

    text = re.sub(r"typedef struct \w+ \{(.*?)\n\} (\w+);", change, header.read_text(), flags=re.S)
    header.write_text(text)
if left:
    sys.exit("no header has " + ", ".join(sorted(left)))
