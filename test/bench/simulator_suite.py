"""numba-cuda's own tests in the simulator of kjit.cuda and in that of numba-cuda, in one run:

    python3 -m venv /tmp/with-numba
    /tmp/with-numba/bin/pip install numba-cuda==0.30.4 numpy==2.2.6 ml_dtypes==0.5.1 pytest psutil greenlet filecheck
    PYTHONPATH=build/release/python /tmp/with-numba/bin/python test/bench/simulator_suite.py --folder build/numba-suite

Both simulators run in the same interpreter with the same NumPy. A child process runs one file of tests in one simulator. The times are
the elapsed time of a test, the processor time of all its threads, and the part of that in launches of kernels, in seconds. Each is the
minimum of --rounds runs, in which the two simulators take turns. The tests of the table pass in both simulators. --list names the tests that pass in one simulator only."""
import argparse
import collections
import importlib.util
import json
import os
import subprocess
import sys
import tempfile

TEST = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "python")
sys.path[:0] = [TEST, os.path.join(TEST, "Inputs")]
import numba_suite  # noqa: E402
import suite_results  # noqa: E402

TIMES = ("elapsed", "processor", "launches")
Test = collections.namedtuple("Test", ("outcome", "reason", *TIMES))


def run_in_numba(tests, path, results):
    """The child process for numba-cuda's simulator. Its own tests are those of the wheel that is installed."""
    import numba_cuda

    if numba_cuda.__version__ != numba_suite.VERSION:
        raise SystemExit(f"simulator_suite.py needs numba-cuda {numba_suite.VERSION}, and {numba_cuda.__version__} is installed")
    from numba.cuda.simulator.kernel import FakeCUDAKernel

    suite_results.time_launches(FakeCUDAKernel)
    suite_results.run_file(tests, path, results)


def run_in_kjit(tests, path, results):
    """The child process for kjit's simulator."""
    sys.argv[1:] = [tests, path, results]  # as numba_standin.py is called
    import numba_standin
    from kjit.simulator import launching

    suite_results.time_launches(launching.Configured)
    numba_standin.main()


CHILDREN = {"numba": (run_in_numba, {"NUMBA_ENABLE_CUDASIM": "1"}), "kjit": (run_in_kjit, {"KJIT_DEVICE": "python"})}


def run(simulator, tests, name, bytecode):
    """Returns {test: Test} for the tests of a file. bytecode: the folder where Python keeps the compiled modules of both simulators, as
    it does for an installed package."""
    path = os.path.join(tests, name)
    command = [sys.executable, os.path.abspath(__file__), "--child", simulator]
    environment = {**os.environ, **CHILDREN[simulator][1], "PYTHONPYCACHEPREFIX": bytecode}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.NamedTemporaryFile("r", suffix=".jsonl") as results:
        done = subprocess.run([*command, tests, path, results.name], env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=1800)
        if done.returncode:
            raise SystemExit(f"{name} in the simulator of {simulator}: exit status {done.returncode}\n{done.stderr}")
        events = [json.loads(line) for line in results]
    return {test: Test(outcome, reason, *(times or (0, 0, 0))) for test, outcome, reason, *times in events if outcome != "began"}


def fewest(rounds):
    """Returns {test: Test} with the minimum of each time."""
    return {test: found._replace(**{time: min(getattr(r[test], time) for r in rounds) for time in TIMES})
            for test, found in rounds[0].items() if all(r.get(test, found).outcome == found.outcome for r in rounds)}


def measure(tests, names, rounds, bytecode):
    """Returns {file: {simulator: {test: Test}}}."""
    found = {}
    for name in names:
        runs = {"numba": [], "kjit": []}
        for _ in range(rounds):
            for simulator, of in runs.items():
                of.append(run(simulator, tests, name, bytecode))
        found[name] = {simulator: fewest(of) for simulator, of in runs.items()}
        print(f"{name}: {sum(t.outcome == 'pass' for t in found[name]['kjit'].values())} tests pass", file=sys.stderr)
    return found


def total(rows, simulator, time):
    return sum(getattr(row[simulator], time) for row in rows)


def print_row(title, rows):
    cells = [title, str(len(rows))]
    for time in TIMES:
        numba, kjit = (total(rows, simulator, time) for simulator in ("numba", "kjit"))
        cells += [f"{numba:.2f}", f"{kjit:.3f}", f"{numba / max(kjit, 1e-5):.1f}"]
    print("| " + " | ".join(cells) + " |")


def print_table(found, least):
    common = {name: [{s: of[s][test] for s in of} for test in of["kjit"] if of["kjit"][test].outcome == "pass" == of["numba"].get(test, ("",))[0]]
              for name, of in found.items()}
    shown = [name for name, rows in common.items() if total(rows, "numba", "processor") >= least]
    rest = [row for name, rows in common.items() if name not in shown for row in rows]
    print("| file | tests | elapsed: Numba | kjit | ratio | processor: Numba | kjit | ratio | launches: Numba | kjit | ratio |")
    print("|---" * 11 + "|")
    for name in sorted(shown, key=lambda n: -total(common[n], "numba", "processor")):
        print_row(f"`{name}`", common[name])
    print_row(f"{sum(map(bool, common.values())) - len(shown)} other files", rest)
    everything = [row for rows in common.values() for row in rows]
    print_row("together", everything)
    print_bound(everything)


def print_bound(rows):
    """Prints the ratio of processor times that kjit would have if its launches took no time: the rest is the work of the tests
    themselves, the interpreters that they start, and the functions of kjit.cuda that are no launches."""
    rest = total(rows, "kjit", "processor") - total(rows, "kjit", "launches")
    numba = total(rows, "numba", "processor")
    print(f"\nkjit needs {rest:.2f} s outside of launches. Launches that took no time would give the ratio {numba / rest:.1f}.")


def print_differences(found):
    for name, of in sorted(found.items()):
        for test in sorted({**of["numba"], **of["kjit"]}):
            outcomes = {s: of[s].get(test, Test("nothing", "", 0, 0, 0)) for s in of}
            if len({o.outcome for o in outcomes.values()}) > 1 and "pass" in {o.outcome for o in outcomes.values()}:
                print(f"{name} {test}: " + "; ".join(f"{s}: {o.outcome} {o.reason}" for s, o in outcomes.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--only", default="", help="a regular expression for names of files")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--least", type=float, default=0.5, help="files with less processor time in Numba's simulator share one row")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    tests = numba_suite.fetch(options.folder)
    if tests is None:
        raise SystemExit(f"pip cannot fetch numba-cuda {numba_suite.VERSION}")
    if importlib.util.find_spec("filecheck") is None:
        raise SystemExit("numba-cuda's tests cannot be imported without the package filecheck")
    found = measure(tests, numba_suite.names_in_scope(tests, options.only), options.rounds, os.path.join(options.folder, "bytecode"))
    print_table(found, options.least)
    if options.list:
        print_differences(found)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        CHILDREN[sys.argv[2]][0](*sys.argv[3:])
    else:
        main()
