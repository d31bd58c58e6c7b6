#include <driver/literal.h>

#include <stdlib.h>
#include <string.h>

typedef struct item {
  tool_value value;
  const char *at; /* position in the text */
} item;

typedef struct literal {
  tool_scanner *scanner;
  tool_shape shape;
  bool has_extent[TOOL_MAX_RANK]; /* true if the first list at this depth has ended, so that the
                                     extent is known */
  item *items;                    /* items in row-major order; owned */
  size_t count, capacity;
} literal;

static bool append_item(literal *l, const item *i)
{
  if (l->count == l->capacity) {
    l->capacity = l->capacity ? 2 * l->capacity : 16;
    item *items = tool_allocate(l->capacity * sizeof *items);
    if (l->count) memcpy(items, l->items, l->count * sizeof *items);
    free(l->items);
    l->items = items;
  }
  l->items[l->count++] = *i;
  return true;
}

/* Sets the rank: the number of lists that enclose a number or an empty list. */
static bool set_rank(literal *l, const char *at, uint32_t depth)
{
  if (!l->shape.rank) l->shape.rank = depth;
  return l->shape.rank == depth ||
         tool_scan_fail(l->scanner, at, "expected a list, as in the preceding lists");
}

static bool scan_list(literal *l, uint32_t depth);

static bool scan_item(literal *l, uint32_t depth)
{
  tool_scanner *scanner = l->scanner;
  tool_skip_blanks(scanner);
  if (*scanner->at == '[') {
    bool is_deep = depth == TOOL_MAX_RANK || (l->shape.rank && depth >= l->shape.rank);
    if (is_deep)
      return tool_scan_fail(scanner, scanner->at,
                            depth == TOOL_MAX_RANK
                              ? "an array has at most 8 dimensions"
                              : "expected a number, as in the preceding lists");
    return scan_list(l, depth);
  }
  item i = { .at = scanner->at };
  if (!*scanner->at || !tool_is_value(scanner))
    return tool_expected(scanner, "a number or '[' in the list");
  return set_rank(l, i.at, depth) && tool_scan_value(scanner, &i.value) && append_item(l, &i);
}

/* Scans the list at this depth, starting at '['. */
static bool scan_list(literal *l, uint32_t depth)
{
  tool_scanner *scanner = l->scanner;
  const char *at = scanner->at;
  int64_t extent = 0;
  if (!tool_expect(scanner, '[')) return false;
  while (!tool_accept(scanner, ']')) {
    if (!scan_item(l, depth + 1)) return false;
    extent++;
    if (tool_accept(scanner, ',')) continue;
    if (!tool_accept(scanner, ']')) return tool_expected(scanner, "',' or ']'");
    break;
  }
  if (!extent && !set_rank(l, at, depth + 1)) return false;
  if (l->has_extent[depth] && extent != l->shape.extents[depth])
    return tool_scan_fail(scanner, at,
                          "this list has %lld items, but the preceding lists have %lld",
                          (long long)extent, (long long)l->shape.extents[depth]);
  l->has_extent[depth] = true;
  l->shape.extents[depth] = extent;
  return true;
}

/* Finds the common type of all typed values, which must agree. */
static bool find_typed(const literal *l, kjit_type *type)
{
  *type = KJIT_ANY;
  for (size_t i = 0; i < l->count; i++) {
    kjit_type own = l->items[i].value.type;
    if (own == KJIT_ANY || own == *type) continue;
    if (*type != KJIT_ANY)
      return tool_scan_fail(l->scanner, l->items[i].at,
                            "the elements have the types %s and %s; `:as=TYPE` converts them",
                            tool_elements[*type].text, tool_elements[own].text);
    *type = own;
  }
  return true;
}

static kjit_type untyped(const literal *l)
{
  kjit_type type = l->count ? KJIT_I64 : KJIT_F64;
  for (size_t i = 0; i < l->count; i++) {
    tool_number_kind kind = l->items[i].value.number.kind;
    if (kind == TOOL_NUMBER_REAL) return KJIT_F64;
    if (kind == TOOL_NUMBER_UNSIGNED) type = KJIT_U64;
  }
  return type;
}

static bool choose_type(literal *l)
{
  tool_scanner *scanner = l->scanner;
  if (tool_accept(scanner, ':'))
    return (tool_accept_word(scanner, "as") || tool_expected(scanner, "as=TYPE")) &&
           tool_expect(scanner, '=') && tool_scan_element_type(scanner, &l->shape.element);
  if (!find_typed(l, &l->shape.element)) return false;
  if (l->shape.element == KJIT_ANY) l->shape.element = untyped(l);
  return true;
}

static bool fill(const literal *l, tool_array *array)
{
  for (size_t i = 0; i < l->count; i++) {
    const tool_number *number = &l->items[i].value.number;
    if (!tool_convert(l->scanner, l->items[i].at, number, l->shape.element)) return false;
    tool_store(l->shape.element, tool_element_number(array, i), number);
  }
  return true;
}

bool tool_scan_literal(tool_scanner *scanner, tool_array *array)
{
  literal l = { .scanner = scanner };
  bool ok =
    scan_list(&l, 0) && choose_type(&l) && tool_create_array(scanner->error, &l.shape, array);
  if (ok && !fill(&l, array)) {
    tool_destroy_memory(array->memory);
    ok = false;
  }
  free(l.items);
  return ok;
}
