/* Grid and block of a launch: what the host gave, @block and @grid, or what fits the kernel's
 * grid_ranges; then the limits. */
#include <string.h>

#include "code/dispatch.h"

enum { DEFAULT_BLOCK = 256, WARP = 32 };

kj_scope kj_call_scope(const kj_call *call)
{
  const kjit_kernel *kernel = call->kernel;
  return (kj_scope){ .bound = call->bound,
                     .bound_count = kernel->parameter_count,
                     .bindings = kernel->bindings,
                     .binding_count = kernel->binding_count };
}

static uint64_t product(const uint32_t v[3]) { return (uint64_t)v[0] * v[1] * v[2]; }

/* ---- attributes ---- */

kjit_status kj_evaluate_attribute(const kjit_kernel *kernel, kj_scope *scope,
                                  const ki_attribute *attribute, kj_diagnostics *diagnostics,
                                  uint32_t values[3])
{
  values[0] = values[1] = values[2] = 1;
  for (size_t i = 0; i < attribute->values.count && i < 3; i++) {
    const ki_expr *expr = attribute->values.items[i];
    int64_t value;
    if (!kj_evaluate_index(scope, expr, &value))
      return kj_error_at(diagnostics, kernel->module, scope->location, KJIT_ERROR_LAUNCH,
                         "@%s of kernel `%s` cannot be evaluated before the launch: this %s",
                         attribute->info->name, kernel->function->decl->name, scope->reason);
    if (value < 0 || value > INT32_MAX)
      return kj_error_at(diagnostics, kernel->module, expr->location, KJIT_ERROR_LAUNCH,
                         "@%s of kernel `%s`: expected 1 to 2147483647, got %lld",
                         attribute->info->name, kernel->function->decl->name, (long long)value);
    values[i] = (uint32_t)value;
  }
  return KJIT_OK;
}

static kjit_status refuse_shape(const kj_call *call, const char *what, const uint32_t given[3],
                                const uint32_t wanted[3], const ki_attribute *attribute,
                                kj_diagnostics *diagnostics)
{
  return kj_error_at(diagnostics, call->kernel->module, attribute->location, KJIT_ERROR_LAUNCH,
                     "kernel `%s`: @%s is %u x %u x %u, the launch gives a %s of %u x %u x %u",
                     call->kernel->function->decl->name, what, wanted[0], wanted[1], wanted[2],
                     what, given[0], given[1], given[2]);
}

/* x given: 0 in y and z counts as 1. */
static bool read_shape(const uint32_t given[3], uint32_t shape[3])
{
  for (int i = 0; i < 3; i++) shape[i] = given[i] ? given[i] : 1;
  return given[0] || given[1] || given[2];
}

/* ---- grid_ranges ---- */

/* The product of a grid_range's extents; false: not known before the launch, or perhaps another in
 * the kernel. */
static bool count_range(const kj_call *call, const ki_stmt *range, uint64_t *count)
{
  kj_scope scope = kj_call_scope(call);
  scope.block = call->block;
  *count = 1;
  for (size_t i = 0; i < range->args.count; i++) {
    const ki_expr *expr = range->args.items[i];
    uint32_t items = kj_count_items(&scope, expr);
    if (scope.reason) return false;
    for (uint32_t item = 0; item < items; item++) {
      int64_t value;
      if (!kj_evaluate_item(&scope, expr, item, &value)) return false;
      if (value <= 0) *count = 0;
      else if (__builtin_mul_overflow(*count, (uint64_t)value, count)) *count = UINT64_MAX;
    }
  }
  return !scope.is_rounded;
}

/* Elements of the largest grid_range whose extents are known. */
static void count_elements(kj_call *call)
{
  const kjit_kernel *kernel = call->kernel;
  bool all_known = !kernel->has_callee_range;
  call->elements = 0;
  for (uint32_t i = 0; i < kernel->range_count; i++) {
    uint64_t count;
    bool is_known = count_range(call, kernel->ranges[i], &count);
    all_known = all_known && is_known;
    call->has_elements = call->has_elements || is_known;
    if (is_known && count > call->elements) call->elements = count;
  }
  call->has_nothing = kernel->is_range_only && all_known && call->elements == 0;
  /* one that is not known may be larger than all others: only the device's size is a safe guess */
  if (!all_known && call->elements < DEFAULT_BLOCK) call->has_elements = false;
}

static uint32_t fill_device(const kj_call *call)
{
  enum { THREADS = 2048 }; /* of a multiprocessor */
  uint64_t blocks = (uint64_t)call->device->info.multiprocessor_count * (THREADS / DEFAULT_BLOCK);
  return blocks > INT32_MAX ? INT32_MAX : (uint32_t)blocks;
}

uint32_t kj_count_blocks(const kj_call *call, uint64_t count, uint64_t threads)
{
  uint64_t blocks = count / threads + (count % threads != 0), most = call->device->info.max_grid[0];
  return blocks == 0 ? 1 : blocks > most ? most : (uint32_t)blocks;
}

/* ---- the choice ---- */

static kjit_status choose_block(kj_call *call, bool has_range, kj_diagnostics *diagnostics)
{
  const kjit_kernel *kernel = call->kernel;
  uint32_t given[3], wanted[3];
  bool is_given = read_shape(call->config->block, given);
  memcpy(call->block, given, sizeof given);
  if (kernel->block) {
    kj_scope scope = kj_call_scope(call);
    KJ_TRY(kj_evaluate_attribute(kernel, &scope, kernel->block, diagnostics, wanted));
    if (is_given && memcmp(given, wanted, sizeof given))
      return refuse_shape(call, "block", given, wanted, kernel->block, diagnostics);
    memcpy(call->block, wanted, sizeof wanted);
    return KJIT_OK;
  }
  if (is_given) return KJIT_OK;
  if (!has_range && !call->config->threads) return KJIT_OK; /* refused with the grid */
  call->is_block_chosen = true;
  uint32_t bounds[3] = { DEFAULT_BLOCK, 1, 1 };
  kj_scope scope = kj_call_scope(call);
  if (kernel->launch_bounds)
    KJ_TRY(kj_evaluate_attribute(kernel, &scope, kernel->launch_bounds, diagnostics, bounds));
  uint32_t threads = bounds[0] < DEFAULT_BLOCK ? bounds[0] : DEFAULT_BLOCK;
  call->block[0] = threads > WARP ? threads / WARP * WARP : threads;
  return KJIT_OK;
}

static kjit_status report_missing(const kj_call *call, kj_diagnostics *diagnostics)
{
  bool has_block = call->config->block[0] || call->kernel->block,
       has_grid = call->config->grid[0] || call->kernel->grid;
  const char *what = has_block ? "a grid" : has_grid ? "a block" : "a grid and a block";
  return kj_error_at(diagnostics, call->kernel->module, call->kernel->function->decl->location,
                     KJIT_ERROR_LAUNCH,
                     "kernel `%s` needs a launch configuration: %s; it has neither %s nor a "
                     "grid_range to choose them from",
                     call->kernel->function->decl->name, what,
                     has_block  ? "@grid"
                     : has_grid ? "@block"
                                : "@block and @grid");
}

static kjit_status choose_grid(kj_call *call, bool has_range, kj_diagnostics *diagnostics)
{
  const kjit_kernel *kernel = call->kernel;
  uint32_t given[3], wanted[3];
  bool is_given = read_shape(call->config->grid, given),
       has_block = call->config->block[0] || call->config->block[1] || call->config->block[2] ||
                   kernel->block;
  memcpy(call->grid, given, sizeof given);
  if (kernel->grid) {
    kj_scope scope = kj_call_scope(call);
    scope.block = call->block;
    KJ_TRY(kj_evaluate_attribute(kernel, &scope, kernel->grid, diagnostics, wanted));
    if (is_given && memcmp(given, wanted, sizeof given))
      return refuse_shape(call, "grid", given, wanted, kernel->grid, diagnostics);
    memcpy(call->grid, wanted, sizeof wanted);
    is_given = true;
  }
  if (is_given) return has_block || has_range ? KJIT_OK : report_missing(call, diagnostics);
  uint64_t threads = product(call->block);
  uint32_t most = call->device->info.max_grid[0];
  if (call->config->threads) {
    if (call->config->threads / (threads ? threads : 1) >= most)
      return kj_error_at(
        diagnostics, kernel->module, kernel->function->decl->location, KJIT_ERROR_LAUNCH,
        "kernel `%s`: %llu threads in blocks of %llu were asked for, and %s allows %u blocks",
        kernel->function->decl->name, (unsigned long long)call->config->threads,
        (unsigned long long)threads, call->device->info.target, most);
    call->grid[0] = kj_count_blocks(call, call->config->threads, threads ? threads : 1);
    return KJIT_OK;
  }
  if (!has_range) return report_missing(call, diagnostics);
  call->is_chosen = true;
  call->grid[0] = call->has_elements ? kj_count_blocks(call, call->elements, threads ? threads : 1)
                                     : fill_device(call);
  return KJIT_OK;
}

/* ---- limits ---- */

kjit_status kj_exceed(const kj_call *call, const char *what, uint64_t given, uint64_t limit,
                      const char *whose, kj_diagnostics *diagnostics)
{
  char place[24];
  return kj_error_at(diagnostics, call->kernel->module, call->kernel->function->decl->location,
                     KJIT_ERROR_LAUNCH, "kernel `%s`: the launch has %llu %s, %s allows %llu",
                     call->kernel->function->decl->name, (unsigned long long)given, what,
                     whose ? whose : kj_device_text(call->device, place),
                     (unsigned long long)limit);
}

static kjit_status check_limits(const kj_call *call, kj_diagnostics *diagnostics)
{
  static const char *const blocks[] = { "blocks in x", "blocks in y", "blocks in z" },
                           *const threads[] = { "threads a block in x", "threads a block in y",
                                                "threads a block in z" };
  const kjit_device_info *info = &call->device->info;
  for (int i = 0; i < 3; i++) {
    if (call->grid[i] == 0 || call->block[i] == 0)
      return kj_error_at(diagnostics, call->kernel->module, call->kernel->function->decl->location,
                         KJIT_ERROR_LAUNCH, "kernel `%s`: the launch has a %s of %u x %u x %u",
                         call->kernel->function->decl->name, call->grid[i] ? "block" : "grid",
                         (call->grid[i] ? call->block : call->grid)[0],
                         (call->grid[i] ? call->block : call->grid)[1],
                         (call->grid[i] ? call->block : call->grid)[2]);
    if (call->block[i] > info->max_block[i])
      return kj_exceed(call, threads[i], call->block[i], info->max_block[i], NULL, diagnostics);
    if (call->grid[i] > info->max_grid[i])
      return kj_exceed(call, blocks[i], call->grid[i], info->max_grid[i], NULL, diagnostics);
  }
  if (product(call->block) > info->max_threads_per_block)
    return kj_exceed(call, "threads a block", product(call->block), info->max_threads_per_block,
                     NULL, diagnostics);
  if (call->dynamic_shared_bytes > info->max_shared_bytes)
    return kj_exceed(call, "bytes of dynamic shared memory a block", call->dynamic_shared_bytes,
                     info->max_shared_bytes, NULL, diagnostics);
  return KJIT_OK;
}

static kjit_status check_launch_bounds(kj_call *call, kj_diagnostics *diagnostics)
{
  uint32_t bounds[3];
  kj_scope scope = kj_call_scope(call);
  if (!call->kernel->launch_bounds) return KJIT_OK;
  KJ_TRY(
    kj_evaluate_attribute(call->kernel, &scope, call->kernel->launch_bounds, diagnostics, bounds));
  return product(call->block) > bounds[0] ? kj_exceed(call, "threads a block", product(call->block),
                                                      bounds[0], "its @launch_bounds", diagnostics)
                                          : KJIT_OK;
}

/* ---- by programs ---- */

static bool run_shape(const kj_call *call, const kj_programs *programs, const uint32_t *block,
                      uint32_t shape[3])
{
  shape[0] = shape[1] = shape[2] = 1;
  for (uint32_t i = 0; i < programs->count && i < 3; i++) {
    int64_t value;
    if (!kj_run_program(&programs->items[i], call->bound, block, &value) || value < 1 ||
        value > INT32_MAX)
      return false;
    shape[i] = (uint32_t)value;
  }
  return true;
}

static bool run_range(const kj_call *call, const kj_programs *programs, uint64_t *count)
{
  *count = 1;
  for (uint32_t i = 0; i < programs->count; i++) {
    int64_t value;
    if (!kj_run_program(&programs->items[i], call->bound, call->block, &value)) return false;
    if (value <= 0) *count = 0;
    else if (__builtin_mul_overflow(*count, (uint64_t)value, count)) return false;
  }
  return programs->is_complete;
}

static bool run_block(kj_call *call, bool has_range)
{
  const kjit_kernel *kernel = call->kernel;
  const uint32_t *grid = call->config->grid;
  bool is_given = read_shape(call->config->block, call->block),
       has_grid = kernel->grid || grid[0] || grid[1] || grid[2];
  if (kernel->block) return !is_given && run_shape(call, &kernel->block_program, NULL, call->block);
  if (is_given) return true;
  if (!has_range && (has_grid || !call->config->threads)) return false;
  call->is_block_chosen = true;
  uint32_t threads = DEFAULT_BLOCK, bounds[3];
  if (kernel->launch_bounds) {
    if (!run_shape(call, &kernel->bounds_program, NULL, bounds)) return false;
    threads = bounds[0] < threads ? bounds[0] : threads;
  }
  call->block[0] = threads > WARP ? threads / WARP * WARP : threads;
  return true;
}

static bool run_ranges(kj_call *call)
{
  const kjit_kernel *kernel = call->kernel;
  for (uint32_t i = 0; i < kernel->range_count; i++) {
    uint64_t count;
    if (!run_range(call, &kernel->range_programs[i], &count)) return false;
    if (count > call->elements) call->elements = count;
  }
  call->has_elements =
    kernel->range_count > 0 && (!kernel->has_callee_range || call->elements >= DEFAULT_BLOCK);
  call->has_nothing = kernel->is_range_only && !kernel->has_callee_range && call->elements == 0;
  return true;
}

static bool run_grid(kj_call *call, bool has_range)
{
  const kjit_kernel *kernel = call->kernel;
  bool is_given = read_shape(call->config->grid, call->grid);
  if (kernel->grid)
    return !is_given && run_shape(call, &kernel->grid_program, call->block, call->grid);
  if (is_given) return true;
  uint64_t threads = product(call->block);
  if (!threads ||
      (call->config->threads ? call->config->threads / threads >= call->device->info.max_grid[0]
                             : !has_range))
    return false;
  if (call->config->threads) {
    call->grid[0] = kj_count_blocks(call, call->config->threads, threads);
    return true;
  }
  call->is_chosen = true;
  call->grid[0] =
    call->has_elements ? kj_count_blocks(call, call->elements, threads) : fill_device(call);
  return true;
}

static bool is_within_limits(const kj_call *call)
{
  const kjit_device_info *info = &call->device->info;
  bool fits = true;
  /* 0 is none */
  for (int i = 0; i < 3; i++)
    fits = fits && call->block[i] - 1 < info->max_block[i] && call->grid[i] - 1 < info->max_grid[i];
  return fits && product(call->block) <= info->max_threads_per_block &&
         call->dynamic_shared_bytes <= info->max_shared_bytes;
}

static bool is_within_bounds(const kj_call *call)
{
  uint32_t bounds[3];
  return !call->kernel->launch_bounds ||
         (run_shape(call, &call->kernel->bounds_program, NULL, bounds) &&
          product(call->block) <= bounds[0]);
}

bool kj_configure_quickly(kj_call *call)
{
  const kjit_kernel *kernel = call->kernel;
  bool has_range = kernel->range_count > 0 || kernel->has_callee_range;
  call->dynamic_shared_bytes = call->config->dynamic_shared_bytes;
  if (!kernel->is_quick || !run_block(call, has_range) || (has_range && !run_ranges(call)) ||
      !run_grid(call, has_range))
    return false;
  uint64_t blocks = product(call->grid);
  call->grid32 = blocks <= INT32_MAX && blocks * product(call->block) <= INT32_MAX;
  return is_within_limits(call) && is_within_bounds(call);
}

/* A @grid of no blocks is what @grid(ceil_div(n, b)) gives for n = 0: nothing to do. */
static bool is_empty_grid(const kj_call *call)
{
  return call->kernel->grid && product(call->grid) == 0;
}

kjit_status kj_configure(kj_call *call, kj_diagnostics *diagnostics)
{
  bool has_range = call->kernel->range_count > 0 || call->kernel->has_callee_range;
  call->dynamic_shared_bytes = call->config->dynamic_shared_bytes;
  KJ_TRY(choose_block(call, has_range, diagnostics));
  if (has_range) count_elements(call);
  KJ_TRY(choose_grid(call, has_range, diagnostics));
  if (is_empty_grid(call)) {
    call->has_nothing = true;
    for (int i = 0; i < 3; i++) call->grid[i] = call->grid[i] ? call->grid[i] : 1;
  }
  KJ_TRY(check_limits(call, diagnostics));
  KJ_TRY(check_launch_bounds(call, diagnostics));
  uint64_t threads =
    product(call->grid) > INT32_MAX ? UINT64_MAX : product(call->grid) * product(call->block);
  call->grid32 = threads <= INT32_MAX;
  return KJIT_OK;
}
