/* Launches kernels of guests. Whatever the text and the arguments are, the process must continue,
 * and memory that the launch did not receive must not change. Each array lies at one end of its
 * pages, between pages that are not accessible. After a launch the test checks that the kernel has
 * not changed memory that shape and strides do not reach, or arrays that it only reads. Memory that
 * kjit allocates for blocks lies between such pages as well. Launches have a time limit.
 *
 * An input is kernel IR. If it begins with the byte 1, it contains the choices of a generator of
 * hostile kernels (hostile_kernel.h), so that a mutation gives another kernel. The arguments depend
 * only on the input's bytes, so an input always has the same outcome. If KJIT_FUZZ_TELL is in the
 * environment, the program prints each kernel and the outcome of each launch. */
#include <kjit/kjit.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "hostile_kernel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { DATA_BYTES = 1 << 13, GUARD_BYTES = 1 << 24, MOST_ARGUMENTS = 8, MOST_RANK = 3 };
enum { CANARY = 0xa5, TIME_LIMIT_NS = 20 * 1000 * 1000 };

static bool tells;
/* one context for all inputs, because no input may affect later ones */
static kjit_context *context;
static kjit_device *cpu;

static uint32_t draw(uint32_t *state, uint32_t count)
{
  *state = *state * 1664525u + 1013904223u;
  return (*state >> 16) % count;
}

/* ---- the memory of blocks ---- */

/* libkjit allocates it with aligned_alloc. The program defines this function itself, in place of
 * the C library's. It returns memory that ends at a page without access. Sanitizers have their own
 * allocator. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(__GLIBC__)
enum { PAGE = 4096, REGION_PAGES = 1 << 22 };
static uint8_t *region;
static _Atomic uint32_t region_used; /* pages */
/* number of pages of the allocation that begins at each page */
static uint32_t page_counts[REGION_PAGES];

void __libc_free(void *memory);
__attribute__((visibility("default"))) void *aligned_alloc(size_t alignment, size_t size_bytes);
__attribute__((visibility("default"))) void free(void *memory);

static void *allocate_elsewhere(size_t alignment, size_t size_bytes)
{
  void *memory = NULL;
  return posix_memalign(&memory, alignment < 16 ? 16 : alignment, size_bytes) ? NULL : memory;
}

void *aligned_alloc(size_t alignment, size_t size_bytes)
{
  enum { MOST_PAGES = 1 << 12 };
  size_t count = (size_bytes + PAGE - 1) / PAGE;
  if (!region || !count || count > MOST_PAGES || alignment > PAGE || region_used > REGION_PAGES / 2)
    return allocate_elsewhere(alignment, size_bytes);
  uint32_t first = atomic_fetch_add(&region_used, (uint32_t)count + 1) + 1;
  uint8_t *memory = region + (size_t)first * PAGE;
  if (first + count >= REGION_PAGES || mprotect(memory, count * PAGE, PROT_READ | PROT_WRITE))
    return allocate_elsewhere(alignment, size_bytes);
  page_counts[first] = (uint32_t)count;
  return memory + (count * PAGE - size_bytes) / alignment * alignment;
}

void free(void *memory)
{
  size_t first = ((uintptr_t)memory - (uintptr_t)region) / PAGE;
  if (!memory || !region || (uint8_t *)memory < region || first >= REGION_PAGES)
    __libc_free(memory);
  else
    (void)mmap(region + first * PAGE, (size_t)page_counts[first] * PAGE, PROT_NONE,
               MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

static void make_region(void)
{
  uint8_t *made = mmap(NULL, (size_t)REGION_PAGES * PAGE, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (made != MAP_FAILED) region = made;
}
#else
static void make_region(void) {}
#endif

/* ---- arrays ---- */

typedef struct guarded {
  uint8_t *data; /* DATA_BYTES bytes, reused for all inputs */
  uint8_t before[DATA_BYTES];
  kjit_tensor tensor;
  int64_t shape[MOST_RANK], strides[MOST_RANK];
  size_t element_bytes;
  bool is_written;
} guarded;

static guarded arrays[MOST_ARGUMENTS];

static void map_arrays(void)
{
  for (size_t i = 0; i < MOST_ARGUMENTS; i++) {
    uint8_t *all = mmap(NULL, DATA_BYTES + 2 * (size_t)GUARD_BYTES, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED || mprotect(all + GUARD_BYTES, DATA_BYTES, PROT_READ | PROT_WRITE))
      abort();
    arrays[i].data = all + GUARD_BYTES;
  }
}

static const struct element {
  uint8_t code, bits;
  uint16_t lanes;
} elements[] = { { 2, 32, 1 }, { 0, 32, 1 }, { 0, 64, 1 }, { 1, 8, 1 },  { 2, 64, 1 },
                 { 1, 64, 1 }, { 6, 8, 1 },  { 2, 16, 1 }, { 2, 32, 4 }, { 0, 32, 3 },
                 { 5, 64, 1 }, { 0, 16, 1 }, { 0, 8, 1 },  { 1, 32, 1 } };

static size_t element_size(const struct element *e)
{
  size_t bytes = (size_t)e->bits / 8 * e->lanes;
  return e->lanes == 3 ? (size_t)e->bits / 8 * 3 : bytes;
}

/* Chooses extents and strides that stay within the data, and the position of element 0. */
static void draw_shape(guarded *a, uint32_t *state)
{
  static const int64_t extents[] = { 4, 0, 1, 3, 16, 33, 7, 64 };
  int64_t reach = 1, low = 0, high = 0, room = DATA_BYTES / (int64_t)a->element_bytes;
  bool is_strided = draw(state, 3) == 0;
  for (int32_t d = a->tensor.rank; d-- > 0;) {
    int64_t extent = extents[draw(state, 8)];
    if (a->tensor.rank > 1 && extent > 16) extent = 5;
    int64_t stride = reach * (is_strided ? (int64_t)draw(state, 4) - 1 : 1);
    a->shape[d] = extent;
    a->strides[d] = stride;
    int64_t span = extent ? (extent - 1) * stride : 0;
    if (span < 0) low += span;
    else high += span;
    if ((high - low + 1) * 2 > room) {
      a->shape[d] = 1;
      if (span < 0) low -= span;
      else high -= span;
    }
    reach *= a->shape[d] ? a->shape[d] : 1;
  }
  a->tensor.strides = is_strided ? a->strides : NULL;
  bool is_last = draw(state, 2);
  int64_t first = is_last ? room - 1 - high : -low;
  a->tensor.data = a->data + (size_t)first * a->element_bytes +
                   (is_last ? DATA_BYTES - (size_t)room * a->element_bytes : 0);
}

/* Returns the element type that an annotation such as `i64[:]` names, or otherwise any type. */
static const struct element *draw_element(const kjit_parameter_info *info, uint32_t *state)
{
  static const struct element number = { 0, 64, 1 }, byte = { 1, 8, 1 }, word = { 0, 32, 1 };
  char *text = info->annotation == KJIT_ANY ? NULL : kjit_copy_type_text(context, info->annotation);
  const struct element *found = !text                       ? NULL
                                : !strncmp(text, "i64[", 4) ? &number
                                : !strncmp(text, "u8[", 3)  ? &byte
                                : !strncmp(text, "i32[", 4) ? &word
                                                            : NULL;
  kjit_free(context, text);
  return found ? found : &elements[draw(state, sizeof elements / sizeof *elements)];
}

/* rank -1: any. */
static void draw_array(guarded *a, const kjit_parameter_info *info, int32_t rank, uint32_t *state)
{
  const struct element *e = draw_element(info, state);
  if (info->annotation != KJIT_ANY) rank = 1;
  a->element_bytes = element_size(e);
  a->is_written = info->is_written;
  a->tensor =
    (kjit_tensor){ .device_type = 1, .code = e->code, .bits = e->bits, .lanes = e->lanes };
  static const int32_t ranks[] = { 1, 1, 1, 1, 3, 2, 1, 0 };
  a->tensor.rank = rank >= 0 ? rank : ranks[draw(state, 8)];
  a->tensor.shape = a->shape;
  draw_shape(a, state);
  memset(a->data, CANARY, DATA_BYTES);
  bool is_bool = e->code == 6;
  for (size_t i = 0; i < DATA_BYTES / a->element_bytes; i++) {
    uint64_t value = is_bool ? i % 2 : draw(state, 4) ? i % 5 : ~(uint64_t)0 >> draw(state, 64);
    size_t bytes = a->element_bytes < sizeof value ? a->element_bytes : sizeof value;
    memcpy(a->data + i * a->element_bytes, &value, bytes);
  }
  memcpy(a->before, a->data, DATA_BYTES);
}

/* Restores all elements of the array, so that only other bytes can differ from `before`. */
static void forget_elements(guarded *a, int32_t d, int64_t at)
{
  if (d < a->tensor.rank && d < MOST_RANK) {
    for (int64_t i = 0; i < a->shape[d]; i++) forget_elements(a, d + 1, at + i * a->strides[d]);
    return;
  }
  int64_t place = (int64_t)((uint8_t *)a->tensor.data - a->data) + at * (int64_t)a->element_bytes;
  if (place < 0 || place + (int64_t)a->element_bytes > DATA_BYTES) abort(); /* draw_shape's fault */
  memcpy(a->data + place, a->before + place, a->element_bytes);
}

static void check_array(guarded *a, const char *kernel, size_t parameter)
{
  if (a->is_written) forget_elements(a, 0, 0);
  for (size_t i = 0; i < DATA_BYTES; i++)
    if (a->data[i] != a->before[i]) {
      fprintf(stderr,
              "run_fuzz: kernel %s has changed byte %zu of the memory of parameter %zu, %s\n",
              kernel, i, parameter, a->is_written ? "which no element has" : "which it only reads");
      abort();
    }
}

/* ---- launches ---- */

static kjit_arg draw_scalar(uint32_t *state)
{
  static const int64_t values[] = { 0,
                                    1,
                                    3,
                                    -1,
                                    4,
                                    INT32_MAX,
                                    INT32_MIN,
                                    (int64_t)1 << 32,
                                    (int64_t)1 << 40,
                                    INT64_MAX,
                                    INT64_MIN,
                                    (int64_t)1 << 62,
                                    -((int64_t)1 << 33),
                                    63,
                                    100 };
  int64_t value = values[draw(state, sizeof values / sizeof *values)];
  switch (draw(state, 9)) {
  case 0: return kjit_arg_i32((int32_t)value);
  case 1: return kjit_arg_u64((uint64_t)value);
  case 2: return kjit_arg_u8((uint8_t)value);
  case 3: return kjit_arg_f32((float)value);
  default: return kjit_arg_i64(value);
  }
}

/* ranks: the array ranks of a generated kernel; NULL means any ranks. */
static void run_kernel(kjit_kernel *kernel, const char *name, const int32_t *ranks, uint32_t *state)
{
  static const uint32_t grids[] = { 1, 3, 2 }, blocks[] = { 1, 4, 32, 40, 64 };
  kjit_arg arguments[MOST_ARGUMENTS];
  bool is_array[MOST_ARGUMENTS] = { false };
  size_t count = 0;
  kjit_parameter_info info = { .size_bytes = sizeof info };
  for (; count < MOST_ARGUMENTS && kjit_get_parameter_info(kernel, count, &info) == KJIT_OK;
       count++) {
    bool is_drawn = !info.is_const && !info.is_function && (info.is_read || info.is_written);
    is_array[count] = ranks ? count < 3 : is_drawn;
    if (is_array[count]) draw_array(&arrays[count], &info, ranks ? ranks[count] : -1, state);
    arguments[count] = is_array[count] ? kjit_arg_tensor(&arrays[count].tensor)
                       : info.is_const ? kjit_arg_number((double)draw(state, 9))
                                       : draw_scalar(state);
  }
  kjit_launch_config config = { .size_bytes = sizeof config,
                                .device = cpu,
                                .grid = { grids[draw(state, 3)], 1, 1 },
                                .block = { blocks[draw(state, 5)], 1, 1 },
                                .dynamic_shared_bytes = draw(state, 4) * 52,
                                .time_limit_ns = TIME_LIMIT_NS };
  kjit_status status = kjit_launch(kernel, &config, arguments, count);
  const kjit_diagnostic *said = status == KJIT_OK ? NULL : kjit_get_diagnostic(context, 0);
  if (tells)
    printf("-- %s: %s %s\n", name, kjit_get_status_name(status), said ? said->message : "");
  for (size_t i = 0; i < count; i++)
    if (is_array[i]) check_array(&arrays[i], name, i);
}

static void create_context(void)
{
  kjit_config config = { .size_bytes = sizeof config };
  config.cache_directory = "";
  config.interruptible = 1;
  config.cpu_threads = 2;
  config.trust = KJIT_TRUST_GUEST;
  if (kjit_create_context(&config, &context) != KJIT_OK ||
      kjit_get_device(context, KJIT_DEVICE_CPU, 0, &cpu) != KJIT_OK)
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static char made[HOSTILE_MOST_BYTES];
  if (!context) {
    tells = getenv("KJIT_FUZZ_TELL") != NULL;
    make_region();
    map_arrays();
    create_context();
  }
  uint32_t state = 1;
  for (size_t i = 0; i < size; i++) state = state * 31 + data[i];
  const char *text = (const char *)data;
  int32_t ranks[3];
  if (size && data[0] == 1) {
    size = make_hostile_kernel(data + 1, size - 1, made, ranks);
    text = made;
  }
  kjit_module *module;
  kjit_status status = kjit_parse_module(context, "fuzz", text, size, &module);
  const kjit_diagnostic *said = status == KJIT_OK ? NULL : kjit_get_diagnostic(context, 0);
  if (tells) printf("%.*s-- parsed: %s\n", (int)size, text, said ? said->message : "");
  if (status != KJIT_OK) return 0;
  const char *name;
  for (size_t i = 0; i < 4 && (name = kjit_get_kernel_name(module, i)); i++) {
    kjit_kernel *kernel;
    if (kjit_get_kernel(module, name, &kernel) != KJIT_OK) abort();
    for (int round = 0; round < (text == made ? 2 : 4); round++)
      run_kernel(kernel, name, text == made ? ranks : NULL, &state);
  }
  kjit_release_module(module);
  return 0;
}
