"""Computes the memory that a kernel uses on a GPU from its PTX, for machines without a GPU. PTX
does not show the number of registers."""

import re

# PTX's name of the memory space for each attribute of a kernel.
SPACES = {"shared_bytes": "shared", "local_bytes": "local", "constant_bytes": "const"}
_VARIABLE = re.compile(
    r"^\s*(?:\.visible\s+)?\.(shared|local|const)\s+(?:\.align\s+(\d+)\s+)?\.[bsuf](\d+)\s+[\w$]+(?:\[(\d+)\])?",
    re.MULTILINE,
)


def measure(ptx, name):
    """Returns the bytes that the PTX declares in one memory space. Each variable begins at the
    first address after the preceding one that fits its alignment."""
    end = 0
    for space, align, bits, count in _VARIABLE.findall(ptx):
        if space == SPACES[name]:
            end = _place(end, int(align or 1)) + int(bits) // 8 * int(count or 1)
    return end


def _place(end, align):
    return (end + align - 1) // align * align
