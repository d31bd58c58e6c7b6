#include <driver/print.h>

#include <driver/record.h>
#include <stdlib.h>
#include <string.h>

enum { ALL_COUNT = 1000, EDGE_COUNT = 3, LINE_COLUMNS = 100 };

typedef struct printer {
  FILE *to;
  const tool_array *array;
  int64_t index[TOOL_MAX_RANK];
  bool is_short; /* true if only the first and last elements of each dimension are printed */
  int column;
} printer;

static void put(printer *p, const char *text)
{
  fputs(text, p->to);
  p->column += (int)strlen(text);
}

static void start_line(printer *p, uint32_t depth)
{
  fprintf(p->to, "\n%*s", (int)depth, "");
  p->column = (int)depth;
}

/* Prints the separator before the next element, or before the next row of a higher dimension. */
static void separate(printer *p, uint32_t d, size_t next_length)
{
  bool is_row = d + 1 == p->array->rank;
  if (!is_row || p->column + 1 + (int)next_length > LINE_COLUMNS) start_line(p, d + 1);
  else put(p, " ");
}

static void print_dimension(printer *p, uint32_t d);

static void print_struct(printer *p, uint32_t d)
{
  p->index[d] = 0;
  tool_print_record(p->to, &p->array->record, tool_element_at(p->array, p->index));
}

static void print_item(printer *p, uint32_t d, bool is_first)
{
  char text[TOOL_ELEMENT_TEXT];
  /* the last dimension contains the bytes of structs */
  if (p->array->record.context && d + 2 == p->array->rank) {
    if (!is_first) separate(p, d, 0);
    print_struct(p, d + 1);
    return;
  }
  if (d + 1 < p->array->rank) {
    if (!is_first) separate(p, d, 0);
    print_dimension(p, d + 1);
    return;
  }
  tool_array_element_text(p->array, tool_element_at(p->array, p->index), text);
  if (!is_first) separate(p, d, strlen(text));
  put(p, text);
}

static void print_dimension(printer *p, uint32_t d)
{
  int64_t extent = p->array->shape[d];
  put(p, "[");
  for (int64_t i = 0; i < extent; i++) {
    if (p->is_short && extent > 2 * EDGE_COUNT && i == EDGE_COUNT) {
      separate(p, d, 3);
      put(p, "...");
      i = extent - EDGE_COUNT;
    }
    p->index[d] = i;
    print_item(p, d, i == 0);
  }
  put(p, "]");
}

void tool_print_array(FILE *to, const char *name, const tool_array *array)
{
  printer p = { .to = to, .array = array, .is_short = tool_count(array) > ALL_COUNT };
  char *shape = tool_shape_text(array);
  bool has_rows = array->rank > 1 && tool_count(array);
  p.column = fprintf(to, "%s: %s =%s", name, shape, has_rows ? "\n" : " ");
  if (has_rows) p.column = 0;
  free(shape);
  if (tool_count(array) == 0) {
    put(&p, "[]");
  } else if (array->rank && !(array->record.context && array->rank == 1)) {
    print_dimension(&p, 0);
  } else if (array->record.context) {
    print_struct(&p, 0);
  } else {
    char text[TOOL_ELEMENT_TEXT];
    tool_array_element_text(array, tool_element_at(array, p.index), text);
    put(&p, text);
  }
  fputc('\n', to);
}
