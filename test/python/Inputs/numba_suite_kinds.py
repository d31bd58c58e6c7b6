"""The kinds of numba-cuda's tests that do not pass: (kind, pattern). The first pattern that is `FILE METHOD OUTCOME REASON` of numba_suite.txt gives the kind of a test. docs/numba.md has a table with the number of each kind."""
import collections
import re

KINDS = [
    ("expected failures", r" x(fail|pass) "),
    ("parts of Numba's compiler",
     r"test_(analysis|ir|ir_utils|byteflow|copy_propagate|typeinfer|typeconv|tracing|function_resolution|gufunc_scheduling|dummyarray"
     r"|itanium_mangler|debuginfo_types|cache_version|library_lookup)\.py|TestCFGraph|TestRealCodeDomFront|TestDebugOutput|TestNumbaInternal"
     r"|test_numba_interop|capture_compile|launch_config|EnumTest.test_int_enum_no|BaseVectorizeDecor"),
    ("files of Numba's cache", r"test_caching\.py|_cache_config"),
    ("NRT", r"^nrt/"),
    ("tests that skip themselves", r" skip "),
    ("LLVM IR that the program writes",
     r"test_extending\.py|struct_data_model|struct_model_type|compile_jitted_subroutine|overload_attribute_target|calling_overloaded_function"),
    ("linked code on the CPU", r"TestDeclareDevice.* out |TestLinkableCode|is linked code for|linked code is compiled on a GPU| (omit|out) (cffi|CUDA C)|cta_barrier|from_buffer"),
    ("CuPy", r" (omit|out) (cupy|CuPy)|cupy_bfloat16"),
    ("NVVM and LTO-IR",
     r"test_(nvvm|nvvm_driver|nvrtc|inline_ptx)\.py|LTO|ltoir|forceinline|lto_without|linker_basic|different_cc|float16_warn_if_lto|cudadevrt"),
    ("bindings to the driver",
     r"test_(cuda_driver|context_stack|module_callbacks)\.py|TestAcceleratedArchitecture|cuda_core|TestInit|CudaArraySetting|no_transfer_for"),
    ("memory of a GPU's driver", r"TestDeallocation|TestIpc|test_ownership|test_fork"),
    ("registers and limits of a GPU",
     r"DispatcherKernelProperties|TestLaunchBounds|max_threads_exceeded|set_registers|carveout"),
    ("text of compiled code",
     r"FileCheck|ptx'|\.version|_smem|ModuleID|dbg|debug_info|TestArrayAddressAlignment|not found in '//|\.loc|TestCudaMinMax|TestFastMath"
     r"|test_debuginfo\.py|test_inline\.py|const_string|NumbaEnv|test_inspect"),
    ("cloudpickle and object mode", r"core/test_serialize\.py"),
    ("errors for supported operations",
     r"not raised|contiguous|interleaved|Error not raised|Exception not raised|TestException|type_validation|cpu_dispatcher_invalid|negative_strided"),
    ("messages in Numba's words",
     r"does not match|not found in|RequireLiteral|undefined_var|bfloat16 fail|too_many_args|missing_source|test_typing_error"),
    ("strides of transposed views", r"transpose"),
]


def kind_of(row):
    """Returns the kind of a test, or None."""
    return next((kind for kind, pattern in KINDS if re.search(pattern, row)), None)


def count(expected):
    """Returns the number of tests of each kind. Raises an error for a test without a kind."""
    counts = collections.Counter()
    for file, methods in expected.items():
        for method, (outcome, reason) in methods.items():
            if outcome != "pass":
                row = f"{file} {method} {outcome} {reason}"
                kind = kind_of(row)
                if kind is None:
                    raise AssertionError(f"no kind: {row}")
                counts[kind] += 1
    return counts


def check_page(path, expected):
    """Compares the table of kinds and the table of outcomes in a page with the expected outcomes."""
    text = open(path).read()
    outcomes = collections.Counter(outcome for methods in expected.values() for outcome, _ in methods.values())
    for title, counts in (("outcome", outcomes), ("kind", count(expected))):
        table = re.search(rf"^\| {title} \| methods \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", text, re.MULTILINE)
        cells = [[cell.strip() for cell in row.split("|")[1:3]] for row in table[1].splitlines()]
        found = {name: int(number.replace(",", "")) for name, number in cells}
        assert found == dict(counts), f"{path}: the table of {title}s has {found}, but numba_suite.txt has {dict(counts)}"
