#!/usr/bin/env python3
"""launch_cost.py BUILD_DIR: counts what one launch with a cache hit does on the host between kjit_launch and the
driver: its instructions, and the cache lines of code and data that it touches. A launch waits for these cache lines if
the driver has evicted them in between. The program needs valgrind, but no GPU: it uses the driver of the unit tests,
whose part (about 40 instructions) is counted as well."""
import os
import subprocess
import sys
import tempfile

from report import print_table, processor_name

LINE = 64


def trace(program):
    """Returns the rows by the program's names, and for each row the accesses of its last launch as (kind, address)."""
    with tempfile.NamedTemporaryFile("w+") as log:
        result = subprocess.run(["valgrind", "--tool=lackey", "--trace-mem=yes", f"--log-file={log.name}", program], capture_output=True, text=True, check=True,
                                # otherwise waiting threads would be counted as well
                                env={**os.environ, "OMP_NUM_THREADS": "1"})
        names = [line.split() for line in result.stdout.splitlines()]
        marker, inside, found = int(names[0][3], 16), False, []
        for line in log:
            kind, operand = line[:3].strip(), line[3:].partition(",")[0].strip()
            if kind not in ("I", "L", "S", "M"):
                continue
            address = int(operand, 16)
            if kind in ("S", "M") and address == marker:
                inside = not inside
                if inside:
                    found.append([])
            elif inside:
                found[-1].append((kind, address))
    launches = len(found) // len(names)
    return names, found[launches - 1::launches]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    names, found = trace(os.path.join(sys.argv[1], "test", "bench", "launch_cost"))
    table = []
    for (way, kernel, arguments, _), accesses in zip(names, found):
        code = [address for kind, address in accesses if kind == "I"]
        data = [(kind, address) for kind, address in accesses if kind != "I"]
        table.append([way, kernel, arguments, len(code), len({a // LINE for a in code}), len({a // LINE for _, a in data}), len({a // LINE for kind, a in data if kind != "L"})])
    print_table("One launch that is a hit", processor_name(), ["way", "kernel", "arguments (array, tensor, scalar)", "instructions", "lines of code", "lines of data", "of them written"], table)


if __name__ == "__main__":
    main()
