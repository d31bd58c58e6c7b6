#include <driver/record.h>

#include <driver/element.h>
#include <stdlib.h>
#include <string.h>

/* ---- leaves ---- */

void tool_add_leaf(tool_leaves *leaves, const char *path, kjit_type element, uint64_t offset_bytes,
                   uint64_t count)
{
  if (leaves->count == leaves->capacity) {
    leaves->capacity = leaves->capacity ? 2 * leaves->capacity : 16;
    tool_leaf *grown = tool_allocate(leaves->capacity * sizeof *grown);
    if (leaves->count) memcpy(grown, leaves->items, leaves->count * sizeof *grown);
    free(leaves->items);
    leaves->items = grown;
  }
  leaves->items[leaves->count++] =
    (tool_leaf){ tool_copy_text(path, strlen(path)), element, offset_bytes, count };
}

void tool_destroy_leaves(tool_leaves *leaves)
{
  for (size_t i = 0; i < leaves->count; i++) free(leaves->items[i].path);
  free(leaves->items);
  *leaves = (tool_leaves){ 0 };
}

/* ---- fields ---- */

typedef struct field {
  kjit_field given;
  /* scalar type of a field that is not a struct; a pointer counts as u64 */
  kjit_type lane;
  uint32_t lanes;                    /* lanes in a vector, otherwise 1 */
  uint32_t offset_bytes, size_bytes; /* size_bytes is the size of one element */
  bool is_struct;
} field;

static void find_lane(kjit_context *context, field *f)
{
  f->lane = f->given.type;
  f->lanes = 1;
  if (f->given.type < KJIT_SCALAR_COUNT) return;
  char *text = kjit_copy_type_text(context, f->given.type);
  /* a type with an 'x' and without a '*', such as "f32x4", is a vector; any other type is a
   * pointer */
  const char *suffix = text ? strrchr(text, 'x') : NULL;
  bool is_vector = suffix && !strchr(text, '*');
  f->lane = is_vector ? tool_find_element(text, (size_t)(suffix - text)) : KJIT_U64;
  if (is_vector) f->lanes = (uint32_t)strtoul(suffix + 1, NULL, 10);
  kjit_free(context, text);
}

static bool get_field(kjit_context *context, kjit_type type, uint32_t index, field *f)
{
  kjit_type_layout layout = { .size_bytes = sizeof layout };
  *f = (field){ .lanes = 1 };
  if (kjit_get_type_field(context, type, index, &f->given, &f->offset_bytes) != KJIT_OK)
    return false;
  if (kjit_get_type_layout(context, f->given.type, &layout) != KJIT_OK) return false;
  f->size_bytes = layout.type_bytes;
  f->is_struct = layout.field_count > 0;
  if (!f->is_struct) find_lane(context, f);
  return true;
}

static uint32_t field_count(kjit_context *context, kjit_type type)
{
  kjit_type_layout layout = { .size_bytes = sizeof layout };
  return kjit_get_type_layout(context, type, &layout) == KJIT_OK ? layout.field_count : 0;
}

static uint64_t element_count(const kjit_field *given)
{
  uint64_t count = 1;
  for (uint32_t d = 0; d < given->rank; d++) count *= (uint64_t)given->shape[d];
  return count;
}

static void add_leaves(kjit_context *context, kjit_type type, const char *path, uint64_t offset,
                       tool_leaves *leaves);

static void add_field(kjit_context *context, const field *f, const char *path, uint64_t offset,
                      tool_leaves *leaves)
{
  uint64_t count = element_count(&f->given);
  if (!f->is_struct) {
    tool_add_leaf(leaves, path, f->lane, offset, count * f->lanes);
    return;
  }
  for (uint64_t i = 0; i < count; i++) {
    char *at = f->given.rank ? tool_format("%s[%llu]", path, (unsigned long long)i)
                             : tool_copy_text(path, strlen(path));
    add_leaves(context, f->given.type, at, offset + i * f->size_bytes, leaves);
    free(at);
  }
}

static void add_leaves(kjit_context *context, kjit_type type, const char *path, uint64_t offset,
                       tool_leaves *leaves)
{
  field f;
  for (uint32_t i = 0; get_field(context, type, i, &f); i++) {
    char *name = *path ? tool_format("%s.%s", path, f.given.name)
                       : tool_copy_text(f.given.name, strlen(f.given.name));
    add_field(context, &f, name, offset + f.offset_bytes, leaves);
    free(name);
  }
}

tool_leaves tool_list_leaves(const tool_record *record)
{
  tool_leaves leaves = { 0 };
  add_leaves(record->context, record->type, "", 0, &leaves);
  return leaves;
}

uint64_t tool_count_numbers(const tool_leaves *leaves)
{
  uint64_t count = 0;
  for (size_t i = 0; i < leaves->count; i++) count += leaves->items[i].count;
  return count;
}

const tool_leaf *tool_find_number(const tool_leaves *leaves, uint64_t index, uint64_t *within)
{
  const tool_leaf *leaf = leaves->items;
  for (; index >= leaf->count; leaf++) index -= leaf->count;
  *within = index;
  return leaf;
}

/* ---- structs of the module ---- */

bool tool_find_record(kjit_context *context, const char *name, size_t length, tool_record *record)
{
  kjit_type_layout layout = { .size_bytes = sizeof layout };
  char *copy = tool_copy_text(name, length);
  kjit_type type = KJIT_ANY;
  bool ok = context && kjit_parse_type(context, copy, &type) == KJIT_OK &&
            kjit_get_type_layout(context, type, &layout) == KJIT_OK && layout.field_count;
  *record = (tool_record){ context, type, ok ? layout.type_bytes : 0 };
  free(copy);
  return ok;
}

static bool find_lanes(kjit_context *context, kjit_type type, tool_shape *shape)
{
  char *text = kjit_copy_type_text(context, type);
  bool ok = text && tool_split_vector(text, strlen(text), &shape->element, &shape->lanes);
  kjit_free(context, text);
  return ok;
}

bool tool_shape_of_type(kjit_context *context, kjit_type type, tool_shape *shape)
{
  kjit_type_layout layout = { .size_bytes = sizeof layout };
  shape->element = type;
  if (type < KJIT_SCALAR_COUNT) return type >= KJIT_BOOL;
  if (kjit_get_type_layout(context, type, &layout) != KJIT_OK) return false;
  if (layout.field_count) {
    shape->record = (tool_record){ context, type, layout.type_bytes };
    shape->element = KJIT_U8;
    shape->lanes = layout.type_bytes;
  } else if (!find_lanes(context, type, shape)) {
    return false;
  }
  if (shape->rank == TOOL_MAX_RANK) return false;
  shape->extents[shape->rank++] = shape->lanes;
  return true;
}

static char *leaf_text(const tool_leaf *leaf)
{
  const char *element = tool_elements[leaf->element].text;
  if (leaf->count == 1)
    return tool_format("%s: %s at byte %llu", leaf->path, element,
                       (unsigned long long)leaf->offset_bytes);
  return tool_format("%s: %llu %s at byte %llu", leaf->path, (unsigned long long)leaf->count,
                     element, (unsigned long long)leaf->offset_bytes);
}

static bool is_equal(const tool_leaf *a, const tool_leaf *b)
{
  return !strcmp(a->path, b->path) && a->element == b->element &&
         a->offset_bytes == b->offset_bytes && a->count == b->count;
}

static bool compare_leaves(tool_scanner *scanner, const tool_leaves *file,
                           const tool_leaves *struct_, const tool_record *record, int64_t size)
{
  size_t i = 0;
  while (i < file->count && i < struct_->count && is_equal(&file->items[i], &struct_->items[i]))
    i++;
  if (i == file->count && i == struct_->count && size == record->size_bytes) return true;
  if (i == file->count && i == struct_->count)
    return tool_scan_fail(scanner, scanner->at,
                          "an element of the file has %lld bytes, but the struct has %u; create "
                          "the numpy dtype with align=True, which uses the layout of C",
                          (long long)size, record->size_bytes);
  char *has = i < file->count ? leaf_text(&file->items[i]) : tool_copy_text("nothing more", 12);
  char *wants =
    i < struct_->count ? leaf_text(&struct_->items[i]) : tool_copy_text("nothing more", 12);
  tool_scan_fail(scanner, scanner->at,
                 "the elements of the file do not match this struct: the file has %s, but the "
                 "struct has %s (a numpy dtype with align=True uses the layout of C)",
                 has, wants);
  free(has);
  free(wants);
  return false;
}

bool tool_take_record(tool_scanner *scanner, tool_array *array, const tool_leaves *leaves,
                      const tool_record *record)
{
  tool_leaves own = tool_list_leaves(record);
  bool ok = compare_leaves(scanner, leaves, &own, record, array->lanes);
  if (ok) array->record = *record;
  tool_destroy_leaves(&own);
  return ok;
}

/* ---- NumPy's description ---- */

static char *append(char *text, char *more)
{
  char *longer = tool_format("%s%s", text, more);
  free(text);
  free(more);
  return longer;
}

static char *shape_text(const field *f)
{
  if (!f->given.rank && f->lanes == 1) return tool_copy_text("", 0);
  char *text = tool_copy_text(", (", 3);
  for (uint32_t d = 0; d < f->given.rank; d++)
    text = append(text, tool_format("%lld, ", (long long)f->given.shape[d]));
  if (f->lanes > 1) text = append(text, tool_format("%u, ", f->lanes));
  return append(text, tool_copy_text(")", 1));
}

static char *describe(kjit_context *context, kjit_type type, uint32_t size_bytes)
{
  field f;
  uint64_t end = 0;
  char *text = tool_copy_text("[", 1);
  for (uint32_t i = 0; get_field(context, type, i, &f); i++) {
    if (f.offset_bytes > end)
      text =
        append(text, tool_format("('', '|V%llu'), ", (unsigned long long)(f.offset_bytes - end)));
    char *element =
      f.is_struct
        ? describe(context, f.given.type, f.size_bytes)
        : tool_format("'%s'", tool_elements[f.lane].numpy ? tool_elements[f.lane].numpy : "<u2");
    char *shape = shape_text(&f);
    text = append(text, tool_format("('%s', %s%s), ", f.given.name, element, shape));
    free(element);
    free(shape);
    end = f.offset_bytes + element_count(&f.given) * f.size_bytes;
  }
  if (size_bytes > end)
    text = append(text, tool_format("('', '|V%llu'), ", (unsigned long long)(size_bytes - end)));
  return append(text, tool_copy_text("]", 1));
}

char *tool_record_description(const tool_record *record)
{
  return describe(record->context, record->type, record->size_bytes);
}

/* ---- text ---- */

enum { MOST_PRINTED = 16 };

static void print_struct(FILE *to, kjit_context *context, kjit_type type, const char *bytes);

static void print_field(FILE *to, kjit_context *context, const field *f, const char *bytes)
{
  uint64_t count = element_count(&f->given) * f->lanes;
  bool is_list = f->given.rank || f->lanes > 1;
  if (is_list) fputc('[', to);
  for (uint64_t i = 0; i < count; i++) {
    char text[TOOL_ELEMENT_TEXT];
    if (i) fputs(", ", to);
    if (i == MOST_PRINTED) {
      fputs("...", to);
      break;
    }
    if (f->is_struct) {
      print_struct(to, context, f->given.type, bytes + i * f->size_bytes);
      continue;
    }
    tool_element_text(f->lane, bytes + i * (f->size_bytes / f->lanes), text);
    fputs(text, to);
  }
  if (is_list) fputc(']', to);
}

static void print_struct(FILE *to, kjit_context *context, kjit_type type, const char *bytes)
{
  field f;
  fputc('{', to);
  for (uint32_t i = 0; get_field(context, type, i, &f); i++) {
    if (i) fputs(", ", to);
    print_field(to, context, &f, bytes + f.offset_bytes);
  }
  fputc('}', to);
}

void tool_print_record(FILE *to, const tool_record *record, const void *bytes)
{
  print_struct(to, record->context, record->type, bytes);
}

/* ---- views of fields ---- */

static bool find_field(tool_scanner *scanner, const tool_array *view, field *f)
{
  size_t length = tool_name_length(scanner);
  uint32_t count = field_count(view->record.context, view->record.type);
  for (uint32_t i = 0; i < count; i++) {
    if (!get_field(view->record.context, view->record.type, i, f)) break;
    if (strlen(f->given.name) != length || memcmp(f->given.name, scanner->at, length) != 0)
      continue;
    scanner->at += length;
    return true;
  }
  char *name = kjit_copy_type_text(view->record.context, view->record.type);
  tool_scan_fail(scanner, scanner->at, "the struct %s has no field '%.*s'", name ? name : "",
                 (int)length, scanner->at);
  kjit_free(view->record.context, name);
  return false;
}

static bool add_dimension(tool_scanner *scanner, tool_array *view, int64_t extent, int64_t stride)
{
  if (view->rank == TOOL_MAX_RANK)
    return tool_scan_fail(scanner, scanner->at, "an array has at most %d dimensions",
                          TOOL_MAX_RANK);
  view->shape[view->rank] = extent;
  view->strides[view->rank++] = stride;
  return true;
}

static bool add_extents(tool_scanner *scanner, tool_array *view, const field *f, int64_t size)
{
  int64_t stride = (int64_t)element_count(&f->given) * size;
  for (uint32_t d = 0; d < f->given.rank; d++) {
    stride /= f->given.shape[d];
    if (!add_dimension(scanner, view, f->given.shape[d], stride)) return false;
  }
  return true;
}

bool tool_scan_field(tool_scanner *scanner, tool_array *view)
{
  field f;
  const char *at = scanner->at;
  kjit_context *context = view->record.context;
  if (!find_field(scanner, view, &f)) return false;
  view->rank--; /* the last dimension, which contains the struct's bytes */
  view->offset += f.offset_bytes;
  view->lanes = 0;
  view->record = (tool_record){ 0 };
  if (!add_extents(scanner, view, &f, f.size_bytes)) return false;
  if (f.is_struct) {
    view->lanes = f.size_bytes;
    view->record = (tool_record){ context, f.given.type, f.size_bytes };
    return add_dimension(scanner, view, f.size_bytes, 1);
  }
  int64_t size = tool_elements[f.lane].size_bytes;
  bool is_aligned = view->offset % size == 0;
  for (uint32_t d = 0; d < view->rank; d++) is_aligned = is_aligned && view->strides[d] % size == 0;
  if (!is_aligned)
    return tool_scan_fail(scanner, at,
                          "this field of a packed struct is not aligned and has no view");
  view->element = f.lane;
  view->offset /= size;
  for (uint32_t d = 0; d < view->rank; d++) view->strides[d] /= size;
  return f.lanes == 1 || add_dimension(scanner, view, f.lanes, 1);
}
