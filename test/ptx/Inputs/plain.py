"""plain.py KJIT-RUN PTXAS DRIVER FOLDER: runs algorithms with plain code on a driver that keeps the code that it loads, and has
ptxas assemble all of it."""

import os
import re
import shutil
import subprocess
import sys

kjit_run, ptxas, driver, folder = sys.argv[1].split(), *sys.argv[2:5]
CALLS = {
    "r = reduce(x, add)": "x=zeros:i64[100000]",
    "r = scan(x, max)": "x=zeros:i64[100000]",
    "r = sort(x)": "x=zeros:f32[100000]",
    "r, c = unique(x)": "x=zeros:i32[100000]",
    "r = bincount(x, 256)": "x=zeros:i32[100000]",
    "r = matmul(x, x)": "x=zeros:f64[256,256]",
}
MOST_RATIO = 1.25  # maximum ratio of the registers of plain code to those of the best code


def assemble(name, level):
    """Returns the largest number of registers that a thread uses."""
    path = os.path.join(folder, name)
    with open(path) as file:
        target = re.search(r"^\.target (\w+)", file.read(), re.MULTILINE)[1]
    command = [ptxas, "-v", f"-O{level}", f"-arch={target}", path, "-o", path + ".cubin"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return max(int(n) for n in re.findall(r"Used (\d+) registers", result.stderr))


def run(call, array):
    shutil.rmtree(folder)
    os.mkdir(folder)
    environment = os.environ | {"LD_LIBRARY_PATH": driver, "LOADED_CODE": folder}
    command = [*kjit_run, "--no-cache", "--device", "cuda", "--plain-code", "always", "--arg", array, "--call", call, "--bench", "1"]
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    names = os.listdir(folder)
    plain, best = [[n for n in names if n.endswith(f"-{kind}.ptx")] for kind in ("plain", "best")]
    assert plain and len(plain) == len(best), (call, names)
    most = [max(assemble(n, level) for n in group) for group, level in ((plain, 1), (best, 3))]
    assert most[0] <= MOST_RATIO * most[1], (call, most)
    print(f"{call}: {len(plain)} kernels, at most {most[0]} and {most[1]} registers")


for item in CALLS.items():
    run(*item)
