"""tables.py FOLDER KJIT_RUN...: compares columns of random tables in all forms of CSV with Python's csv module, and
formulas over columns with nulls with NumPy; then tests broken tables."""
import csv
import io
import os
import secrets
import subprocess
import sys

import numpy as np

folder, *kjit_run = sys.argv[1:]
os.chdir(folder)
seed = secrets.randbits(31)
rng = np.random.default_rng(seed)
NULLS = ["", "NA", "null", "N/A", '""']


def call(*options, data=None):
    return subprocess.run([*kjit_run, *options], input=data, capture_output=True)


def expect(*options, data=None, status=0, text=""):
    process = call(*options, data=data)
    output = (process.stdout + process.stderr).decode(errors="replace")
    assert process.returncode == status and text in output, (seed, options, data, status, text, process)
    return output


def number(kind):
    if kind == "integers":
        return str(rng.integers(-(2**53), 2**53) if rng.random() < 0.5 else rng.integers(-50, 50))
    if kind == "large":
        return str(rng.integers(0, 2**64, dtype=np.uint64))
    if kind == "bools":
        return str(rng.choice(["true", "False", "TRUE"]))
    x = float(rng.normal() * 10.0 ** rng.integers(-30, 30))
    return str(rng.choice([repr(x), f"{x:.4e}", f"{x:.17g}", "-.5", "+3.25", "7.", "1e5", "inf", "NaN", "12"]))


def quote(text, separator):
    needs_quotes = any(c in text for c in separator + '"\n')
    return '"' + text.replace('"', '""') + '"' if (needs_quotes or rng.random() < 0.2) and text != '""' else text


def make_table():
    separator, end = str(rng.choice([",", ";", "\t"])), str(rng.choice(["\n", "\r\n"]))
    kinds = rng.choice(["integers", "floats", "large", "bools"], rng.integers(2, 5))
    names = [f"n{i}" + str(rng.choice(["", " (EUR)", "ä", ", x", "; y", ' "z"', ":w", "\n2"])) for i in range(len(kinds))]
    lines = [separator.join(quote(name, separator) for name in names)]
    for _ in range(rng.integers(1, 30)):
        row = [str(rng.choice(NULLS)) if kind in ("integers", "floats") and rng.random() < 0.2 else number(kind) for kind in kinds]
        lines.append(separator.join(quote(cell, separator) for cell in row))
        if rng.random() < 0.1:
            lines.append("")
    text = end.join(lines) + (end if rng.random() < 0.7 else "")
    return names, separator, (b"\xef\xbb\xbf" if rng.random() < 0.3 else b"") + text.encode()


def read_column(data, separator, column):
    """Returns what csv and NumPy read from one column: an array, and which cells are empty."""
    rows = [row for row in csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), delimiter=separator) if row]
    cells = [row[column] for row in rows[1:]]
    nulls = np.array([cell in ("", *NULLS) for cell in cells])
    full = [cell for cell, null in zip(cells, nulls) if not null]
    if full and all(cell.lower() in ("true", "false") for cell in full):
        return np.array([cell.lower() == "true" for cell in cells]), nulls
    try:
        integers = [0 if null else int(cell) for cell, null in zip(cells, nulls)]
        kind = np.float64 if nulls.any() else np.uint64 if max(integers) >= 2**63 else np.int64
        values = np.array(integers, kind)
    except ValueError:
        values = np.array([0.0 if null else float(cell) for cell, null in zip(cells, nulls)])
    if nulls.any():
        values[nulls] = np.nan
    return values, nulls


def check_tables():
    for _ in range(25):
        names, separator, data = make_table()
        with open("table.csv", "wb") as file:
            file.write(data)
        column = int(rng.integers(len(names)))
        values, nulls = read_column(data, separator, column)
        source = str(rng.choice(["table.csv", "-"]))
        expect("--arg", f"x=@{source}:{names[column]}", "--save", "x=x.npy", "--save", "x=again.csv:x", data=data)
        got = np.load("x.npy")
        assert got.dtype == values.dtype and np.array_equal(got, values, equal_nan=got.dtype.kind == "f"), (seed, data, names[column], got, values)
        lines = open("again.csv").read().splitlines()
        assert lines[0] == "x" and [line == '""' for line in lines[1:]] == list(nulls), (seed, data, lines)
        expect("--arg", "x=@again.csv:x", "--check", "x=x.npy", "--rtol", "0", "--atol", "0", text="all equal" if not nulls.any() else "")


def check_formulas():
    n = int(rng.integers(1, 200))
    a, b = rng.integers(-9, 9, n), rng.normal(size=n)
    a_null, b_null = rng.random(n) < 0.3, rng.random(n) < 0.3
    rows = [f"{'' if p else x},{'NA' if q else repr(y)}\n" for x, p, y, q in zip(a.tolist(), a_null, b.tolist(), b_null)]
    data = ("count,share\n" + "".join(rows)).encode()
    columns = ("--arg", "a=@-:count:as=i32", "--arg", "b=@-:share")
    formulas = ("--formula", "c = a * 2 + b", "--formula", "d = a * a - 1", "--formula", "a = fillna(a, 100)", "--formula", "e = (a > 0) & (b < 0.5)")
    saves = [option for name in "cdae" for option in ("--save", f"{name}=r.csv")]
    expect(*columns, *formulas, "--call", "s = cumsum(a)", "--save", "s=s.npy", "--save", "c=c.npy", *saves, data=data)
    with open("r.csv", newline="") as file:
        got = list(csv.reader(file))
    assert got[0] == ["c", "d", "a", "e"] and len(got) == n + 1, (seed, got[:2])
    filled = np.where(a_null, 100, a)
    for i, row in enumerate(got[1:]):
        either = a_null[i] or b_null[i]
        assert row[0] == "" if either else float(row[0]) == a[i] * 2 + b[i], (seed, i, row)
        assert row[1] == "" if a_null[i] else int(row[1]) == a[i] * a[i] - 1, (seed, i, row)
        assert int(row[2]) == filled[i], (seed, i, row)
        is_true = None if b_null[i] and filled[i] > 0 else bool(filled[i] > 0) and bool(b[i] < 0.5)
        assert row[3] == {None: "", True: "true", False: "false"}[is_true], (seed, i, row)
    assert np.array_equal(np.load("s.npy"), np.cumsum(filled)), seed
    c = np.where(a_null | b_null, np.nan, a * 2 + b)
    assert np.array_equal(np.load("c.npy"), c, equal_nan=True), seed


def check_pipes():
    first, second = rng.normal(size=(3, 4)).astype(np.float32), rng.integers(0, 9, 5)
    np.save("first.npy", first)
    np.save("second.npy", second)
    both = call("--arg", "a=@first.npy", "--arg", "b=@second.npy", "--save", "a=-", "--save", "b=-").stdout
    expect("--arg", "x=@-", "--arg", "y=@-", "--check", "x=first.npy", "--check", "y=second.npy", data=both, text="all equal")
    expect("--arg", "x=@-", "--arg", "y=@-", "--arg", "z=@-", data=both, status=2)
    expect("--arg", "x=@-", "--arg", "y=@-", "--arg", "z=@-", "--print", "x", data=both, status=4, text="the input ends after the arrays that were read")
    expect("--arg", "x=@-", "--print", "x", data=both, text="warning: standard input has 168 more bytes")
    expect("--arg", "x=@-", "--print", "x", data=both[:150], status=4, text="truncated")
    expect("--arg", "x=@-", "--print", "x", data=b"", status=4, text="the input is empty")
    read, write = os.pipe()
    os.write(write, b"1,2\n3,4\n")
    os.close(write)
    process = subprocess.run([*kjit_run, "--arg", f"x=@/dev/fd/{read}", "--save", "x=-"], capture_output=True, pass_fds=[read])
    assert np.array_equal(np.load(io.BytesIO(process.stdout)), [[1, 2], [3, 4]]), process
    # the reader closes the pipe; then a disk is full
    with subprocess.Popen([*kjit_run, "--arg", "x=ones:f64[1e6]", "--save", "x=-:x"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.read(10)
        process.stdout.close()
        assert process.wait() != 0, seed
    with open("/dev/full", "wb") as full:
        process = subprocess.run([*kjit_run, "--arg", "x=ones:f64[1e5]", "--save", "x=-:x"], stdout=full, stderr=subprocess.PIPE)
        assert process.returncode == 4 and b"No space left" in process.stderr, process


def check_texts():
    """String columns in formulas, prints and tables. Options that take only numbers reject them."""
    words = ["", "Rome", "Oslo", 'a "q", b', "\u00e9t\u00e9", "2024-01-31", "12", "x" * 200]
    rows = [str(rng.choice(words)) for _ in range(300)]
    rows[0] = "Rome"
    cells = "".join(f'"{row.replace(chr(34), 2 * chr(34))}",{i}\n' for i, row in enumerate(rows))
    table = ("city,n\n" + cells).encode()
    names = ["--device", "cpu", "--arg", "city=@-:city", "--arg", "n=@-:n"]

    def run(*options):
        return subprocess.run([*kjit_run, *names, *options], input=table, capture_output=True, check=False)

    for text, holds in [
        ("city == 'Rome'", lambda s: s == "Rome"),
        ("city in ('Oslo', '12', 'none')", lambda s: s in ("Oslo", "12")),
        ("city < 'R'", lambda s: s < "R"),
        ("contains(city, 'x') or city >= '2024' and city < '2025'", lambda s: "x" in s or "2024" <= s < "2025"),
    ]:
        made = run("--formula", f"r = where({text}, n, -1)", "--save", "r=-:r")
        assert made.returncode == 0, made
        want = "".join(f"{i if holds(row) else -1}\n" if row else '""\n' for i, row in enumerate(rows))
        assert made.stdout.decode() == "r\n" + want, (text, made.stdout)
    made = run("--save", "city=-:city", "--save", "n=-:n")
    assert list(csv.reader(made.stdout.decode().splitlines())) == [["city", "n"], *([row, str(i)] for i, row in enumerate(rows))]
    made = run("--print", "city[:1]")
    assert made.stdout == b'city[:1]: text[1] = ["Rome"]\n', made
    for options, text in [
        (["--call", "m = max(city)"], "'city' has texts, such as"),
        (["--save", "city=texts.npy"], "a .npy file holds numbers, not text[300]"),
        (["--check", "city=0"], "'city' has texts, but --check compares only numbers"),
        (["--formula", "r = city + 1"], "`+` cannot be applied to a column of texts and an integer literal"),
    ]:
        made = run(*options)
        assert made.returncode and text in made.stderr.decode(), (options, made)
    made = subprocess.run([*kjit_run, "--arg", "t=@-", "--print", "t"], input=table, capture_output=True, check=False)
    assert "`:NAME` reads one column, also of texts, as in @FILE.csv:city" in made.stderr.decode(), made


def random_dates(unit, count):
    """NumPy dates in all forms of files: with a T or a blank, without seconds of 0, with a Z."""
    low, high = (np.datetime64(text, unit).astype("i8") for text in (("1700-01-01", "2250-01-01") if unit == "ns" else ("0001-01-01", "9999-12-31")))
    dates = rng.integers(low, high, count).astype(f"M8[{unit}]")
    texts = [str(date) for date in dates]
    if unit == "s":
        dates[0] = np.datetime64("2024-02-29T12:30")
        texts[0] = "2024-02-29 12:30"
    if unit != "D":
        texts = [text.replace("T", str(rng.choice(["T", " "]))) + str(rng.choice(["", "Z"])) for text in texts]
    return dates, texts


def check_dates():
    """If all strings of a column are dates, they are counts in the unit that all of them need, as in NumPy."""
    for unit in ("D", "s", "ms", "us", "ns"):
        first, texts = random_dates(unit, 30)
        missing = rng.random(30) < 0.2
        missing[0] = False
        other = rng.integers(-20000, 20000, 30).astype("M8[D]")
        rows = [f"{'' if m else t},{d},x" for t, m, d in zip(texts, missing, other)]
        data = ("t,d,u\n" + "\n".join(rows) + "\n").encode()
        columns = ["--arg", "t=@-:t", "--arg", "d=@-:d"]
        whole = call(*columns, "--save", "t=-:t", data=data).stdout.decode().splitlines()[1:]
        want = np.where(missing, '""', first.astype(str))  # NumPy's text of a date
        assert whole == want.tolist(), (seed, unit, whole, want)
        if unit in ("D", "s", "ms"):  # days of 32 bits fit into these units
            made = call(*columns, "--formula", "n = t - d", "--save", "n=-:n", data=data).stdout.decode().splitlines()[1:]
            want = ["" if m else str(int(x)) for x, m in zip((first - other).astype("i8"), missing)]
            assert [text.strip('"') for text in made] == want, (seed, unit, made, want)
        made = call(*columns, "--formula", "b = fillna(d >= '1990-01-01', false)", "--print", "b", data=data).stdout.decode()
        assert made.split("=", 1)[1].strip(" []\n").replace("\n", " ").split() == [str(x).lower() for x in other >= np.datetime64("1990-01-01")]
    for cell in ("2023-02-29", "2024-13-01", "2024-01-01T24:00", "2024-01-01T10", "2024-1-1", "2024-01-01T10:00+01:00", "2024-01-01x"):
        expect("--arg", "x=@-:x", "--print", "x", data=f"x\n2024-01-01\n{cell}\n".encode(), text='x: text[2] = ["2024-01-01"')
    days = b"x,y\n2024-01-31,1\n1999-12-31,2\n"
    expect("--arg", "x=@-:x", "--print", "x", data=days, text="x: date[2] = [2024-01-31 1999-12-31]")
    expect("--arg", "x=@-:x:as=text", "--print", "x", data=days, text='x: text[2] = ["2024-01-31" "1999-12-31"]')
    expect("--arg", "x=@-:x", "--formula", "y = x + days(1)", "--print", "y", data=days, text="y: date[2] = [2024-02-01 2000-01-01]")
    expect("--arg", "x=@-:x", "--formula", "y = as_seconds(x)", "--print", "y", data=days, text="y: time[2] = [2024-01-31T00:00:00 1999")
    expect("--arg", "x=@-:x", "--formula", "y = x - '2000-01-01'", "--call", "m = max(y)", "--print", "m", data=days, text="] = 8796")
    expect("--arg", "y=@-:y:as=text", "--print", "y", data=days, status=2, text="`:as=text` is supported only for table columns")
    expect("--arg", "x=@-:x", "--call", "m = max(x)", "--print", "m", data=days, status=2, text="'x' has dates, but kernels and algorithms")
    expect("--arg", "x=@-:x", "--save", "x=x.npy", data=days, status=2, text="a .npy file holds numbers, not date[2]")
    expect("--arg", "x=@-:x", "--check", "x=3", data=days, status=2, text="'x' has dates, but --check compares only numbers")
    late = b"x\n2024-01-01T00:00:00.123456789\n9999-12-31\n"
    expect("--arg", "x=@-:x", "--print", "x", data=late, status=4, text="the date 9999-12-31 does not fit into 64 bits in the unit of the column")


def check_broken():
    for data, column, text in [
        (b"a,b\n1,2\n3\n", "a", "standard input: line 3: expected 2 cells, as in line 1, not 1"),
        (b"a,b\n1,2\n\n3,x\n", "b", "standard input: line 4, column 2 (b): expected a number, not 'x'"),
        (b"a,b\n1,1 2\n", "b:as=f64", "line 2, column 2 (b): expected a number, not '1 2'"),
        (b"a;b\n1,5;2\n", "a:as=f64", "line 2, column 1 (a): expected a number, not '1,5'"),
        (b'a,b\n1,"2\n3,4\n', "a", "line 2, column 2: the closing quote of the cell is missing"),
        (b'a,b\n1,"2"3\n', "a", "line 2, column 2: expected the end of the cell after the closing quote, not '3'"),
        (b"a,b\n1,2\n3,4\0\n", "a", "line 3, column 2: unexpected byte 0"),
        (b"a,b\n1,1e999\n", "b", "line 2, column 2 (b): the number 1e999 is too large for f64"),
        (b"a\n18446744073709551616\n", "a", "line 2, column 1 (a): the integer 18446744073709551616 needs more than 64 bits"),
        (b"a\n18446744073709551615\n-1\n", "a", "line 3, column 1 (a): the column has negative numbers"),
        (b"a,b\n9007199254740993,1\n,2\n", "a", "line 2: the column has empty cells, so its type is f64"),
        (b"a,b\n1,2\n300,3\n", "a:as=u8", "line 3, column 1 (a): the value does not fit u8"),
        (b"a,a\n1,2\n", "a", "2 columns have the name 'a'"),
        (b"price,cost\n1,2\n", "prise", "there is no column 'prise'; did you mean 'price'"),
        (b"1,2\n3,4\n", "a", "there is no column 'a'; the columns are 1, 2"),
        (b"PAR1" + bytes(range(256)), "a", "standard input: "),
        (b"\x1f\x8b\x08\0", "a", "compressed by gzip"),
        (rng.bytes(300), "a", "standard input: "),
    ]:
        expect("--arg", f"x=@-:{column}", "--print", "x", data=data, status=4, text=text)
    expect("--arg", "x=@t.csv.gz:a", "--print", "x", status=4, text="t.csv.gz:a: kjit-run does not read a file compressed by gzip")
    for path in ("t.parquet:a", "t.parquet", "folder/t.arrow:two words"):  # see arrow.test
        expect("--arg", f"x=@{path}", "--print", "x", status=4, text=f"{path.partition(':')[0]}: ")
    wide = (",".join(f"c{i}" for i in range(10**5)) + "\n" + ",".join(map(str, range(10**5))) + "\n").encode()
    expect("--arg", "x=@-:c99999", "--print", "x", data=wide, text="x: i64[1] = [99999]")


def check_prints_beside_pipes():
    """--print writes to standard error if --save writes to standard output."""
    for path, want in (("-:x", b"x\n1\n2\n"), ("-", b"\x93NUMPY")):
        made = call("--arg", "x=[1, 2]", "--print", "x", "--save", f"x={path}")
        assert made.returncode == 0 and made.stdout.startswith(want) and b"x: i64[2] = [1 2]" in made.stderr, made


check_prints_beside_pipes()
check_tables()
check_formulas()
check_pipes()
check_texts()
check_dates()
check_broken()
