/* Computes value ranges, and uses 32-bit arithmetic where possible (docs/ir.md, `index`).
 *
 * Needs: typed instances; on the CPU the thread loops have been made. Guarantees: values do not
 * change.
 *
 * An expression is computed in 32 bits for one of two reasons. (1) Its range fits into 32 bits. The
 * ranges of extents, positions and counters fit if the facts "offsets fit" and "grid fits" are
 * true, and so do the ranges of many expressions that are computed from them.
 *
 * (2) The range is not known, but the expression is the value of a `let` that is used only in array
 * indices, in sums, differences, products and left shifts. If the fact "offsets fit" is true, such
 * a `let` is computed modulo 2^32: the offset is in the range of i32, and these operations can be
 * done modulo 2^32. Lowering computes index expressions modulo 2^32 as well; they need no mark from
 * this pass. */
#include "pass/interval.h"
#include "pass/pass.h"

typedef struct pass {
  kt_compilation *c;
  const kj_signature *signature;
  kt_instance *instance;
  kp_launch_limits limits;
  bool has_reshape;      /* some array is reshaped, so it can have any extents */
  uint32_t *assignments; /* number of assignments to each variable of the instance */
  uint32_t *uses;        /* number of reads of each variable */
  /* number of reads of the variable whose value is used only in an array index */
  uint32_t *subscript_uses;
  /* indexed by variable: the extents of an array variable that is assigned once */
  kt_interval **shapes;
} pass;

static kt_interval whole(const pass *p, kjit_type type)
{
  return kp_whole_interval(kp_find_integer(p->c->types, type));
}

/* ---- extents ---- */

static kt_interval extent_range(pass *p, const kt_expr *array, uint32_t d);

/* Returns the range of an extent of a view. A slice has at most as many elements as its dimension,
 * because a slice that is not inside of the array is an error of the program. A reshaped array
 * without elements can have any extents. */
static kt_interval view_range(pass *p, const kt_expr *view, uint32_t d)
{
  const kt_view_dimension same = { (int)(d + view->args.count), KJ_VIEW_SAME, KJ_VIEW_SAME },
                          *of = view->dimensions ? &view->dimensions[d] : &same;
  kt_interval own =
    of->extent == KJ_VIEW_SAME ? whole(p, KJIT_I64) : view->indices.items[of->extent]->range;
  if (of->source == KJ_VIEW_SAME) return own;
  kt_interval source = extent_range(p, view->x, (uint32_t)of->source);
  if (of->extent == KJ_VIEW_SAME) return source;
  kt_interval both = kp_meet_intervals(own, kp_make_interval(INT64_MIN, source.most));
  return both.known ? both : own;
}

static kt_interval extent_range(pass *p, const kt_expr *array, uint32_t d)
{
  const kt_var *var = array->kind == KJ_T_VAR ? array->var : NULL;
  if (var && p->shapes[var->index]) return p->shapes[var->index][d];
  if (array->kind == KJ_T_VIEW) return view_range(p, array, d);
  if (array->kind == KJ_T_POINTED && d < array->args.count) return array->args.items[d]->range;
  bool is_own =
    var && (var->kind == KJ_V_SHARED || (var->kind == KJ_V_PARAM && p->instance->is_kernel));
  return is_own || !p->has_reshape ? kp_extent_interval(p->c, array->type) : whole(p, KJIT_I64);
}

static void keep_shape(pass *p, const kt_var *var, const kt_expr *array)
{
  uint32_t rank = ki_type(p->c->types, array->type)->rank;
  kt_interval *shape = KJ_NEW_ARRAY(p->c->arena, kt_interval, KJ_MAX_RANK);
  for (uint32_t d = 0; d < rank; d++) shape[d] = extent_range(p, array, d);
  p->shapes[var->index] = shape;
}

static void find_reshape(void *data, kt_expr **at)
{
  const kt_expr *e = *at;
  if (e->kind == KJ_T_VIEW && kt_has_new_shape(e)) *(bool *)data = true;
}

/* ---- the ranges of expressions ---- */

static kt_interval builtin_range(pass *p, const kt_expr *e)
{
  kt_interval operands[2],
    position = kp_position_interval(&p->limits, e->builtin->id, e->dimension);
  if (e->builtin->id == KJ_BUILTIN_GRID || e->builtin->id == KJ_BUILTIN_GRIDSIZE)
    p->c->used_grid32 |= p->signature->grid32;
  if (position.known || !e->args.count || e->args.count > 2) return position;
  for (size_t i = 0; i < e->args.count; i++) {
    operands[i] = e->args.items[i]->range;
    if (!operands[i].known) return operands[i];
  }
  return kp_exact_builtin(e->builtin->id, operands, e->args.count);
}

/* Returns the range of the value before it is wrapped to its type. An unknown range means any value
 * of the type. */
static kt_interval exact_range(pass *p, const kt_expr *e, kp_integer type)
{
  switch (KJ_AMONG(e->kind)) {
  case KJ_T_CONST: return kp_make_interval(e->integer, e->integer);
  case KJ_T_VAR: return e->var->range;
  case KJ_T_UNARY: return kp_exact_unary(e->op, e->x->range);
  case KJ_T_BINARY: return kp_exact_binary(e->op, type, e->x->range, e->y->range);
  case KJ_T_COND: return kp_join_intervals(e->y->range, e->z->range);
  case KJ_T_CONVERT: return kp_convert_interval(type, e->x->range);
  case KJ_T_EXTENT: return extent_range(p, e->x, e->dimension);
  case KJ_T_BUILTIN: return builtin_range(p, e);
  default: return (kt_interval){ 0 };
  }
}

/* ---- which expressions are computed in 32 bits ---- */

static bool is_ring_operation(const kt_expr *e)
{
  if (e->kind == KJ_T_UNARY) return e->op == KJIT_OP_NEG;
  if (e->kind != KJ_T_BINARY) return false;
  return e->op == KJIT_OP_ADD || e->op == KJIT_OP_SUB || e->op == KJIT_OP_MUL ||
         (e->op == KJIT_OP_SHL && kp_is_within(e->y->range, 0, 31));
}

static bool is_narrow_operand(const kt_expr *e)
{
  return e->type != KJIT_I64 || kp_fits32(e->range);
}

static bool can_compute_narrow(const kt_expr *e)
{
  if (is_ring_operation(e)) return true;
  switch (KJ_AMONG(e->kind)) {
  case KJ_T_BINARY: return is_narrow_operand(e->x) && is_narrow_operand(e->y);
  case KJ_T_COND: return is_narrow_operand(e->y) && is_narrow_operand(e->z);
  case KJ_T_BUILTIN:
    for (size_t i = 0; i < e->args.count; i++)
      if (!is_narrow_operand(e->args.items[i])) return false;
    return true;
  /* only conversions of integers have a known range, so no other conversions occur here */
  case KJ_T_CONVERT:
  case KJ_T_CONST:
  case KJ_T_VAR:
  case KJ_T_EXTENT: return true;
  default: return false;
  }
}

static void visit_expr(void *data, kt_expr **slot)
{
  pass *p = data;
  kt_expr *e = *slot;
  kp_integer type = kp_find_integer(p->c->types, e->type);
  e->range = type.bits ? kp_wrap_interval(type, exact_range(p, e, type)) : (kt_interval){ 0 };
  e->is_narrow =
    e->type == KJIT_I64 &&
    (kp_fits32(e->range) ? can_compute_narrow(e) : e->kind == KJ_T_VAR && e->var->is_narrow);
}

/* ---- reads of a variable that are used only in an array index ---- */

static void count_uses(pass *p, const kt_expr *e, bool feeds_subscript);

static void count_list(pass *p, const kt_exprs *list, bool feeds_subscript)
{
  for (size_t i = 0; i < list->count; i++) count_uses(p, list->items[i], feeds_subscript);
}

/* Returns whether the fact "offsets fit" applies to the array. The fact does not apply to memory at
 * pointers. */
static bool has_small_offsets(pass *p, const kt_expr *array)
{
  return !array || ki_type(p->c->types, array->type)->space != KJ_SPACE_GENERIC;
}

/* Returns whether the expression is a tensor copy. Its box can start far outside of the array, so
 * the start is used as a value and not as an offset. */
static bool is_tensor_copy(const kt_expr *e)
{
  return e->kind == KJ_T_BUILTIN && (e->builtin->id == KJ_BUILTIN_CP_ASYNC_TENSOR ||
                                     e->builtin->id == KJ_BUILTIN_CP_ASYNC_TENSOR_STORE);
}

static void count_operands(pass *p, const kt_expr *e)
{
  for (size_t i = 0; i < kt_operand_count(e); i++) count_uses(p, kt_operand(e, i), false);
}

/* Counts the uses of variables in a tensor copy. The array and the source's start are operands of a
 * LOAD node. */
static void count_tensor_copy(pass *p, const kt_expr *copy)
{
  for (size_t i = 0; i < kt_operand_count(copy); i++) {
    const kt_expr *operand = kt_operand(copy, i);
    if (operand && operand->kind == KJ_T_LOAD) count_operands(p, operand);
    else count_uses(p, operand, false);
  }
}

static void count_uses(pass *p, const kt_expr *e, bool feeds_subscript)
{
  if (!e) return;
  if (is_tensor_copy(e)) {
    count_tensor_copy(p, e);
    return;
  }
  if (e->kind == KJ_T_VAR) {
    p->uses[e->var->index]++;
    if (feeds_subscript) p->subscript_uses[e->var->index]++;
    return;
  }
  bool through = feeds_subscript && e->type == KJIT_I64 && is_ring_operation(e);
  count_uses(p, e->x, through);
  count_uses(p, e->y, through && e->op != KJIT_OP_SHL);
  count_uses(p, e->z, false);
  count_list(p, &e->args,
             (e->kind == KJ_T_LOAD || e->kind == KJ_T_VIEW) && has_small_offsets(p, e->x));
  /* the extents and steps of a view are used as values */
  count_list(p, &e->indices, e->kind != KJ_T_VIEW && has_small_offsets(p, e->x));
}

static void count_in_stmts(pass *p, const kt_stmts *stmts)
{
  for (size_t i = 0; i < stmts->count; i++) {
    const kt_stmt *s = stmts->items[i];
    if (s->kind == KJ_TS_ASSIGN || s->kind == KJ_TS_WARP || s->kind == KJ_TS_BARRIER_REDUCE)
      if (s->var) p->assignments[s->var->index]++;
    count_uses(p, s->value, false);
    count_uses(p, s->array, false);
    count_list(p, &s->indices, s->kind == KJ_TS_STORE && has_small_offsets(p, s->array));
    count_uses(p, s->first, false);
    count_uses(p, s->stop, false);
    count_uses(p, s->step, false);
    count_list(p, &s->extents, false);
    count_in_stmts(p, &s->body);
    count_in_stmts(p, &s->otherwise);
  }
}

/* ---- variables ---- */

static void narrow_let(pass *p, const kt_stmt *s)
{
  KJ_ASSERT(s->kind == KJ_TS_ASSIGN);
  kt_var *var = s->var;
  if (!var || var->kind != KJ_V_LET || p->assignments[var->index] != 1 || !s->value) return;
  var->range = s->value->range;
  if (ki_type(p->c->types, var->type)->class_ == KJ_CLASS_ARRAY) keep_shape(p, var, s->value);
  if (var->type != KJIT_I64) return;
  /* a bounds check compares the whole index, not only its low 32 bits */
  bool is_exact = p->c->request->checks & KJIT_CHECK_BOUNDS;
  bool wraps = !is_exact && p->signature->offsets32 && p->c->request->target.kind != KJ_TARGET_CPU;
  bool only_subscripts =
    wraps && p->uses[var->index] && p->uses[var->index] == p->subscript_uses[var->index];
  var->is_narrow = kp_fits32(var->range) || only_subscripts;
  p->c->used_offsets32 |= only_subscripts;
}

/* Marks a counter as 32-bit if the value after the last step also fits into 32 bits. */
static void narrow_counter(const kt_stmt *s)
{
  KJ_ASSERT(s->kind == KJ_TS_FOR);
  kt_interval past;
  s->var->range = kp_counter_interval(s->first->range, s->stop->range, s->step->range, &past);
  s->var->is_narrow = s->var->type == KJIT_I64 && kp_fits32(past) && kp_fits32(s->first->range) &&
                      kp_fits32(s->stop->range) && kp_fits32(s->step->range);
}

/* Sets the ranges of the variables of a range loop. A variable is narrow only if the extent is
 * narrow, because the two are compared. */
static void set_range_loop(const kt_stmt *s)
{
  KJ_ASSERT(s->vars.count == s->extents.count);
  for (size_t i = 0; i < s->vars.count; i++) {
    kt_interval extent = s->extents.items[i]->range;
    s->vars.items[i]->range = kp_range_interval(extent);
    s->vars.items[i]->is_narrow = kp_fits32(extent);
  }
}

static void visit_stmts(pass *p, kt_stmts *stmts);

static void visit_stmt(pass *p, kt_stmt *s)
{
  for (size_t i = 0; i < kt_stmt_operand_count(s); i++)
    kt_walk_texpr(kt_stmt_operand_place(s, i), visit_expr, p);
  if (s->kind == KJ_TS_ASSIGN) narrow_let(p, s);
  if (s->kind == KJ_TS_FOR) narrow_counter(s);
  if (kt_flow_of(s) == KJ_FLOW_RANGE) set_range_loop(s);
  visit_stmts(p, &s->body);
  visit_stmts(p, &s->otherwise);
}

static void visit_stmts(pass *p, kt_stmts *stmts)
{
  for (size_t i = 0; i < stmts->count; i++) visit_stmt(p, stmts->items[i]);
}

static void find_ranges(kt_compilation *c)
{
  pass p = { .c = c, .signature = c->request->signature, .limits = kp_find_limits(c) };
  for (size_t i = 0; i < c->instances.count; i++)
    kt_walk_tstmts(&c->instances.items[i]->body, NULL, find_reshape, &p.has_reshape);
  for (size_t i = 0; i < c->instances.count; i++) {
    kt_instance *instance = p.instance = c->instances.items[i];
    size_t count = instance->params.count + instance->locals.count;
    p.assignments = KJ_NEW_ARRAY(c->arena, uint32_t, count);
    p.uses = KJ_NEW_ARRAY(c->arena, uint32_t, count);
    p.subscript_uses = KJ_NEW_ARRAY(c->arena, uint32_t, count);
    p.shapes = KJ_NEW_ARRAY(c->arena, kt_interval *, count);
    /* The visits are repeated, because the number of assignments to each variable, and the shifts
     * that can be done modulo 2^32, are known only after the first visit. */
    visit_stmts(&p, &instance->body);
    count_in_stmts(&p, &instance->body);
    visit_stmts(&p, &instance->body);
  }
}

void kp_narrow_indices(kt_compilation *c) { find_ranges(c); }

/* ---- indices that count from the end ---- */

static void drop_wrap(void *data, kt_expr **at)
{
  (void)data;
  const kt_expr *e = *at;
  if (e->is_wrap && e->z->range.known && e->z->range.least >= 0) *at = e->z;
}

/* Removes the ranges. Later passes change the tree, and the ranges are computed again after
 * them. */
static void forget_range(void *data, kt_expr **at)
{
  (void)data;
  (*at)->range = (kt_interval){ 0 };
  (*at)->is_narrow = false;
}

static void forget_ranges(const kt_vars *vars)
{
  for (size_t i = 0; i < vars->count; i++) {
    vars->items[i]->range = (kt_interval){ 0 };
    vars->items[i]->is_narrow = false;
  }
}

/* Replaces `i < 0 ? i + extent : i` by i if i is never negative. Needs: typed instances.
 * Guarantees: values do not change. */
void kp_drop_wraps(kt_compilation *c)
{
  if (!c->has_wraps) return;
  find_ranges(c);
  for (size_t i = 0; i < c->instances.count; i++) {
    kt_walk_tstmts(&c->instances.items[i]->body, NULL, drop_wrap, NULL);
    kt_walk_tstmts(&c->instances.items[i]->body, NULL, forget_range, NULL);
    forget_ranges(&c->instances.items[i]->params);
    forget_ranges(&c->instances.items[i]->locals);
  }
}
