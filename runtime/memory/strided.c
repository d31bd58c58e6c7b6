/* Strided elements on a GPU, by kernels of the language itself: elements are words of their size,
 * the compiler specializes the rest. */
#include <stdlib.h>
#include <string.h>

#include "memory/copy.h"

static const char source[] =
  "# Up to three dimensions.\n"
  "kernel copy(r, x) { for at in grid_range(r.shape) { r[at] = x[at] } }\n"
  "kernel fill(r, v) { for at in grid_range(r.shape) { r[at] = v } }\n"
  "# Eight.\n"
  "kernel copy_any(r, x) {\n"
  "  for n in grid_range(r.size) {\n"
  "    let s = r.shape\n"
  "    let n7 = n // s[7]\n"
  "    let n6 = n7 // s[6]\n"
  "    let n5 = n6 // s[5]\n"
  "    let n4 = n5 // s[4]\n"
  "    let n3 = n4 // s[3]\n"
  "    let n2 = n3 // s[2]\n"
  "    let n1 = n2 // s[1]\n"
  "    r[n1, n2 % s[1], n3 % s[2], n4 % s[3], n5 % s[4], n6 % s[5], n7 % s[6], n % s[7]] =\n"
  "      x[n1, n2 % s[1], n3 % s[2], n4 % s[3], n5 % s[4], n6 % s[5], n7 % s[6], n % s[7]]\n"
  "  }\n"
  "}\n"
  "kernel fill_any(r, v) {\n"
  "  for n in grid_range(r.size) {\n"
  "    let s = r.shape\n"
  "    let n7 = n // s[7]\n"
  "    let n6 = n7 // s[6]\n"
  "    let n5 = n6 // s[5]\n"
  "    let n4 = n5 // s[4]\n"
  "    let n3 = n4 // s[3]\n"
  "    let n2 = n3 // s[2]\n"
  "    let n1 = n2 // s[1]\n"
  "    r[n1, n2 % s[1], n3 % s[2], n4 % s[3], n5 % s[4], n6 % s[5], n7 % s[6], n % s[7]] = v\n"
  "  }\n"
  "}\n";

enum { WIDEST = 8, FEW_DIMENSIONS = 3 };

/* ---- the module ---- */

static kjit_status get_library(kjit_context *context, kjit_module **library)
{
  kj_runtime *runtime = kj_get_runtime(context);
  kjit_module *known = atomic_load_explicit(&runtime->library, memory_order_acquire), *made = NULL;
  *library = known;
  if (known) return KJIT_OK;
  KJ_TRY(kjit_parse_module(context, "kjit's own kernels", source, sizeof source - 1, &made));
  if (atomic_compare_exchange_strong(&runtime->library, &known, made)) {
    *library = made; /* the context frees it with its other modules */
  } else {
    kjit_release_module(made);
    *library = known;
  }
  return KJIT_OK;
}

/* ---- views as arguments ---- */

typedef struct words {
  kjit_tensor tensor;
  int64_t shape[KJ_MAX_RANK], strides[KJ_MAX_RANK];
} words;

static void describe(words *w, const kjit_device *device, const kj_view *view, uint32_t rank)
{
  uint32_t pad = rank - view->rank;
  for (uint32_t i = 0; i < rank; i++) {
    w->shape[i] = i < pad ? 1 : view->shape[i - pad];
    w->strides[i] = i < pad ? 1 : view->strides[i - pad];
  }
  /* NOLINT(performance-no-int-to-ptr) */
  w->tensor = (kjit_tensor){ .data = (void *)(uintptr_t)view->address,
                             .device_type = device->info.kind,
                             .device_id = device->info.ordinal,
                             .rank = (int32_t)rank,
                             .code = 1, /* unsigned */
                             .bits = (uint8_t)(8 * view->element_bytes),
                             .lanes = 1,
                             .shape = w->shape,
                             .strides = w->strides };
}

static uint32_t launch_rank(const kj_view *view)
{
  return view->rank <= FEW_DIMENSIONS ? (view->rank ? view->rank : 1) : KJ_MAX_RANK;
}

static kjit_status launch(kjit_device *device, const char *name, kjit_stream *stream,
                          const kjit_arg *arguments)
{
  kjit_module *library;
  kjit_kernel *kernel;
  kjit_launch_config config = { .stream = stream, .device = device };
  KJ_TRY(get_library(device->context, &library));
  KJ_TRY(kjit_get_kernel(library, name, &kernel));
  return kjit_launch(kernel, &config, arguments, 2);
}

/* ---- copies ---- */

static kjit_status copy_words(kjit_device *device, const kj_view *to, const kj_view *from,
                              kjit_stream *stream)
{
  words r, x;
  uint32_t rank = launch_rank(to);
  describe(&r, device, to, rank);
  describe(&x, device, from, rank);
  kjit_arg arguments[] = { kjit_arg_tensor(&r.tensor), kjit_arg_tensor(&x.tensor) };
  return launch(device, rank <= FEW_DIMENSIONS ? "copy" : "copy_any", stream, arguments);
}

/* The widest word that elements and addresses are made of: a struct may be packed. */
static uint32_t word_bytes(const kj_view *to, const kj_view *from)
{
  uint64_t all = to->element_bytes | to->address | from->address | WIDEST;
  return (uint32_t)(all & (~all + 1));
}

/* Elements of several words are those words, in one more dimension. */
static void split_elements(kj_view *view, uint32_t bytes)
{
  uint32_t words = view->element_bytes / bytes;
  if (words == 1) return;
  for (uint32_t i = 0; i < view->rank; i++) view->strides[i] *= words;
  view->shape[view->rank] = words;
  view->strides[view->rank] = 1;
  view->rank++;
  view->count *= words;
  view->element_bytes = bytes;
}

static kj_view take_row(const kj_view *view, int64_t index)
{
  kj_view row = *view;
  row.address += (uint64_t)(index * view->strides[0] * (int64_t)view->element_bytes);
  row.count = view->shape[0] ? view->count / (uint64_t)view->shape[0] : 0;
  row.rank--;
  memmove(row.shape, view->shape + 1, row.rank * sizeof *row.shape);
  memmove(row.strides, view->strides + 1, row.rank * sizeof *row.strides);
  return row;
}

kjit_status kj_copy_strided(kjit_device *device, const kj_view *to, const kj_view *from,
                            kjit_stream *stream)
{
  uint32_t bytes = word_bytes(to, from);
  /* no room for the dimension of the words: the outermost is walked here */
  bool needs_rows = to->rank == KJ_MAX_RANK && bytes != to->element_bytes;
  for (int64_t i = 0; needs_rows && i < to->shape[0]; i++) {
    kj_view to_row = take_row(to, i), from_row = take_row(from, i);
    KJ_TRY(kj_copy_strided(device, &to_row, &from_row, stream));
  }
  if (needs_rows) return KJIT_OK;
  kj_view to_words = *to, from_words = *from;
  split_elements(&to_words, bytes);
  split_elements(&from_words, bytes);
  return copy_words(device, &to_words, &from_words, stream);
}

/* ---- fills ---- */

static kjit_status fill_words(kjit_device *device, const kj_view *to, uint64_t bits,
                              kjit_stream *stream)
{
  words r;
  uint32_t rank = launch_rank(to);
  describe(&r, device, to, rank);
  kjit_type type = kj_type_of_dlpack(1, r.tensor.bits);
  kjit_arg value = kjit_arg_value(type, &bits); /* little-endian: the low bytes are the word */
  kjit_arg arguments[] = { kjit_arg_tensor(&r.tensor), value };
  return launch(device, rank <= FEW_DIMENSIONS ? "fill" : "fill_any", stream, arguments);
}

kjit_status kj_fill_strided(kjit_device *device, const kj_view *to, const uint64_t bits[2],
                            kjit_stream *stream)
{
  if (to->element_bytes <= WIDEST) return fill_words(device, to, bits[0], stream);
  kj_view part = *to;
  part.element_bytes /= 2;
  for (uint32_t i = 0; i < part.rank; i++) part.strides[i] *= 2;
  KJ_TRY(fill_words(device, &part, bits[0], stream));
  part.address += part.element_bytes;
  return fill_words(device, &part, bits[1], stream);
}
