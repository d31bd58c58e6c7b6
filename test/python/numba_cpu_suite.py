# REQUIRES: numba
# RUN: %numba-python %s --only tuples,range,mandelbrot,return_values,globals,storeslice,multi3,vectorization_type_inference
"""Numba's own tests for the CPU, which the package numba brings along, run with kjit.njit in the place of numba.njit and
numba.jit:

    build/python/bin/python3 test/python/numba_cpu_suite.py             # all of them, against numba_cpu_suite.txt
    build/python/bin/python3 test/python/numba_cpu_suite.py --update    # writes what came out to numba_cpu_suite.txt
    build/python/bin/python3 test/python/numba_cpu_suite.py --causes    # the reasons of the failures, most frequent first
    build/python/bin/python3 test/python/numba_cpu_suite.py --only test_operators     # some files, with what fails

numba_cpu_suite.txt has what is expected of each test: pass; python: it passes, and a function of it runs in the interpreter;
fail, with the reason; skip, with the reason that the test gives; xfail, where Numba fails, too; out, where a test asks for
something that is not njit. The test command runs a few quick files."""
import argparse
import concurrent.futures
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "Inputs"))
import suites  # noqa: E402

EXPECTED = os.path.join(HERE, "Inputs", "numba_cpu_suite.txt")
CHILD = os.path.join(HERE, "Inputs", "numba_cpu_standin.py")
SECONDS = 900  # time limit for a file on a busy machine
VERSION = "0.61.2"

# The files about numbers, arrays, tuples, records and control flow. Out are lists, sets, dictionaries, strings, classes, object mode,
# generators, the extension API and Numba's insides.
FILES = """annotations array_attr array_manipulation array_constants array_exprs array_iterators array_methods array_reductions array_return blackscholes
    boundscheck builtins casting chained_assign closure complex comprehension conditions_as_predicates conversion dataflow dispatcher
    dyn_array dyn_func enums getitem_on_types
    errormodels exceptions extended_arg fancy_indexing fastmath flow_control func_lifetime globals hashing indexing
    inlining interproc intwidth iteration literal_dispatch locals make_function_to_jit_function mandelbrot mathlib maxmin
    mixed_tuple_unroller multi3 nan nested_calls np_functions npdatetime num_threads numberctor numbers operators optional overlap parfors polynomial
    practical_lowering_issues python_int random range recarray_usecases record_dtype recursion return_values slices sort ssa storeslice svml
    tuples typeof ufuncs unicode_names unpack_sequence usecases vectorization_type_inference
    npyufunc.test_dufunc npyufunc.test_gufunc npyufunc.test_ufunc npyufunc.test_vectorize_decor npyufunc.test_errors
    npyufunc.test_update_inplace npyufunc.test_ufuncbuilding""".split()


def module_of(name):
    return name if "." in name else "test_" + name


def run_file(name):
    # Numba's own test command runs the tests of test_parfors in processes with this variable.
    return suites.run([sys.executable, CHILD, name], SECONDS, environment={"SUBPROC_TEST": "1"})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="only these files, with commas between them")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--causes", action="store_true")
    parser.add_argument("--strict", action="store_true", help="a test that passes and is not expected to is a difference, too")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    import numba
    if numba.__version__ != VERSION:
        print(f"SKIPPED: numba {numba.__version__} is installed, and what is expected is of {VERSION}")
        return 0
    names = sorted(map(module_of, FILES))
    if options.only:
        names = [module_of(n.removeprefix("test_")) for n in options.only.split(",")]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        found = dict(zip(names, pool.map(run_file, names)))
    suites.count("", found)
    if options.causes:
        suites.causes(found)
    if options.update:
        suites.write_expected(EXPECTED, f"What is expected of Numba {VERSION}'s tests for the CPU; written by numba_cpu_suite.py --update.", found)
        return 0
    return suites.compare(found, suites.read_expected(EXPECTED), show_failures=bool(options.only), is_strict=options.strict) > 0


if __name__ == "__main__":
    sys.exit(main())
