/* Checks between passes that the typed IR has the properties in typed.h. A violation is a bug in
 * kjit, not in the program. */
#include <string.h>

#include "typing/typed.h"

typedef struct verifier {
  kt_compilation *c;
  const kt_instance *instance;
  uint32_t loop_depth;
} verifier;

#define REQUIRE(condition, location, ...) \
  do { \
    if (!(condition)) \
      kt_fail(v->c, (location), KJIT_ERROR_COMPILE, \
              "internal error in the typed IR: " __VA_ARGS__); \
  } while (0)

/* Checks that the results of a pass are present only if that pass has run. */
static void require_state(const verifier *v, bool is_there, kt_tree_state state, kj_location at)
{
  REQUIRE(!is_there || (v->c->state & state), at, "a mark of a pass that has not run");
}

static const ki_type_info *info_of(const verifier *v, kjit_type type)
{
  return ki_type(v->c->types, type);
}

static bool is_integer(const verifier *v, kjit_type type)
{
  ki_type_class class_ = info_of(v, type)->class_;
  return class_ == KJ_CLASS_SIGNED || class_ == KJ_CLASS_UNSIGNED;
}

static bool is_float(const verifier *v, kjit_type type)
{
  return info_of(v, type)->class_ == KJ_CLASS_FLOAT;
}

/* Returns the lane type of a vector, and any other type unchanged. */
static kjit_type lane_of(const verifier *v, kjit_type type)
{
  return info_of(v, type)->class_ == KJ_CLASS_VECTOR ? info_of(v, type)->element : type;
}

static bool is_complex(const verifier *v, kjit_type type)
{
  return info_of(v, type)->class_ == KJ_CLASS_COMPLEX;
}

static bool is_array(const verifier *v, kjit_type type)
{
  return info_of(v, type)->class_ == KJ_CLASS_ARRAY && info_of(v, type)->space != KJ_SPACE_VALUE;
}

/* Returns whether a value of type `have` can be used as type `want`: the types are equal, or they
 * are arrays that differ only in that `want` is read-only. */
static bool is_accepted(const verifier *v, kjit_type have, kjit_type want)
{
  if (have == want) return true;
  if (!is_array(v, have) || !is_array(v, want) || !info_of(v, want)->read_only) return false;
  ki_type_info info = *info_of(v, have);
  info.read_only = true;
  return ki_intern_array(v->c->types, &info) == want;
}

static void check_var(verifier *v, const kt_var *var, kj_location location)
{
  const kt_vars *params = &v->instance->params, *locals = &v->instance->locals;
  size_t count = params->count;
  REQUIRE(var, location, "no variable");
  const kt_var *known = var->index < count                   ? params->items[var->index]
                        : var->index < count + locals->count ? locals->items[var->index - count]
                                                             : NULL;
  REQUIRE(known == var, location, "variable `%s` is not of this instance",
          var->name ? var->name : "");
}

static void check_expr(verifier *v, const kt_expr *e);

static void check_list(verifier *v, const kt_exprs *list)
{
  for (size_t i = 0; i < list->count; i++) check_expr(v, list->items[i]);
}

static void check_indices(verifier *v, const kt_exprs *indices, uint32_t count,
                          kj_location location)
{
  REQUIRE(indices->count == count, location, "%zu indices for %u dimensions", indices->count,
          count);
  for (size_t i = 0; i < indices->count; i++)
    REQUIRE(is_integer(v, indices->items[i]->type), location, "an index that is not an integer");
}

static void check_const(verifier *v, const kt_expr *e)
{
  REQUIRE(ki_is_scalar(e->type), e->location, "a constant that is not a scalar");
}

static void check_unary(verifier *v, const kt_expr *e)
{
  REQUIRE(e->x->type == e->type, e->location, "an operand of another type");
  REQUIRE(e->op == KJIT_OP_NEG || e->op == KJIT_OP_INVERT || e->op == KJIT_OP_NOT, e->location,
          "no unary operator");
}

static void check_binary(verifier *v, const kt_expr *e)
{
  bool is_power = e->op == KJIT_OP_POW && is_float(v, e->type) && is_integer(v, e->y->type);
  REQUIRE(e->x->type == e->type && (e->y->type == e->type || is_power), e->location,
          "operands of another type in `%s`", ki_op_table[e->op].text);
  bool is_bits = e->op == KJIT_OP_BIT_AND || e->op == KJIT_OP_BIT_OR || e->op == KJIT_OP_BIT_XOR;
  kjit_type type = lane_of(v, e->type);
  if (type == KJIT_BOOL) {
    REQUIRE(is_bits, e->location, "arithmetic on bool");
    return;
  }
  if (is_complex(v, type)) {
    REQUIRE(e->op == KJIT_OP_ADD || e->op == KJIT_OP_SUB || e->op == KJIT_OP_MUL ||
              e->op == KJIT_OP_DIV,
            e->location, "`%s` on complex numbers", ki_op_table[e->op].text);
    return;
  }
  REQUIRE(!is_integer(v, type) || info_of(v, type)->size_bytes >= 4, e->location,
          "arithmetic on a small integer");
  REQUIRE(is_integer(v, type) || is_float(v, type), e->location, "arithmetic on no number");
  REQUIRE(e->op != KJIT_OP_DIV || is_float(v, type), e->location, "`/` on integers");
}

static void check_compare(verifier *v, const kt_expr *e)
{
  kjit_type x = e->x->type, y = e->y->type;
  bool is_exact = is_integer(v, x) && is_integer(v, y) && (x == KJIT_U64 || y == KJIT_U64);
  REQUIRE(lane_of(v, e->type) == KJIT_BOOL && info_of(v, e->type)->count == info_of(v, x)->count,
          e->location, "a comparison whose type is not bool");
  REQUIRE(ki_is_scalar(lane_of(v, x)) && (x == y || is_exact), e->location,
          "a comparison of different types");
  REQUIRE(!is_complex(v, x) || e->op == KJIT_OP_EQ || e->op == KJIT_OP_NE, e->location,
          "complex numbers in order");
}

static void check_logic(verifier *v, const kt_expr *e)
{
  REQUIRE(e->type == KJIT_BOOL && e->x->type == KJIT_BOOL && e->y->type == KJIT_BOOL, e->location,
          "`and` or `or` with an operand that is not a bool");
}

static void check_cond(verifier *v, const kt_expr *e)
{
  REQUIRE(e->x->type == KJIT_BOOL, e->location, "a condition that is not a bool");
  REQUIRE(e->y->type == e->type && e->z->type == e->type, e->location,
          "arms of `?:` of another type");
}

/* Checks a CONVERT node. Its operand is the only expression that can have a weak type, and is then
 * a parameter with an untyped number. */
static void check_convert(verifier *v, const kt_expr *e)
{
  bool is_number =
    e->x->kind == KJ_T_VAR && ki_is_weak(e->x->type) && e->x->var->kind == KJ_V_PARAM;
  const ki_type_info *to = info_of(v, e->type), *from = info_of(v, e->x->type);
  bool have_parts = to->class_ == KJ_CLASS_VECTOR || to->class_ == KJ_CLASS_COMPLEX;
  bool is_pointer = to->class_ == KJ_CLASS_POINTER || from->class_ == KJ_CLASS_POINTER;
  if (is_pointer) {
    REQUIRE(from->class_ == to->class_ || e->type == KJIT_U64 || e->x->type == KJIT_U64,
            e->location, "a pointer converted to or from another type than u64");
    check_expr(v, e->x);
    return;
  }
  REQUIRE(ki_is_scalar(lane_of(v, e->type)), e->location,
          "a conversion to a type that is not a scalar");
  REQUIRE(is_number || ki_is_scalar(lane_of(v, e->x->type)), e->location,
          "a conversion of a value that is not a scalar");
  REQUIRE(!have_parts || (to->class_ == from->class_ && to->count == from->count), e->location,
          "a conversion between different numbers of parts");
  if (is_number) check_var(v, e->x->var, e->location);
  else check_expr(v, e->x);
}

static void check_load(verifier *v, const kt_expr *e)
{
  REQUIRE(is_array(v, e->x->type), e->location, "a load from no array");
  REQUIRE(info_of(v, e->x->type)->element == e->type, e->location,
          "a load of another type than the element");
  check_indices(v, &e->args, info_of(v, e->x->type)->rank, e->location);
}

static void check_view_dimension(verifier *v, const kt_expr *e, const kt_view_dimension *dimension)
{
  int from = (int)info_of(v, e->x->type)->rank, count = (int)e->indices.count;
  REQUIRE(dimension->source >= KJ_VIEW_SAME && dimension->source < from, e->location,
          "a view of a dimension that the array does not have");
  REQUIRE(dimension->extent >= KJ_VIEW_SAME && dimension->extent < count, e->location,
          "a view with an extent that is missing");
  REQUIRE(dimension->step >= KJ_VIEW_SAME && dimension->step < count, e->location,
          "a view with a step that is missing");
  REQUIRE(dimension->source != KJ_VIEW_SAME || dimension->extent != KJ_VIEW_SAME, e->location,
          "a reshaped dimension without an extent");
}

static void check_view(verifier *v, const kt_expr *e)
{
  REQUIRE(is_array(v, e->x->type) && is_array(v, e->type), e->location, "a view of no array");
  uint32_t from = info_of(v, e->x->type)->rank, rank = info_of(v, e->type)->rank;
  ki_space space = info_of(v, e->type)->space;
  bool may_differ = kt_has_new_shape(e) && (space == KJ_SPACE_SHARED || space == KJ_SPACE_LOCAL);
  REQUIRE(may_differ || info_of(v, e->x->type)->element == info_of(v, e->type)->element,
          e->location, "a view with another element type");
  REQUIRE(info_of(v, e->x->type)->space == info_of(v, e->type)->space, e->location,
          "a view in other memory");
  REQUIRE(e->args.count <= from, e->location, "%zu indices for %u dimensions", e->args.count, from);
  check_indices(v, &e->args, e->dimensions ? (uint32_t)e->args.count : from - rank, e->location);
  for (size_t i = 0; i < e->indices.count; i++)
    REQUIRE(e->indices.items[i]->type == KJIT_INDEX, e->location,
            "an extent or a step that is not an index");
  for (uint32_t d = 0; e->dimensions && d < rank; d++)
    check_view_dimension(v, e, &e->dimensions[d]);
}

static void check_property(verifier *v, const kt_expr *e)
{
  REQUIRE(e->type == KJIT_INDEX, e->location, "an extent that is not an index");
  REQUIRE(is_array(v, e->x->type) && e->dimension < info_of(v, e->x->type)->rank, e->location,
          "the extent of a dimension that does not exist");
}

static void check_builtin(verifier *v, const kt_expr *e)
{
  REQUIRE(e->builtin, e->location, "no built-in");
  bool is_place = e->builtin->flags & (KJ_PLACE | KJ_READS),
       is_whole = e->builtin->flags & KJ_ARRAY;
  REQUIRE((is_place || is_whole) == (e->x != NULL), e->location,
          "`%s`: a place where none is taken, or none", e->builtin->name);
  if (is_place) check_indices(v, &e->indices, info_of(v, e->x->type)->rank, e->location);
}

static void check_call(verifier *v, const kt_expr *e)
{
  REQUIRE(e->instance && e->instance->id < v->c->instances.count &&
            v->c->instances.items[e->instance->id] == e->instance,
          e->location, "a call of no instance");
  REQUIRE(e->type == e->instance->result, e->location, "a call with another type than the result");
  REQUIRE(e->args.count == e->instance->params.count, e->location,
          "a call with %zu arguments for %zu", e->args.count, e->instance->params.count);
  for (size_t i = 0; i < e->args.count; i++)
    REQUIRE(is_accepted(v, e->args.items[i]->type, e->instance->params.items[i]->type), e->location,
            "argument %zu of a call has another type", i);
}

static uint32_t item_count(const verifier *v, kjit_type type)
{
  const ki_type_info *info = info_of(v, type);
  if (info->class_ == KJ_CLASS_ARRAY)
    return info->space == KJ_SPACE_VALUE ? (uint32_t)ki_element_count(info) : 0;
  return info->class_ == KJ_CLASS_TUPLE ? info->count : ki_component_count(v->c->types, type);
}

static kjit_type item_type(const verifier *v, kjit_type type, uint32_t index)
{
  const ki_type_info *info = info_of(v, type);
  if (info->class_ == KJ_CLASS_ARRAY) return info->element;
  return info->class_ == KJ_CLASS_TUPLE ? info->items[index]
                                        : ki_get_component(v->c->types, type, index).type;
}

static void check_tuple(verifier *v, const kt_expr *e)
{
  REQUIRE(item_count(v, e->type) == e->args.count, e->location, "a tuple of another length");
  for (size_t i = 0; i < e->args.count; i++)
    REQUIRE(e->args.items[i]->type == item_type(v, e->type, (uint32_t)i), e->location,
            "an item of another type");
}

static void check_item(verifier *v, const kt_expr *e)
{
  REQUIRE(e->dimension < item_count(v, e->x->type) &&
            item_type(v, e->x->type, e->dimension) == e->type,
          e->location, "an item of a value that is not a tuple");
}

static bool has_elements(const verifier *v, const ki_type_info *info)
{
  (void)v;
  return info->class_ == KJ_CLASS_VECTOR ||
         (info->class_ == KJ_CLASS_ARRAY && info->space == KJ_SPACE_VALUE);
}

static void check_element(verifier *v, const kt_expr *e)
{
  const ki_type_info *info = info_of(v, e->x->type);
  REQUIRE(has_elements(v, info), e->location, "an element of a value that has no elements");
  REQUIRE(info->element == e->type, e->location, "an element of another type");
  check_indices(v, &e->args, info->class_ == KJ_CLASS_VECTOR ? 1 : info->rank, e->location);
}

static void check_insert(verifier *v, const kt_expr *e)
{
  const ki_type_info *info = info_of(v, e->type);
  REQUIRE(e->x->type == e->type, e->location, "an insertion that changes the type");
  if (e->args.count == 0) {
    REQUIRE(e->dimension < item_count(v, e->type) &&
              item_type(v, e->type, e->dimension) == e->y->type,
            e->location, "an insertion at an item that does not exist");
    return;
  }
  REQUIRE(has_elements(v, info) && info->element == e->y->type, e->location,
          "an insertion into a value that has no elements");
  check_indices(v, &e->args, info->class_ == KJ_CLASS_VECTOR ? 1 : info->rank, e->location);
}

static void check_lanes(verifier *v, const kt_expr *e, kjit_type whole)
{
  const ki_type_info *vector = info_of(v, whole), *info = info_of(v, e->type);
  REQUIRE(vector->class_ == KJ_CLASS_VECTOR, e->location, "lanes of no vector");
  REQUIRE(is_array(v, e->type) && info->is_static && info->space == info_of(v, e->x->type)->space,
          e->location, "lanes in other memory");
  REQUIRE(info->rank == 1 && info->element == vector->element && info->extents[0] == vector->count,
          e->location, "lanes of another type");
}

static void check_member(verifier *v, const kt_expr *e)
{
  REQUIRE(is_array(v, e->x->type) && info_of(v, e->x->type)->rank == 0, e->location,
          "a member of a value that is not a single element");
  kjit_type whole = info_of(v, e->x->type)->element;
  if (e->dimension == KJ_ALL_LANES) {
    check_lanes(v, e, whole);
    return;
  }
  REQUIRE(e->dimension < ki_component_count(v->c->types, whole), e->location,
          "a member that the element does not have");
  kjit_type part = ki_get_component(v->c->types, whole, e->dimension).type;
  const ki_type_info *info = info_of(v, e->type), *member = info_of(v, part);
  bool is_inner = member->class_ == KJ_CLASS_ARRAY;
  REQUIRE(is_array(v, e->type) && info->is_static && info->space == info_of(v, e->x->type)->space,
          e->location, "a member in other memory");
  REQUIRE(info->element == (is_inner ? member->element : part) &&
            info->rank == (is_inner ? member->rank : 0),
          e->location, "a member of another type");
}

static void check_address(verifier *v, const kt_expr *e)
{
  REQUIRE(is_array(v, e->x->type) && info_of(v, e->type)->class_ == KJ_CLASS_POINTER, e->location,
          "an address of a value that is not an element");
  REQUIRE(info_of(v, e->x->type)->element == info_of(v, e->type)->element, e->location,
          "an address of another type");
  check_indices(v, &e->args, info_of(v, e->x->type)->rank, e->location);
}

static void check_pointed(verifier *v, const kt_expr *e)
{
  REQUIRE(info_of(v, e->x->type)->class_ == KJ_CLASS_POINTER && is_array(v, e->type), e->location,
          "no pointer followed");
  REQUIRE(info_of(v, e->x->type)->element == info_of(v, e->type)->element, e->location,
          "a pointer to another type");
  bool is_open = e->args.count == 0 && info_of(v, e->type)->rank == 1;
  size_t rank = info_of(v, e->type)->rank;
  bool has_strides =
    e->args.count == 2 * rank && info_of(v, e->type)->layout == KJIT_LAYOUT_STRIDED;
  REQUIRE(is_open || has_strides || e->args.count == rank, e->location,
          "extents missing behind a pointer");
  for (size_t i = 0; i < e->args.count; i++)
    REQUIRE(e->args.items[i]->type == KJIT_INDEX, e->location,
            "an extent or a stride that is not an index");
}

static void check_empty(verifier *v, const kt_expr *e)
{
  REQUIRE(is_array(v, e->type) && !info_of(v, e->type)->is_static, e->location,
          "no elements in an array of static extents");
}

static void check_var_expr(verifier *v, const kt_expr *e)
{
  check_var(v, e->var, e->location);
  REQUIRE(e->var->type == e->type, e->location, "variable `%s` read as another type",
          e->var->name ? e->var->name : "");
}

static void check_parts(verifier *v, const kt_expr *e)
{
  if (e->kind == KJ_T_CONVERT) return;
  for (size_t i = 0; i < kt_operand_count(e); i++) {
    bool is_place_of_none = i < 3 && !kt_operand(e, i);
    if (!is_place_of_none) check_expr(v, kt_operand(e, i));
  }
}

typedef void (*check)(verifier *v, const kt_expr *e);

static const check check_table[] = {
  [KJ_T_CONST] = check_const,     [KJ_T_VAR] = check_var_expr,    [KJ_T_UNARY] = check_unary,
  [KJ_T_BINARY] = check_binary,   [KJ_T_COMPARE] = check_compare, [KJ_T_LOGIC] = check_logic,
  [KJ_T_COND] = check_cond,       [KJ_T_CONVERT] = check_convert, [KJ_T_LOAD] = check_load,
  [KJ_T_VIEW] = check_view,       [KJ_T_EXTENT] = check_property, [KJ_T_STRIDE] = check_property,
  [KJ_T_BUILTIN] = check_builtin, [KJ_T_CALL] = check_call,       [KJ_T_TUPLE] = check_tuple,
  [KJ_T_ITEM] = check_item,       [KJ_T_ELEMENT] = check_element, [KJ_T_INSERT] = check_insert,
  [KJ_T_MEMBER] = check_member,   [KJ_T_ADDRESS] = check_address, [KJ_T_POINTED] = check_pointed,
  [KJ_T_EMPTY] = check_empty,
};

_Static_assert(sizeof check_table / sizeof *check_table == KJ_T_COUNT, "a kind without a check");

static void check_expr(verifier *v, const kt_expr *e)
{
  REQUIRE(e, ((kj_location){ 0 }), "an expression is missing");
  REQUIRE(e->type != KJIT_ANY && !ki_is_weak(e->type), e->location, "a value without a type");
  require_state(v, e->is_checked || e->is_left_out || e->is_watched, KJ_TREE_CHECKED, e->location);
  require_state(v, e->is_narrow, KJ_TREE_NARROW, e->location);
  check_parts(v, e);
  check_table[e->kind](v, e);
}

/* ---- statements ---- */

static void check_block(verifier *v, const kt_stmts *stmts);

static void check_assign(verifier *v, const kt_stmt *s)
{
  check_var(v, s->var, s->location);
  check_expr(v, s->value);
  REQUIRE(is_accepted(v, s->value->type, s->var->type), s->location,
          "`%s` is assigned another type", s->var->name ? s->var->name : "");
}

static void check_store(verifier *v, const kt_stmt *s)
{
  check_expr(v, s->array);
  check_expr(v, s->value);
  check_list(v, &s->indices);
  REQUIRE(is_array(v, s->array->type), s->location, "a store to no array");
  check_indices(v, &s->indices, info_of(v, s->array->type)->rank, s->location);
  REQUIRE(info_of(v, s->array->type)->element == s->value->type, s->location,
          "a store of another type than the element");
}

static void check_condition(verifier *v, const kt_stmt *s)
{
  check_expr(v, s->value);
  REQUIRE(s->value->type == KJIT_BOOL, s->location, "a condition that is not a bool");
}

static void check_loop(verifier *v, const kt_stmt *s)
{
  for (size_t i = 0; s->hoisted && i < s->indices.count; i++) {
    check_expr(v, s->indices.items[i]);
    REQUIRE(s->indices.items[i]->type == KJIT_BOOL, s->location,
            "a loop condition that is not a bool");
  }
  v->loop_depth++;
  check_block(v, &s->body);
  v->loop_depth--;
}

static void check_for(verifier *v, const kt_stmt *s)
{
  const kt_expr *bounds[] = { s->first, s->stop, s->step };
  check_var(v, s->var, s->location);
  for (int i = 0; i < 3; i++) {
    check_expr(v, bounds[i]);
    REQUIRE(bounds[i]->type == s->var->type && is_integer(v, s->var->type), s->location,
            "a range of another type than its variable");
  }
  check_loop(v, s);
}

static void check_range(verifier *v, const kt_stmt *s)
{
  REQUIRE(s->vars.count == s->extents.count && s->vars.count >= 1 && s->vars.count <= 3,
          s->location, "a range that does not have 1 to 3 dimensions");
  for (size_t i = 0; i < s->vars.count; i++) {
    check_var(v, s->vars.items[i], s->location);
    check_expr(v, s->extents.items[i]);
    REQUIRE(s->extents.items[i]->type == KJIT_INDEX, s->location, "an extent that is not an index");
  }
  check_loop(v, s);
}

static void check_return(verifier *v, const kt_stmt *s)
{
  if (s->value) check_expr(v, s->value);
  kjit_type type = s->value ? s->value->type : KJIT_VOID;
  REQUIRE(is_accepted(v, type, v->instance->result), s->location,
          "a return of another type than the result");
}

static bool is_of_thread_loops(const kt_stmt *s)
{
  return s->kind == KJ_TS_THREADS || s->kind == KJ_TS_WARP || s->kind == KJ_TS_BARRIER_REDUCE ||
         s->kind == KJ_TS_ONCE || s->kind == KJ_TS_LEAVE;
}

static void check_stmt(verifier *v, const kt_stmt *s)
{
  require_state(v, is_of_thread_loops(s), KJ_TREE_THREADS, s->location);
  require_state(v, s->is_checked || s->is_left_out || s->is_watched, KJ_TREE_CHECKED, s->location);
  require_state(v, s->hoisted != NULL, KJ_TREE_FAILING, s->location);
  switch (s->kind) {
  case KJ_TS_ASSIGN: check_assign(v, s); return;
  case KJ_TS_STORE: check_store(v, s); return;
  case KJ_TS_IF:
    check_condition(v, s);
    check_block(v, &s->body);
    check_block(v, &s->otherwise);
    return;
  case KJ_TS_WHILE:
    check_condition(v, s);
    check_loop(v, s);
    return;
  case KJ_TS_FOR: check_for(v, s); return;
  case KJ_TS_GRID_FOR:
  case KJ_TS_BLOCK_FOR: check_range(v, s); return;
  case KJ_TS_BREAK:
  case KJ_TS_CONTINUE:
    REQUIRE(v->loop_depth, s->location, "break or continue outside a loop");
    return;
  case KJ_TS_RETURN: check_return(v, s); return;
  case KJ_TS_EVALUATE:
    REQUIRE(s->value, s->location, "nothing to evaluate");
    check_parts(v, s->value);
    check_table[s->value->kind](v, s->value);
    return;
  case KJ_TS_WARP:
  case KJ_TS_BARRIER_REDUCE:
    if (s->var) check_var(v, s->var, s->location);
    if (s->value) check_parts(v, s->value);
    return;
  case KJ_TS_THREADS:
  case KJ_TS_ONCE: check_block(v, &s->body); return;
  case KJ_TS_FAIL:
    check_list(v, &s->indices);
    REQUIRE(s->indices.count <= 2, s->location, "a failure with more than two values");
    return;
  case KJ_TS_PRINT: check_list(v, &s->indices); return;
  case KJ_TS_LEAVE: return;
  }
}

static void check_block(verifier *v, const kt_stmts *stmts)
{
  for (size_t i = 0; i < stmts->count; i++) check_stmt(v, stmts->items[i]);
}

static void check_variables(verifier *v, const kt_vars *vars, size_t first)
{
  for (size_t i = 0; i < vars->count; i++) {
    const kt_var *var = vars->items[i];
    REQUIRE(var->index == first + i, var->location, "variable `%s` has a wrong index",
            var->name ? var->name : "");
    bool may_be_weak = var->kind == KJ_V_PARAM && v->instance->is_kernel;
    REQUIRE(may_be_weak || !ki_is_weak(var->type), var->location, "variable `%s` has no type",
            var->name ? var->name : "");
  }
}

void kt_verify_typed(kt_compilation *c)
{
  for (size_t i = 0; i < c->instances.count; i++) {
    verifier state = { .c = c, .instance = c->instances.items[i] }, *v = &state;
    check_variables(v, &v->instance->params, 0);
    check_variables(v, &v->instance->locals, v->instance->params.count);
    check_block(v, &v->instance->body);
  }
}
