/* Type inference of the kernel's properties: its arguments and its launch attributes. */
#include "typing/infer.h"
#include "typing/rules.h"

/* ---- shared arrays with extents for each launch, and the limit of shared memory ---- */

/* ---- limits ---- */

/* Returns the maximum shared memory of a block. On a GPU this is the maximum that a kernel can
 * request ("opt-in"), not the default of 48 KiB. The table is from the CUDA C++ programming guide
 * (technical specifications per compute capability). The last row applies to newer devices. */
uint32_t kt_most_shared_bytes(const kj_target *target)
{
  enum { KIB = 1024, CPU_BYTES = 1024 * KIB };
  static const struct {
    uint32_t arch, bytes;
  } rows[] = { { 75, 64 * KIB },   { 80, 163 * KIB }, { 86, 99 * KIB },
               { 87, 163 * KIB },  { 89, 99 * KIB },  { 90, 227 * KIB },
               { 119, 227 * KIB }, { 121, 99 * KIB }, { UINT32_MAX, 227 * KIB } };
  if (target->kind == KJ_TARGET_CPU) return CPU_BYTES;
  size_t i = 0;
  while (target->arch > rows[i].arch) i++;
  return rows[i].bytes;
}

const char *kt_target_text(const kt_compilation *c)
{
  const kj_target *target = &c->request->target;
  return target->kind == KJ_TARGET_CPU ? "the CPU" : kj_format(c->arena, "sm_%u", target->arch);
}

/* ---- extents ---- */

/* Infers an extent only to find errors; the kernel does not compute it. stmts receives the
 * statements of the extent. */
static kt_expr *look_at(kt_scope *s, const ki_expr *extent, kt_stmts *stmts)
{
  kt_stmts *out = s->out;
  s->out = stmts;
  kt_expr *value = kt_infer_expr(s, extent);
  s->out = out;
  return value;
}

static void refuse(kt_scope *s, const kt_expr *part, const char *reason)
{
  kt_fail(s->c, part->location, KJIT_ERROR_TYPE,
          "an extent of a shared array must be known before the launch: use literals, constants, "
          "parameters, extents of arguments and blockDim; this expression %s",
          reason);
}

typedef struct extent_check {
  kt_scope *s;
  size_t first_temporary; /* variables with at least this index belong to the extent */
} extent_check;

static void check_part(void *data, kt_expr **part)
{
  const extent_check *check = data;
  kt_scope *s = check->s;
  const kt_expr *e = *part;
  switch (KJ_AMONG(e->kind)) {
  case KJ_T_LOAD: refuse(s, e, "loads an element of an array"); break;
  case KJ_T_CALL: refuse(s, e, "calls a function"); break;
  case KJ_T_VAR:
    if (e->var->index >= check->first_temporary) break;
    if (e->var->kind == KJ_V_VAR) refuse(s, e, "reads a variable that may change");
    if (e->var->kind == KJ_V_LOOP) refuse(s, e, "reads a loop variable");
    break;
  case KJ_T_BUILTIN:
    if (kt_level_of(s, e) != KJ_LEVEL_GRID)
      refuse(s, e, "has different values in different threads or blocks");
    if (e->builtin->id == KJ_BUILTIN_GRID_DIM || !(e->builtin->flags & KJ_PURE))
      refuse(s, e, "is not known before the launch");
    break;
  default: break;
  }
}

bool kt_has_runtime_extents(kt_scope *s, const ki_decl *decl)
{
  const ki_exprs *extents = &decl->type_expr->extents;
  if (decl->kind != KJ_DECL_SHARED || decl->type_expr->kind != KJ_TYPE_STATIC_ARRAY) return false;
  for (size_t i = 0; i < extents->count; i++) {
    kt_stmts ignored = { 0 };
    if (!kt_is_constant(look_at(s, extents->items[i], &ignored))) return true;
  }
  return false;
}

void kt_check_runtime_extents(kt_scope *s, const ki_decl *decl)
{
  const ki_exprs *extents = &decl->type_expr->extents;
  if (!s->instance->is_kernel)
    kt_fail(
      s->c, decl->location, KJIT_ERROR_UNSUPPORTED,
      "a shared array whose extents depend on the launch must be declared in the kernel; pass it "
      "to the function, or give the kernel a " KJ_PHRASE(
        BLOCK_SIZE, "@block") " known at compile time if the extents use blockDim");
  for (size_t i = 0; i < extents->count; i++) {
    kt_stmts before = { 0 };
    extent_check check = { s, s->instance->params.count + s->instance->locals.count };
    kt_expr *value = look_at(s, extents->items[i], &before);
    kt_walk_tstmts(&before, NULL, check_part, &check);
    kt_walk_texpr(&value, check_part, &check);
    if (!kt_is_integer(s->c, value->type))
      kt_fail_number(s->c, value->location, value->type,
                     "an extent of a shared array must be an integer, got %s",
                     kt_type_text(s->c, value->type));
  }
  if (extents->count > KJ_MAX_RANK)
    kt_fail(s->c, extents->items[KJ_MAX_RANK]->location, KJIT_ERROR_TYPE,
            "an array has at most %d dimensions", KJ_MAX_RANK);
  if (s->runtime_count++ == KJ_MOST_SHARED_ARRAYS)
    kt_fail(s->c, decl->location, KJIT_ERROR_UNSUPPORTED,
            "a kernel can have at most %d shared arrays whose extents depend on the launch",
            KJ_MOST_SHARED_ARRAYS);
}

/* ---- arguments ---- */

static bool fits_literal(const kt_compilation *c, kjit_type weak, kjit_type type)
{
  return weak == KJ_WEAK_INT ? kt_is_number(c, type) : kt_is_float(c, type);
}

static void fail_argument(kt_inference *inference, const ki_decl *param, kjit_type want,
                          kjit_type have)
{
  kt_compilation *c = inference->c;
  bool is_number = ki_is_scalar(want) && kt_is_number(c, have);
  bool is_reason_const = kt_is_array(c, want) && kt_is_array(c, have) &&
                         ki_type(c->types, have)->read_only && !ki_type(c->types, want)->read_only;
  const char *have_text = have == KJ_WEAK_INT     ? "an integer"
                          : have == KJ_WEAK_FLOAT ? "a float"
                                                  : kt_type_text(c, have);
  kt_fail(c, param->location, KJIT_ERROR_TYPE,
          "parameter `%s` is declared as %s, but the argument has the type %s%s", param->name,
          kt_type_text(c, want), have_text,
          is_reason_const ? ", which is read-only"
          : is_number     ? ", which cannot represent it exactly"
                          : "");
}

static kjit_type make_read_only(kt_compilation *c, kjit_type type)
{
  ki_type_info info = *ki_type(c->types, type);
  info.read_only = true;
  kjit_type made = ki_intern_array(c->types, &info);
  if (made == KJIT_ANY) longjmp(*c->on_failure, KJ_JUMP_MEMORY);
  return made;
}

static void check_argument(kt_inference *inference, const ki_decl *param,
                           const kj_argument *argument, kt_bound *bound, kjit_type annotation)
{
  kt_compilation *c = inference->c;
  kjit_type type = argument->type;
  if (argument->kind == KJ_ARGUMENT_FUNCTION) return;
  if (annotation == KJIT_ANY) return;
  if (kt_is_array(c, annotation) || kt_is_array(c, type)) {
    if (!kt_is_array(c, annotation) || !kt_is_array(c, type) || !kt_array_fits(c, type, annotation))
      fail_argument(inference, param, annotation, type);
    if (ki_type(c->types, annotation)->read_only) bound->type = make_read_only(c, type);
    return;
  }
  if (kt_is_composed(c, annotation) || kt_is_composed(c, type)) {
    const ki_type_info *have = ki_type(c->types, type), *want = ki_type(c->types, annotation);
    bool is_pointer = have->class_ == KJ_CLASS_POINTER && want->class_ == KJ_CLASS_POINTER;
    bool adds_const = is_pointer && have->element == want->element && want->read_only;
    if (adds_const) bound->type = annotation;
    if (bound->type == annotation) return;
    bool converts = ki_is_scalar(annotation) && !kt_is_pointer(c, type) && !kt_is_struct(c, type) &&
                    !kt_is_vector(c, type);
    if (!converts) fail_argument(inference, param, annotation, type);
  }
  bool fits = ki_is_scalar(annotation) && (ki_is_weak(type) ? fits_literal(c, type, annotation)
                                                            : kt_scalar_fits(c, type, annotation));
  if (!fits) fail_argument(inference, param, annotation, type);
  if (argument->kind != KJ_ARGUMENT_CONST) return;
  kt_scope outside;
  kt_init_scope(&outside, inference);
  kt_expr *value = kt_new_value(&outside, (ki_value){ type, bound->integer }, param->location);
  value = kt_convert(&outside, value, annotation, param->location);
  *bound = (kt_bound){ .kind = KJ_BOUND_CONST, .type = annotation, .integer = value->integer };
}

static kt_bound bound_of(kt_compilation *c, const ki_decl *param, const kj_argument *argument)
{
  bool is_function = argument->kind == KJ_ARGUMENT_FUNCTION,
       is_const = argument->kind == KJ_ARGUMENT_CONST;
  if (param->is_type)
    kt_fail(
      c, param->location, KJIT_ERROR_UNSUPPORTED,
      "parameter `%s` takes a type, which a launch cannot pass; only other functions can call "
      "this function",
      param->name);
  if (param->is_func != is_function)
    kt_fail(c, param->location, KJIT_ERROR_TYPE, "parameter `%s` takes %s", param->name,
            param->is_func ? "a function" : "a value, not a function");
  if (param->is_const && !is_const)
    kt_fail(c, param->location, KJIT_ERROR_TYPE,
            "const parameter `%s` takes a value known at compile time", param->name);
  const ki_function *callee;
  switch (KJ_AMONG(argument->kind)) {
  case KJ_ARGUMENT_FUNCTION:
    callee = argument->function->function;
    return (kt_bound){ .kind = KJ_BOUND_CALLEE,
                       .callee = { .function = callee->builtin ? NULL : callee,
                                   .builtin = callee->builtin } };
  case KJ_ARGUMENT_CONST:
    return (
      kt_bound){ .kind = KJ_BOUND_CONST, .type = argument->type, .integer = argument->integer };
  case KJ_ARGUMENT_NUMBER:
    if (ki_is_weak(argument->type))
      return (kt_bound){ .kind = KJ_BOUND_WEAK, .type = argument->type };
    return (kt_bound){ .kind = KJ_BOUND_WEAK, .type = KJ_WEAK_INT, .wide = argument->type };
  default: return (kt_bound){ .kind = KJ_BOUND_VALUE, .type = argument->type };
  }
}

static bool is_double(const kt_compilation *c, const kj_argument *argument)
{
  if (argument->kind == KJ_ARGUMENT_FUNCTION) return false;
  const ki_type_info *info = ki_type(c->types, argument->type);
  return argument->type == KJIT_F64 ||
         (info->class_ == KJ_CLASS_ARRAY && info->element == KJIT_F64);
}

kt_bound *kt_bind_signature(kt_inference *inference, const ki_function *kernel)
{
  kt_compilation *c = inference->c;
  const kj_signature *signature = c->request->signature;
  size_t count = kernel->params.count;
  if (signature->count != count)
    kt_fail(c, kernel->decl->location, KJIT_ERROR_TYPE,
            "kernel `%s` has %zu parameter%s, but the signature has %u", kernel->decl->name, count,
            count == 1 ? "" : "s", signature->count);
  kt_bound *bounds = KJ_NEW_ARRAY(c->arena, kt_bound, count + 1);
  for (size_t i = 0; i < count; i++) {
    bounds[i] = bound_of(c, kernel->params.items[i], &signature->arguments[i]);
    inference->has_double |= is_double(c, &signature->arguments[i]);
  }
  for (size_t i = 0; i < count; i++)
    check_argument(inference, kernel->params.items[i], &signature->arguments[i], &bounds[i],
                   kt_infer_annotation(inference, kernel, bounds, i));
  return bounds;
}

/* ---- launch attributes of a kernel ---- */

static int64_t read_bound(kt_scope *s, const ki_attribute *attribute, size_t index,
                          const char *what)
{
  if (index >= attribute->values.count) return 0;
  int64_t value = kt_infer_constant(s, attribute->values.items[index], what);
  if (value < 1 || value > INT32_MAX)
    kt_fail(s->c, attribute->values.items[index]->location, KJIT_ERROR_TYPE,
            "%s must be from 1 to 2147483647, got %lld", what, (long long)value);
  return value;
}

static void infer_launch_bounds(kt_scope *s)
{
  const ki_attribute *attribute =
    ki_get_attribute(&s->function->attributes, KJ_ATTRIBUTE_LAUNCH_BOUNDS);
  if (!attribute) return;
  s->c->code->max_threads =
    (uint32_t)read_bound(s, attribute, 0, "the number of threads in @launch_bounds");
  s->instance->min_blocks =
    (uint32_t)read_bound(s, attribute, 1, "the number of blocks in @launch_bounds");
  s->instance->max_cluster =
    (uint32_t)read_bound(s, attribute, 2, "the number of blocks of a cluster in @launch_bounds");
  const kj_target *target = &s->c->request->target;
  if (s->instance->max_cluster && target->kind == KJ_TARGET_NVPTX && target->arch < 90)
    kt_fail(s->c, attribute->values.items[2]->location, KJIT_ERROR_UNSUPPORTED,
            "the third value of @launch_bounds limits the cluster size, but sm_%u has no clusters; "
            "they need sm_90 or later",
            target->arch);
}

static void infer_max_registers(kt_scope *s)
{
  enum { MOST_REGISTERS = 255 };
  const ki_attribute *attribute =
    ki_get_attribute(&s->function->attributes, KJ_ATTRIBUTE_MAX_REGISTERS);
  if (!attribute) return;
  int64_t count = read_bound(s, attribute, 0, "the number of registers in @max_registers");
  if (count > MOST_REGISTERS)
    kt_fail(s->c, attribute->values.items[0]->location, KJIT_ERROR_TYPE,
            "@max_registers takes at most %d registers, got %lld", MOST_REGISTERS,
            (long long)count);
  s->instance->max_registers = (uint32_t)count;
}

/* Evaluates @block as far as it is known at compile time. At launch, the runtime evaluates values
 * that depend on extents and arguments. */
static void infer_shape(kt_scope *s, ki_attribute_id id, uint32_t *shape)
{
  const ki_attribute *attribute = ki_get_attribute(&s->function->attributes, id);
  if (!attribute) return;
  kt_stmts ignored = { 0 }, *out = s->out;
  s->out = &ignored;
  for (size_t i = 0; i < 3 && shape; i++) shape[i] = 1;
  for (size_t i = 0; i < attribute->values.count && i < 3; i++) {
    const ki_expr *expr = attribute->values.items[i];
    kt_expr *value = kt_infer_expr(s, expr);
    const char *name = attribute->info->name;
    if (!kt_is_integer(s->c, value->type))
      kt_fail_number(s->c, expr->location, value->type, "@%s takes integers, got %s", name,
                     kt_type_text(s->c, value->type));
    bool is_known = kt_is_constant(value);
    if (is_known && (value->integer < 1 || value->integer > INT32_MAX))
      kt_fail(s->c, expr->location, KJIT_ERROR_TYPE, "@%s takes positive numbers, got %s", name,
              kt_integer_text(s->arena, value->integer));
    if (shape) shape[i] = is_known ? (uint32_t)value->integer : 0;
  }
  s->out = out;
}

/* Evaluates @cluster. All devices allow 8 blocks, and some devices allow up to 16. */
static void infer_cluster(kt_scope *s)
{
  enum { MOST_BLOCKS = 16 };
  const ki_attribute *attribute = ki_get_attribute(&s->function->attributes, KJ_ATTRIBUTE_CLUSTER);
  if (!attribute) return;
  uint64_t count = 1;
  for (size_t i = 0; i < 3; i++) {
    bool is_given = i < attribute->values.count;
    s->c->code->cluster[i] =
      is_given ? (uint32_t)read_bound(s, attribute, i, "an extent in @cluster") : 1;
    count *= s->c->code->cluster[i];
    if (count > MOST_BLOCKS)
      kt_fail(s->c, attribute->values.items[is_given ? i : 0]->location, KJIT_ERROR_TYPE,
              "a cluster can have at most %d blocks; this one has %llu", MOST_BLOCKS,
              (unsigned long long)count);
  }
  uint32_t most = s->instance->max_cluster;
  if (most && count > most)
    kt_fail(s->c, attribute->values.items[0]->location, KJIT_ERROR_TYPE,
            "@cluster has %llu blocks, but @launch_bounds allows at most %u",
            (unsigned long long)count, most);
  kt_require_arch(s, "@cluster", attribute->values.items[0]->location, 90, 0, 78);
}

/* Evaluates @block. Its expressions are not part of the kernel, so their variables are
 * discarded. */
void kt_infer_block_shape(kt_scope *s)
{
  size_t local_count = s->instance->locals.count;
  bool uses_positions = s->instance->uses_positions;
  infer_shape(s, KJ_ATTRIBUTE_BLOCK, s->inference->block);
  s->instance->locals.count = local_count;
  s->instance->uses_positions = uses_positions;
}

void kt_infer_launch(kt_scope *s)
{
  kt_instance *instance = s->instance;
  kt_instance flags = *instance;
  size_t local_count = instance->locals.count;
  infer_launch_bounds(s);
  infer_cluster(s);
  infer_max_registers(s);
  infer_shape(s, KJ_ATTRIBUTE_GRID, NULL);
  const uint32_t *written = s->inference->block, *given = s->c->request->signature->block;
  for (int i = 0; i < 3; i++) instance->block[i] = written[i] ? written[i] : given[i];
  /* also discards the variables of these expressions */
  instance->locals.count = local_count;
  instance->uses_positions = flags.uses_positions;
}
