"""check_comments.py INCLUDE: checks that each function, type, field and constant in the public headers has its own
comment."""
import pathlib
import re
import sys


def mask(text):
    """Replaces comments by @ and blanks, so that only code is left. The position of a line comment is kept."""
    return re.sub(r"/\*.*?\*/", lambda found: "@" + re.sub(r"[^\n]", " ", found[0][1:]), text, flags=re.S)


def has_comment(code, start, end):
    """The comment is before the declaration, inside it, or after it on its last line."""
    before = code[:start].rstrip()
    line_end = code.find("\n", end)
    return before.endswith("@") or "@" in code[start:end] or "@" in code[end:line_end]


def members(code, start, end, separator):
    """Returns the parts of a body, each from its first character to the end of its last one."""
    depth, first = 0, start
    for at in range(start, end):
        depth += (code[at] in "({[") - (code[at] in ")}]")
        if code[at] == separator and depth == 0:
            yield first, at + 1
            first = at + 1
    if separator == "," and code[first:end].replace("@", "").strip():
        yield first, end


def begin(code, start):
    """Returns the position of the first character of code, which is neither a blank nor in a comment."""
    while code[start] in " \n@":
        start += 1
    return start


def check(path):
    text = path.read_text()
    code = mask(text)
    code = re.sub(r"^#.*(?:\\\n.*)*", lambda found: re.sub(r"[^\n]", " ", found[0]), code, flags=re.M)
    line = lambda at: text.count("\n", 0, at) + 1
    missing, at = [], 0
    whole = re.compile(r"(?:KJIT_API|typedef|static inline|enum)\b")
    while found := whole.search(code, at):
        start = at = found.start()
        brace, semicolon = code.find("{", at), code.find(";", at)
        is_body = 0 <= brace < semicolon or semicolon < 0
        end = semicolon + 1
        if is_body:
            depth, end = 1, brace + 1
            while depth:
                depth += (code[end] == "{") - (code[end] == "}")
                end += 1
        name = code[start:brace if is_body else semicolon].replace("\n", " ")
        head = brace if is_body else end
        if not (has_comment(code, start, head) or (not is_body and has_comment(code, start, end))):
            missing.append((line(start), " ".join(name.split())))
        if is_body and found[0] != "static inline":
            for first, last in members(code, brace + 1, end - 1, "," if "enum" in name else ";"):
                own = begin(code, first)
                lead = code[first:own]
                tail = code[last:code.find("\n", last)]
                if own < last and "@" not in lead.split("\n", 1)[-1] + code[own:last] + tail:
                    missing.append((line(own), "%s: %s" % (name.split()[-1], " ".join(code[own:last].split()))))
            semicolon = code.find(";", end)
            end = semicolon + 1
        at = max(end, at + 1)
    return missing


complaints = ["%s:%d: %s has no comment" % (path.name, number, what) for path in sorted(pathlib.Path(sys.argv[1], "kjit").glob("*.h")) for number, what in check(path)]
print("\n".join(complaints))
sys.exit(bool(complaints))
