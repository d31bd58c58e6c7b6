/* Fits a launch to the properties of its compiled code (registers, shared memory, clusters,
 * resident blocks). Chooses the block and the grid if the caller has not given them. */
#include "launch/steps.h"

#include <inttypes.h>
#include <string.h>

#define REFUSE(call, diagnostics, ...) \
  kj_refuse_launch(call, (call)->kernel->function->decl->location, diagnostics, __VA_ARGS__)

/* ---- cached results of the occupancy calculator: a launch with the same configuration does not
 * ask the driver again ---- */

enum { ANSWER_BITS = 16, THREAD_BITS = 12, KNOWN_BIT = 63 };

static uint64_t remember(uint64_t dynamic_shared_bytes, uint64_t threads, uint64_t answer)
{
  KJ_ASSERT(answer < (uint64_t)1 << ANSWER_BITS && threads < (uint64_t)1 << THREAD_BITS);
  return (uint64_t)1 << KNOWN_BIT | dynamic_shared_bytes << (ANSWER_BITS + THREAD_BITS) |
         threads << ANSWER_BITS | answer;
}

static bool recall(uint64_t word, uint64_t dynamic_shared_bytes, uint64_t threads, uint32_t *answer)
{
  *answer = (uint32_t)(word & (((uint64_t)1 << ANSWER_BITS) - 1));
  return word == remember(dynamic_shared_bytes, threads, *answer);
}

static kjit_status choose_threads(const kj_call *call, kjit_specialization *specialization,
                                  kj_diagnostics *diagnostics, uint32_t *threads)
{
  if (recall(atomic_load_explicit(&specialization->chosen_threads, memory_order_relaxed),
             call->dynamic_shared_bytes, 0, threads))
    return KJIT_OK;
  KJ_TRY(call->device->operations->choose_threads(call->device, &specialization->device_code,
                                                  call->dynamic_shared_bytes,
                                                  call->device->info.max_threads_per_block,
                                                  diagnostics, threads));
  atomic_store_explicit(&specialization->chosen_threads,
                        remember(call->dynamic_shared_bytes, 0, *threads), memory_order_relaxed);
  return KJIT_OK;
}

/* Returns the number of blocks of the launch that a multiprocessor holds at once. */
static kjit_status count_resident(const kj_call *call, kjit_specialization *specialization,
                                  kj_diagnostics *diagnostics, uint32_t *blocks)
{
  uint64_t threads = kj_volume(call->block), bytes = call->dynamic_shared_bytes;
  if (recall(atomic_load_explicit(&specialization->resident_blocks, memory_order_relaxed), bytes,
             threads, blocks))
    return KJIT_OK;
  KJ_TRY(call->device->operations->count_resident(call->device, &specialization->device_code,
                                                  (uint32_t)threads, bytes, diagnostics, blocks));
  atomic_store_explicit(&specialization->resident_blocks, remember(bytes, threads, *blocks),
                        memory_order_relaxed);
  return KJIT_OK;
}

/* ---- block and grid ---- */

/* Chooses the block. If the launch specifies a number of threads, this is the block with the
 * highest occupancy. For a grid_range it is the default block, unless the kernel needs too many
 * registers for this block. Kernels with a grid_range are usually limited by memory, and are
 * fastest with small blocks. */
static kjit_status fit_block(kj_call *call, kjit_specialization *specialization,
                             kj_diagnostics *diagnostics)
{
  uint32_t threads, most = specialization->device_code.max_threads;
  bool is_asked = call->config->threads && !call->kernel->launch_bounds && !call->config->grid[0] &&
                  !call->kernel->grid;
  if (!call->is_block_chosen || (!is_asked && (!most || kj_volume(call->block) <= most)))
    return KJIT_OK;
  KJ_TRY(choose_threads(call, specialization, diagnostics, &threads));
  if (!threads || threads == call->block[0]) return KJIT_OK;
  uint64_t count = call->config->threads ? call->config->threads : call->elements;
  bool has_count = call->config->threads || (call->is_chosen && call->has_elements);
  uint32_t blocks = has_count ? kj_count_blocks(call->device, count, threads) : call->grid[0];
  /* with this block, the launch would lose a fact on which the code relies */
  if ((call->facts & KJ_CALL_FACT_GRID32) && (uint64_t)blocks * threads > INT32_MAX) return KJIT_OK;
  KJ_ASSERT(threads <= call->device->info.max_threads_per_block && blocks);
  call->block[0] = threads;
  call->grid[0] = blocks;
  return KJIT_OK;
}

static void fit_elements(kj_call *call, const kj_code *code)
{
  if (call->is_chosen && call->has_elements && code->elements_a_thread > 1)
    call->grid[0] = kj_count_blocks(call->device, call->elements,
                                    kj_volume(call->block) * code->elements_a_thread);
}

/* ---- clusters ---- */

static kjit_status check_cluster(const kj_call *call, kj_diagnostics *diagnostics)
{
  enum { MOST_BLOCKS = 16, FROM = 90 };
  const uint32_t *cluster = call->cluster, *grid = call->grid;
  char place[24];
  if (call->device->operations->is_queued && !call->device->has_clusters)
    return REFUSE(call, diagnostics,
                  "the launch has clusters of %u x %u x %u blocks, but %s (%s) does not support "
                  "clusters: they need sm_%d and a driver for CUDA 11.8",
                  cluster[0], cluster[1], cluster[2], kj_device_text(call->device, place),
                  call->device->info.target, FROM);
  if (kj_volume(cluster) > MOST_BLOCKS)
    return REFUSE(call, diagnostics,
                  "the launch has clusters of %llu blocks; the maximum on the device is %d",
                  (unsigned long long)kj_volume(cluster), MOST_BLOCKS);
  for (int i = 0; i < 3; i++)
    if (grid[i] % cluster[i])
      return REFUSE(
        call, diagnostics,
        "the grid of %u x %u x %u blocks is not a multiple of the cluster of %u x %u x %u blocks",
        grid[0], grid[1], grid[2], cluster[0], cluster[1], cluster[2]);
  return KJIT_OK;
}

static kjit_status fit_cluster(kj_call *call, const kj_code *code, kj_diagnostics *diagnostics)
{
  const uint32_t *given = call->config->cluster;
  bool is_given = given[0] || given[1] || given[2];
  memcpy(call->cluster, code->cluster, sizeof call->cluster);
  if (!is_given && !code->cluster[0]) return KJIT_OK;
  for (int i = 0; i < 3; i++) {
    uint32_t extent = !is_given ? code->cluster[i] : given[i] ? given[i] : 1;
    if (code->cluster[0] && code->cluster[i] != extent)
      return REFUSE(call, diagnostics,
                    "@cluster is %u x %u x %u, but the launch requests a cluster of %u x %u x %u",
                    code->cluster[0], code->cluster[1], code->cluster[2], given[0],
                    given[1] ? given[1] : 1, given[2] ? given[2] : 1);
    call->cluster[i] = extent;
  }
  bool is_chosen =
    call->is_chosen || (call->config->threads && !call->config->grid[0] && !call->kernel->grid);
  if (is_chosen)
    call->grid[0] = (call->grid[0] + call->cluster[0] - 1) / call->cluster[0] * call->cluster[0];
  return check_cluster(call, diagnostics);
}

/* ---- cooperative launches ---- */

static kjit_status fit_cooperative(kj_call *call, kjit_specialization *specialization,
                                   kj_diagnostics *diagnostics)
{
  uint32_t resident;
  char place[24];
  const kjit_device *device = call->device;
  const kj_device_code *function = &specialization->device_code;
  if (!device->has_cooperative_launch)
    return REFUSE(
      call, diagnostics,
      "the launch is cooperative, but %s (%s) or its driver does not support cooperative launches",
      kj_device_text(device, place), device->info.target);
  KJ_TRY(count_resident(call, specialization, diagnostics, &resident));
  uint64_t most = (uint64_t)resident * device->info.multiprocessor_count,
           shared = function->shared_bytes + call->dynamic_shared_bytes;
  uint32_t step = call->cluster[0] ? call->cluster[0] : 1;
  /* the grid can be reduced, because the loop over a grid_range is correct for any grid */
  if (call->is_chosen && most >= step && call->grid[0] > most)
    call->grid[0] = (uint32_t)(most / step * step);
  if (kj_volume(call->grid) <= most) return KJIT_OK;
  return REFUSE(call, diagnostics,
                "all blocks of a cooperative launch must be resident at once, but the launch has "
                "%llu blocks and %s can hold %llu (%u multiprocessors with %u blocks each; a block "
                "has %llu threads with %u registers each and %llu bytes of shared memory)",
                (unsigned long long)kj_volume(call->grid), kj_device_text(device, place),
                (unsigned long long)most, device->info.multiprocessor_count, resident,
                (unsigned long long)kj_volume(call->block), function->registers,
                (unsigned long long)shared);
}

/* ---- dynamic shared memory: static arrays that do not fit elsewhere, then arrays whose extents
 * are evaluated at launch, then the memory that the launch requests ---- */

static const ki_decl *find_shared(const kjit_kernel *kernel, uint32_t declaration)
{
  for (uint32_t i = 0; i < kernel->shared_count; i++)
    if (kernel->shared[i]->index == declaration) return kernel->shared[i];
  return NULL;
}

static kjit_status evaluate_extent(const kj_call *call, const ki_decl *decl, uint32_t dimension,
                                   kj_diagnostics *diagnostics, int64_t *value)
{
  const ki_expr *expr = decl->type_expr->extents.items[dimension];
  kj_scope scope = kj_call_scope(call, call->block);
  if (kj_evaluate_index(&scope, expr, value)) return KJIT_OK;
  return kj_error_at(
    diagnostics, call->kernel->module, scope.location, KJIT_ERROR_LAUNCH,
    "an extent of shared array `%s` of kernel `%s` cannot be evaluated before the launch: this %s",
    decl->name, call->kernel->function->decl->name, scope.reason);
}

static uint64_t round_up(uint64_t value, uint64_t alignment)
{
  return (value + alignment - 1) / alignment * alignment;
}

/* Multiplies, saturating at INT32_MAX, which exceeds the shared memory of every device. */
static uint64_t multiply(uint64_t x, uint64_t y)
{
  const uint64_t most = INT32_MAX;
  uint64_t product;
  return __builtin_mul_overflow(x, y, &product) || product > most ? most : product;
}

static kjit_status size_array(kj_call *call, const kj_shared_array *array, kj_shared_size *size,
                              kj_diagnostics *diagnostics, uint64_t *end)
{
  const ki_decl *decl = find_shared(call->kernel, array->declaration);
  uint64_t bytes = array->element_bytes, most = call->device->info.max_shared_bytes;
  KJ_ASSERT(decl && array->element_bytes && array->alignment);
  KJ_ASSERT((array->alignment & (array->alignment - 1)) == 0);
  size->offset = (uint32_t)(*end = round_up(*end, array->alignment));
  for (uint32_t d = 0; d < decl->type_expr->extents.count; d++) {
    int64_t value;
    KJ_TRY(evaluate_extent(call, decl, d, diagnostics, &value));
    if (value < 0 || value > INT32_MAX)
      return kj_refuse_launch(call, decl->type_expr->extents.items[d]->location, diagnostics,
                              "extent %u of shared array `%s` is %" PRId64 " in this launch", d,
                              decl->name, value);
    size->extents[d] = (uint32_t)value;
    bytes = multiply(bytes, size->extents[d]);
  }
  *end += bytes;
  if (*end <= most) return KJIT_OK;
  char place[24];
  return kj_refuse_launch(
    call, decl->location, diagnostics,
    "the launch has %" PRIu64
    "%s bytes of dynamic shared memory per block up to array `%s`, but %s allows at most %" PRIu64,
    *end, bytes == INT32_MAX ? " or more" : "", decl->name, kj_device_text(call->device, place),
    most);
}

static kjit_status size_shared(kj_call *call, const kj_code *code, kj_diagnostics *diagnostics)
{
  uint64_t end = code->fixed_shared_bytes;
  KJ_ASSERT(code->shared_array_count <= KJ_MOST_SHARED_ARRAYS);
  for (uint32_t i = 0; i < code->shared_array_count; i++)
    KJ_TRY(size_array(call, &code->shared_arrays[i], &call->shared[i], diagnostics, &end));
  if (code->uses_dynamic_shared) end = round_up(end, code->dynamic_shared_alignment);
  if (code->shared_array_count) call->shared[code->shared_array_count].offset = (uint32_t)end;
  call->dynamic_shared_bytes = end + call->config->dynamic_shared_bytes;
  return KJIT_OK;
}

/* Returns the minimum size in bytes, for a launch with this block, of the shared array that is
 * declared without an extent. Returns 0 if the kernel has no such array. */
static uint64_t own_shared_need(const kj_code *code, const uint32_t block[3])
{
  const uint32_t *need = code->own_shared_need;
  const uint64_t bases[KJ_SHARED_NEEDS] = { 1, block[0], block[1], block[2],
                                            (uint64_t)block[0] * block[1] * block[2] };
  uint64_t most = 1; /* at least one element, because the kernel declares the array */
  if (!code->uses_dynamic_shared) return 0;
  for (int i = 0; i < KJ_SHARED_NEEDS; i++)
    if (need[i] && bases[i] + need[i] - 1 > most) most = bases[i] + need[i] - 1;
  return most * code->dynamic_shared_element_bytes;
}

/* ---- memory and registers ---- */

static kjit_status check_memory(const kj_call *call, const kjit_specialization *specialization,
                                kj_diagnostics *diagnostics)
{
  const kj_code *code = &specialization->code;
  if (code->uses_dynamic_shared &&
      call->config->dynamic_shared_bytes < code->dynamic_shared_element_bytes)
    return REFUSE(call, diagnostics,
                  "the launch gives %llu bytes of dynamic shared memory to the kernel's shared "
                  "array without an extent, but one element needs %u bytes",
                  (unsigned long long)call->config->dynamic_shared_bytes,
                  code->dynamic_shared_element_bytes);
  uint64_t needed = own_shared_need(code, call->block);
  if (call->config->dynamic_shared_bytes < needed)
    return REFUSE(call, diagnostics,
                  "the launch gives %llu bytes of dynamic shared memory to the kernel's shared "
                  "array without an extent, but a block of %u x %u x %u uses at least %llu bytes",
                  (unsigned long long)call->config->dynamic_shared_bytes, call->block[0],
                  call->block[1], call->block[2], (unsigned long long)needed);
  if (!call->device->operations->is_queued) return KJIT_OK;
  const kj_device_code *function = &specialization->device_code;
  uint64_t threads = kj_volume(call->block), most = call->device->info.max_shared_bytes,
           shared = function->shared_bytes + call->dynamic_shared_bytes;
  if (function->max_threads && threads > function->max_threads)
    return REFUSE(call, diagnostics,
                  "the launch has %llu threads per block, but the kernel uses %u registers per "
                  "thread, which allows at most %u",
                  (unsigned long long)threads, function->registers, function->max_threads);
  if (call->dynamic_shared_bytes > function->max_dynamic_shared_bytes || shared > most) {
    char place[24];
    return REFUSE(call, diagnostics,
                  "a block of the launch has %llu bytes of shared memory (%u static, %llu "
                  "dynamic), but %s allows at most %llu",
                  (unsigned long long)shared, function->shared_bytes,
                  (unsigned long long)call->dynamic_shared_bytes,
                  kj_device_text(call->device, place), (unsigned long long)most);
  }
  return KJIT_OK;
}

static kjit_status check_priority(const kj_call *call, kj_diagnostics *diagnostics)
{
  if (!call->config->priority || call->device->has_launch_attributes) return KJIT_OK;
  return REFUSE(call, diagnostics,
                "the launch has a priority, but the driver is for CUDA %d.%d; launch priorities "
                "need a driver for CUDA 11.8",
                call->device->info.driver_version / 1000,
                call->device->info.driver_version % 1000 / 10);
}

kjit_status kj_fit_shape(kj_call *call, kjit_specialization *specialization,
                         kj_diagnostics *diagnostics)
{
  const kj_code *code = &specialization->code;
  bool is_queued = call->device->operations->is_queued;
  KJ_ASSERT(specialization->device == call->device && kj_is_held_here(specialization));
  if (is_queued && call->is_block_chosen) KJ_TRY(fit_block(call, specialization, diagnostics));
  fit_elements(call, code);
  if (code->shared_array_count || code->fixed_shared_bytes)
    KJ_TRY(size_shared(call, code, diagnostics));
  KJ_TRY(fit_cluster(call, code, diagnostics));
  KJ_TRY(check_memory(call, specialization, diagnostics));
  /* the launch function takes the size as 32 bits */
  KJ_ASSERT(call->dynamic_shared_bytes <= UINT32_MAX);
  if (!is_queued) return KJIT_OK;
  call->is_cooperative = code->is_cooperative || (call->config->flags & KJIT_LAUNCH_COOPERATIVE);
  if (call->is_cooperative) KJ_TRY(fit_cooperative(call, specialization, diagnostics));
  return check_priority(call, diagnostics);
}
