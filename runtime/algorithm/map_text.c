/* Writes the kernel of a map. A single loop is a grid_range. Several loops are a grid_range on the
 * CPU, or if a func writes its results:
 *
 *     for i0, i1 in grid_range(v3, v4) { r0_0[i0, i1] = hosts_0(x0_0[i0], x1_0[i1]) }
 *
 * On a GPU two or more loops use map_tiles of lib/library/map.kir, where a thread reads N elements
 * before it writes them:
 *
 *     func tile(row, column, const ROWS, const COLUMNS, const N, r0_0, x0_0, x1_0) @inline {
 *       local t0: dtype(r0_0)[N]
 *       for k in range(N) @unroll {
 *         let i0 = row + k * ROWS
 *         let i1 = column + k * COLUMNS
 *         t0[k] = hosts_0(x0_0[i0], x1_0[i1])
 *       }
 *       for k in range(N) @unroll { ... r0_0[i0, i1] = t0[k] }
 *     } */
#include <string.h>

#include "algorithm/map.h"

enum {
  MOST_RANGE = 3, /* maximum number of extents of a grid_range */
  GPU_THREADS = 256,
  GPU_BLOCKS = 8, /* blocks for each multiprocessor, enough for its maximum number of threads */
  TILE = 4,       /* elements for each thread */
  LEAST_WIDE = 16
};

typedef struct writer {
  ka_map *map;
  ka_kernel kernel;
  const char *function;               /* name of the func in the source */
  const char *indices[KJ_MAX_RANK];   /* index of each loop */
  const char *extents[KJ_MAX_RANK];   /* extent parameters of the loops, for splitting a linear
                                       * index */
  const char *parameters;             /* parameters of the operands, each after a comma */
  const char **names, **result_names; /* names of operand and result funcs */
} writer;

/* ---- elements ---- */

/* Lists the loop indices of an operand, such as "i0, i2". */
static const char *list_indices(const writer *w, const ka_mapped *mapped)
{
  const char *list = "";
  for (uint32_t i = 0; i < w->map->loop_count; i++)
    if (mapped->uses[w->map->last_axis[i]])
      list = kj_format(&w->map->call->arena, "%s%s%s", list, *list ? ", " : "", w->indices[i]);
  return list;
}

/* Lists the indices for an operand func, such as "i64(i0), 0i64". */
static const char *list_axes(const writer *w, const ka_mapped *mapped)
{
  kj_arena *arena = &w->map->call->arena;
  const char *list = "";
  for (uint32_t i = 0; i < mapped->operand.rank; i++) {
    uint32_t axis = mapped->first + i, loop = w->map->loop_of[axis];
    bool is_used = mapped->uses[axis] && loop != KA_NO_AXIS;
    list = kj_format(arena, "%s%si64(%s)", list, i ? ", " : "", is_used ? w->indices[loop] : "0");
  }
  return list;
}

static const char *call_text(const writer *w, const ka_mapped *mapped, const char *name,
                             const char *value)
{
  kj_arena *arena = &w->map->call->arena;
  const char *axes = list_axes(w, mapped);
  const char *inside =
    kj_format(arena, "%s%s%s%s", axes, *value && *axes ? ", " : "", value, mapped->element);
  return kj_format(arena, "%s(%s)", name, *inside == ',' ? inside + 2 : inside);
}

/* Returns the expression of an element: an array element, a view if there are core axes, or the
 * call of an operand func. */
static const char *element_text(const writer *w, const ka_mapped *mapped, const char *name)
{
  kj_arena *arena = &w->map->call->arena;
  const char *own = mapped->element + 2;
  bool is_view = mapped->core_rank || (mapped->operand.is_output && w->map->has_signature);
  if (mapped->operand.is_value) return own;
  if (mapped->operand.function) return call_text(w, mapped, name, "");
  const char *list = list_indices(w, mapped);
  if (!*list && is_view) return own;
  return kj_format(arena, "%s[%s]", own, *list ? list : "0");
}

/* Returns the call of the func, such as hosts_0(x0_0[i0], ...). */
static const char *value_text(const writer *w)
{
  kj_arena *arena = &w->map->call->arena;
  const ka_map *map = w->map;
  const char *list = "";
  for (size_t i = 0; i < ka_argument_count(map); i++)
    list = kj_format(arena, "%s%s%s", list, i ? ", " : "",
                     element_text(w, &map->operands[i], w->names[i]));
  for (size_t i = 0; i < map->result_count && map->has_signature; i++)
    list =
      kj_format(arena, "%s%s%s", list, *list ? ", " : "", element_text(w, &map->results[i], ""));
  return kj_format(arena, "%s(%s)", w->function, list);
}

static void write_result(writer *w, size_t index, const char *value)
{
  const ka_mapped *result = &w->map->results[index];
  const char *name = w->result_names[index];
  if (result->operand.function)
    kj_append_format(w->kernel.body, "    %s\n", call_text(w, result, name, value));
  else kj_append_format(w->kernel.body, "    %s = %s\n", element_text(w, result, ""), value);
}

/* Writes the statements for one element. */
static void write_element(writer *w)
{
  const ka_map *map = w->map;
  const char *value = value_text(w), *names = "";
  if (map->where)
    kj_append_format(w->kernel.body, "    if %s {\n",
                     element_text(w, map->where, w->names[map->operand_count - 1]));
  if (map->has_signature) {
    kj_append_format(w->kernel.body, "    %s\n", value);
  } else if (map->result_count == 1) {
    write_result(w, 0, value);
  } else {
    for (size_t i = 0; i < map->result_count; i++)
      names = kj_format(&map->call->arena, "%s%sv%zu", names, i ? ", " : "", i);
    kj_append_format(w->kernel.body, "    let %s = %s\n", names, value);
    for (size_t i = 0; i < map->result_count; i++)
      write_result(w, i, kj_format(&map->call->arena, "v%zu", i));
  }
  if (map->where) kj_append_text(w->kernel.body, "    }\n");
}

/* ---- indices ---- */

/* Writes the statements that split `linear` into the indices of loops 0 to count - 1; the last loop
 * varies fastest. */
static void divide(writer *w, const char *linear, uint32_t count)
{
  kj_arena *arena = &w->map->call->arena;
  const char *rest = linear;
  for (uint32_t i = count; i-- > 0;) {
    w->indices[i] = kj_format(arena, "i%u", i);
    if (i == 0) kj_append_format(w->kernel.body, "    let i0 = %s\n", rest);
    else
      kj_append_format(w->kernel.body, "    let i%u = %s %% %s\n    let q%u = %s // %s\n", i, rest,
                       w->extents[i], i, rest, w->extents[i]);
    rest = kj_format(arena, "q%u", i);
  }
}

static uint64_t count_of(const ka_map *map, uint32_t first, uint32_t end)
{
  uint64_t count = 1;
  for (uint32_t i = first; i < end; i++) count *= (uint64_t)map->extents[i];
  return count;
}

/* Adds parameters for the extents of the loops from `first` to `end` - 1. */
static const char *use_extents(writer *w, uint32_t first, uint32_t end)
{
  const char *list = "";
  for (uint32_t i = first; i < end; i++) {
    w->extents[i] = ka_use_count(&w->kernel, (uint64_t)w->map->extents[i]);
    list = kj_format(&w->map->call->arena, "%s, %s", list, w->extents[i]);
  }
  return list;
}

/* ---- a grid_range ---- */

static void launch_range(writer *w)
{
  ka_map *map = w->map;
  kj_arena *arena = &map->call->arena;
  uint32_t outer = map->loop_count > MOST_RANGE ? map->loop_count - MOST_RANGE + 1 : 0,
           inner = outer ? outer : 0;
  const char *vars = "", *extents = "";
  if (outer) {
    (void)use_extents(w, 1, outer);
    vars = "g";
    extents = ka_use_count(&w->kernel, count_of(map, 0, outer));
  }
  for (uint32_t i = inner; i < map->loop_count; i++) {
    w->indices[i] = kj_format(arena, "i%u", i);
    w->extents[i] = ka_use_count(&w->kernel, (uint64_t)map->extents[i]);
    vars = kj_format(arena, "%s%s%s", vars, *vars ? ", " : "", w->indices[i]);
    extents = kj_format(arena, "%s%s%s", extents, *extents ? ", " : "", w->extents[i]);
  }
  if (!*vars) {
    vars = "g";
    extents = "1";
  }
  kj_append_format(w->kernel.body, "for %s in grid_range(%s) {\n", vars, extents);
  if (outer) divide(w, "g", outer);
  write_element(w);
  ka_launch(&w->kernel, 0, 0, "%s  }", kj_keep_text(arena, w->kernel.body));
}

/* ---- tiles ---- */

typedef struct tiling {
  uint32_t wide;
  bool in_columns;
  uint64_t blocks;
} tiling;

static tiling choose_tiling(const ka_map *map)
{
  uint64_t columns = (uint64_t)map->extents[map->loop_count - 1],
           rows = count_of(map, 0, map->loop_count - 1);
  uint64_t most = (uint64_t)GPU_BLOCKS * ka_core_count(map->call);
  tiling t = { .wide = GPU_THREADS, .in_columns = columns < (uint64_t)LEAST_WIDE * TILE };
  if (t.in_columns) {
    for (t.wide = 1; t.wide < columns; t.wide *= 2) {}
  } else {
    while (t.wide > LEAST_WIDE && (uint64_t)t.wide * TILE > columns) t.wide /= 2;
  }
  uint64_t across = t.in_columns ? 1 : (columns + t.wide * TILE - 1) / (t.wide * TILE),
           high = GPU_THREADS / t.wide * (t.in_columns ? TILE : 1), down = (rows + high - 1) / high,
           enough = (most + across - 1) / across;
  t.blocks = across * (down < enough ? down : enough);
  return t;
}

/* Writes the func of a tile. If `waits` is true, a thread stores its results in local arrays until
 * it has read all its operands. */
static void write_tile(writer *w, bool waits)
{
  ka_map *map = w->map;
  kj_arena *arena = &map->call->arena;
  uint32_t last = map->loop_count - 1;
  const char *column = kj_format(arena, "    let i%u = column + k * COLUMNS\n", last);
  const char *value, *names = "";
  kj_append_text(w->kernel.body, "    let row_k = row + k * ROWS\n");
  divide(w, "row_k", last);
  kj_append_text(w->kernel.body, column);
  w->indices[last] = kj_format(arena, "i%u", last);
  if (!waits) {
    write_element(w);
    return;
  }
  value = value_text(w);
  for (size_t i = 0; i < map->result_count; i++)
    names = kj_format(arena, "%s%sv%zu", names, i ? ", " : "", i);
  kj_append_format(w->kernel.body, "    let %s = %s\n", names, value);
  for (size_t i = 0; i < map->result_count; i++)
    kj_append_format(w->kernel.body, "    t%zu[k] = v%zu\n", i, i);
  kj_append_text(w->kernel.body,
                 "  }\n  for k in range(N) @unroll {\n    let row_k = row + k * ROWS\n");
  divide(w, "row_k", last);
  kj_append_text(w->kernel.body, column);
  for (size_t i = 0; i < map->result_count; i++) write_result(w, i, kj_format(arena, "t%zu[k]", i));
}

static void launch_tiles(writer *w)
{
  ka_map *map = w->map;
  kj_arena *arena = &map->call->arena;
  tiling t = choose_tiling(map);
  bool waits = !map->where;
  for (size_t i = 0; i < map->result_count; i++)
    if (map->results[i].operand.function) waits = false;
  const char *parameters =
               kj_format(arena, "%s%s", w->parameters, use_extents(w, 1, map->loop_count - 1)),
             *rows = ka_use_count(&w->kernel, count_of(map, 0, map->loop_count - 1)),
             *columns = ka_use_count(&w->kernel, (uint64_t)map->extents[map->loop_count - 1]),
             *wide = ka_use_constant(&w->kernel, t.wide);
  kj_append_format(w->kernel.body,
                   "func tile(row, column, const ROWS, const COLUMNS, const N%s) @inline {\n",
                   parameters);
  for (size_t i = 0; i < map->result_count && waits; i++)
    kj_append_format(w->kernel.body, "  local t%zu: dtype(%s)[N]\n", i,
                     map->results[i].element + 2);
  kj_append_text(w->kernel.body, "  for k in range(N) @unroll {\n");
  write_tile(w, waits);
  kj_append_text(w->kernel.body, "  }\n}\n");
  kj_append_text(w->kernel.funcs, kj_keep_text(arena, w->kernel.body));
  ka_launch(&w->kernel, GPU_THREADS, t.blocks,
            "map_tiles(bind_back(tile%s), %s, %s, THREADS, %s, %d, %s)", parameters, rows, columns,
            wide, TILE, t.in_columns ? "true" : "false");
}

/* ---- the kernel ---- */

static const char *use_mapped(writer *w, ka_mapped *mapped)
{
  const ka_operand *operand = &mapped->operand;
  mapped->element = ka_use_arrays(&w->kernel, operand);
  w->parameters = kj_format(&w->map->call->arena, "%s%s", w->parameters, mapped->element);
  if (!operand->function) return "";
  return ka_use_operand_function(&w->kernel, operand);
}

void ka_launch_map(ka_map *map)
{
  kj_arena *arena = &map->call->arena;
  writer w = { .map = map, .parameters = "" };
  ka_begin_kernel(map->call, "map", &w.kernel);
  w.names = KJ_NEW_ARRAY(arena, const char *, map->operand_count + 1);
  w.result_names = KJ_NEW_ARRAY(arena, const char *, map->result_count);
  for (size_t i = 0; i < map->result_count; i++)
    w.result_names[i] = use_mapped(&w, &map->results[i]);
  for (size_t i = 0; i < map->operand_count; i++) w.names[i] = use_mapped(&w, &map->operands[i]);
  w.function =
    ka_use_function(&w.kernel, map->function,
                    ka_argument_count(map) + (map->has_signature ? map->result_count : 0),
                    map->has_signature ? "a part of each operand and result" : KA_ELEMENTS);
  bool is_range = map->loop_count <= 1 || map->has_signature || ka_is_cpu(map->call);
  if (is_range) launch_range(&w);
  else launch_tiles(&w);
}
