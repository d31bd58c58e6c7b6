/* Adjoint kernels: emits the loads of derivatives, and the additions to derivatives, in the ways
 * that adjoint_plan.c has chosen. */
#include "derive/adjoint.h"

static kd_part *part_of(const kd_derivation *d)
{
  KJ_ASSERT(d->adjoint);
  return d->adjoint;
}

static const kd_site *find_site(const kd_part *part, const kt_expr *load)
{
  for (size_t i = 0; i < part->sites.count; i++)
    if (part->sites.items[i].load == load) return &part->sites.items[i];
  return NULL;
}

/* ---- atomic sums ---- */

static void check_atomic(kd_derivation *d, kjit_type type, const char *name, kj_location location)
{
  if (kt_is_float(d->c, type)) return;
  kd_refuse(d, location,
            "several %s load the same element of `%s`, but elements of type %s have no atomic "
            "addition: use arrays of floats",
            d->adjoint->is_by_threads ? "threads" : "iterations", name, kt_type_text(d->c, type));
}

void kd_add_atomically(kd_derivation *d, kt_expr *array, const kt_exprs *indices, kt_expr *t,
                       const char *name, kj_location location)
{
  kt_operands o = { .builtin = &ki_builtin_table[KJ_BUILTIN_ATOMIC_ADD], .location = location };
  kjit_type type = ki_type(d->c->types, array->type)->element;
  check_atomic(d, type, name, location);
  o.place = (kt_place){ .array = array, .type = type, .location = location };
  for (size_t i = 0; i < indices->count; i++)
    KJ_PUSH(d->arena, &o.place.indices, kd_copy(d, indices->items[i]));
  KJ_PUSH(d->arena, &o.values, kt_convert(d->s, t, type, location));
  kt_stmt *stmt = kt_new_tstmt(d->c, KJ_TS_EVALUATE, location);
  stmt->value = kt_apply_rule(d->s, &o);
  kt_emit(d->s, stmt);
}

/* ---- sums of the thread ---- */

static bool is_sum_for(const kd_thread_sum *sum, const kt_expr *array, const kt_exprs *indices)
{
  bool is_same = kd_equal_exprs(sum->array, array) && sum->indices.count == indices->count;
  for (size_t i = 0; is_same && i < indices->count; i++)
    is_same = kd_equal_exprs(sum->indices.items[i], indices->items[i]);
  return is_same;
}

static kt_var *find_thread_sum(kd_part *part, kt_expr *array, const kt_exprs *indices,
                               kj_location location)
{
  kd_derivation *d = &part->d;
  for (size_t i = 0; i < part->sums.count; i++)
    if (is_sum_for(&part->sums.items[i], array, indices)) return part->sums.items[i].sum;
  kjit_type type = ki_type(d->c->types, array->type)->element;
  kt_var *sum = kd_new_var(d, "_sum", kd_wide_type(d, type), location);
  kd_thread_sum made = { .array = array, .indices = *indices, .sum = sum, .location = location };
  KJ_PUSH(d->arena, &part->sums, made);
  return sum;
}

static void add_to_thread_sum(kd_part *part, const kd_node *node, kt_expr *t)
{
  kd_derivation *d = &part->d;
  kt_exprs indices = { 0 };
  for (size_t i = 0; i < node->from->args.count; i++)
    KJ_PUSH(d->arena, &indices, kd_resolve(part, node->from->args.items[i]));
  kt_var *sum =
    find_thread_sum(part, kd_other_array(d, node->from->x), &indices, node->from->location);
  t = kt_convert(d->s, t, sum->type, t->location);
  kd_assign(d, sum, kd_add(d, kd_read(d, sum), t));
}

static kt_expr *apply(kd_derivation *d, ki_builtin_id id, const kt_exprs *values)
{
  kt_operands o = { .builtin = &ki_builtin_table[id], .location = d->location, .values = *values };
  return kt_apply_rule(d->s, &o);
}

static kt_expr *apply_name(kd_derivation *d, ki_builtin_id id, const char *field)
{
  kt_operands o = { .builtin = &ki_builtin_table[id], .location = d->location, .field = field };
  return kt_make_concrete(d->s, kt_apply_rule(d->s, &o));
}

static kt_expr *integer(kd_derivation *d, kjit_type type, int64_t value)
{
  return kt_new_integer(d->s, type, value, d->location);
}

static kt_expr *binary(kd_derivation *d, kjit_op op, kt_expr *x, kt_expr *y)
{
  return kt_make_own_binary(d->s, op, x, y, d->location);
}

static kt_expr *to_i32(kd_derivation *d, kt_expr *x)
{
  return kt_convert(d->s, x, KJIT_I32, d->location);
}

/* Emits a variable with the number of threads in the warp. The last warp in a block can have fewer
 * than 32. */
static kt_var *count_lanes(kd_derivation *d)
{
  static const char *const fields[] = { "x", "y", "z" };
  kt_expr *threads = NULL;
  for (int i = 0; i < 3; i++) {
    kt_expr *more = to_i32(d, apply_name(d, KJ_BUILTIN_BLOCK_DIM, fields[i]));
    threads = threads ? binary(d, KJIT_OP_MUL, threads, more) : more;
  }
  kt_expr *before = binary(d, KJIT_OP_MUL, to_i32(d, apply_name(d, KJ_BUILTIN_WARP_RANK, NULL)),
                           integer(d, KJIT_I32, KJ_WARP_THREADS));
  kt_var *lanes = kd_new_var(d, "_lanes", KJIT_I32, d->location);
  kd_assign(d, lanes, binary(d, KJIT_OP_SUB, threads, before));
  return lanes;
}

static kt_expr *lane_of(kd_derivation *d)
{
  return to_i32(d, apply_name(d, KJ_BUILTIN_LANEID, NULL));
}

void kd_sum_lanes(kd_derivation *d, kt_var *sum, kt_var *lanes)
{
  enum { STEPS = 5 };
  for (int i = 0; i < STEPS; i++) {
    kt_exprs values = { 0 };
    KJ_PUSH(d->arena, &values, integer(d, KJIT_U32, UINT32_MAX));
    KJ_PUSH(d->arena, &values, kd_read(d, sum));
    KJ_PUSH(d->arena, &values, integer(d, KJIT_I32, 1 << i));
    kt_var *other = kd_new_var(d, "_other", sum->type, d->location);
    kd_assign(d, other, apply(d, KJ_BUILTIN_SHFL_DOWN, &values));
    kt_expr *at = binary(d, KJIT_OP_ADD, lane_of(d), integer(d, KJIT_I32, 1 << i));
    kt_stmt *stmt = kt_new_if(d->c, binary(d, KJIT_OP_LT, at, kd_read(d, lanes)), d->location);
    kt_emit(d->s, stmt);
    kt_stmts *outer = d->s->out;
    d->s->out = &stmt->body;
    kd_assign(d, sum, kd_add(d, kd_read(d, sum), kd_read(d, other)));
    d->s->out = outer;
  }
}

kt_expr *kd_is_first_lane(kd_derivation *d)
{
  return binary(d, KJIT_OP_EQ, lane_of(d), integer(d, KJIT_I32, 0));
}

static bool has_copies(const kd_part *part)
{
  for (size_t i = 0; i < part->d.primal->instance->params.count; i++)
    if (part->copies[i]) return true;
  return false;
}

void kd_add_thread_sums(kd_part *part)
{
  kd_derivation *d = &part->d;
  bool is_gpu = d->c->request->target.kind != KJ_TARGET_CPU;
  if (!part->sums.count && !has_copies(part)) return;
  kt_var *lanes = is_gpu ? count_lanes(d) : NULL;
  kt_stmts *outer = d->s->out;
  d->record->instance->has_warp |= is_gpu;
  kd_add_copies(part, lanes);
  for (size_t i = 0; is_gpu && i < part->sums.count; i++)
    kd_sum_lanes(d, part->sums.items[i].sum, lanes);
  if (is_gpu && part->sums.count) {
    kt_stmt *first = kt_new_if(d->c, kd_is_first_lane(d), d->location);
    kt_emit(d->s, first);
    d->s->out = &first->body;
  }
  for (size_t i = 0; i < part->sums.count; i++) {
    const kd_thread_sum *sum = &part->sums.items[i];
    kd_add_atomically(d, sum->array, &sum->indices, kd_read(d, sum->sum), kd_root(sum->array)->name,
                      sum->location);
  }
  d->s->out = outer;
}

/* ---- loads ---- */

void kd_adjoint_load(kd_derivation *d, const kd_node *node, kt_expr *t)
{
  kd_part *part = part_of(d);
  const kt_var *root = kd_root(node->array);
  if (root->kind == KJ_V_SHARED) {
    kd_add_atomically(d, kd_other_array(d, node->array), &node->indices, t, root->name,
                      node->from->location);
    return;
  }
  if (root->kind != KJ_V_PARAM) {
    kd_add_to_element(d, node, t);
    return;
  }
  const kd_site *site = find_site(part, node->from);
  const kd_array_plan *plan = kd_plan_of(part, root);
  KJ_ASSERT(site && plan);
  if (part->gathered) {
    if (plan == part->gathered) kd_add_gathered(part, node, site, t);
    return;
  }
  switch (KJ_AMONG(plan->loads)) {
  case KD_CHANGED:
    if (part->is_by_threads)
      kd_add_atomically(d, kd_other_array(d, node->array), &node->indices, t, root->name,
                        site->location);
    else kd_add_to_element(d, node, t);
    return;
  case KD_ADDED: kd_add_to_element(d, node, t); return;
  case KD_ATOMIC:
    if (site->is_uniform) add_to_thread_sum(part, node, t);
    else if (kd_is_copied(plan, site)) kd_add_to_copy(part, plan, node, t);
    else
      kd_add_atomically(d, kd_other_array(d, node->array), &node->indices, t, root->name,
                        site->location);
    return;
  default: return;
  }
}

/* ---- stores ---- */

void kd_begin_iteration(kd_part *part)
{
  kd_derivation *d = &part->d;
  part->taken = KJ_NEW_ARRAY(d->arena, kt_var *, d->primal->instance->params.count + 1);
  for (size_t i = 0; i < part->plan->arrays.count; i++) {
    const kd_array_plan *plan = &part->plan->arrays.items[i];
    if (plan->stores[part->number] != KD_OVERWRITTEN) continue;
    kt_var *taken = kd_new_var(d, "_taken", KJIT_BOOL, d->location);
    part->taken[plan->array->index] = taken;
    kd_assign(d, taken, integer(d, KJIT_BOOL, false));
  }
}

/* Emits code that gives the derivative at the last store to an element, and 0 at earlier stores to
 * it. The reverse pass executes the last store first and sets the flag `taken`, so that it finds
 * the flag set at the earlier stores. */
static kt_expr *take_once(kd_derivation *d, kt_var *taken, kt_expr *load)
{
  kt_var *t = kd_new_var(d, "_t", load->type, load->location);
  kd_assign(d, t, kd_zero(d, load->type));
  kt_expr *is_last = kt_make_own_unary(d->s, KJIT_OP_NOT, kd_read(d, taken), d->location);
  kt_stmt *stmt = kt_new_if(d->c, is_last, d->location);
  kt_emit(d->s, stmt);
  kt_stmts *outer = d->s->out;
  d->s->out = &stmt->body;
  kd_assign(d, t, load);
  d->s->out = outer;
  kd_assign(d, taken, integer(d, KJIT_BOOL, true));
  return kd_read(d, t);
}

kt_expr *kd_adjoint_store(kd_derivation *d, const kd_node *place)
{
  kd_part *part = part_of(d);
  const kt_var *root = kd_root(place->array);
  const kd_array_plan *plan = kd_plan_of(part, root);
  kt_expr *other = kd_other_array(d, place->array);
  kt_expr *load = kd_load(d, other, &place->indices);
  KJ_ASSERT(plan);
  kd_way way = plan->stores[part->number];
  if (way == KD_OVERWRITTEN) return take_once(d, part->taken[root->index], load);
  kt_expr *t = kd_keep(d, load);
  if (way == KD_CHANGED && !part->gathered)
    kd_store(d, kd_copy(d, other), &place->indices, kd_zero(d, t->type));
  return t;
}
