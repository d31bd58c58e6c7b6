/* What a launch learns about an array argument: where its elements lie, and the facts that hold for
 * this very call. */
#include <string.h>

#include "code/dispatch.h"

static kjit_status fail(kj_call *call, uint32_t index, kj_diagnostics *diagnostics,
                        const char *format, long long number)
{
  const ki_decl *decl = call->kernel->parameters[index].decl;
  kj_buffer text = { 0 };
  kj_append_format(&text, "parameter `%s`: ", decl->name);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  kj_append_format(&text, format, number);
#pragma GCC diagnostic pop
  kjit_status status = kj_error_at(diagnostics, call->kernel->module, decl->location,
                                   KJIT_ERROR_ARGUMENT, "%s", text.text ? text.text : decl->name);
  kj_free_buffer(&text);
  return status;
}

typedef struct extent_facts {
  uint64_t count; /* elements */
  bool is_empty, is_huge;
  bool is_row_major, is_column_major;
  bool fits32;
  int64_t least, most; /* element offsets */
} extent_facts;

/* By the usual convention the stride of an extent of 1 does not matter, and an array without
 * elements is contiguous. */
static void look_at_contiguous(const int64_t *shape, uint32_t rank, extent_facts *facts)
{
  uint64_t count = 1;
  uint32_t wide = 0; /* dimensions with more than one element */
  for (uint32_t i = 0; i < rank; i++) {
    facts->is_empty = facts->is_empty || shape[i] == 0;
    facts->fits32 = facts->fits32 && shape[i] <= INT32_MAX;
    wide += shape[i] > 1;
    if (shape[i])
      facts->is_huge = __builtin_mul_overflow(count, (uint64_t)shape[i], &count) || facts->is_huge;
  }
  facts->count = facts->is_empty ? 0 : count;
  facts->is_huge = facts->is_huge || count > (uint64_t)INT64_MAX / 16;
  facts->fits32 = facts->fits32 && count <= INT32_MAX; /* strides too */
  facts->is_row_major = true;
  facts->is_column_major = facts->is_empty || wide <= 1;
  facts->most = facts->count ? (int64_t)facts->count - 1 : 0;
}

static bool has_order(const int64_t *shape, const int64_t *strides, uint32_t rank, bool row_major)
{
  int64_t expected = 1;
  for (uint32_t i = 0; i < rank; i++) {
    uint32_t d = row_major ? rank - 1 - i : i;
    if (shape[d] != 1 && strides[d] != expected) return false;
    if (__builtin_mul_overflow(expected, shape[d], &expected)) return false;
  }
  return true;
}

static void look_at_strides(const int64_t *shape, const int64_t *strides, uint32_t rank,
                            extent_facts *facts)
{
  look_at_contiguous(shape, rank, facts);
  facts->is_row_major = facts->is_empty || has_order(shape, strides, rank, true);
  facts->is_column_major = facts->is_empty || has_order(shape, strides, rank, false);
  if (facts->is_row_major || facts->is_column_major) return;
  facts->most = 0;
  for (uint32_t i = 0; i < rank; i++) {
    int64_t reach;
    facts->fits32 = facts->fits32 && strides[i] >= INT32_MIN && strides[i] <= INT32_MAX;
    if (__builtin_mul_overflow(shape[i] - 1, strides[i], &reach) ||
        __builtin_add_overflow(*(reach < 0 ? &facts->least : &facts->most), reach,
                               reach < 0 ? &facts->least : &facts->most))
      facts->is_huge = true;
  }
  facts->fits32 = facts->fits32 && facts->least >= INT32_MIN && facts->most <= INT32_MAX;
  facts->is_huge =
    facts->is_huge || facts->least < -(INT64_MAX / 16) || facts->most > INT64_MAX / 16;
}

static uint8_t choose_layout(const extent_facts *facts, const kj_annotation *annotation)
{
  bool wants_columns =
    annotation->kind == KJ_ANNOTATION_ARRAY && annotation->layout == KJIT_LAYOUT_F;
  if (facts->is_column_major && (wants_columns || !facts->is_row_major)) return KJIT_LAYOUT_F;
  return facts->is_row_major ? KJIT_LAYOUT_C : KJIT_LAYOUT_STRIDED;
}

static kjit_status fail_type(kj_call *call, uint32_t index, const kjit_tensor *tensor,
                             kj_diagnostics *diagnostics)
{
  const ki_decl *decl = call->kernel->parameters[index].decl;
  return kj_error_at(diagnostics, call->kernel->module, decl->location, KJIT_ERROR_ARGUMENT,
                     "parameter `%s`: expected one of kjit's element types, got DLPack's code %u "
                     "with %u bits, in %u lane%s",
                     decl->name, (unsigned)tensor->code, (unsigned)tensor->bits,
                     (unsigned)tensor->lanes, tensor->lanes == 1 ? "" : "s");
}

kjit_status kj_bind_tensor(kj_call *call, uint32_t index, const kjit_tensor *tensor,
                           kjit_type given, kj_diagnostics *diagnostics)
{
  ki_types *types = call->kernel->module->types;
  const kj_parameter_row *row = &call->kernel->parameters[index];
  kj_bound *bound = &call->bound[index];
  extent_facts facts = { .fits32 = true };
  if (tensor->rank < 0 || tensor->rank > KJ_MAX_RANK)
    return fail(call, index, diagnostics, "expected an array of 0 to 8 dimensions, got %lld",
                tensor->rank);
  kjit_type element = kj_type_of_tensor(types, tensor, given);
  if (element == KJIT_ANY) return fail_type(call, index, tensor, diagnostics);
  uint32_t rank = (uint32_t)tensor->rank;
  if (rank && !tensor->shape)
    return fail(call, index, diagnostics, "the tensor has no shape (rank %lld)", rank);
  for (uint32_t i = 0; i < rank; i++)
    if (tensor->shape[i] < 0)
      return fail(call, index, diagnostics, "extent %lld is negative", tensor->shape[i]);
  if (tensor->strides) look_at_strides(tensor->shape, tensor->strides, rank, &facts);
  else look_at_contiguous(tensor->shape, rank, &facts);
  uint32_t bytes = kj_element_bytes(types, element),
           alignment = kj_element_alignment(types, element);
  if (facts.is_huge)
    return fail(call, index, diagnostics,
                "the extents and strides do not fit the address space (element size %lld)", bytes);
  *bound = (kj_bound){ .kind = KJ_ARGUMENT_ARRAY,
                       .rank = (uint8_t)rank,
                       .type = element,
                       .shape = tensor->shape,
                       .is_empty = facts.is_empty,
                       .count = facts.count,
                       .offsets_fit = facts.fits32 };
  bound->layout = choose_layout(&facts, &row->annotation);
  bound->strides = bound->layout == KJIT_LAYOUT_STRIDED ? tensor->strides : NULL;
  bound->address = bound->target = (uint64_t)(uintptr_t)tensor->data + tensor->byte_offset;
  bound->low = bound->address + (uint64_t)(facts.least * (int64_t)bytes);
  bound->high =
    facts.is_empty ? bound->low : bound->address + (uint64_t)((facts.most + 1) * (int64_t)bytes);
  if (!facts.is_empty && !bound->address)
    return fail(call, index, diagnostics, "the tensor has no data (%lld elements)",
                (long long)facts.count);
  if (!facts.is_empty && bound->address & (alignment - 1))
    return fail(call, index, diagnostics,
                "the elements are not aligned: the address is no multiple of %lld", alignment);
  if (row->is_general) return KJIT_OK;
  bool has_rows = rank > 1 && bound->layout == KJIT_LAYOUT_C;
  bound->facts = (uint8_t)kj_find_array_facts(
    (kj_array_place){ .address = bound->address,
                      .has_rows = has_rows,
                      .row_bytes = has_rows ? (uint64_t)bound->shape[rank - 1] * bytes : 0 });
  return KJIT_OK;
}

int64_t kj_stride_of(const kj_bound *array, uint32_t dimension)
{
  int64_t stride = 1;
  if (array->strides) return array->strides[dimension];
  bool is_row_major = array->layout != KJIT_LAYOUT_F;
  for (uint32_t i = is_row_major ? dimension + 1 : 0; i < (is_row_major ? array->rank : dimension);
       i++)
    stride *= array->shape[i];
  return stride;
}

/* ---- pairs ---- */

static bool have_equal_strides(const kj_bound *a, const kj_bound *b)
{
  if (a->layout != b->layout) return false;
  for (uint32_t i = 0; i < a->rank && a->strides && b->strides; i++)
    if (a->shape[i] > 1 && a->strides[i] != b->strides[i]) return false;
  return true;
}

kj_relation kj_relate(const kj_bound *a, const kj_bound *b)
{
  if (a->is_empty || b->is_empty || a->on_host != b->on_host ||
      !kj_do_meet(a->low, a->high, b->low, b->high))
    return KJ_RELATION_DISJOINT;
  bool is_same = a->address == b->address && a->type == b->type && a->rank == b->rank &&
                 (!a->rank || !memcmp(a->shape, b->shape, a->rank * sizeof *a->shape));
  return is_same && have_equal_strides(a, b) ? KJ_RELATION_SAME : KJ_RELATION_ANY;
}
