/* Shared arrays whose extents the dispatcher evaluates for each launch, and how much shared memory
 * there is. */
#include "typing/infer.h"

/* ---- limits ---- */

/* Of one block, after opting in: the CUDA C++ programming guide, technical specifications per
 * compute capability. The last row is for what is newer. */
uint32_t kj_most_shared_bytes(const kj_target *target)
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

const char *kj_target_text(const kj_compilation *c)
{
  const kj_target *target = &c->request->target;
  return target->kind == KJ_TARGET_CPU ? "the CPU" : kj_format(c->arena, "sm_%u", target->arch);
}

/* ---- extents ---- */

/* Looked at only: nothing of it is computed by the kernel. */
static kj_texpr *look_at(kj_scope *s, const kj_expr *extent)
{
  kj_tstmts ignored = { 0 }, *out = s->out;
  s->out = &ignored;
  kj_texpr *value = kj_infer_expr(s, extent);
  s->out = out;
  return value;
}

static void refuse(kj_scope *s, const kj_texpr *part, const char *reason)
{
  kj_fail(s->c, part->location, KJIT_ERROR_TYPE,
          "an extent of a shared array is made of literals, constants, parameters, extents of "
          "arguments and blockDim, which are known before the launch; this %s",
          reason);
}

static void check_list(kj_scope *s, const kj_texprs *list);

static void check_part(kj_scope *s, const kj_texpr *e)
{
  if (!e) return;
  switch (e->kind) {
  case KJ_T_LOAD: refuse(s, e, "is an element of an array"); break;
  case KJ_T_CALL: refuse(s, e, "calls a func"); break;
  case KJ_T_VAR:
    if (e->var->kind == KJ_V_VAR) refuse(s, e, "is a variable that may change");
    if (e->var->kind == KJ_V_LOOP) refuse(s, e, "is the variable of a loop");
    break;
  case KJ_T_BUILTIN:
    if (kj_level_of(s, e) != KJ_LEVEL_GRID) refuse(s, e, "differs between threads or blocks");
    if (e->builtin->id == KJ_BUILTIN_GRID_DIM || !(e->builtin->flags & KJ_PURE))
      refuse(s, e, "is not known then");
    break;
  default: break;
  }
  check_part(s, e->x);
  check_part(s, e->y);
  check_part(s, e->z);
  check_list(s, &e->args);
}

static void check_list(kj_scope *s, const kj_texprs *list)
{
  for (size_t i = 0; i < list->count; i++) check_part(s, list->items[i]);
}

bool kj_has_runtime_extents(kj_scope *s, const kj_decl *decl)
{
  const kj_exprs *extents = &decl->type_expr->extents;
  if (decl->kind != KJ_DECL_SHARED || decl->type_expr->kind != KJ_TYPE_STATIC_ARRAY) return false;
  for (size_t i = 0; i < extents->count; i++)
    if (!kj_is_constant(look_at(s, extents->items[i]))) return true;
  return false;
}

void kj_check_runtime_extents(kj_scope *s, const kj_decl *decl)
{
  const kj_exprs *extents = &decl->type_expr->extents;
  for (size_t i = 0; i < extents->count; i++) {
    kj_texpr *value = look_at(s, extents->items[i]);
    check_part(s, value);
    if (!kj_is_integer(s->c, value->type))
      kj_fail(s->c, value->location, KJIT_ERROR_TYPE,
              "an extent of a shared array must be an integer, got %s",
              kj_type_text(s->c, value->type));
  }
  if (extents->count > KJ_MAX_RANK)
    kj_fail(s->c, extents->items[KJ_MAX_RANK]->location, KJIT_ERROR_TYPE,
            "an array has at most %d dimensions", KJ_MAX_RANK);
  if (!s->instance->is_kernel)
    kj_fail(
      s->c, decl->location, KJIT_ERROR_UNSUPPORTED,
      "a shared array with extents of the launch is declared in the kernel; hand it to the func");
  if (s->runtime_count++ == KJ_MOST_SHARED_ARRAYS)
    kj_fail(s->c, decl->location, KJIT_ERROR_UNSUPPORTED,
            "a kernel has at most %d shared arrays with extents of the launch",
            KJ_MOST_SHARED_ARRAYS);
}
