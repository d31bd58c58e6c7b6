"""What memory a kernel uses on a GPU, by its PTX, where no GPU is there to say it. Registers are the assembler's business."""

import re

# By the names of a kernel's numbers: the state space of PTX.
SPACES = {"shared_bytes": "shared", "local_bytes": "local", "constant_bytes": "const"}
_VARIABLE = re.compile(
    r"^\s*(?:\.visible\s+)?\.(shared|local|const)\s+(?:\.align\s+(\d+)\s+)?\.[bsuf](\d+)\s+[\w$]+(?:\[(\d+)\])?",
    re.MULTILINE,
)


def measure(ptx, name):
    """The bytes of a state space that PTX declares, one variable behind the other."""
    end = 0
    for space, align, bits, count in _VARIABLE.findall(ptx):
        if space == SPACES[name]:
            end = _place(end, int(align or 1)) + int(bits) // 8 * int(count or 1)
    return end


def _place(end, align):
    return (end + align - 1) // align * align
