"""Reads the inferred types of a kernel's variables from its typed kernel IR."""

import re

from . import types

_ARRAY = re.compile(r"(\w+)\[([^\]]*)\]\s*(C|F)?")
# Matches the memory space before a type in the typed IR, and the facts about its values after the
# type.
_BESIDE = re.compile(r"^(?:shared|local|const) |(?: [a-z]+)+$")
_DECLARED = re.compile(r"^\s*(?:shared|local|const|let|var|for)\s+([A-Za-z]\w*)(?:\.\d+)?: ([^={]+?)\s*(?:=|\{| in |$)")
_PARAMETERS = re.compile(r"^kernel \w+\((.*?)\)(?: @| \{)", re.MULTILINE)


def _kind(text):
    """Returns the type for its text in the typed IR, or None if kjit.cuda has no such type."""
    text = _BESIDE.sub("", _BESIDE.sub("", text.strip(), 1), 1)
    array = _ARRAY.fullmatch(text)
    if not array:
        return types.of_text(text)
    element, inside, layout = array.groups()
    kind = types.of_text(element)
    extents = inside.split(",")
    is_whole = all(extent.strip().isdigit() for extent in extents)
    return kind and types.Array(kind, len(extents), layout or ("C" if is_whole else "A"))


def variables(text):
    """Returns the types of the variables in a kernel's typed IR, by name."""
    found = {}
    parameters = _PARAMETERS.search(text)
    for name, kind in re.findall(r"(\w+): ([^:]+?)(?=, \w+: |$)", parameters.group(1)) if parameters else ():
        found[name] = _kind(kind)
    for line in text.split("\n"):
        declared = _DECLARED.match(line)
        if declared:
            found.setdefault(declared.group(1), _kind(declared.group(2)))
    return {name: kind for name, kind in found.items() if kind is not None}
