"""check_prose.py ROOT [--since REVISION] [--worst N]: measures how plainly the prose of the tree is written, and exits 1 if a
class of prose exceeds one of its limits. CONTRIBUTING.md has the rules.

Classes are headers (comments below include/), source (comments of other C files), kir (comments of kernel IR), python
(docstrings and comments), docs (pages without their code blocks) and messages (string literals of calls that report an
error, and option texts). Each measure is a rate:

    reference   words such as "what", "none" or "those" in place of a noun, for each 100 words
    phrase      phrases of PHRASES, for each 1000 words
    of          the word "of", for each 100 words
    glue        semicolons and colons, for each 100 words
    long        sentences of more than 35 words, for each 100 sentences

--since REVISION measures only lines that differ from a revision of git: a sentence is hard to read if it has two findings,
and at most one new sentence in ten may be. --worst N lists the N sentences with the most findings, each with the words to
use in place of its phrases."""
import argparse
import ast
import bisect
import collections
import io
import pathlib
import re
import subprocess
import sys
import tokenize

FOLDERS = ("docs", "include", "lib", "runtime", "tools")
GENERATED = {"docs/ir.md", "docs/embedding.md", "docs/tools.md", "docs/options.md"}  # scripts/make-docs.py writes these pages
LONG = 35
MEASURES = ("reference", "phrase", "of", "glue", "long")

# The limits of each class of prose in the order of MEASURES, as the guide has them.
LIMITS = {
    "headers": (1.7, 3, 3.2, 2.2, 2.5),
    "source": (1.7, 3, 3.2, 2.2, 4.7),
    "kir": (1.7, 3, 3.2, 2.2, 4.7),
    "python": (1.3, 3, 3.5, 4.8, 2.5),
    "docs": (1.7, 5, 3, 3, 6),
    "messages": (0.6, 3, 3, 6, 1),  # a message has a colon after its location
}
# Higher limits of classes that exceed the guide's limit. Rewriting a part of a class lowers its limit here.
NOT_YET = {
    "source": {"of": 4.6},
    "kir": {"of": 5.4, "glue": 2.8},
    "python": {"of": 5.4},
    "docs": {"of": 4.0},
    "messages": {"of": 3.7},
}

# Phrases that only this project used, and the words that replace them. `|` separates alternatives.
PHRASES = {
    r"what (?:is|are|was|were|it|the|a|an|they|has|comes)": "name the thing",
    r"behind": "after|follows",
    r"beside": "next to|in addition to|compared with",
    r"(?:and|or) (?:its|their) kin": "list the functions",
    r"so (?:many|much)(?! (?:as|that))": "that number of",
    r"as many(?! as)": "the same number of",
    r"(?:is|are|be|was) none|of none": "there is no",
    r"anew": "again",
    r"as ever": "as before",
    r"leads? out of": "is out of bounds",
    r"looks? (?:at|through|again|now)": "reads|checks|polls",
    r"is told|are told|be told|told of": "receives|reports",
    r"hand(?:s|ed)? over": "passes",
    r"brings? along": "includes|provides",
    r"by (?:twos|threes|fours)": "pairwise|three-way|four-way",
    r"nobody|somebody|whoever": "name the thread, the caller or the program",
    r"(?:comes?|becomes?) of": "happens to",
    r"of (?:its|one's|their|his) own": "custom|separate",
    r"the other way around": "the reverse",
    r"those (?:of|that|which)|that of": "repeat the noun",
    r"made of": "built from|consists of",
    r"in front of": "before",
    r"go(?:es)? on": "continues",
    r"some (?:hundred|thousand|ten)": "about N",
    r"(?:the )?least and (?:the )?(?:most|greatest|largest)": "minimum and maximum",
    r"now and then": "sometimes|from time to time",
    r"in (?:its|their) order": "in order",
    r"where (?:it|that|this|there|nothing|none|one) (?:is|are|does|has|was)": "if",
    r"for who|to who": "for the caller that",
}
PHRASE = re.compile(rf"\b(?:{'|'.join(PHRASES)})\b", re.I)
VERB = r"(?:is|are|was|were|has|have|had|can|may|must|does|do|did|will|would|should|needs?|comes?|gives?|takes?|means?|makes?)"
REFERENCE = re.compile(
    r"\b(?:what|whatever|whoever|whom|ones|others|none|nobody|somebody|theirs|things?|stuff|matters?)\b"
    rf"|\b(?:this|these|those|another|one|such)(?=\s*[.,;:)]|\s*$|\s+(?:{VERB}|of|that|which|in|with|by|from)\b)"
    r"|\bthat(?= of\b| one\b|\s*[.,;:)])|\b(?:of|in|on|at|by|for|from|to|with) which\b|\bso many\b", re.I)
WORD = re.compile(r"[A-Za-z][A-Za-z'’-]*")
CODE = re.compile(r"``?[^`]*``?|https?://\S+|\bNone\b|[\w.&*]*(?:_|::|->|\(\)|\[|<|>|=|\d)[^\s,;:.)!?]*")
NO_PROSE = re.compile(r"copyright|licen[sc]e|SPDX|NOLINT|clang-format|noqa|pragma|type: ignore", re.I)
REPORT = re.compile(r"\b\w*(?:fail|report|error|warn|remark|refuse|explain|append_text|usage)\w*\s*\(")
LITERALS = re.compile(r'(?:"(?:[^"\\\n]|\\.)*"\s*(?:PRI\w+\s*)?)+')

Sentence = collections.namedtuple("Sentence", "kind path line last text")  # first and last line of its paragraph


# The beginning of an item: a bullet or number, or the name that a list of names explains.
BULLET = re.compile(r"(?:[-*+]|\d+[.)])\s+")
NAMED = re.compile(r"[\w.*]+(?:, [\w.*]+)*:\s")
ROW = re.compile(r"\S {2,}\S")  # columns of a table that is aligned by blanks


def paragraphs(lines, first):
    """(first line, last line, text) of each paragraph, list item or row of a table. Names begin items if the paragraph
    begins with one, because a line inside a sentence may begin with `word:` too."""
    text, start, has_names = [], first, False
    for number, line in enumerate(lines, first):
        stripped = line.strip()
        bullet, named = BULLET.match(stripped), NAMED.match(stripped)
        if not stripped:
            has_names = False
        elif not text:
            has_names = bool(named)
        if text and (not stripped or bullet or ROW.search(stripped) or (named and has_names)):
            yield start, number - 1, " ".join(text)
            text = []
        if stripped:
            start = start if text else number
            text.append(stripped[bullet.end():] if bullet else stripped)
    if text:
        yield start, first + len(lines) - 1, " ".join(text)


def line_counter(source):
    """Returns a function that maps an offset in the source to a line."""
    ends = [found.start() for found in re.finditer("\n", source)]
    return lambda offset: bisect.bisect_left(ends, offset) + 1


def comments_of_c(source):
    line_at = line_counter(source)
    for found in re.finditer(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|/\*(.*?)\*/|//([^\n]*)', source, re.S):
        body = found[1] if found[1] is not None else found[2]
        if body is not None:
            lines = [re.sub(r"^\s*\*+ ?", "", line) for line in body.split("\n")]
            yield from paragraphs(lines, line_at(found.start()))


def end_of_call(source, at):
    depth, quoted = 1, False
    while at < len(source) and depth:
        c = source[at]
        if quoted:
            at += c == "\\"
            quoted = c not in '"\n'
        else:
            quoted = c == '"'
            depth += (c == "(") - (c == ")")
        at += 1
    return at


def messages_of_c(source, is_help):
    """Yields (line, line, text) for string literals in calls that report something, or for all literals in a file with
    option texts."""
    source = re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m[0]), source, flags=re.S)
    spans = [(0, len(source))] if is_help else [(m.end(), end_of_call(source, m.end())) for m in REPORT.finditer(source)]
    seen, line_at = set(), line_counter(source)
    for start, end in spans:
        for found in LITERALS.finditer(source, start, end):
            text = "".join(re.findall(r'"((?:[^"\\\n]|\\.)*)"', found[0]))
            text = re.sub(r"%(?:\d+\$)?[-+#0 ]*(?:\*|\d+)?(?:\.(?:\*|\d+))?(?:hh|h|ll|l|z|j|t)?[a-zA-Z]", "`x`", text)
            if found.start() not in seen and len(WORD.findall(CODE.sub("", text))) >= 4:
                seen.add(found.start())
                for part in re.split(r"\\n|\\v", text):
                    if not (is_help and re.match(r"\s", part)):  # the columns of a table
                        line = line_at(found.start())
                        yield line, line, part


def texts_of_python(source):
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)):
            doc = ast.get_docstring(node)
            if doc:
                lines = ["" if re.match(r"\s*(?:>>>|\.\.\.)", line) else line for line in doc.split("\n")]
                yield from paragraphs(lines, node.body[0].lineno)
    comments = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            if comments and comments[-1][0] + len(comments[-1][1]) == token.start[0]:
                comments[-1][1].append(token.string.lstrip("#!"))
            else:
                comments.append((token.start[0], [token.string.lstrip("#!")]))
    for line, lines in comments:
        yield from paragraphs(lines, line)


def comments_of_kir(source):
    lines = [found[1] if (found := re.match(r'[^#"]*#(.*)', line)) else "" for line in source.split("\n")]
    return paragraphs(lines, 1)


def paragraphs_of_page(source):
    source = re.sub(r"^(```|~~~).*?^\1|^<!--.*?-->", lambda m: re.sub(r"[^\n]", "", m[0]), source, flags=re.M | re.S)
    lines = []
    for line in source.split("\n"):
        # Rows of tables, headings, links to other pages and code are no sentences.
        lines.append("" if re.match(r"\s*(?:#|<|\||\[.*\]:|[-=_*]{3,}|@)|    ", line) else re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", line))
    return paragraphs(lines, 1)


def units(root):
    """(class, path, first line, last line, text) of each paragraph."""
    paths = [root / "README.md"] + [p for folder in FOLDERS for p in sorted((root / folder).rglob("*"))]
    for path in paths:
        name = path.relative_to(root).as_posix()
        if not path.is_file() or name in GENERATED or name.startswith("docs/reference/"):
            continue
        is_help = path.name == "options.c"
        if path.suffix in (".c", ".h", ".hpp"):
            source = path.read_text()
            yield from (("headers" if name.startswith("include/") else "source", name, *unit) for unit in comments_of_c(source))
            yield from (("messages", name, *unit) for unit in messages_of_c(source, is_help))
        elif path.suffix == ".kir":
            yield from (("kir", name, *unit) for unit in comments_of_kir(path.read_text()))
        elif path.suffix == ".py":
            yield from (("python", name, *unit) for unit in texts_of_python(path.read_text()))
        elif path.suffix == ".md":
            yield from (("docs", name, *unit) for unit in paragraphs_of_page(path.read_text()))


def sentences(root):
    for kind, path, line, last, text in units(root):
        if NO_PROSE.search(text):
            continue
        for part in re.split(r"(?<=[.!?])[\"')]?\s+(?=[A-Za-z`\"'(*_$0-9-])", CODE.sub(" CODE ", text)):
            if len(WORD.findall(part)) >= 3:
                yield Sentence(kind, path, line, last, " ".join(part.split()))


def findings(text):
    words = len(WORD.findall(text))
    return {"reference": len(REFERENCE.findall(text)), "phrase": len(PHRASE.findall(text)),
            "of": len(re.findall(r"\bof\b", text, re.I)), "glue": len(re.findall(r"[;:](?!$)", text)), "long": words > LONG}, words


def rates_of(found):
    """Returns the measures of the sentences, and the number of their words."""
    sums, words, count = collections.Counter(), 0, 0
    for sentence in found:
        counts, length = findings(sentence.text)
        sums.update(counts)
        words, count = words + length, count + 1
    base = {"phrase": words / 1000, "long": count / 100}
    return {m: sums[m] / max(base.get(m, words / 100), 1e-9) for m in MEASURES}, words


def changed_lines(root, revision):
    """The lines of each file that a diff to a revision adds."""
    text = subprocess.run(["git", "-C", str(root), "diff", "--unified=0", "--no-color", revision, "--", "README.md", *FOLDERS],
                          stdout=subprocess.PIPE, check=True, text=True).stdout
    lines, path = collections.defaultdict(set), None
    for line in text.split("\n"):
        if line.startswith("+++ "):
            path = line[6:]
        elif found := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))?", line):
            lines[path].update(range(int(found[1]), int(found[1]) + int(found[2] or 1)))
    return lines


def is_hard(sentence):
    counts, _ = findings(sentence.text)
    return counts["reference"] + counts["phrase"] + counts["long"] + (counts["of"] > 3) + (counts["glue"] > 2) >= 2


def advice(sentence):
    words = [words for phrase, words in PHRASES.items() if re.search(rf"\b(?:{phrase})\b", sentence.text, re.I)]
    return f"{sentence.path}:{sentence.line}: {sentence.text[:200]}" + (f"  [{'; '.join(words)}]" if words else "")


def check_changes(every, lines):
    new = [s for s in every if not lines[s.path].isdisjoint(range(s.line, s.last + 1))]
    hard = [s for s in new if is_hard(s)]
    if len(hard) <= max(1, len(new) / 10):
        return 0
    print("\n".join(advice(s) for s in hard))
    print(f"{len(hard)} of {len(new)} new sentences have to be read twice; at most one in ten may")
    return 1


def check_tree(every):
    by_class, exceeded = collections.defaultdict(list), 0
    for sentence in every:
        by_class[sentence.kind].append(sentence)
    for kind, limits in LIMITS.items():
        rates, words = rates_of(by_class[kind])
        print(f"{kind}: {words} words, " + ", ".join(f"{m} {rates[m]:.2f}" for m in MEASURES))
        for measure, limit in zip(MEASURES, limits):
            limit = NOT_YET.get(kind, {}).get(measure, limit)
            if rates[measure] > limit:
                exceeded += 1
                print(f"{kind}: {measure} is {rates[measure]:.2f}; the limit is {limit}. --worst 20 lists the worst sentences")
    return 1 if exceeded else 0


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("root", type=pathlib.Path)
parser.add_argument("--since", metavar="REVISION")
parser.add_argument("--worst", type=int, metavar="N", default=0)
options = parser.parse_args()
every = list(sentences(options.root))
if options.worst:
    every.sort(key=lambda s: -sum(findings(s.text)[0][m] for m in ("reference", "phrase", "long")))
    print("\n".join(advice(s) for s in every[:options.worst]))
sys.exit(check_changes(every, changed_lines(options.root, options.since)) if options.since else check_tree(every))
