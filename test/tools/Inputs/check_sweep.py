"""check_sweep.py ROWS.csv PLOT.svg time|bandwidth LINES: checks the output of a sweep. The plot must have this number
of lines, with a point for each row at its position: along both axes, positions grow with the logarithm of the table's
values, as the ticks do. Times can have any value above 0."""
import csv
import math
import re
import sys
import xml.etree.ElementTree as tree

SPACE = "{http://www.w3.org/2000/svg}"
PREFIXES = {"n": 1e-9, "µ": 1e-6, "m": 1e-3, "": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
rows_path, plot_path, quantity, line_count = sys.argv[1:5]
with open(rows_path, newline="") as file:
    rows = list(csv.DictReader(file))
size_name = next(name for name in rows[0] if name in ("n", "m"))
for row in rows:
    assert float(row["median_ns"]) >= float(row["min_ns"]) > 0 and int(row["repetitions"]) >= 1, row
    if int(row["bytes"]):
        assert math.isclose(float(row["bandwidth_gb_s"]), int(row["bytes"]) / float(row["median_ns"]), rel_tol=1e-4), row


def value_of(row):
    return float(row["median_ns"]) * 1e-9 if quantity == "time" else float(row["bandwidth_gb_s"]) * 1e9


def fitted(pairs):
    """Returns slope and offset of position = slope * log10(value) + offset through the outermost two. All others must
    be on this line."""
    pairs = sorted(pairs)
    (a, p), (b, q) = pairs[0], pairs[-1]
    slope = (q - p) / math.log10(b / a)
    for value, place in pairs:
        assert abs(p + slope * math.log10(value / a) - place) < 0.2, (value, place)
    return lambda value: p + slope * math.log10(value / a)


def tick_y(text):
    number, prefix, unit = re.fullmatch(r"([\d.]+) (\w?)(B/s|s)", text).groups()
    assert (unit == "s") == (quantity == "time"), text
    return float(number) * PREFIXES[prefix]


def tick_x(text):
    raised = re.fullmatch("2([⁰¹²³⁴⁵⁶⁷⁸⁹]+)", text)
    number, prefix = (None, None) if raised else re.fullmatch(r"([\d.]+)([kMG]?)", text).groups()
    return 2 ** int("".join(str("⁰¹²³⁴⁵⁶⁷⁸⁹".index(c)) for c in raised[1])) if raised else float(number) * PREFIXES[prefix]


root = tree.parse(plot_path).getroot()
assert root.tag == SPACE + "svg" and root.find(SPACE + "title").text
width, height = float(root.get("width")), float(root.get("height"))
texts = [t for t in root.findall(SPACE + "text") if t.get("y") and t.text]
place_y = fitted([(tick_y(t.text), float(t.get("y")) - 4.5) for t in texts if t.get("class") == "y"])
place_x = fitted([(tick_x(t.text), float(t.get("x"))) for t in texts if t.get("class") == "x" and t.text != size_name])
lines = [g for g in root.findall(SPACE + "g") if g.get("class").startswith("line ")]
assert len(lines) == int(line_count), len(lines)
groups = {}
for row in rows:
    groups.setdefault(f'{row["kernel"]}, {row["device"]} ({row["device_name"]})', []).append(row)
found = {}
for line in lines:
    marks = [p for p in line.findall(SPACE + "path") if p.find(SPACE + "title") is not None]
    found[line.find(SPACE + "text").text] = [tuple(map(float, re.fullmatch(r"translate\((\S+) (\S+)\)", m.get("transform")).groups())) for m in marks]
for name, of_group in groups.items():
    assert len(found[name]) == len(of_group), name
    for row, (x, y) in zip(sorted(of_group, key=lambda row: int(row[size_name])), found[name]):
        assert abs(place_x(int(row[size_name])) - x) < 0.3 and abs(place_y(value_of(row)) - y) < 0.3, (row, x, y)
        assert 0 < x < width and 0 < y < height
assert len({line.get("class") for line in lines}) == len(lines)
# the box of the legend contains all names, and no part of a line that does not belong to the legend
box = next(r for r in root.findall(SPACE + "rect") if r.get("class") == "legend")
left, top, right, bottom = (float(box.get(a)) + (float(box.get(b)) if b else 0) for a, b in (("x", ""), ("y", ""), ("x", "width"), ("y", "height")))
assert 0 < left < right < width and top < bottom < height
for line in lines:
    name = line.find(SPACE + "text")
    assert left < float(name.get("x")) < right and top < float(name.get("y")) < bottom
    for path in line.findall(SPACE + "path"):
        places = re.findall(r"[ML]([\d.]+) ([\d.]+)", path.get("d")) if path.get("class") in ("curve", "band") and "L" in path.get("d") else []
        assert all(float(y) < top for _, y in places), path.get("d")
# an error band is around its line
for line in lines:
    if sum(1 for p in line.findall(SPACE + "path") if p.get("class") == "band"):
        band = re.findall(r"[ML]([\d.]+) ([\d.]+)", next(p for p in line.findall(SPACE + "path") if p.get("class") == "band").get("d"))
        high, low = band[: len(band) // 2], band[len(band) // 2 :][::-1]
        for (x, a), (_, b) in zip(high, low):
            middle = [p[1] for p in found[line.find(SPACE + "text").text] if abs(p[0] - float(x)) < 0.2]
            assert float(a) - 0.2 <= middle[0] <= float(b) + 0.2, (line.find(SPACE + "text").text, a, middle, b)
for name in found:
    print(f"{name}: {len(found[name])} points")
