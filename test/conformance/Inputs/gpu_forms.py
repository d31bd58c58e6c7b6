"""gpu_forms.py: the rows that gpu_forms.test runs with check.py in this folder. In a divided run, these are a share of
all rows."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["KJIT_SOURCE_DIR"], "test"))
from share import share_of

# A table, and a string that the row's name must contain.
ROWS = [("block_pieces", "ranks"), ("block_sorts", "ranks of digits"), ("block_sorts", "first items"), ("warp_sorts", "first items"), ("warp_sorts", "exchanges"),
        ("radix_sorts", "few")]
WHOLE = [("merge_sorts", None)]  # check.py divides its rows

here = os.path.dirname(os.path.abspath(__file__))
failed = 0
for table, name in [*share_of(ROWS, "gpu_forms"), *WHOLE]:
    command = [sys.executable, os.path.join(here, "check.py"), os.path.join(here, table + ".kir"), "--device", "cpu", *sys.argv[1:], *(["--row", name] if name else [])]
    failed |= subprocess.run(command).returncode
sys.exit(failed)
