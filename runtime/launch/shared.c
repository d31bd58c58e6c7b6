/* Dynamic shared memory of a launch: the arrays whose extents are evaluated for it, behind static
 * ones that did not fit elsewhere, before the launch's own. */
#include <inttypes.h>
#include <stdlib.h>

#include "code/dispatch.h"

/* ---- of a kernel ---- */

/* Its shared arrays with extents; which of them the code asks for is known when it is compiled. */
static bool has_extents(const ki_decl *decl)
{
  return decl->kind == KJ_DECL_SHARED && decl->type_expr->kind == KJ_TYPE_STATIC_ARRAY &&
         decl->type_expr->extents.count;
}

bool kj_describe_shared(kjit_kernel *kernel)
{
  const ki_decls *locals = &kernel->function->locals;
  uint32_t count = 0;
  for (size_t i = 0; i < locals->count; i++) count += has_extents(locals->items[i]);
  kernel->shared = calloc(count + 1, sizeof *kernel->shared);
  if (!kernel->shared) return false;
  for (size_t i = 0; i < locals->count; i++) {
    const ki_decl *decl = locals->items[i];
    if (!has_extents(decl)) continue;
    kj_kernel_shared *row = &kernel->shared[kernel->shared_count++];
    row->decl = decl;
    kj_make_programs(kernel, &decl->type_expr->extents, false, &row->programs);
  }
  return true;
}

static const kj_kernel_shared *find_row(const kjit_kernel *kernel, uint32_t declaration)
{
  for (uint32_t i = 0; i < kernel->shared_count; i++)
    if (kernel->shared[i].decl->index == declaration) return &kernel->shared[i];
  return NULL;
}

/* ---- of a launch ---- */

static kjit_status evaluate(const kj_call *call, const kj_kernel_shared *row, uint32_t dimension,
                            kj_diagnostics *diagnostics, int64_t *value)
{
  const ki_expr *expr = row->decl->type_expr->extents.items[dimension];
  if (row->programs.is_complete &&
      kj_run_program(&row->programs.items[dimension], call->bound, call->block, value))
    return KJIT_OK;
  kj_scope scope = kj_call_scope(call);
  scope.block = call->block;
  if (kj_evaluate_index(&scope, expr, value)) return KJIT_OK;
  return kj_error_at(
    diagnostics, call->kernel->module, scope.location, KJIT_ERROR_LAUNCH,
    "an extent of shared array `%s` of kernel `%s` cannot be evaluated before the launch: this %s",
    row->decl->name, call->kernel->function->decl->name, scope.reason);
}

static kjit_status refuse_extent(const kj_call *call, const kj_kernel_shared *row,
                                 uint32_t dimension, int64_t value, kj_diagnostics *diagnostics)
{
  return kj_error_at(diagnostics, call->kernel->module,
                     row->decl->type_expr->extents.items[dimension]->location, KJIT_ERROR_LAUNCH,
                     "kernel `%s`: extent %u of shared array `%s` is %" PRId64 " in this launch",
                     call->kernel->function->decl->name, dimension, row->decl->name, value);
}

static uint64_t round_up(uint64_t value, uint64_t alignment)
{
  return (value + alignment - 1) / alignment * alignment;
}

/* Saturates at what no device has. */
static uint64_t multiply(uint64_t x, uint64_t y)
{
  const uint64_t most = INT32_MAX;
  uint64_t product;
  return __builtin_mul_overflow(x, y, &product) || product > most ? most : product;
}

static kjit_status size_array(kj_call *call, const kj_shared_array *array, kj_shared_size *size,
                              kj_diagnostics *diagnostics, uint64_t *end)
{
  const kj_kernel_shared *row = find_row(call->kernel, array->declaration);
  uint64_t bytes = array->element_bytes, most = call->device->info.max_shared_bytes;
  size->offset = (uint32_t)(*end = round_up(*end, array->alignment));
  for (uint32_t d = 0; d < row->decl->type_expr->extents.count; d++) {
    int64_t value;
    KJ_TRY(evaluate(call, row, d, diagnostics, &value));
    if (value < 0 || value > INT32_MAX) return refuse_extent(call, row, d, value, diagnostics);
    size->extents[d] = (uint32_t)value;
    bytes = multiply(bytes, size->extents[d]);
  }
  *end += bytes;
  if (*end <= most) return KJIT_OK;
  char place[24];
  return kj_error_at(
    diagnostics, call->kernel->module, row->decl->location, KJIT_ERROR_LAUNCH,
    "kernel `%s`: the launch has %" PRIu64
    "%s bytes of dynamic shared memory a block up to array `%s`, %s allows %" PRIu64,
    call->kernel->function->decl->name, *end, bytes == INT32_MAX ? " or more" : "", row->decl->name,
    kj_device_text(call->device, place), most);
}

kjit_status kj_size_shared(kj_call *call, const kj_code *code, kj_diagnostics *diagnostics)
{
  uint64_t end = code->fixed_shared_bytes;
  for (uint32_t i = 0; i < code->shared_array_count; i++)
    KJ_TRY(size_array(call, &code->shared_arrays[i], &call->shared[i], diagnostics, &end));
  if (code->uses_dynamic_shared) end = round_up(end, code->dynamic_shared_alignment);
  if (code->shared_array_count) call->shared[code->shared_array_count].offset = (uint32_t)end;
  call->dynamic_shared_bytes = end + call->config->dynamic_shared_bytes;
  return KJIT_OK;
}

uint64_t kj_own_shared_need(const kj_code *code, const uint32_t block[3])
{
  const uint32_t *need = code->own_shared_need;
  const uint64_t bases[KJ_SHARED_NEEDS] = { 1, block[0], block[1], block[2],
                                            (uint64_t)block[0] * block[1] * block[2] };
  uint64_t most = 1; /* who declares it uses it */
  for (int i = 0; i < KJ_SHARED_NEEDS; i++)
    if (need[i] && bases[i] + need[i] - 1 > most) most = bases[i] + need[i] - 1;
  return code->uses_dynamic_shared ? most * code->dynamic_shared_element_bytes : 0;
}

bool kj_needs_shared_by_block(const kj_code *code)
{
  for (int i = 1; i < KJ_SHARED_NEEDS; i++)
    if (code->own_shared_need[i]) return true;
  return false;
}
