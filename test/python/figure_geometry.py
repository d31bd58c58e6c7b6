# RUN: %kjit-python %s
"""Figures of kjit.benchmark and kjit-run --plot, with random data and difficult cases: the texts are inside the figure
and do not overlap, the ticks are at the positions of their labels, and the SVG is well-formed."""

import math
import random
import re
import xml.etree.ElementTree as tree

import seeds
from kjit import _kjit

SPACE = "{http://www.w3.org/2000/svg}"
PREFIXES = {"p": 1e-12, "n": 1e-9, "µ": 1e-6, "m": 1e-3, "": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹"
WIDTH = 0.56  # mean width of a letter of DejaVu Sans, as a share of its size; wide characters count as two
NAN = math.nan
seed = seeds.seed
print("seed", seed)
rng = random.Random(seed)


def shown(text):
    """Returns the visible text of an element. A tooltip is a child element."""
    return text.text or ""


def boxes(root):
    """Returns (class, left, top, right, bottom, text) for each text."""
    for text in root.iter(SPACE + "text"):
        kind, size = text.get("class"), 17 if text.get("class") == "title" else 14
        width = size * WIDTH * sum(1 if ord(c) < 0x1100 else 2 for c in shown(text))
        if text.get("transform"):
            x, middle = map(float, re.fullmatch(r"translate\((\S+) (\S+)\) rotate\(-90\)", text.get("transform")).groups())
            yield "rotated", x - size, middle - width / 2, x + 4, middle + width / 2, shown(text)
            continue
        x, y = float(text.get("x")), float(text.get("y"))
        left = x - width / 2 if kind == "x" else x - width if kind == "y" else x
        yield kind, left, y - size * 0.74, left + width, y + size * 0.2, shown(text)


def overlap(a, b):
    return a[1] < b[3] and b[1] < a[3] and a[2] < b[4] and b[2] < a[4]


def value_of(label, unit):
    """Returns the value of a tick's label."""
    if re.fullmatch(f"2⁻?[{RAISED}]+", label):
        digits = "".join("-" if c == "⁻" else str(RAISED.index(c)) for c in label[1:])
        return 2.0 ** int(digits)
    matched = re.fullmatch(r"(\d[\d.]*(?:e[-+]\d+)?) ?([pnµmkMGTPE]?)" + unit, label)
    assert matched, (label, unit)
    number, prefix = matched.groups()
    return float(number) * PREFIXES[prefix]


def check(title, lines, unit="s", x_name="n", y_name="time", theme=0, least=3):
    root = tree.fromstring(_kjit.draw_figure(title, x_name, y_name, unit, theme, lines))
    width, height = map(float, root.get("viewBox").split()[2:])
    found = list(boxes(root))
    for box in found:
        assert box[1] >= 0 and box[2] >= 0 and box[3] <= width and box[4] <= height, ("outside", box)
    for i, a in enumerate(found):
        for b in found[:i]:
            assert not overlap(a, b), ("overlap", a, b)
    marks = [p for g in root.findall(SPACE + "g") for p in g.findall(SPACE + "path") if p.find(SPACE + "title") is not None]
    points = [p for _, line in lines for p in line]
    assert len(marks) == len(points)
    at = [tuple(map(float, re.fullmatch(r"translate\((\S+) (\S+)\)", m.get("transform")).groups())) for m in marks]
    for kind, side, end in (("x", 0, ""), ("y", 1, re.escape(unit) if len(unit) < 6 else "")):
        ticks = [t for t in root.findall(SPACE + "text") if t.get("class") == kind and t.get("x") and x_name not in (shown(t), t.findtext(SPACE + "title"))]
        labels = [shown(t) for t in ticks]
        assert len(labels) >= (least if kind == "x" else 3) or labels and all(re.fullmatch(f"2⁻?[{RAISED}]+", x) for x in labels), labels
        assert len(set(labels)) == len(labels), labels
        # a tick lies where the line through two far points of the axis has its value
        values = [value_of(label, end) for label in labels]
        places = [float(t.get("x")) if kind == "x" else float(t.get("y")) - 4.5 for t in ticks]
        assert values == sorted(values), labels
        if len(values) > 1:
            slope = (places[-1] - places[0]) / math.log10(values[-1] / values[0])
            for value, place in [*zip(values, places), *((p[side], a[side]) for p, a in zip(points, at))]:
                assert abs(places[0] + slope * math.log10(value / values[0]) - place) < 1.5, (kind, labels, value, place)
    for name, _ in lines:
        texts = [t for t in root.iter(SPACE + "text") if t.get("class") == "name"]
        assert any(name in (shown(t), t.findtext(SPACE + "title")) for t in texts), name
    return root


def random_lines(low, high, count):
    """Lines that cover a part of a decade, or many decades."""
    lines = []
    for k in range(count):
        x = sorted(10 ** rng.uniform(low, high) for _ in range(rng.randrange(1, 9)))
        y = [10 ** rng.uniform(low - 9, high - 9) for _ in x]
        lines.append((f"line {k}", [(a, b, b * 0.9, b * 1.1) if rng.random() < 0.8 else (a, b, NAN, NAN) for a, b in zip(x, y)]))
    return lines


def test_random():
    for _ in range(150):
        low = rng.uniform(0, 9)
        span = rng.choice((0, 1e-6, 0.001, 0.01, 0.1, 0.3, 0.5, 0.9, 1.1, 2, 3.2, 5, 9))
        check("title", random_lines(low, low + span, rng.randrange(1, 13)), unit=rng.choice(("s", "B/s")), theme=rng.randrange(3), least=1 if 0 < span < 1e-3 else 3)


def test_hard():
    one = [("axpy", [(1500.0, 3.3e-6, 3e-6, 4e-6)])]
    bar = next(p for p in check("one point", one).iter(SPACE + "path") if p.get("class") == "bar")
    _, high, low = map(float, re.fullmatch(r"M(\S+) (\S+)V(\S+)", bar.get("d")).groups())
    assert high < low, "the bar of a single point has no height"
    check("equal", [("a", [(8.0, 1.0, NAN, NAN)]), ("b", [])])
    check("narrow", [("a", [(1050.0 + 2 * i, 3.1e-6 + 1e-8 * i, NAN, NAN) for i in range(20)])])
    check("a long unit", [("a", [(10.0, 2e9, NAN, NAN), (500.0, 7e9, NAN, NAN)])], unit="elements of rows/s", y_name="elements of rows/s")
    check("powers", [("a", [(2.0**i, 2.0**-i, NAN, NAN) for i in range(1, 31)])])
    check("beyond prefixes", [("a", [(10.0**i, 10.0 ** (i - 30), NAN, NAN) for i in range(1, 40, 3)])])


def test_texts():
    point = [(1500.0, 3.3e-6, NAN, NAN)]
    long = "a very long name of a kernel, with its folder /home/user/projects/kernels, the device and its options, "
    names = [long * 2 + "first", long * 2 + "second", "測" * 200, "<b>&\"' \x01\x7f"]
    root = check(long * 3, [(name.replace("\x01", " ").replace("\x7f", " "), point) for name in names], x_name=long, y_name=long)
    cut = [shown(t) for t in root.iter(SPACE + "text") if t.get("class") == "name"]
    assert len(set(cut)) == len(cut) and cut[0].endswith("first") and cut[1].endswith("second"), cut
    tree.fromstring(_kjit.draw_figure("\ufffe \uffff \x0b \x1f", "n", "t", "s", 0, [("\U0001f600", point)]))


for test in (test_random, test_hard, test_texts):
    test()
