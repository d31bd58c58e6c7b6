#define _GNU_SOURCE
#include <driver/array.h>

#include <driver/record.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MAPPED_BYTES = 1 << 20 };

/* Total size of all arrays. The tools limit it, because the system would kill a tool without a
 * message when it writes to more memory than the machine has. */
static _Atomic uint64_t taken_bytes;

bool tool_shape_bytes(const tool_shape *shape, uint64_t *size_bytes)
{
  uint64_t count = tool_elements[shape->element].size_bytes;
  bool is_empty = false, overflow = false;
  for (uint32_t d = 0; d < shape->rank; d++) {
    if (shape->extents[d] == 0) is_empty = true;
    else overflow |= __builtin_mul_overflow(count, (uint64_t)shape->extents[d], &count);
  }
  *size_bytes = is_empty ? 0 : count;
  return !overflow && count <= INT64_MAX;
}

/* Sets the strides. Lanes are contiguous in either order. */
static void set_strides(tool_array *array, bool is_fortran)
{
  uint32_t rank = array->rank - (array->lanes ? 1 : 0);
  int64_t stride = array->lanes ? array->lanes : 1;
  if (array->lanes) array->strides[rank] = 1;
  for (uint32_t i = 0; i < rank; i++) {
    uint32_t d = is_fortran ? i : rank - 1 - i;
    array->strides[d] = stride;
    if (array->shape[d]) stride *= array->shape[d];
  }
}

/* Allocates the memory. Large arrays use mmap, so that their pages are placed near the core whose
 * thread first touches them. */
static bool allocate(tool_memory *memory)
{
  size_t size = memory->size_bytes ? memory->size_bytes : 1;
  memory->is_mapped = size >= MAPPED_BYTES;
  if (memory->is_mapped) {
    memory->data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory->data == MAP_FAILED) return false;
    madvise(memory->data, size, MADV_HUGEPAGE);
    return true;
  }
  if (posix_memalign(&memory->data, 64, size)) return false;
  memset(memory->data, 0, size);
  return true;
}

bool tool_create_array(tool_error *error, const tool_shape *shape, tool_array *array)
{
  uint64_t size_bytes,
    taken = taken_bytes,
    physical = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
  if (!tool_shape_bytes(shape, &size_bytes))
    return tool_fail(error, TOOL_EXIT_USAGE, "the array's size in bytes does not fit in 63 bits");
  if (size_bytes > physical)
    return tool_fail(error, TOOL_EXIT_DEVICE,
                     "the array needs %llu bytes, but the machine has %llu",
                     (unsigned long long)size_bytes, (unsigned long long)physical);
  if (size_bytes > physical - (taken < physical ? taken : physical))
    return tool_fail(
      error, TOOL_EXIT_DEVICE,
      "the array needs %llu bytes, but other arrays already use %llu of the machine's %llu",
      (unsigned long long)size_bytes, (unsigned long long)taken, (unsigned long long)physical);
  tool_memory *memory = tool_allocate(sizeof *memory);
  memory->size_bytes = size_bytes;
  memory->element = shape->element;
  if (!allocate(memory)) {
    free(memory);
    return tool_fail(error, TOOL_EXIT_DEVICE,
                     "out of memory: cannot allocate an array of %llu bytes",
                     (unsigned long long)size_bytes);
  }
  taken_bytes += size_bytes;
  *array = (tool_array){ .element = shape->element,
                         .rank = shape->rank,
                         .memory = memory,
                         .lanes = shape->lanes,
                         .record = shape->record };
  memcpy(array->shape, shape->extents, shape->rank * sizeof *shape->extents);
  set_strides(array, shape->is_fortran);
  return true;
}

void tool_destroy_memory(tool_memory *memory)
{
  if (!memory) return;
  if (memory->device) kjit_release_array(memory->device);
  if (memory->device_validity) kjit_release_array(memory->device_validity);
  free(memory->validity);
  tool_free_texts(&memory->texts);
  if (memory->is_mapped) munmap(memory->data, memory->size_bytes);
  else free(memory->data);
  taken_bytes -= memory->size_bytes;
  free(memory);
}

/* ---- nulls ---- */

static uint64_t element_count(const tool_memory *memory)
{
  return memory->size_bytes / tool_elements[memory->element].size_bytes;
}

uint64_t tool_validity_bytes(const tool_memory *memory) { return (element_count(memory) + 7) / 8; }

bool tool_add_validity(tool_error *error, tool_array *array)
{
  uint64_t size = tool_validity_bytes(array->memory);
  array->memory->validity = malloc(size ? size : 1);
  if (!array->memory->validity)
    return tool_fail(error, TOOL_EXIT_DEVICE,
                     "out of memory: cannot allocate a bitmap of %llu bytes",
                     (unsigned long long)size);
  memset(array->memory->validity, 0xff, size);
  return true;
}

void tool_set_null(tool_memory *memory, uint64_t position)
{
  memory->validity[position / 8] &= (uint8_t) ~(1u << position % 8);
}

bool tool_is_null(const tool_array *array, const void *element)
{
  const tool_memory *memory = array->memory;
  if (!memory->validity) return false;
  uint64_t position = (uint64_t)((const char *)element - (const char *)memory->data) /
                      tool_elements[memory->element].size_bytes;
  return !(memory->validity[position / 8] >> position % 8 & 1);
}

uint64_t tool_count_nulls(const tool_array *array)
{
  uint64_t count = array->memory->validity ? tool_count(array) : 0, nulls = 0;
  for (uint64_t i = 0; i < count; i++) nulls += tool_is_null(array, tool_element_number(array, i));
  return nulls;
}

const char *tool_text_of(const tool_array *array, const void *element)
{
  int32_t index;
  memcpy(&index, element, sizeof index);
  return array->memory->texts.items[index];
}

void tool_array_element_text(const tool_array *array, const void *element, char *buffer)
{
  enum { SHOWN = TOOL_ELEMENT_TEXT - 8 };
  if (tool_is_null(array, element)) memcpy(buffer, "null", sizeof "null");
  else if (array->memory->has_texts) {
    const char *text = tool_text_of(array, element);
    snprintf(buffer, TOOL_ELEMENT_TEXT, "\"%.*s\"%s", SHOWN, text,
             strlen(text) > SHOWN ? "..." : "");
  } else if (array->memory->date.kind == TOOL_TIMESTAMP) {
    tool_date_text(tool_load(array->element, element).i, array->memory->date.unit, buffer);
  } else tool_element_text(array->element, element, buffer);
}

/* ---- elements ---- */

uint64_t tool_count(const tool_array *array)
{
  uint64_t count = 1;
  for (uint32_t d = 0; d < array->rank; d++) count *= (uint64_t)array->shape[d];
  return count;
}

uint64_t tool_array_bytes(const tool_array *array)
{
  return tool_count(array) * tool_elements[array->element].size_bytes;
}

void *tool_element_at(const tool_array *array, const int64_t *index)
{
  int64_t at = array->offset;
  for (uint32_t d = 0; d < array->rank; d++) at += index[d] * array->strides[d];
  return (char *)array->memory->data + at * (int64_t)tool_elements[array->element].size_bytes;
}

void tool_index_of(const tool_array *array, uint64_t position, int64_t *index)
{
  for (uint32_t d = array->rank; d-- > 0;) {
    index[d] = (int64_t)(position % (uint64_t)array->shape[d]);
    position /= (uint64_t)array->shape[d];
  }
}

void *tool_element_number(const tool_array *array, uint64_t position)
{
  int64_t index[TOOL_MAX_RANK];
  tool_index_of(array, position, index);
  return tool_element_at(array, index);
}

bool tool_is_contiguous(const tool_array *array)
{
  int64_t stride = 1;
  for (uint32_t d = array->rank; d-- > 0;) {
    if (array->shape[d] != 1 && array->strides[d] != stride) return false;
    stride *= array->shape[d];
  }
  return true;
}

char *tool_shape_text(const tool_array *array)
{
  const tool_memory *memory = array->memory;
  const char *element = memory && memory->has_texts   ? "text"
                        : memory && memory->date.kind ? tool_date_name(&memory->date)
                                                      : tool_elements[array->element].text;
  char *record =
    array->record.context ? kjit_copy_type_text(array->record.context, array->record.type) : NULL;
  char *text = record         ? tool_format("%s[", record)
               : array->lanes ? tool_format("%sx%u[", element, array->lanes)
                              : tool_format("%s[", element);
  kjit_free(array->record.context, record);
  for (uint32_t d = 0; d < array->rank - (array->lanes ? 1 : 0); d++) {
    char *longer = tool_format("%s%s%lld", text, d ? ", " : "", (long long)array->shape[d]);
    free(text);
    text = longer;
  }
  char *closed = tool_format("%s]", text);
  free(text);
  return closed;
}

/* ---- views ---- */

typedef struct slice {
  const char *at;
  int64_t start, stop, step;
  bool has_start, has_stop, is_index;
} slice;

static bool at_slice_end(tool_scanner *scanner)
{
  tool_skip_blanks(scanner);
  return *scanner->at == ':' || *scanner->at == ',' || *scanner->at == ']';
}

static bool scan_slice(tool_scanner *scanner, slice *s)
{
  tool_skip_blanks(scanner);
  *s = (slice){ .at = scanner->at, .step = 1 };
  if (!at_slice_end(scanner)) {
    s->has_start = true;
    if (!tool_scan_integer(scanner, "an index or ':'", &s->start)) return false;
  }
  if (!tool_accept(scanner, ':')) {
    s->is_index = true;
    return s->has_start || tool_expected(scanner, "an index or ':'");
  }
  if (!at_slice_end(scanner)) {
    s->has_stop = true;
    if (!tool_scan_integer(scanner, "where the slice stops", &s->stop)) return false;
  }
  if (!tool_accept(scanner, ':') || at_slice_end(scanner)) return true;
  if (!tool_scan_integer(scanner, "the step of the slice", &s->step)) return false;
  return s->step != 0 || tool_scan_fail(scanner, s->at, "the step of a slice must not be 0");
}

/* Resolves a position in a slice. As in the kernel IR, positions are not clamped. A negative
 * position counts from the end. */
static bool resolve(tool_scanner *scanner, const slice *s, int64_t *position, int64_t extent,
                    int64_t lowest, int64_t highest)
{
  int64_t given = *position;
  if (given < 0 && given >= -extent) *position += extent;
  if (*position >= lowest && *position <= highest) return true;
  return tool_scan_fail(scanner, s->at,
                        "position %lld is out of bounds: this dimension has %lld elements",
                        (long long)given, (long long)extent);
}

static bool apply_slice(tool_scanner *scanner, slice *s, tool_array *view, uint32_t d,
                        tool_array *result)
{
  int64_t extent = view->shape[d], stride = view->strides[d];
  bool down = s->step < 0;
  if (s->is_index) {
    if (!resolve(scanner, s, &s->start, extent, 0, extent - 1)) return false;
    result->offset += s->start * stride;
    return true;
  }
  if (!s->has_start) s->start = down ? extent - 1 : 0;
  else if (!resolve(scanner, s, &s->start, extent, 0, down ? extent - 1 : extent)) return false;
  if (!s->has_stop) s->stop = down ? -1 : extent;
  else if (!resolve(scanner, s, &s->stop, extent, 0, extent)) return false;
  int64_t distance = down ? s->start - s->stop : s->stop - s->start;
  uint64_t step = down ? 0 - (uint64_t)s->step : (uint64_t)s->step;
  int64_t count = distance > 0 ? (int64_t)(((uint64_t)distance - 1) / step) + 1 : 0;
  result->shape[result->rank] = count;
  /* if the dimension has one element, every stride is valid, and the product could overflow */
  result->strides[result->rank] = count > 1 ? stride * s->step : stride;
  if (count) result->offset += s->start * stride;
  result->rank++;
  return true;
}

static bool scan_subscript(tool_scanner *scanner, tool_array *view)
{
  tool_array result = *view;
  uint32_t d = 0;
  result.rank = 0;
  do {
    slice s;
    if (!scan_slice(scanner, &s)) return false;
    if (d == view->rank)
      return tool_scan_fail(scanner, s.at, "too many subscripts: the array has %u dimension%s",
                            view->rank, view->rank == 1 ? "" : "s");
    if (!apply_slice(scanner, &s, view, d++, &result)) return false;
  } while (tool_accept(scanner, ','));
  if (d == view->rank && view->record.context)
    return tool_scan_fail(scanner, scanner->at,
                          "too many subscripts: name a field of the struct, `.field`");
  if (d == view->rank) result.lanes = 0; /* a slice of lanes is an array of numbers */
  for (; d < view->rank; d++) {
    result.shape[result.rank] = view->shape[d];
    result.strides[result.rank++] = view->strides[d];
  }
  *view = result;
  return tool_expect(scanner, ']');
}

static void transpose(tool_array *view)
{
  tool_array old = *view;
  uint32_t rank = view->rank - (view->lanes ? 1 : 0);
  for (uint32_t d = 0; d < rank; d++) {
    view->shape[d] = old.shape[rank - 1 - d];
    view->strides[d] = old.strides[rank - 1 - d];
  }
}

bool tool_scan_view(tool_scanner *scanner, tool_array *view)
{
  for (;;) {
    if (tool_accept(scanner, '[')) {
      if (!scan_subscript(scanner, view)) return false;
    } else if (tool_accept(scanner, '.')) {
      bool is_field =
        view->record.context && !(tool_name_length(scanner) == 1 && *scanner->at == 'T');
      if (is_field) {
        if (!tool_scan_field(scanner, view)) return false;
        continue;
      }
      if (!tool_accept_word(scanner, "T"))
        return tool_expected(scanner, "T (the transpose) after '.'");
      transpose(view);
    } else {
      return true;
    }
  }
}
