"""Tests of Numba that fail with kjit for a reason that no user of njit meets: their reasons by file and test. A test in this table is out of
scope if it fails with an error that fits the pattern of its reason. Its values and errors are compared before, or other tests of the file
compare them."""

import re

_REFERENCES = "it counts references to Python objects that Numba's results hold"
_TEXT = "it searches LLVM IR or symbols as Numba writes them"
_ANNOTATIONS = "it reads the annotations of Numba's intermediate code"
_LITERALS = "it reads the literal types in the signatures of Numba's dispatcher"
_COMPILER = "it replaces or reads parts of Numba's compiler"
_GRAPHS = "it draws the control flow graph of Numba's LLVM IR"
_EAGER = "it expects an error of the decorator, and kjit reports it at the first call"
_SUPPORTED = "it expects an error, and kjit computes the result that NumPy or Python has"
_WORDS = "it compares the text of an error, and kjit's error of the same class has other words"
_LISTS = "it uses lists, sets or dictionaries as values, which kjit rejects"
_STRINGS = "it uses strings as values of compiled code, which kjit rejects"
_SCHEDULER = "it expects that Numba's scheduler is not in the LLVM IR"
_BYTECODE = "it writes prange into the bytecode of a function, and kjit reads the source"
_INTRINSIC = "it calls an intrinsic function, which writes LLVM IR"
_ATTRIBUTES = "it reads an attribute that only objects of Numba's compiler have"

# Regular expressions for the errors of tests that are out of scope for one reason. Other reasons match every error.
_PATTERNS = {
    _ATTRIBUTES: "^AttributeError: .* has no attribute '(_frozen|__self__)'$",
    _EAGER: "not raised( : .*)?$|Unexpected successful compilation\\.$",
    _SCHEDULER: "^AssertionError: AssertionError not raised$",
    _BYTECODE: "not raised$",
    _INTRINSIC: "an object of _Intrinsic",
    _SUPPORTED: "not raised$",
    _WORDS: "^AssertionError: (['\"].* (not found in|does not match|!=) |Regex didn't match: )",
    _LISTS: "no (lists|sets|dictionaries|list comprehensions)|<class '(list|set)'>|Numba's type (reflected )?list|list\\(\\):",
    _STRINGS: "a string cannot be used|(str|repr)\\(\\): |'repr': an object|attribute `_hash` of str|an object of bytes",
}

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
    ("test_annotations", _ANNOTATIONS, "TestAnnotation: test_pretty_print"),
    ("test_array_attr", _SUPPORTED, "TestRealImagAttr: test_record_real"),
    ("test_array_constants", _EAGER, "TestConstantArray: test_write_to_global_array"),
    ("test_array_iterators", _LISTS, "TestArrayIterators: test_array_iter test_array_iter_yielded_order"),
    ("test_array_iterators", _LISTS, "TestNdIter: test_errors test_nditer1 test_nditer2 test_nditer3"),
    ("test_array_manipulation", _EAGER, "TestArrayManipulation: test_bad_float_index_npm test_bad_index_npm"),
    (
        "test_array_manipulation",
        _SUPPORTED,
        """TestArrayManipulation: test_as_strided_stride_none test_broadcast_arrays_invalid_mixed_input_types
        test_squeeze_array_npm""",
    ),
    (
        "test_array_manipulation",
        _WORDS,
        """TestArrayManipulation: test_array_reshape test_array_transpose_axes test_fill_diagonal_exception_cases
        test_sliding_window_view_errors""",
    ),
    ("npyufunc.test_dufunc", _ATTRIBUTES, "TestDUFunc: test_frozen"),
    (
        "npyufunc.test_gufunc",
        _ATTRIBUTES,
        """TestGUVectorizePickling: test_pickle_gufunc_dyanmic_null_init test_pickle_gufunc_dynamic_initialized
        test_pickle_gufunc_non_dyanmic""",
    ),
    ("test_array_methods", _EAGER, "TestArrayMethods: test_np_ascontiguousarray test_np_asfortranarray"),
    ("test_array_methods", _SUPPORTED, "TestArrayMethods: test_array_astype test_cumsum test_sum_exceptions"),
    (
        "test_array_methods",
        _WORDS,
        """TestArrayMethods: test_clip test_clip_array_min_max test_clip_no_broadcast test_item test_itemset
        test_np_where_invalid_inputs test_np_where_numpy_test_error""",
    ),
    ("test_array_reductions", _WORDS, "TestArrayReductions: test_argmax_axis_must_be_integer test_argmin_axis_must_be_integer"),
    (
        "test_builtins",
        _EAGER,
        "TestBuiltins: test_enumerate_start_invalid_start_type_npm test_locals_npm test_max_empty_tuple test_min_empty_tuple",
    ),
    ("test_builtins", _LISTS, "TestBuiltins: test_float_string_literal test_sum"),
    ("test_builtins", _LISTS, "TestIsinstanceBuiltin: test_isinstance_dict"),
    ("test_builtins", _STRINGS, "TestBuiltins: test_int_str"),
    ("test_builtins", _STRINGS, "TestHasattrBuiltin: test_hasattr_non_const_attr"),
    ("test_builtins", _STRINGS, "TestIsinstanceBuiltin: test_isinstance test_isinstance_numba_types_2"),
    ("test_builtins", _STRINGS, "TestOperatorMixedTypes: test_eq_ne"),
    (
        "test_builtins",
        _STRINGS,
        """TestStrAndReprBuiltin: test_repr test_repr_fallback test_str_calls_dunder_str test_str_default
        test_str_falls_back_to_repr test_str_object_kwarg""",
    ),
    ("test_builtins", _SUPPORTED, "TestBuiltins: test_float_npm test_max_npm_2 test_min_npm_2"),
    ("test_builtins", _SUPPORTED, "TestGetattrBuiltin: test_getattr_module_obj_not_implemented"),
    ("test_builtins", _WORDS, "TestBuiltins: test_sum_exceptions"),
    ("test_builtins", _WORDS, "TestGetattrBuiltin: test_getattr_non_literal_str"),
    ("test_builtins", _WORDS, "TestIsinstanceBuiltin: test_isinstance_exceptions test_numba_types"),
    ("test_casting", _EAGER, "TestCasting: test_array_to_scalar"),
    (
        "test_comprehension",
        _LISTS,
        """TestArrayComprehension: test_comp_with_array_noinline_issue_6053 test_empty_list_not_removed
        test_no_array_comp test_reuse_of_array_var""",
    ),
    ("test_comprehension", _LISTS, "TestListComprehension: test_bulk_use_cases test_comp_list"),
    ("test_comprehension", _WORDS, "TestArrayComprehension: test_array_comp_inferred_dtype_outside_setitem test_comp_unsupported_iter"),
    ("test_conditions_as_predicates", _LISTS, "TestConditionsAsPredicates: test_reflected_list test_reflected_set"),
    (
        "test_dispatcher",
        _WORDS,
        "TestDispatcher: test_disabled_compilation_nested_call test_explicit_signatures test_matching_error_message",
    ),
    ("test_dispatcher", _WORDS, "TestSignatureHandling: test_default_args test_named_args test_star_args"),
    ("test_dyn_array", _SUPPORTED, "TestNpArray: test_raises"),
    ("test_dyn_array", _WORDS, "TestDynArray: test_invalid_size_array"),
    ("test_dyn_array", _WORDS, "TestNpConcatenate: test_3d test_3d_no_axis"),
    ("test_exceptions", _LISTS, "TestRaising: test_dynamic_raise_dict"),
    ("test_exceptions", _WORDS, "TestRaising: test_raise_bare_string_nopython test_raise_invalid_class_nopython test_unituple_index_error"),
    ("test_flow_control", _LISTS, "TestFlowControl: test_for_loop3 test_for_loop3_npm"),
    (
        "test_func_lifetime",
        _ATTRIBUTES,
        """TestFuncLifetime: test_global_func_lifetime_npm test_inner_function_lifetime_npm
        test_local_func_lifetime_npm""",
    ),
    ("test_getitem_on_types", _WORDS, "TestGetitemOnTypes: test_standard_getitem_on_type test_static_getitem_on_invalid_type"),
    ("test_globals", _STRINGS, "TestGlobals: test_global_mixed_tuple test_global_str_tuple"),
    ("test_globals", _WORDS, "TestGlobals: test_global_write_to_arr_in_tuple"),
    ("test_hashing", _STRINGS, "TestUnicodeHashing: test_hash_on_str_creation test_hash_passthrough test_hash_passthrough_call"),
    ("test_indexing", _LISTS, "TestSetItem: test_1d_slicing_set_list_npm"),
    ("test_indexing", _SUPPORTED, "TestGetItem: test_none_index_npm"),
    ("test_indexing", _WORDS, "TestSetItem: test_1d_slicing_set_tuple_npm test_setitem_broadcast_error"),
    ("test_iteration", _EAGER, "IterationTest: test_array_0d_raises"),
    ("test_iteration", _LISTS, "TestIterationRefct: test_zip_with_arrays"),
    (
        "test_literal_dispatch",
        _LITERALS,
        """TestLiteralDispatch: test_aliased_variable test_biliteral test_literal_basic test_literal_nested test_literal_nested_multi_arg
        test_literally_freevar test_literally_from_module test_mutual_recursion_literal test_overload_explicit test_overload_implicit""",
    ),
    ("test_make_function_to_jit_function", _SUPPORTED, "TestMakeFunctionToJITFunction: test_multiply_defined_freevar"),
    ("test_make_function_to_jit_function", _WORDS, "TestMakeFunctionToJITFunction: test_non_const_in_escapee"),
    ("test_mixed_tuple_unroller", _LISTS, "TestConstListUnroll: test_13 test_14 test_8"),
    (
        "test_mixed_tuple_unroller",
        _LISTS,
        """TestMixedTupleUnroll: test_11 test_19 test_20 test_25 test_30 test_31 test_32 test_33 test_34""",
    ),
    ("test_mixed_tuple_unroller", _LISTS, "TestMore: test_non_constant_list test_unroll_indexing_list test_unroll_tuple_of_dict"),
    ("test_mixed_tuple_unroller", _STRINGS, "TestLiteralTupleInterpretation: test_heterogeneous_literal"),
    ("test_mixed_tuple_unroller", _STRINGS, "TestMixedTupleUnroll: test_16 test_17"),
    ("test_mixed_tuple_unroller", _SUPPORTED, "TestConstListUnroll: test_10"),
    ("test_mixed_tuple_unroller", _SUPPORTED, "TestMixedTupleUnroll: test_09 test_13 test_22 test_23"),
    ("test_mixed_tuple_unroller", _SUPPORTED, "TestMore: test_unroll_tuple_nested"),
    ("test_mixed_tuple_unroller", _WORDS, "TestConstListUnroll: test_05 test_06 test_12"),
    ("test_mixed_tuple_unroller", _WORDS, "TestMixedTupleUnroll: test_15 test_24"),
    ("test_mixed_tuple_unroller", _WORDS, "TestMore: test_invalid_use_of_unroller"),
    (
        "test_np_functions",
        _WORDS,
        """TestNPFunctions: test_allclose_exception test_argpartition_exception_kth_multi_dimensional test_array_equal_exception
        test_bincount1_exceptions test_bincount2_exceptions test_bincount3_exceptions test_convolve_exceptions
        test_correlate_exceptions test_cross_exceptions test_fliplr_basic test_flipud_basic test_interp_exceptions
        test_np_trapz_x_dx_exceptions test_partition_exception_kth_multi_dimensional test_swapaxes_exception test_take_along_axis_exceptions
        test_union1d_exceptions test_unwrap_exception test_vander_exceptions""",
    ),
    ("test_npdatetime", _SUPPORTED, "TestMetadataScalingFactor: test_datetime_npm test_timedelta_npm"),
    ("test_npdatetime", _WORDS, "TestDatetimeArrayOps: test_add_td_no_match test_sub_td_no_match"),
    ("test_operators", _EAGER, "TestOperatorModule: test_bitwise_float test_mod_complex_npm"),
    ("test_operators", _EAGER, "TestOperators: test_bitwise_float test_mod_complex_npm"),
    ("test_operators", _STRINGS, "TestBooleanLiteralOperators: test_bool_to_str"),
    ("test_operators", _WORDS, "TestOperatorModule: test_floordiv_errors_npm test_mod_errors_npm test_truediv_errors_npm"),
    ("test_operators", _WORDS, "TestOperators: test_floordiv_errors_npm test_mod_errors_npm test_truediv_errors_npm"),
    ("test_parfors", _BYTECODE, "TestPrangeSpecific: test_prange_conflicting_reduction_ops test_prange_raises_invalid_step_size"),
    ("test_parfors", _EAGER, "TestParfors: test_unsupported_floordiv1 test_use_of_reduction_var1"),
    ("test_parfors", _LISTS, "TestParfors: test_no_hoisting_with_member_function_call test_one_d_array_reduction"),
    ("test_parfors", _LISTS, "TestParforsMisc: test_issue3169 test_issue5001 test_issue_9678_build_map"),
    (
        "test_parfors",
        _LISTS,
        """TestPrangeSpecific: test_list_comprehension_prange test_list_setitem_hoisting test_mutable_list_param
        test_ssa_false_reduction""",
    ),
    ("test_parfors", _SCHEDULER, "TestParforBasic: test_simple01 test_simple13"),
    ("test_parfors", _SCHEDULER, "TestParfors: test_recursive_untraced_value_tuple test_untraced_value_tuple"),
    ("test_parfors", _SCHEDULER, "TestParforsBitMask: test_parfor_bitmask6"),
    ("test_parfors", _SUPPORTED, "TestParfors: test_unsupported_xor1"),
    ("test_parfors", _SUPPORTED, "TestParforsMisc: test_oversized_tuple_as_arg_to_kernel"),
    ("test_range", _INTRINSIC, "TestRange: test_range_iter_len1 test_range_iter_list"),
    ("test_range", _LISTS, "TestRange: test_range_attrs test_range_contains"),
    (
        "test_record_dtype",
        _EAGER,
        "TestRecordDtype: test_getitem_static_int_index test_setitem_static_int_index",
    ),
    ("test_record_dtype", _EAGER, "TestRecordDtypeWithDispatcher: test_getitem_static_int_index test_setitem_static_int_index"),
    ("test_record_dtype", _EAGER, "TestRecordDtypeWithStructArrays: test_getitem_static_int_index test_setitem_static_int_index"),
    (
        "test_record_dtype",
        _EAGER,
        "TestRecordDtypeWithStructArraysAndDispatcher: test_getitem_static_int_index test_setitem_static_int_index",
    ),
    ("test_record_dtype", _WORDS, "TestRecordArrayGetItem: test_error_w_invalid_field"),
    ("test_record_dtype", _WORDS, "TestRecordArraySetItem: test_error_w_invalid_field"),
    ("test_recursion", _WORDS, "TestMutualRecursion: test_inner_error"),
    ("test_recursion", _WORDS, "TestSelfRecursion: test_growing_return_tuple test_raise"),
    ("test_return_values", _EAGER, "TestReturnValues: test_module_func_npm test_nopython_func_npm test_pyobj_func_npm"),
    ("test_sort", _LISTS, "TestPythonSort: test_list_sort test_list_sort_reverse test_sorted test_sorted_reverse"),
    ("test_sort", _LISTS, "TestTimsortArrays: test_merge_lo_hi test_run_timsort test_run_timsort_with_values"),
    ("test_sort", _SUPPORTED, "TestArrayArgsort: test_exceptions"),
    ("test_sort", _WORDS, "TestSortSlashSortedWithKey: test_optional_on_key"),
    ("test_storeslice", _WORDS, "TestStoreSlice: test_array_slice_setitem"),
    ("test_tuples", _LISTS, "TestTupleBuild: test_build_unpack_complicated test_build_unpack_with_calls_in_unpack"),
    ("test_tuples", _LISTS, "TestTupleBuild: test_build_unpack_fail_on_list_assign_like"),
    ("test_tuples", _STRINGS, "TestNamedTuple: test_string_literal_in_ctor"),
    ("test_tuples", _SUPPORTED, "TestTupleBuild: test_unpack_with_predicate_fails"),
    ("test_tuples", _WORDS, "TestConversions: test_conversions"),
    ("test_tuples", _WORDS, "TestOperations: test_index"),
    ("test_tuples", _WORDS, "TestTupleLengthError: test_tuple_length_error"),
    (
        "test_ufuncs",
        _SUPPORTED,
        "TestLoopTypesDatetime: test_add test_floor_divide test_multiply test_subtract test_true_divide",
    ),
    ("test_ufuncs", _EAGER, "TestUFuncBadArgs: test_missing_args test_no_scalar_result_by_reference test_too_many_args"),
    ("test_unpack_sequence", _EAGER, "TestUnpack: test_invalid_unpack"),
)


def _read(rows):
    found = {}
    for file, reason, text in rows:
        kind, _, names = text.partition(":")
        found.setdefault(file, {}).update({f"{kind}.{name}": reason for name in names.split()})
    return found


_REASONS = _read(_ROWS)


def reason_of(file, test, error):
    """Returns the reason why a test that has failed is out of scope, or None. error: the text of its failure."""
    reason = _REASONS.get(file, {}).get(test)
    return reason if reason is not None and re.search(_PATTERNS.get(reason, ""), " ".join(error.split())) else None
