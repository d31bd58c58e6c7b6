"""Tests of Numba that look at the inside of Numba and fail with kjit for this reason alone: their reasons by file and test. A test in
this table is out of scope if it fails. Its values and errors are compared before, or other tests of the file compare them."""

_REFERENCES = "it counts references to Python objects that Numba's results hold"
_TEXT = "it searches LLVM IR or symbols as Numba writes them"
_ANNOTATIONS = "it reads the annotations of Numba's intermediate code"
_LITERALS = "it reads the literal types in the signatures of Numba's dispatcher"
_COMPILER = "it replaces or reads parts of Numba's compiler"
_GRAPHS = "it draws the control flow graph of Numba's LLVM IR"

_ROWS = (
    ("test_annotations", _ANNOTATIONS, "TestTypeAnnotation: test_delete test_delete_extended_lifetimes test_delete_standard_lifetimes"),
    ("test_array_constants", _TEXT, "TestConstantArray: test_array_const_alignment"),
    ("test_array_exprs", _ANNOTATIONS, "TestRewriteIssues: test_annotations"),
    ("test_array_exprs", _COMPILER, "TestArrayExpressions: test_ufunc_and_dufunc_calls"),
    ("test_array_methods", _REFERENCES, "TestArrayMethods: test_np_frombuffer test_np_frombuffer_dtype test_np_frombuffer_dtype_str"),
    ("test_closure", _REFERENCES, "TestClosure: test_jit_inner_function_npm"),
    ("test_dispatcher", _GRAPHS, "TestDispatcherMethods: test_inspect_cfg test_inspect_cfg_with_python_wrapper"),
    ("test_dispatcher", _ANNOTATIONS, "TestDispatcherMethods: test_get_annotation_info test_inspect_types_pretty"),
    ("test_dispatcher", _TEXT, "TestDispatcherMethods: test_inspect_llvm"),
    ("test_dispatcher", _COMPILER, "TestNoRetryFailedSignature: test_direct_call test_nested_call"),
    ("test_dyn_array", _REFERENCES, "TestDynArray: test_return_global_array test_return_tuple_of_array_created"),
    ("test_extended_arg", "it changes the bytecode of a function, and kjit reads the source", "TestExtendedArg: test_extended_arg_load_const"),
    ("test_fastmath", _TEXT, "TestFastMath: test_guvectorize test_jit test_jit_subset_code test_vectorize"),
    ("test_inlining", _TEXT, "TestInlining: test_inner_function test_multiple_inner_functions"),
    (
        "test_literal_dispatch",
        _LITERALS,
        """TestLiteralDispatch: test_aliased_variable test_biliteral test_literal_basic test_literal_nested test_literal_nested_multi_arg
        test_literally_freevar test_literally_from_module test_mutual_recursion_literal test_overload_explicit test_overload_implicit""",
    ),
)


def _read(rows):
    found = {}
    for file, reason, text in rows:
        kind, _, names = text.partition(":")
        found.setdefault(file, {}).update({f"{kind}.{name}": reason for name in names.split()})
    return found


REASONS = _read(_ROWS)
