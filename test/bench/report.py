"""Functions that the benchmark commands share: they run kjit-run and compiled programs, and print the table at the
end."""
import datetime
import os
import platform
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.normpath(os.path.join(HERE, "..", "..", "examples"))
INCLUDE = os.path.normpath(os.path.join(HERE, "..", "..", "include"))


def say(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


def output_of(command, **options):
    process = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: exit status {process.returncode}\n{process.stdout[-2000:]}{process.stderr[-2000:]}")
    return process.stdout


def kjit_bench(kjit_run, device, module, arguments, launch, repetitions=30, launches=1):
    """Returns the median and minimum device time of one launch in microseconds, from kjit-run --bench. If a launch is
    short compared with the time to start it, several launches are measured together."""
    command = [kjit_run, os.path.join(EXAMPLES, module), "--device", device, "--quiet", "--bench", str(repetitions), "--repeat", str(launches), "--launch", launch]
    for argument in arguments:
        command += ["--arg", argument]
    return tuple(float(us) / launches for us in re.search(r"median ([0-9.]+) us, min ([0-9.]+) us", output_of(command)).groups())


def library_folder(bin_dir):
    """The folder of libkjit, which is next to the tools' folder in a build and in an installation."""
    for folder in ("lib", "lib64", "lib/x86_64-linux-gnu"):
        candidate = os.path.join(os.path.dirname(os.path.abspath(bin_dir)), folder)
        if os.path.exists(os.path.join(candidate, "libkjit.so")):
            return candidate
    raise RuntimeError(f"no libkjit.so near {bin_dir}")


def compile_with_kjit(source, program, bin_dir, *options):
    library = library_folder(bin_dir)
    output_of(["gcc", "-std=gnu11", "-O3", "-march=native", "-fopenmp", *options, "-I" + INCLUDE, os.path.join(HERE, source), "-o", program, "-L" + library, "-lkjit", "-Wl,-rpath," + library, "-lm"])


def processor_name():
    try:
        with open("/proc/cpuinfo") as file:
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()


def print_table(title, machine, columns, rows):
    """Prints a Markdown table for docs/performance.md."""
    print(f"\n{title}\n\n{machine}, {datetime.date.today().isoformat()}\n")
    print("| " + " | ".join(columns) + " |")
    print("|" + "---|" * len(columns))
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |")
    sys.stdout.flush()
