"""`Table.merge`: joins of two tables. The library of the tables copies the rows, so columns of all
types are supported."""

import numpy

from . import keys
from .grouping import usable
from .join_rows import Matches, Picks, sides

HOW = ("inner", "left", "right", "outer", "semi", "anti")


def merge(left, right, how, on, left_on, right_on, suffixes, nulls_equal):
    if how not in HOW:
        raise ValueError(f"merge(how=...) must be one of {', '.join(HOW)}, not {how!r}")
    if left._home is not right._home:
        homes = [table._home.__name__.rpartition("of_")[2] for table in (left, right)]
        raise TypeError(f"merge() takes two tables of one library, not of {homes[0]} and {homes[1]}: convert one of them")
    names = _keys(left, right, on, left_on, right_on)
    plan = None if how in ("semi", "anti") else _plan(left, right, names, suffixes)
    pairs = [_sides(left, right, a, b) for a, b in names]
    matches = Matches(pairs, nulls_equal)
    home = left._home
    if plan is None:
        is_kept = matches.has_match()
        return home.keep(left._native, is_kept if how == "semi" else ~is_kept)
    if how == "outer":
        _check_types(left, right, names)
        rows = matches.all_rows()
    elif how == "right":
        rows = matches.swapped().rows(True)[::-1]
    else:
        rows = matches.rows(how == "left")
    return home.made_of(left._native, {name: _column(home, left, right, rows, source) for name, source in plan.items()})


def _sides(left, right, a, b):
    """Returns the keys' sides in the columns a and b."""
    what = f"the keys {a!r} and {b!r}" if a != b else f"the keys {a!r}"
    home = left._home
    order = home.order_of_keys(left._native[a].dtype, right._native[b].dtype) if home.__name__.endswith("of_pandas") else (None, False)
    return sides(_read(left, a), _read(right, b), what, *order)


def _check_types(left, right, names):
    """Raises TypeError for a key column of both tables whose types have no common integer type,
    because a common float type would round it."""
    for name, other in names:
        types = [keys.whole(table._columns[name])[0].dtype for table in (left, right)] if name == other else []
        if "u8" in types and any(kind.kind == "i" for kind in types):
            raise TypeError(f"merge(): the keys {name!r} have the types {types[0]} and {types[1]}, which have no common type of integers")


def _column(home, left, right, rows, source):
    """Returns a column of the result. source: (name in the left table or None, name in the right
    table or None)."""
    a, b = source
    if b is None or a is not None and not rows[0].has_gaps:
        return home.picked(home.column(left._native, a), rows[0])
    if a is None or not rows[1].has_gaps:
        return home.picked(home.column(right._native, b), rows[1])
    first = home.column(left._native, a)
    of_left, of_right = (each.wide() for each in rows)
    either = Picks(numpy.where(of_left >= 0, of_left, of_right + len(first)), len(of_left))
    return home.picked(home.stacked(first, home.column(right._native, b)), either)


def _read(table, name):
    column = usable(table._columns[name])
    return *keys.whole(column), column.texts, column.decimal


def _keys(left, right, on, left_on, right_on):
    """Returns the pairs of key columns. Raises TypeError for inconsistent arguments."""
    if on is not None and (left_on is not None or right_on is not None):
        raise TypeError("merge() takes either on= or both left_on= and right_on=")
    if (left_on is None) != (right_on is None):
        raise TypeError("merge() takes left_on= and right_on= together")
    if on is None and left_on is None:
        on = [name for name in left._columns if name in right._columns]
        if len(on) != 1:
            found = ", ".join(map(repr, on)) or "no column"
            raise TypeError(f"merge() needs on=, or left_on= and right_on=: the tables have {found} in common")
    pairs = [_listed(on)] * 2 if on is not None else [_listed(left_on), _listed(right_on)]
    if len(pairs[0]) != len(pairs[1]):
        raise ValueError(f"merge(): left_on has {len(pairs[0])} names, and right_on has {len(pairs[1])}")
    if not pairs[0]:
        raise ValueError("merge(): the list of keys is empty")
    for table, side, names in ((left, "left", pairs[0]), (right, "right", pairs[1])):
        for name in names:
            if name not in table._columns:
                raise KeyError(f"the {side} table of merge() has no column {name!r}: it has {', '.join(map(repr, table._columns))}")
    return list(zip(*pairs))


def _listed(names):
    return list(names) if isinstance(names, (list, tuple)) else [names]


def _plan(left, right, names, suffixes):
    """Returns a dictionary: name of a result column -> (name in the left table or None, name in the
    right table or None). Raises ValueError if two result columns would have the same name."""
    if not isinstance(suffixes, (list, tuple)) or len(suffixes) != 2:
        raise TypeError(f"merge(suffixes=...) must be a pair of texts, not {suffixes!r}")
    shared = {a for a, b in names if a == b}
    others = [name for name in right._columns if name not in shared]
    twice = {*left._columns} & {*others}
    plan = {}
    for name in left._columns:
        _add(plan, _suffixed(name, twice, suffixes[0]), (name, name if name in shared else None))
    for name in others:
        _add(plan, _suffixed(name, twice, suffixes[1]), (None, name))
    return plan


def _suffixed(name, twice, suffix):
    return f"{name}{suffix}" if name in twice and suffix else name


def _add(plan, name, source):
    if name in plan:
        raise ValueError(f"merge(): two columns of the result would be called {name!r}; choose other suffixes=")
    plan[name] = source
