/* Chooses grid and block of a launch before its code is known: from the launch configuration, from
 * @block and @grid, or from the extents of the kernel's grid_ranges. Then it checks the limits of
 * the device. fit.c continues when the code is known. */
#include "launch/steps.h"

#include <string.h>

#include "support/assert.h"

kjit_status kj_refuse_launch(const kj_call *call, kj_location location, kj_diagnostics *diagnostics,
                             const char *format, ...)
{
  if (!diagnostics) return KJIT_ERROR_LAUNCH;
  kj_buffer text = { 0 };
  va_list list;
  va_start(list, format);
  kj_append_list(&text, format, list);
  va_end(list);
  (void)kj_error_at(diagnostics, call->kernel->module, location, KJIT_ERROR_LAUNCH,
                    "kernel `%s`: %s", call->kernel->function->decl->name,
                    text.text ? text.text : "out of memory");
  kj_free_buffer(&text);
  return KJIT_ERROR_LAUNCH;
}

static kj_location place_of(const kj_call *call) { return call->kernel->function->decl->location; }

/* ---- values ---- */

static kjit_status evaluate_attribute(const kj_call *call, const ki_attribute *attribute,
                                      const uint32_t *block, kj_diagnostics *diagnostics,
                                      uint32_t values[3])
{
  kj_scope scope = kj_call_scope(call, block);
  return kj_evaluate_attribute(call->kernel, &scope, attribute, diagnostics, values);
}

/* Returns whether a shape is given, which means that a component is not 0. The remaining components
 * that are 0 are read as 1. */
static bool read_shape(const uint32_t given[3], uint32_t shape[3])
{
  for (int i = 0; i < 3; i++) shape[i] = given[i] ? given[i] : 1;
  return given[0] || given[1] || given[2];
}

/* ---- grid_ranges ---- */

static void multiply(uint64_t *count, int64_t extent)
{
  if (extent <= 0) *count = 0;
  else if (__builtin_mul_overflow(*count, (uint64_t)extent, count)) *count = UINT64_MAX;
}

/* Computes the product of a grid_range's extents. Returns false if the extents are not known before
 * the launch, or if the kernel may compute other values for them. */
static bool count_range(const kj_call *call, uint32_t range, uint64_t *count)
{
  const ki_exprs *extents = &call->kernel->ranges[range]->args;
  kj_scope scope = kj_call_scope(call, call->block);
  *count = 1;
  for (size_t i = 0; i < extents->count; i++) {
    const ki_expr *expr = extents->items[i];
    uint32_t items = kj_count_items(&scope, expr);
    if (scope.reason) return false;
    for (uint32_t item = 0; item < items; item++) {
      int64_t extent;
      if (!kj_evaluate_item(&scope, expr, item, &extent)) return false;
      multiply(count, extent);
    }
  }
  return !scope.is_rounded;
}

/* Sets call->elements to the size of the largest grid_range with known extents. */
static void count_elements(kj_call *call)
{
  const kjit_kernel *kernel = call->kernel;
  bool all_known = !kernel->has_callee_range;
  for (uint32_t i = 0; i < kernel->range_count; i++) {
    uint64_t count;
    bool is_known = count_range(call, i, &count);
    all_known = all_known && is_known;
    call->has_elements = call->has_elements || is_known;
    if (is_known && count > call->elements) call->elements = count;
  }
  call->has_nothing = kernel->is_range_only && all_known && call->elements == 0;
  /* a grid_range with unknown extents may be larger than the others, so the grid that fills the
   * device is chosen */
  if (!all_known && call->elements < KJ_DEFAULT_BLOCK) call->has_elements = false;
}

static uint32_t fill_device(const kj_call *call)
{
  enum { THREADS = 2048 }; /* maximum threads of a multiprocessor */
  uint64_t blocks =
    (uint64_t)call->device->info.multiprocessor_count * (THREADS / KJ_DEFAULT_BLOCK);
  return blocks > INT32_MAX ? INT32_MAX : (uint32_t)blocks;
}

/* ---- choosing grid and block ---- */

static kjit_status refuse_shape(const kj_call *call, const ki_attribute *attribute,
                                const uint32_t given[3], const uint32_t wanted[3],
                                kj_diagnostics *diagnostics)
{
  const char *what = attribute->info->name;
  return kj_refuse_launch(call, attribute->location, diagnostics,
                          "@%s is %u x %u x %u, but the launch requests a %s of %u x %u x %u", what,
                          wanted[0], wanted[1], wanted[2], what, given[0], given[1], given[2]);
}

static kjit_status report_missing(const kj_call *call, kj_diagnostics *diagnostics)
{
  bool has_block = call->config->block[0] || call->kernel->block,
       has_grid = call->config->grid[0] || call->kernel->grid;
  const char *what = has_block ? "a grid" : has_grid ? "a block" : "a grid and a block";
  if (!diagnostics) return KJIT_ERROR_LAUNCH;
  return kj_error_at(diagnostics, call->kernel->module, place_of(call), KJIT_ERROR_LAUNCH,
                     "kernel `%s` needs a launch configuration: %s; it has neither %s nor a "
                     "grid_range from which kjit can choose them",
                     call->kernel->function->decl->name, what,
                     has_block  ? "@grid"
                     : has_grid ? "@block"
                                : "@block and @grid");
}

/* Takes the shape from the attribute. If the configuration also gives a shape, both shapes must be
 * equal.
 */
static kjit_status take_attribute(const kj_call *call, const ki_attribute *attribute,
                                  const uint32_t *block, bool is_given, kj_diagnostics *diagnostics,
                                  uint32_t shape[3])
{
  uint32_t wanted[3];
  KJ_TRY(evaluate_attribute(call, attribute, block, diagnostics, wanted));
  if (is_given && memcmp(shape, wanted, sizeof wanted))
    return refuse_shape(call, attribute, shape, wanted, diagnostics);
  memcpy(shape, wanted, sizeof wanted);
  return KJIT_OK;
}

static kjit_status choose_block(kj_call *call, bool has_range, kj_diagnostics *diagnostics)
{
  const kjit_kernel *kernel = call->kernel;
  uint32_t bounds[3] = { KJ_DEFAULT_BLOCK };
  bool is_given = read_shape(call->config->block, call->block);
  if (kernel->block)
    return take_attribute(call, kernel->block, NULL, is_given, diagnostics, call->block);
  /* if the kernel has no grid_range and the launch gives no number of threads, choose_grid reports
   * the error */
  if (is_given || (!has_range && !call->config->threads)) return KJIT_OK;
  call->is_block_chosen = true;
  if (kernel->launch_bounds)
    KJ_TRY(evaluate_attribute(call, kernel->launch_bounds, NULL, diagnostics, bounds));
  call->block[0] = kj_default_block(bounds[0]);
  KJ_ASSERT(call->block[1] == 1 && call->block[2] == 1);
  return KJIT_OK;
}

static kjit_status choose_grid(kj_call *call, bool has_range, kj_diagnostics *diagnostics)
{
  const kjit_kernel *kernel = call->kernel;
  const uint32_t *block = call->config->block;
  bool is_given = read_shape(call->config->grid, call->grid),
       has_block = block[0] || block[1] || block[2] || kernel->block;
  if (kernel->grid)
    KJ_TRY(take_attribute(call, kernel->grid, call->block, is_given, diagnostics, call->grid));
  if (is_given || kernel->grid)
    return has_block || has_range ? KJIT_OK : report_missing(call, diagnostics);
  uint64_t threads = kj_volume(call->block), asked = call->config->threads;
  uint32_t most = call->device->info.max_grid[0];
  if (!threads) threads = 1;
  if (asked / threads >= most)
    return kj_refuse_launch(
      call, place_of(call), diagnostics,
      "%llu threads in blocks of %llu were requested, but %s allows at most %u blocks",
      (unsigned long long)asked, (unsigned long long)threads, call->device->info.target, most);
  if (!asked && !has_range) return report_missing(call, diagnostics);
  call->is_chosen = !asked;
  call->grid[0] = asked                ? kj_count_blocks(call->device, asked, threads)
                  : call->has_elements ? kj_count_blocks(call->device, call->elements, threads)
                                       : fill_device(call);
  return KJIT_OK;
}

/* ---- limits ---- */

kjit_status kj_exceed(const kj_call *call, const char *what, uint64_t given, uint64_t limit,
                      const char *whose, kj_diagnostics *diagnostics)
{
  char place[24];
  return kj_refuse_launch(call, place_of(call), diagnostics,
                          "the launch has %llu %s, but %s allows at most %llu",
                          (unsigned long long)given, what,
                          whose ? whose : kj_device_text(call->device, place),
                          (unsigned long long)limit);
}

static kjit_status check_limits(const kj_call *call, kj_diagnostics *diagnostics)
{
  static const char *const blocks[] = { "blocks in x", "blocks in y", "blocks in z" },
                           *const threads[] = { "threads per block in x", "threads per block in y",
                                                "threads per block in z" };
  const kjit_device_info *info = &call->device->info;
  for (int i = 0; i < 3; i++) {
    const uint32_t *shape = call->grid[i] ? call->block : call->grid;
    if (!shape[i])
      return kj_refuse_launch(call, place_of(call), diagnostics,
                              "an extent is 0: the launch has a %s of %u x %u x %u",
                              call->grid[i] ? "block" : "grid", shape[0], shape[1], shape[2]);
    if (call->block[i] > info->max_block[i])
      return kj_exceed(call, threads[i], call->block[i], info->max_block[i], NULL, diagnostics);
    if (call->grid[i] > info->max_grid[i])
      return kj_exceed(call, blocks[i], call->grid[i], info->max_grid[i], NULL, diagnostics);
  }
  if (kj_volume(call->block) > info->max_threads_per_block)
    return kj_exceed(call, "threads per block", kj_volume(call->block), info->max_threads_per_block,
                     NULL, diagnostics);
  if (call->dynamic_shared_bytes > info->max_shared_bytes)
    return kj_exceed(call, "bytes of dynamic shared memory per block", call->dynamic_shared_bytes,
                     info->max_shared_bytes, NULL, diagnostics);
  return KJIT_OK;
}

static kjit_status check_launch_bounds(const kj_call *call, kj_diagnostics *diagnostics)
{
  const kjit_kernel *kernel = call->kernel;
  uint32_t bounds[3];
  if (!kernel->launch_bounds) return KJIT_OK;
  KJ_TRY(evaluate_attribute(call, kernel->launch_bounds, NULL, diagnostics, bounds));
  uint64_t threads = kj_volume(call->block);
  return threads > bounds[0] ? kj_exceed(call, "threads per block", threads, bounds[0],
                                         "its @launch_bounds", diagnostics)
                             : KJIT_OK;
}

kjit_status kj_choose_shape(kj_call *call, kj_diagnostics *diagnostics)
{
  const kjit_kernel *kernel = call->kernel;
  bool has_range = kernel->range_count > 0 || kernel->has_callee_range;
  call->dynamic_shared_bytes = call->config->dynamic_shared_bytes;
  KJ_TRY(choose_block(call, has_range, diagnostics));
  if (has_range) count_elements(call);
  KJ_TRY(choose_grid(call, has_range, diagnostics));
  /* @grid(ceil_div(n, b)) gives a grid without blocks for n = 0; such a launch does nothing */
  if (kernel->grid && kj_volume(call->grid) == 0) {
    call->has_nothing = true;
    for (int i = 0; i < 3; i++) call->grid[i] = call->grid[i] ? call->grid[i] : 1;
  }
  KJ_TRY(check_limits(call, diagnostics));
  KJ_TRY(check_launch_bounds(call, diagnostics));
  KJ_ASSERT(kj_volume(call->block) && kj_volume(call->grid));
  return KJIT_OK;
}
