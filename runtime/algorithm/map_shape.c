/* Shapes of maps: core axes named by a signature, broadcasting, and the loops. The loops are the
 * axes ordered by the memory of the first result and merged if they are contiguous in all arrays,
 * so that contiguous arrays of any rank need one loop. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "algorithm/map.h"

static const char *shape_text(ka_map *map, const int64_t *shape, uint32_t rank)
{
  kj_arena *arena = &map->call->arena;
  const char *text = "";
  for (uint32_t i = 0; i < rank; i++)
    text = kj_format(arena, "%s%s%lld", text, i ? ", " : "", (long long)shape[i]);
  return kj_format(arena, "(%s%s)", text, rank == 1 ? "," : "");
}

static uint32_t loop_rank(const ka_mapped *mapped)
{
  return mapped->operand.rank - mapped->core_rank;
}

/* ---- signatures ---- */

typedef struct reader {
  ka_map *map;
  const char *text, *at;
} reader;

static _Noreturn void refuse_signature(const reader *r, const char *expected)
{
  ka_fail(r->map->call, KJIT_ERROR_SYNTAX,
          KJ_OPTION("signature") ": expected %s at character %zu of \"%s\"", expected,
          (size_t)(r->at - r->text) + 1, r->text);
}

static bool skip(reader *r, const char *token)
{
  while (*r->at == ' ') r->at++;
  size_t length = strlen(token);
  if (strncmp(r->at, token, length) != 0) return false;
  r->at += length;
  return true;
}

static uint32_t read_size(reader *r)
{
  ka_map *map = r->map;
  while (*r->at == ' ') r->at++;
  const char *start = r->at;
  while (isalnum((unsigned char)*r->at) || *r->at == '_') r->at++;
  size_t length = (size_t)(r->at - start);
  if (!length) refuse_signature(r, "a name or a number");
  for (uint32_t i = 0; i < map->size_count; i++)
    if (map->sizes[i].length == length && !memcmp(map->sizes[i].name, start, length)) return i;
  if (map->size_count == KA_MOST_SIZES)
    ka_fail(map->call, KJIT_ERROR_UNSUPPORTED, KJ_OPTION("signature") ": more than %d sizes",
            KA_MOST_SIZES);
  ka_size *size = &map->sizes[map->size_count];
  *size = (ka_size){ start, length, -1 };
  if (isdigit((unsigned char)*start)) {
    char *end = NULL;
    size->extent = strtoll(start, &end, 10);
    if (end != r->at) refuse_signature(r, "a name or a number");
  }
  return map->size_count++;
}

static void read_core(reader *r, ka_mapped *mapped)
{
  if (!skip(r, "(")) refuse_signature(r, "`(`");
  for (mapped->core_rank = 0; !skip(r, ")");) {
    if (mapped->core_rank && !skip(r, ",")) refuse_signature(r, "`,` or `)`");
    if (mapped->core_rank == KA_MOST_CORE) refuse_signature(r, "`)`");
    mapped->core[mapped->core_rank++] = read_size(r);
  }
}

static void read_cores(reader *r, ka_mapped *mapped, size_t count, const char *what)
{
  for (size_t i = 0; i < count; i++) {
    if (i && !skip(r, ","))
      ka_fail(r->map->call, KJIT_ERROR_ARGUMENT,
              KJ_OPTION("signature") " \"%s\" has %zu %s, but the call has %zu", r->text, i, what,
              count);
    read_core(r, &mapped[i]);
  }
  if (skip(r, ","))
    ka_fail(r->map->call, KJIT_ERROR_ARGUMENT,
            KJ_OPTION("signature") " \"%s\" has more than the call's %zu %s", r->text, count, what);
}

void ka_read_signature(ka_map *map, const char *text)
{
  reader r = { map, text, text };
  read_cores(&r, map->operands, map->operand_count, "operands");
  if (!skip(&r, "->")) refuse_signature(&r, "`->`");
  read_cores(&r, map->results, map->result_count, "results");
  if (!skip(&r, "") || *r.at) refuse_signature(&r, "the end");
}

/* Compares the last extents of the operand with the sizes in the signature. A size that is not
 * known yet becomes the operand's extent. */
static void fit_core(ka_map *map, ka_mapped *mapped)
{
  ka_operand *operand = &mapped->operand;
  if (!mapped->core_rank) return;
  if (operand->function)
    ka_fail(map->call, KJIT_ERROR_UNSUPPORTED,
            "`%s` is a function, but an operand with core dimensions must be an array",
            operand->name);
  if (operand->rank < mapped->core_rank)
    ka_fail(map->call, KJIT_ERROR_ARGUMENT, "`%s` has %u axes, but %u core dimensions",
            operand->name, operand->rank, mapped->core_rank);
  for (uint32_t i = 0; i < mapped->core_rank; i++) {
    ka_size *size = &map->sizes[mapped->core[i]];
    int64_t extent = operand->shape[loop_rank(mapped) + i];
    if (size->extent < 0) size->extent = extent;
    if (size->extent != extent)
      ka_fail(map->call, KJIT_ERROR_ARGUMENT,
              "core dimension %u of `%s` has extent %lld, but `%.*s` in the signature stands for "
              "the extent %lld",
              i, operand->name, (long long)extent, (int)size->length, size->name,
              (long long)size->extent);
  }
}

/* ---- broadcasting ---- */

static void place(ka_map *map)
{
  uint32_t next = 0;
  for (size_t i = 0; i < map->operand_count; i++) {
    ka_mapped *mapped = &map->operands[i];
    bool is_next = map->is_outer && mapped != map->where;
    mapped->first = is_next ? next : map->rank - loop_rank(mapped);
    next += loop_rank(mapped);
  }
}

/* Broadcasts the shape of the loops with the operand's shape. */
static void widen(ka_map *map, const ka_mapped *mapped)
{
  for (uint32_t i = 0; i < loop_rank(mapped); i++) {
    int64_t *extent = &map->shape[mapped->first + i], own = mapped->operand.shape[i];
    if (*extent == 1) *extent = own;
    if (own != 1 && own != *extent)
      ka_fail(map->call, KJIT_ERROR_ARGUMENT,
              "`%s` has the shape %s, which does not broadcast with %s", mapped->operand.name,
              shape_text(map, mapped->operand.shape, mapped->operand.rank),
              shape_text(map, map->shape, map->rank));
  }
}

void ka_broadcast(ka_map *map)
{
  map->rank = 0;
  for (size_t i = 0; i < map->operand_count; i++) {
    ka_mapped *mapped = &map->operands[i];
    fit_core(map, mapped);
    uint32_t rank = loop_rank(mapped);
    if (map->is_outer && mapped != map->where) map->rank += rank;
    else if (rank > map->rank) map->rank = rank;
  }
  if (map->rank > KJ_MAX_RANK)
    ka_fail(map->call, KJIT_ERROR_ARGUMENT, "the results would have %u axes; the maximum is %d",
            map->rank, KJ_MAX_RANK);
  for (uint32_t i = 0; i < map->rank; i++) map->shape[i] = 1;
  place(map);
  for (size_t i = 0; i < map->operand_count; i++) widen(map, &map->operands[i]);
}

uint32_t ka_result_shape(const ka_map *map, size_t index, int64_t shape[KJ_MAX_RANK])
{
  const ka_mapped *result = &map->results[index];
  if (map->rank + result->core_rank > KJ_MAX_RANK)
    ka_fail(map->call, KJIT_ERROR_ARGUMENT, "r%zu would have %u axes; the maximum is %d", index,
            map->rank + result->core_rank, KJ_MAX_RANK);
  memcpy(shape, map->shape, map->rank * sizeof *shape);
  for (uint32_t i = 0; i < result->core_rank; i++) {
    const ka_size *size = &map->sizes[result->core[i]];
    if (size->extent < 0)
      ka_fail(map->call, KJIT_ERROR_ARGUMENT,
              "no operand determines the size %.*s in the signature, which r%zu needs",
              (int)size->length, size->name, index);
    shape[map->rank + i] = size->extent;
  }
  return map->rank + result->core_rank;
}

void ka_fit_results(ka_map *map)
{
  const ka_mapped *lead = &map->results[0];
  uint32_t rank = map->rank, lead_rank;
  int64_t shape[KJ_MAX_RANK];
  memcpy(shape, map->shape, sizeof shape);
  for (size_t i = 0; i < map->result_count; i++) fit_core(map, &map->results[i]);
  lead_rank = loop_rank(lead);
  bool fits = lead_rank >= rank && (!map->is_outer || lead_rank == rank);
  for (uint32_t i = 0; fits && i < rank; i++) {
    int64_t extent = lead->operand.shape[lead_rank - rank + i];
    fits = extent == shape[i] || (shape[i] == 1 && !map->is_outer);
  }
  if (!fits)
    ka_fail(map->call, KJIT_ERROR_ARGUMENT,
            "`r0` has the shape %s, but the operands broadcast to %s",
            shape_text(map, lead->operand.shape, lead_rank), shape_text(map, shape, rank));
  map->rank = lead_rank;
  memcpy(map->shape, lead->operand.shape, sizeof shape);
  for (size_t i = 1; i < map->result_count; i++) {
    const ka_mapped *result = &map->results[i];
    bool is_same = loop_rank(result) == lead_rank &&
                   !memcmp(result->operand.shape, map->shape, lead_rank * sizeof *shape);
    if (!is_same)
      ka_fail(map->call, KJIT_ERROR_ARGUMENT, "`%s` has the shape %s, but `r0` has %s",
              result->operand.name, shape_text(map, result->operand.shape, loop_rank(result)),
              shape_text(map, map->shape, lead_rank));
  }
  place(map);
}

/* ---- the loops ---- */

static void find_strides(const ka_map *map, ka_mapped *mapped)
{
  const ka_operand *operand = &mapped->operand;
  for (uint32_t i = 0; i < loop_rank(mapped); i++) {
    uint32_t axis = mapped->first + i;
    if (operand->shape[i] == 1 || map->shape[axis] == 1) continue;
    mapped->strides[axis] = operand->function ? 0 : operand->view.strides[i];
    mapped->uses[axis] = operand->function || mapped->strides[axis];
  }
}

static int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

/* Orders the axes with more than one element by descending stride of the first result that is an
 * array. If no result is an array, keeps the original order. Axes with equal strides also stay in
 * order. */
static uint32_t order_axes(const ka_map *map, uint32_t *axes)
{
  const ka_mapped *lead = NULL;
  uint32_t count = 0;
  for (size_t i = map->result_count; i-- > 0;)
    if (!map->results[i].operand.function) lead = &map->results[i];
  for (uint32_t axis = 0; axis < map->rank; axis++) {
    uint32_t at = count;
    if (map->shape[axis] == 1) continue;
    while (lead && at > 0 &&
           magnitude(lead->strides[axes[at - 1]]) < magnitude(lead->strides[axis])) {
      axes[at] = axes[at - 1];
      at--;
    }
    axes[at] = axis;
    count++;
  }
  return count;
}

static bool lies_together(const ka_mapped *mapped, uint32_t outer, uint32_t inner, int64_t extent)
{
  if (mapped->operand.function) return !mapped->uses[outer] && !mapped->uses[inner];
  return mapped->strides[outer] == mapped->strides[inner] * extent;
}

static bool can_join(const ka_map *map, uint32_t outer, uint32_t inner)
{
  for (size_t i = 0; i < map->result_count; i++)
    if (!lies_together(&map->results[i], outer, inner, map->shape[inner])) return false;
  for (size_t i = 0; i < map->operand_count; i++)
    if (!lies_together(&map->operands[i], outer, inner, map->shape[inner])) return false;
  return true;
}

/* Creates the view of an operand or result for the loops. If a result that the func writes has no
 * core axes, the func gets a view of one element. */
static void view_mapped(ka_map *map, ka_mapped *mapped, bool is_written_by_func)
{
  ka_operand *operand = &mapped->operand;
  int64_t extents[KJ_MAX_RANK + 1], strides[KJ_MAX_RANK + 1];
  uint32_t rank = 0;
  if (operand->function || operand->is_value) return;
  for (uint32_t i = 0; i < map->loop_count; i++) {
    if (!mapped->uses[map->last_axis[i]]) continue;
    extents[rank] = map->extents[i];
    strides[rank++] = mapped->strides[map->last_axis[i]];
  }
  for (uint32_t i = loop_rank(mapped); i < operand->rank; i++) {
    extents[rank] = operand->shape[i];
    strides[rank++] = operand->view.strides[i];
  }
  if (!rank || (is_written_by_func && !mapped->core_rank)) {
    if (rank == KJ_MAX_RANK)
      ka_fail(map->call, KJIT_ERROR_UNSUPPORTED,
              "`%s` has %d axes, which is too many for a call with " KJ_OPTION("signature"),
              operand->name, KJ_MAX_RANK);
    extents[rank] = strides[rank] = 1;
    rank++;
  }
  ka_view_operand(map->call, operand, extents, strides, rank);
}

void ka_find_loops(ka_map *map)
{
  uint32_t axes[KJ_MAX_RANK], count;
  for (size_t i = 0; i < map->result_count; i++) find_strides(map, &map->results[i]);
  for (size_t i = 0; i < map->operand_count; i++) find_strides(map, &map->operands[i]);
  count = order_axes(map, axes);
  for (uint32_t i = 0; i < KJ_MAX_RANK; i++) map->loop_of[i] = KA_NO_AXIS;
  for (uint32_t i = 0; i < count; i++) {
    bool is_joined = i && can_join(map, axes[i - 1], axes[i]);
    if (!is_joined) map->extents[map->loop_count++] = 1;
    map->extents[map->loop_count - 1] *= map->shape[axes[i]];
    map->last_axis[map->loop_count - 1] = axes[i];
    map->loop_of[axes[i]] = map->loop_count - 1;
  }
  for (size_t i = 0; i < map->result_count; i++)
    view_mapped(map, &map->results[i], map->has_signature);
  for (size_t i = 0; i < map->operand_count; i++) view_mapped(map, &map->operands[i], false);
}
