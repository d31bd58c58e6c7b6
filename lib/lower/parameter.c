/* The kernel's parameters: determines which addresses, extents, strides and scalars of its
 * arguments the kernel needs, and assigns an offset to each parameter. */
#include <string.h>

#include "lower/instruction.h"
#include "lower/builtins/tensor_copy.h"
#include "lower/debug.h"

/* Collects in l->uses how the kernel and the functions that it calls use each argument.
 *
 * The analysis is flow-insensitive and covers all instances. For each array variable, it finds the
 * arguments whose memory the variable can refer to. For each dimension of the variable, the
 * analysis finds the argument dimensions from which the extent and the stride can come. These
 * arguments and argument dimensions are the variable's sources. The analysis needs the final typed
 * trees, and it guarantees that lowering finds all pointers, extents and strides that it needs. */

typedef struct finder {
  kl_lowering *l;
  const kj_signature *signature;
  kt_instance *instance; /* the instance being walked */
  size_t words;          /* number of 64-bit words in a set of sources */
  size_t part_words;     /* number of words in a set of argument dimensions */
  uint64_t ***sources;   /* indexed by [instance][variable]; NULL means the empty set */
  uint64_t **results;    /* [instance]: sources of the result */
  /* the kernel can write to any memory, through a pointer or in an external function */
  bool writes_anywhere;
  bool changed;
} finder;

static const ki_type_info *info_of(finder *p, kjit_type type) { return kl_type_info(p->l, type); }
static bool may_hold_array(finder *p, kjit_type type)
{
  return kl_is_array_type(p->l, type) || kl_is_tuple_type(p->l, type);
}

/* Returns a new, empty set of sources. For each dimension d, a set holds the argument dimensions
 * (argument * KJ_MAX_RANK + dimension) from which the extent of d can come, and those from which
 * its stride can come. It also contains the arguments to whose memory the array can refer. */
static uint64_t *new_set(finder *p) { return KJ_NEW_ARRAY(p->l->c->arena, uint64_t, p->words); }
static size_t part_of(const finder *p, uint32_t d, bool is_extent)
{
  return (is_extent ? d : KJ_MAX_RANK + d) * p->part_words;
}
static size_t objects_of(const finder *p) { return 2 * KJ_MAX_RANK * p->part_words; }

static bool has_bit(const uint64_t *set, size_t bit) { return set[bit / 64] >> bit % 64 & 1; }
static void set_bit(uint64_t *set, size_t bit) { set[bit / 64] |= (uint64_t)1 << bit % 64; }

static void merge(finder *p, uint64_t **set, const uint64_t *more)
{
  if (!more) return;
  if (!*set) *set = new_set(p);
  for (size_t i = 0; i < p->words; i++) {
    if ((more[i] & ~(*set)[i]) == 0) continue;
    (*set)[i] |= more[i];
    p->changed = true;
  }
}

static void unite(finder *p, uint64_t *set, const uint64_t *more)
{
  for (size_t i = 0; more && i < p->words; i++) set[i] |= more[i];
}

static void note_part(finder *p, uint64_t *to, const uint64_t *from)
{
  for (size_t i = 0; i < p->part_words; i++) to[i] |= from[i];
}

static void add_objects(finder *p, uint64_t *set, const uint64_t *more)
{
  for (size_t i = objects_of(p); i < p->words; i++) set[i] |= more[i];
}

static void add_sources(finder *p, const kt_expr *expr, uint64_t *set);

static void add_view_sources(finder *p, const kt_expr *view, uint64_t *set)
{
  uint64_t *from = new_set(p);
  add_sources(p, view->x, from);
  add_objects(p, set, from);
  for (uint32_t d = 0; d < info_of(p, view->type)->rank; d++) {
    const kt_view_dimension same = { (int)(d + view->args.count), KJ_VIEW_SAME, KJ_VIEW_SAME };
    const kt_view_dimension *dimension = view->dimensions ? &view->dimensions[d] : &same;
    /* the extent of a reshaped dimension is a separate expression */
    if (dimension->source == KJ_VIEW_SAME) continue;
    uint32_t source = (uint32_t)dimension->source;
    if (dimension->extent == KJ_VIEW_SAME)
      note_part(p, set + part_of(p, d, true), from + part_of(p, source, true));
    note_part(p, set + part_of(p, d, false), from + part_of(p, source, false));
  }
}

/* Adds a tuple's sources. The set does not record to which item a dimension belongs, so every
 * dimension can come from every item. */
static void add_tuple_sources(finder *p, const kt_expr *tuple, uint64_t *set)
{
  uint64_t *from = new_set(p), *all = new_set(p);
  for (size_t i = 0; i < tuple->args.count; i++)
    if (may_hold_array(p, tuple->args.items[i]->type)) add_sources(p, tuple->args.items[i], from);
  add_objects(p, set, from);
  for (uint32_t d = 0; d < 2 * KJ_MAX_RANK; d++) note_part(p, all, from + d * p->part_words);
  for (uint32_t d = 0; d < 2 * KJ_MAX_RANK; d++) note_part(p, set + d * p->part_words, all);
}

/* Adds the arrays that the expression can denote. */
static void add_sources(finder *p, const kt_expr *expr, uint64_t *set)
{
  switch (expr->kind) {
  case KJ_T_VAR: unite(p, set, p->sources[p->instance->id][expr->var->index]); return;
  case KJ_T_VIEW: add_view_sources(p, expr, set); return;
  case KJ_T_ITEM: add_sources(p, expr->x, set); return;
  case KJ_T_MEMBER: { /* static extents */
    uint64_t *from = new_set(p);
    add_sources(p, expr->x, from);
    add_objects(p, set, from);
    return;
  }
  case KJ_T_CALL: unite(p, set, p->results[expr->instance->id]); return;
  case KJ_T_COND:
    add_sources(p, expr->y, set);
    add_sources(p, expr->z, set);
    return;
  case KJ_T_TUPLE: add_tuple_sources(p, expr, set); return;
  case KJ_T_CONST:
  case KJ_T_UNARY:
  case KJ_T_BINARY:
  case KJ_T_COMPARE:
  case KJ_T_LOGIC:
  case KJ_T_CONVERT:
  case KJ_T_LOAD:
  case KJ_T_EXTENT:
  case KJ_T_STRIDE:
  case KJ_T_BUILTIN:
  case KJ_T_ELEMENT:
  case KJ_T_INSERT:
  case KJ_T_ADDRESS:
  case KJ_T_POINTED:
  case KJ_T_EMPTY: return; /* the array is neither an argument nor a view of an argument */
  }
}

static uint64_t *sources_of(finder *p, const kt_expr *expr)
{
  if (!may_hold_array(p, expr->type)) return NULL;
  uint64_t *set = new_set(p);
  add_sources(p, expr, set);
  return set;
}

/* ---- sources of variables ---- */

static void flow_expr(void *data, kt_expr **at)
{
  finder *p = data;
  kt_expr *expr = *at;
  if (expr->kind != KJ_T_CALL) return;
  for (size_t i = 0; i < expr->args.count; i++)
    merge(p, &p->sources[expr->instance->id][expr->instance->params.items[i]->index],
          sources_of(p, expr->args.items[i]));
}

static void flow_stmt(void *data, kt_stmt *stmt)
{
  finder *p = data;
  if (stmt->kind == KJ_TS_ASSIGN && stmt->var)
    merge(p, &p->sources[p->instance->id][stmt->var->index], sources_of(p, stmt->value));
  if (stmt->kind == KJ_TS_RETURN && stmt->value)
    merge(p, &p->results[p->instance->id], sources_of(p, stmt->value));
}

static void seed_arguments(finder *p, kt_instance *kernel)
{
  for (size_t i = 0; i < kernel->params.count; i++) {
    kt_var *param = kernel->params.items[i];
    if (!kl_is_array_type(p->l, param->type)) continue;
    uint64_t *set = new_set(p);
    set_bit(set + objects_of(p), param->argument);
    for (uint32_t d = 0; d < info_of(p, param->type)->rank; d++) {
      set_bit(set + part_of(p, d, true), (size_t)param->argument * KJ_MAX_RANK + d);
      set_bit(set + part_of(p, d, false), (size_t)param->argument * KJ_MAX_RANK + d);
    }
    p->sources[kernel->id][param->index] = set;
  }
}

/* ---- uses ---- */

/* Records that the kernel needs the extent, or the stride, of dimension d of an array with these
 * sources. */
static void mark_dimension(finder *p, const uint64_t *set, uint32_t d, bool is_extent)
{
  const uint64_t *part = set + part_of(p, d, is_extent);
  for (size_t bit = 0; bit < (size_t)p->signature->count * KJ_MAX_RANK; bit++) {
    if (!has_bit(part, bit)) continue;
    uint32_t argument = (uint32_t)(bit / KJ_MAX_RANK), dimension = bit % KJ_MAX_RANK;
    if (is_extent) p->l->uses[argument].extents[dimension] = true;
    else if (!kl_is_unit_stride(info_of(p, p->signature->arguments[argument].type), dimension))
      p->l->uses[argument].strides[dimension] = true;
  }
}

typedef enum access { ACCESS_READ, ACCESS_WRITE, ACCESS_ATOMIC } access;

/* Records that the kernel needs the extents for a bounds check. */
static void mark_checked(finder *p, const kt_expr *array)
{
  const uint64_t *set = sources_of(p, array);
  for (uint32_t d = 0; d < info_of(p, array->type)->rank; d++) mark_dimension(p, set, d, true);
}

static void mark_access(finder *p, const kt_expr *array, size_t index_count, access how)
{
  const uint64_t *set = sources_of(p, array);
  for (uint32_t d = 0; d < index_count; d++) mark_dimension(p, set, d, false);
  for (uint32_t a = 0; a < p->signature->count; a++) {
    if (!has_bit(set + objects_of(p), a)) continue;
    kl_argument_use *use = &p->l->uses[a];
    if (how != ACCESS_WRITE) use->is_read = true;
    if (how != ACCESS_READ) use->is_written = true;
    if (how == ACCESS_ATOMIC) use->is_atomic = true;
  }
}

/* Records a store through a pointer, which can write to any argument. */
static void note_pointed(finder *p, const kt_expr *array)
{
  if (info_of(p, array->type)->space == KJ_SPACE_GENERIC) p->writes_anywhere = true;
}

/* Records that the kernel needs the strides to compute a view's start. */
static void mark_start(finder *p, const kt_expr *view)
{
  const uint64_t *set = sources_of(p, view->x);
  for (size_t i = 0; i < view->args.count; i++) {
    bool is_zero = view->args.items[i]->kind == KJ_T_CONST && view->args.items[i]->integer == 0;
    if (!is_zero) mark_dimension(p, set, (uint32_t)i, false);
  }
}

/* Records that an external function gets an array. The function can read the array and, if the
 * array's type allows this, write to it. The function can also write to memory that it got in an
 * earlier call. */
static void mark_handed_out(finder *p, const kt_expr *call)
{
  p->writes_anywhere = true;
  for (size_t i = 0; i < call->args.count; i++) {
    const kt_expr *array = call->args.items[i];
    const ki_type_info *info = info_of(p, call->instance->params.items[i]->type);
    if (!kl_is_array_type(p->l, array->type)) continue;
    mark_access(p, array, info->rank, ACCESS_READ);
    if (!info->read_only) mark_access(p, array, info->rank, ACCESS_WRITE);
    mark_checked(p, array);
  }
}

static bool is_same_map(const kj_tensor_map *a, const kj_tensor_map *b)
{
  return memcmp(a, b, sizeof *a) == 0;
}

static void add_map(finder *p, const kt_expr *copy, kj_tensor_map map)
{
  kl_lowering *l = p->l;
  for (size_t i = 0; i < l->c->code->tensor_map_count; i++)
    if (is_same_map(&l->c->code->tensor_maps[i], &map)) return;
  if (l->c->code->tensor_map_count == KJ_MOST_MAPS)
    kt_fail(l->c, copy->location, KJIT_ERROR_UNSUPPORTED,
            "a kernel can have at most %d different kinds of tensor copies (array, element type "
            "and tile)",
            KJ_MOST_MAPS);
  l->c->code->tensor_maps[l->c->code->tensor_map_count++] = map;
}

/* Records a tensor copy. On a GPU, the tensor map contains the address and the array extents. On
 * the CPU, the kernel needs the address and the extents as parameters. */
static void mark_tensor_copy(finder *p, const kt_expr *copy)
{
  bool is_store = copy->builtin->id == KJ_BUILTIN_CP_ASYNC_TENSOR_STORE,
       has_maps = p->l->c->request->target.kind == KJ_TARGET_NVPTX;
  const uint64_t *set = sources_of(p, is_store ? copy->x : copy->y->x);
  kj_tensor_map map = kl_describe_map(p->l, copy);
  for (uint32_t d = 0; d < map.rank && !has_maps; d++) mark_dimension(p, set, d, true);
  for (uint32_t a = 0; has_maps && a < p->signature->count; a++) {
    map.argument = (uint16_t)a;
    if (has_bit(set + objects_of(p), a)) add_map(p, copy, map);
  }
}

static void mark_expr(void *data, kt_expr **at)
{
  finder *p = data;
  const kt_expr *expr = *at;
  bool has_subscript = expr->kind == KJ_T_LOAD || expr->kind == KJ_T_VIEW ||
                       expr->kind == KJ_T_ADDRESS || kt_accesses_place(expr);
  if (has_subscript && kl_check_of_expr(p->l, expr) != KJ_CHECK_NONE) mark_checked(p, expr->x);
  switch (expr->kind) {
  case KJ_T_VAR:
    if (p->instance->is_kernel && expr->var->kind == KJ_V_PARAM &&
        !kl_is_array_type(p->l, expr->type))
      p->l->uses[expr->var->argument].is_needed = true;
    return;
  case KJ_T_LOAD: mark_access(p, expr->x, expr->args.count, ACCESS_READ); return;
  case KJ_T_VIEW: mark_start(p, expr); return;
  /* code can later use the address for any access, so the kernel needs everything from which the
   * address is computed */
  case KJ_T_ADDRESS:
    if (info_of(p, expr->x->type)->space == KJ_SPACE_LOCAL) p->l->points_to_local = true;
    mark_access(p, expr->x, expr->args.count, ACCESS_READ);
    if (!info_of(p, expr->type)->read_only) mark_access(p, expr->x, expr->args.count, ACCESS_WRITE);
    return;
  case KJ_T_EXTENT: mark_dimension(p, sources_of(p, expr->x), expr->dimension, true); return;
  case KJ_T_STRIDE: mark_dimension(p, sources_of(p, expr->x), expr->dimension, false); return;
  case KJ_T_CALL:
    if (expr->instance->function->is_extern) mark_handed_out(p, expr);
    return;
  case KJ_T_BUILTIN:
    if (kl_is_tensor_copy(expr)) mark_tensor_copy(p, expr);
    if (expr->builtin->id == KJ_BUILTIN_PTX || expr->builtin->id == KJ_BUILTIN_PTX_EFFECT)
      p->writes_anywhere = true;
    if (expr->builtin->flags & KJ_PLACE)
      mark_access(p, expr->x, expr->indices.count, ACCESS_ATOMIC);
    if (expr->builtin->flags & KJ_PLACE) note_pointed(p, expr->x);
    if (expr->builtin->flags & KJ_READS) mark_access(p, expr->x, expr->indices.count, ACCESS_READ);
    return;
  case KJ_T_CONST:
  case KJ_T_UNARY:
  case KJ_T_BINARY:
  case KJ_T_COMPARE:
  case KJ_T_LOGIC:
  case KJ_T_COND:
  case KJ_T_CONVERT:
  case KJ_T_TUPLE:
  case KJ_T_ITEM:
  case KJ_T_ELEMENT:
  case KJ_T_INSERT:
  case KJ_T_MEMBER:
  case KJ_T_POINTED:
  case KJ_T_EMPTY: return; /* the expression itself uses no parameters */
  }
}

static void mark_stmt(void *data, kt_stmt *stmt)
{
  const finder *p = data;
  if (stmt->kind == KJ_TS_STORE &&
      kl_check_of(p->l, stmt->is_checked, stmt->is_left_out) != KJ_CHECK_NONE)
    mark_checked(data, stmt->array);
  if (stmt->kind == KJ_TS_STORE) mark_access(data, stmt->array, stmt->indices.count, ACCESS_WRITE);
  if (stmt->kind == KJ_TS_STORE) note_pointed(data, stmt->array);
}

static void walk_instances(finder *p, void (*visit_stmt)(void *, kt_stmt *),
                           void (*visit_expr)(void *, kt_expr **))
{
  for (size_t i = 0; i < p->l->c->instances.count; i++) {
    p->instance = p->l->c->instances.items[i];
    kt_walk_tstmts(&p->instance->body, visit_stmt, visit_expr, p);
  }
}

static void find_uses(finder *p)
{
  kt_compilation *c = p->l->c;
  p->part_words = p->signature->count * KJ_MAX_RANK / 64 + 1;
  p->words = objects_of(p) + p->signature->count / 64 + 1;
  p->sources = KJ_NEW_ARRAY(c->arena, uint64_t **, c->instances.count);
  p->results = KJ_NEW_ARRAY(c->arena, uint64_t *, c->instances.count);
  for (size_t i = 0; i < c->instances.count; i++) {
    const kt_instance *instance = c->instances.items[i];
    p->sources[i] =
      KJ_NEW_ARRAY(c->arena, uint64_t *, instance->params.count + instance->locals.count + 1);
  }
  seed_arguments(p, c->instances.items[0]);
  do {
    p->changed = false;
    walk_instances(p, flow_stmt, flow_expr);
  } while (p->changed);
  walk_instances(p, mark_stmt, mark_expr);
}

/* Finds the arguments whose memory the kernel cannot write, so that loads from them are
 * invariant. */
static void find_constant_arguments(finder *p)
{
  kl_argument_use *uses = p->l->uses;
  for (uint32_t a = 0; a < p->signature->count; a++) {
    /* A programmatic launch must not load data until it has waited for the previous launch, but an
     * invariant load could be moved before that wait. */
    bool is_constant = uses[a].is_read && !uses[a].is_written && !p->signature->is_programmatic &&
                       !p->writes_anywhere,
         relied = false;
    for (uint32_t b = 0; b < p->signature->count; b++) {
      if (b == a || !uses[b].is_written) continue;
      is_constant = is_constant && kl_relation(p->signature, a, b) == KJ_RELATION_DISJOINT;
      relied = true;
    }
    uses[a].is_constant = is_constant;
    if (is_constant && relied) p->l->c->used_disjoint = true;
  }
}

void kl_find_uses(kl_lowering *l)
{
  finder p = { .l = l, .signature = l->c->request->signature };
  l->uses = KJ_NEW_ARRAY(l->c->arena, kl_argument_use, p.signature->count + 1);
  const bool is_function = l->c->request->symbol; /* abi.c creates the parameters of a C function */
  if (is_function && !l->c->request->has_record) return;
  find_uses(&p);
  for (uint32_t a = 0; a < p.signature->count; a++) {
    bool may_write = l->uses[a].is_written || p.writes_anywhere;
    if (is_function) l->uses[a] = (kl_argument_use){ 0 };
    l->uses[a].may_write = may_write;
  }
  if (!is_function) find_constant_arguments(&p);
}

uint32_t kl_add_parameter(kl_lowering *l, kj_parameter parameter, kjit_type type,
                          uint32_t alignment)
{
  parameter.offset = (l->c->code->parameter_bytes + alignment - 1) / alignment * alignment;
  l->c->code->parameter_bytes = parameter.offset + parameter.size_bytes;
  kl_planned_parameter planned = { .parameter = parameter, .type = type };
  KJ_PUSH(l->c->arena, &l->parameters, planned);
  return parameter.offset;
}

static void add_part(kl_lowering *l, int kind, uint32_t argument, uint32_t dimension, uint32_t size)
{
  kj_parameter parameter = { .argument = (uint16_t)argument,
                             .dimension = (uint8_t)dimension,
                             .size_bytes = (uint8_t)size };
  parameter.kind = kind;
  parameter.may_write = kind == KJ_PARAMETER_POINTER && l->uses[argument].may_write;
  kl_add_parameter(l, parameter, KJIT_VOID, size);
}

/* Sets the limits of an untyped number. Other parameters have no limits. */
static void take_limits(const kl_lowering *l, uint32_t argument, kj_parameter *parameter)
{
  const kt_vars *params = &l->kernel->params;
  for (size_t i = 0; i < params->count; i++) {
    const kt_var *param = params->items[i];
    bool is_number = param->type == KJ_WEAK_INT || param->wide != KJIT_ANY;
    if (param->argument != argument || !is_number) continue;
    /* an untyped integer from the application has 32 bits, unless it can need more */
    bool is_wide = param->wide != KJIT_ANY;
    if (is_wide || param->least.value > INT32_MIN) parameter->least = param->least;
    if (is_wide || param->most.value < INT32_MAX) parameter->most = param->most;
  }
}

/* Adds a scalar parameter. part: see kj_parameter. */
static void add_scalar(kl_lowering *l, uint32_t argument, kjit_type type, uint32_t part)
{
  uint32_t size = kl_scalar_bytes(l, type);
  kj_parameter parameter = { .kind = KJ_PARAMETER_SCALAR,
                             .argument = (uint16_t)argument,
                             .size_bytes = (uint8_t)size,
                             .part = part };
  take_limits(l, argument, &parameter);
  kl_add_parameter(l, parameter, type, size);
}

/* Plans a separate parameter for each component of a value. Each parameter has the natural
 * alignment of its component, also in a value with another alignment. */
static void plan_value(kl_lowering *l, uint32_t argument, kjit_type type, uint32_t from)
{
  bool is_whole =
    kl_type_info(l, type)->class_ == KJ_CLASS_POINTER || !kl_is_composed_type(l, type);
  if (is_whole) {
    add_scalar(l, argument, type, 1 + from);
    return;
  }
  uint32_t count = kl_part_count(l, type);
  for (uint32_t i = 0; i < count; i++) {
    ki_component part = kl_get_part_info(l, type, i);
    plan_value(l, argument, part.type, from + part.offset_bytes);
  }
}

static void plan_scalar(kl_lowering *l, uint32_t argument, kjit_type type)
{
  if (kl_is_composed_type(l, type) && kl_type_info(l, type)->class_ != KJ_CLASS_POINTER)
    plan_value(l, argument, type, 0);
  else add_scalar(l, argument, type, 0);
}

static void plan_array(kl_lowering *l, uint32_t argument, const ki_type_info *info,
                       uint32_t index_bytes)
{
  const kl_argument_use *use = &l->uses[argument];
  bool is_used = use->is_read || use->is_written,
       is_shown = kl_shows_variables(l) || (is_used && kl_asserts_facts(l));
  if (is_used || is_shown) add_part(l, KJ_PARAMETER_POINTER, argument, 0, 8);
  for (uint32_t d = 0; d < info->rank; d++)
    if (use->extents[d] || is_shown) add_part(l, KJ_PARAMETER_EXTENT, argument, d, index_bytes);
  for (uint32_t d = 0; d < info->rank; d++)
    if (use->strides[d] || (is_shown && !kl_is_unit_stride(info, d)))
      add_part(l, KJ_PARAMETER_STRIDE, argument, d, index_bytes);
}

static void plan_maps(kl_lowering *l)
{
  for (size_t i = 0; i < l->c->code->tensor_map_count; i++) {
    kj_parameter parameter = { .kind = KJ_PARAMETER_TENSOR_MAP,
                               .argument = l->c->code->tensor_maps[i].argument,
                               .dimension = (uint8_t)i,
                               .size_bytes = KJ_MAP_BYTES };
    kl_add_parameter(l, parameter, KJIT_VOID, KJ_MAP_ALIGNMENT);
  }
}

static bool has_index_parameter(kl_lowering *l)
{
  for (size_t i = 0; i < l->parameters.count; i++)
    if (l->parameters.items[i].parameter.kind == KJ_PARAMETER_EXTENT ||
        l->parameters.items[i].parameter.kind == KJ_PARAMETER_STRIDE)
      return true;
  return false;
}

/* Adds entries for the untyped numbers of a C function and for the arrays to which it can write.
 * abi.c creates the actual parameters of the function. kjit_call_function uses the entries to check
 * the limits of the numbers, and that these arrays are not read-only. */
static void plan_checked(kl_lowering *l)
{
  const kj_signature *signature = l->c->request->signature;
  for (uint32_t a = 0; a < signature->count; a++) {
    if (signature->arguments[a].kind == KJ_ARGUMENT_NUMBER)
      add_scalar(l, a, signature->arguments[a].type, 0);
    if (signature->arguments[a].kind == KJ_ARGUMENT_ARRAY && l->uses[a].may_write)
      add_part(l, KJ_PARAMETER_POINTER, a, 0, 8);
  }
}

void kl_plan_parameters(kl_lowering *l)
{
  const kj_signature *signature = l->c->request->signature;
  kl_find_uses(l);
  if (l->c->request->symbol) {
    plan_checked(l);
    return;
  }
  if (signature->count > UINT16_MAX)
    kt_fail(l->c, l->kernel->function->params.items[UINT16_MAX]->location, KJIT_ERROR_UNSUPPORTED,
            "a kernel can have at most %d parameters, this one has %u", UINT16_MAX,
            signature->count);
  for (uint32_t a = 0; a < signature->count; a++) {
    const kj_argument *argument = &signature->arguments[a];
    if (argument->kind == KJ_ARGUMENT_ARRAY)
      plan_array(l, a, kl_type_info(l, argument->type), signature->offsets32 ? 4 : 8);
    bool is_scalar = argument->kind == KJ_ARGUMENT_VALUE || argument->kind == KJ_ARGUMENT_NUMBER;
    if (is_scalar && (l->uses[a].is_needed || kl_shows_variables(l)))
      plan_scalar(l, a, argument->type);
  }
  plan_maps(l);
  if (signature->offsets32 && has_index_parameter(l)) l->c->used_offsets32 = true;
}

static kj_location location_of(const kl_lowering *l, const kj_parameter *parameter)
{
  const ki_function *function = l->kernel->function;
  if (parameter->kind >= KJ_PARAMETER_SHARED_OFFSET) return function->decl->location;
  return function->params.items[parameter->argument]->location;
}

/* Checks the total size of the parameters. The CPU has the same limit as a recent GPU. */
void kl_check_parameters(kl_lowering *l)
{
  bool is_cpu = l->c->request->target.kind == KJ_TARGET_CPU,
       is_small = !is_cpu && l->c->ptx < KJ_LARGE_PARAMETER_PTX;
  uint32_t most = is_small ? KJ_SMALL_PARAMETER_BYTES : KJ_LARGE_PARAMETER_BYTES;
  size_t i = 0;
  if (l->c->code->parameter_bytes <= most) return;
  for (; l->parameters.items[i].parameter.offset + l->parameters.items[i].parameter.size_bytes <=
         most;
       i++) {}
  const char *version =
    is_cpu ? "" : kj_format(l->c->arena, " with PTX %u.%u", l->c->ptx / 10, l->c->ptx % 10);
  kt_fail(l->c, location_of(l, &l->parameters.items[i].parameter), KJIT_ERROR_UNSUPPORTED,
          "the parameters of `%s` take %u bytes, but the maximum is %u%s%s; pass large values in "
          "an array",
          l->kernel->function->decl->name, l->c->code->parameter_bytes, most, version,
          is_small ? " (32764 with PTX 8.1, which needs a driver for CUDA 12.1 or later)" : "");
}
