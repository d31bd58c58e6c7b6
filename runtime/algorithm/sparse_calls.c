/* Support for calls that consist of other calls, which run in stream order: conversions of sparse
 * matrices, and solvers. */
#include "algorithm/sparse.h"
#include "ir/context.h"

void ka_begin_calls(ka_call *call)
{
  const kjit_algorithm_options *o = &call->options;
  const char *given = o->work_bytes ? "work_bytes" : o->work ? "work" : NULL;
  if (given)
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            KJ_OPTION("%s") " is not an option of this algorithm, which consists of several calls",
            given);
  ka_choose_device(call);
}

static ka_part *add_part(ka_call *call)
{
  ka_part *part = KJ_NEW(&call->arena, ka_part);
  *part = (ka_part){ 0 };
  KJ_PUSH(&call->arena, &call->parts, part);
  return part;
}

kjit_algorithm_options ka_inner_options(ka_call *call)
{
  return (kjit_algorithm_options){ .size_bytes = sizeof(kjit_algorithm_options),
                                   .device = call->device,
                                   .stream = call->options.stream,
                                   .plan = call->options.plan ? &add_part(call)->plan : NULL };
}

void ka_call_inner(ka_call *call, ka_build *build, const void *data)
{
  kjit_algorithm_options options = ka_inner_options(call);
  ka_try(call, ka_perform(call->context, call->name, 0, &options, build, data));
}

kjit_array *ka_new_array(ka_call *call, kjit_type element, uint64_t count)
{
  int64_t extent = count ? (int64_t)count : 1;
  kjit_array_config config = { .size_bytes = sizeof config,
                               .device = call->device,
                               .element = element,
                               .rank = 1,
                               .shape = &extent,
                               .stream = call->options.stream };
  kjit_array **array = ka_add_view(call);
  ka_try(call, kjit_create_array_with(&config, array));
  return *array;
}

void ka_fill_array(ka_call *call, kjit_array *array, double number)
{
  if (call->options.plan) {
    ka_part *part = add_part(call);
    part->array = kjit_retain_array(array);
    part->number = number;
    return;
  }
  kjit_arg argument = kjit_arg_array(array), value = kjit_arg_number(number);
  ka_try(call, kjit_fill(call->context, &argument, &value, call->options.stream));
}

const char *ka_use_kept(ka_kernel *kernel, kjit_array *array)
{
  kjit_arg argument = kjit_arg_array(array);
  return ka_use_array(kernel, &argument);
}

const char *ka_use_long(ka_kernel *kernel, int64_t value)
{
  kjit_arg argument = kjit_arg_i64(value);
  return ka_use_value(kernel, &argument);
}

/* ---- operands ---- */

const char *ka_use_line(ka_kernel *kernel, const char *name, const kjit_operand *given,
                        bool is_output)
{
  ka_operand *operand = KJ_NEW(&kernel->call->arena, ka_operand);
  if (is_output) ka_read_output(kernel->call, name, given, operand);
  else ka_read_input(kernel->call, name, given, operand);
  ka_arrange_line(kernel->call, operand);
  return is_output ? ka_use_output(kernel, operand) : ka_use_input(kernel, operand, KJIT_ANY);
}

/* ---- a sparse matrix as a result ---- */

void ka_check_csr_result(ka_call *call, const kjit_csr *result, kjit_type element, uint64_t room,
                         const int64_t *shape, const ka_operand *const *inputs, size_t input_count)
{
  ka_operand data, columns, offsets, *outputs[] = { &data, &columns, &offsets };
  if (!result) ka_fail(call, KJIT_ERROR_MISUSE, "the result is NULL");
  if (result->shape[0] != shape[0] || result->shape[1] != shape[1])
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            "the result has the shape (%lld, %lld); expected (%lld, %lld)",
            (long long)result->shape[0], (long long)result->shape[1], (long long)shape[0],
            (long long)shape[1]);
  ka_read_output(call, "result_data", result->data, &data);
  ka_read_output(call, "result_columns", result->columns, &columns);
  ka_read_output(call, "result_offsets", result->offsets, &offsets);
  ka_check_line(call, &data);
  if (!columns.function) ka_check_indices(call, &columns);
  if (!offsets.function) ka_check_indices(call, &offsets);
  if (!data.function && data.element != element)
    ka_fail(call, KJIT_ERROR_TYPE, "`result_data` has elements of type %s: expected %s",
            ka_type_text(call, data.element), ka_type_text(call, element));
  for (size_t i = 0; i < 2; i++)
    if (outputs[i]->count < room)
      ka_fail(call, KJIT_ERROR_ARGUMENT, "`%s` needs %llu entries; it has %llu", outputs[i]->name,
              (unsigned long long)room, (unsigned long long)outputs[i]->count);
  if (offsets.count != (uint64_t)shape[0] + 1)
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            "`result_offsets` has %llu elements; a matrix with %lld rows needs %lld elements",
            (unsigned long long)offsets.count, (long long)shape[0], (long long)shape[0] + 1);
  if (columns.element == KJIT_I32 && shape[1] > INT32_MAX)
    ka_fail(call, KJIT_ERROR_TYPE,
            "the elements of `result_columns` are i32, which cannot represent %lld columns",
            (long long)shape[1]);
  /* room is 0 if the number of entries is not known in advance: kjit does not count the entries of
   * a dense matrix before the conversion */
  uint64_t most = room ? room : data.count;
  if (offsets.element == KJIT_I32 && most > INT32_MAX)
    ka_fail(call, KJIT_ERROR_TYPE,
            "the elements of `result_offsets` are i32, but there can be %llu entries",
            (unsigned long long)most);
  for (size_t i = 0; i < 3; i++) {
    for (size_t k = 0; k < input_count; k++) ka_check_overlap(call, outputs[i], inputs[k], false);
    for (size_t k = 0; k < i; k++) ka_check_overlap(call, outputs[i], outputs[k], false);
  }
}

bool ka_describe_csr(ka_call *call, kjit_type element, uint64_t room, kjit_type index,
                     const int64_t *shape)
{
  const int64_t extents[] = { (int64_t)room, shape[0] + 1 };
  if (!ka_describe(call, 0, element, 1, &extents[0])) return false;
  (void)ka_describe(call, 1, index, 1, &extents[0]);
  (void)ka_describe(call, 2, index, 1, &extents[1]);
  return true;
}
