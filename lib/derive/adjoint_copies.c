/* Adjoint kernels: thread-local sums. An inner loop can load the same few elements in every
 * iteration of the grid loop, for example a filter's weights. Atomic additions to these elements
 * would then be slow. Each thread therefore sums their derivatives in a local array, the copy, and
 * adds the copy to memory once. */
#include "derive/adjoint.h"

/* ---- plans ---- */

/* Returns whether the indices of the access have constant bounds, as in an inner loop with constant
 * bounds. */
static bool has_box(const kd_site *site)
{
  bool has = site->is_whole && !site->is_uniform && !site->is_before;
  for (uint32_t k = 0; has && k < site->rank; k++) {
    const kd_index *index = &site->indices[k];
    has = index->is_known && !index->variable && !index->symbol && !index->period &&
          !index->is_round && index->least >= 0 && index->most < INT32_MAX;
  }
  return has;
}

bool kd_is_copied(const kd_array_plan *plan, const kd_site *site)
{
  bool is_copied = plan->copied && has_box(site);
  for (uint32_t k = 0; is_copied && k < site->rank; k++)
    is_copied = site->indices[k].least >= plan->least[k] && site->indices[k].most <= plan->most[k];
  return is_copied;
}

static void take_box(kd_array_plan *plan, const kd_site *site)
{
  int64_t least[KJ_MAX_RANK], most[KJ_MAX_RANK];
  uint64_t count = 1;
  for (uint32_t k = 0; k < site->rank; k++) {
    const kd_index *index = &site->indices[k];
    bool is_less = !plan->copied || index->least < plan->least[k],
         is_more = !plan->copied || index->most > plan->most[k];
    least[k] = is_less ? index->least : plan->least[k];
    most[k] = is_more ? index->most : plan->most[k];
    uint64_t extent = (uint64_t)(most[k] - least[k]) + 1;
    if (extent > KD_MOST_COPIED || (count *= extent) > KD_MOST_COPIED) return;
  }
  for (uint32_t k = 0; k < site->rank; k++) {
    plan->least[k] = least[k];
    plan->most[k] = most[k];
  }
  plan->copied = (uint32_t)count;
}

void kd_plan_copies(kd_array_plan *plan, const kd_sites *loads)
{
  for (size_t i = 0; i < loads->count; i++)
    if (has_box(loads->items[i])) take_box(plan, loads->items[i]);
}

/* ---- sums ---- */

static kt_expr *binary(kd_derivation *d, kjit_op op, kt_expr *x, kt_expr *y)
{
  return kt_make_own_binary(d->s, op, x, y, d->location);
}

static kt_expr *shifted(kd_derivation *d, kjit_op op, kt_expr *index, int64_t by)
{
  index = kt_convert(d->s, index, KJIT_INDEX, d->location);
  return by ? binary(d, op, index, kt_new_integer(d->s, KJIT_INDEX, by, d->location)) : index;
}

static kt_var *make_copy(kd_derivation *d, const kd_array_plan *plan)
{
  const ki_type_info *of = ki_type(d->c->types, plan->array->type);
  ki_type_info info = { .layout = KJIT_LAYOUT_C,
                        .space = KJ_SPACE_LOCAL,
                        .is_static = true,
                        .element = kd_wide_type(d, of->element),
                        .rank = of->rank };
  for (uint32_t k = 0; k < of->rank; k++) info.extents[k] = plan->most[k] - plan->least[k] + 1;
  kt_var *copy =
    kt_add_variable(d->s, KJ_V_LOCAL, kj_format(d->arena, "sums_%s", plan->array->name),
                    kt_intern_array(d->s, &info), plan->array->location, KJ_LEVEL_THREAD);
  kd_note_fact(d, copy->location, copy,
               kj_format(d->arena, "array `%s`: sums of each thread for %u elements of `%s`",
                         copy->name, plan->copied, plan->array->name));
  return copy;
}

void kd_add_to_copy(kd_part *part, const kd_array_plan *plan, const kd_node *node, kt_expr *t)
{
  kd_derivation *d = &part->d;
  kt_var **copy = &part->copies[plan->array->index];
  kt_exprs indices = { 0 };
  if (!*copy) *copy = make_copy(d, plan);
  for (size_t k = 0; k < node->indices.count; k++)
    KJ_PUSH(d->arena, &indices,
            shifted(d, KJIT_OP_SUB, kd_copy(d, node->indices.items[k]), plan->least[k]));
  kt_expr *before = kd_keep(d, kd_load(d, kd_read(d, *copy), &indices));
  t = kt_convert(d->s, t, before->type, t->location);
  kd_store(d, kd_read(d, *copy), &indices, kd_add(d, before, t));
}

static void clear_element(kd_derivation *d, const kt_exprs *indices, void *data)
{
  kt_var *copy = data;
  kd_store(d, kd_read(d, copy), indices, kd_nothing(d, ki_type(d->c->types, copy->type)->element));
}

void kd_clear_copies(kd_part *part)
{
  for (size_t i = 0; i < part->d.primal->instance->params.count; i++)
    if (part->copies[i])
      kd_for_elements(&part->d, part->copies[i]->type, clear_element, part->copies[i]);
}

/* ---- adding the sums to memory ---- */

typedef struct adding {
  const kd_array_plan *plan;
  kt_var *copy, *lanes;
} adding;

static void enter_if(kd_derivation *d, kt_expr *condition)
{
  kt_stmt *stmt = kt_new_if(d->c, condition, d->location);
  kt_emit(d->s, stmt);
  d->s->out = &stmt->body;
}

/* Emits code that adds one element of the copy to memory. The code compares the index with the
 * array's extent: the inner loop can run beyond the extent, if the kernel itself compares the index
 * with the extent before each load. */
static void add_element(kd_derivation *d, const kt_exprs *indices, void *data)
{
  const adding *a = data;
  kt_var *array = (kt_var *)a->plan->array, *other = d->variables[array->index].other;
  kt_exprs places = { 0 };
  kt_stmts *outer = d->s->out;
  kt_expr *load = kd_load(d, kd_read(d, a->copy), indices);
  kt_var *sum = kd_new_var(d, "_sum", load->type, d->location);
  kd_assign(d, sum, load);
  if (a->lanes) {
    kd_sum_lanes(d, sum, a->lanes);
    enter_if(d, kd_is_first_lane(d));
  }
  for (uint32_t k = 0; k < indices->count; k++) {
    KJ_PUSH(d->arena, &places,
            shifted(d, KJIT_OP_ADD, kd_copy(d, indices->items[k]), a->plan->least[k]));
    kt_expr *extent = kt_make_extent(d->s, kd_read(d, array), k, d->location);
    enter_if(d, binary(d, KJIT_OP_LT, kd_copy(d, places.items[k]), extent));
  }
  kd_add_atomically(d, kd_read(d, other), &places, kd_read(d, sum), array->name, array->location);
  d->s->out = outer;
}

void kd_add_copies(kd_part *part, kt_var *lanes)
{
  for (size_t i = 0; i < part->plan->arrays.count; i++) {
    const kd_array_plan *plan = &part->plan->arrays.items[i];
    adding a = { plan, part->copies[plan->array->index], lanes };
    if (a.copy) kd_for_elements(&part->d, a.copy->type, add_element, &a);
  }
}
