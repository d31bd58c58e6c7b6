/* Advice on how a kernel walks its arrays. GPU only.
 *
 * Neighbouring threads, by threadIdx.x, should read neighbouring elements: then a warp's accesses
 * are few transactions. Where threadIdx.x is in an index of an array of rows, and the last index,
 * the contiguous one, does not depend on it, they are a row apart. Needs typed instances; changes
 * nothing. */
#include "typing/typed.h"

enum { MOST_REMARKS = 4 };

typedef struct pass {
  kj_compilation *c;
  bool *follows; /* by variable: its value differs between neighbouring threads */
  bool has_changed;
  uint32_t count;
} pass;

/* ---- what depends on threadIdx.x ---- */

static bool follows_x(const pass *p, const kj_texpr *e);

static bool any_follows(const pass *p, const kj_texprs *list)
{
  for (size_t i = 0; i < list->count; i++)
    if (follows_x(p, list->items[i])) return true;
  return false;
}

static bool is_position_x(const kj_texpr *e)
{
  if (e->kind != KJ_T_BUILTIN) return false;
  bool is_first = e->builtin->id == KJ_BUILTIN_THREAD_IDX || e->builtin->id == KJ_BUILTIN_GRID;
  return (is_first && e->dimension == 0) || e->builtin->id == KJ_BUILTIN_THREAD_RANK ||
         e->builtin->id == KJ_BUILTIN_LANEID;
}

/* What is loaded may be anything. */
static bool follows_x(const pass *p, const kj_texpr *e)
{
  if (!e || e->kind == KJ_T_LOAD || e->kind == KJ_T_CALL) return false;
  if (e->kind == KJ_T_VAR) return p->follows[e->var->index];
  return is_position_x(e) || follows_x(p, e->x) || follows_x(p, e->y) || follows_x(p, e->z) ||
         any_follows(p, &e->args);
}

static void set_follows(pass *p, const kj_tvar *var)
{
  if (p->follows[var->index]) return;
  p->follows[var->index] = p->has_changed = true;
}

static void skip(void *data, kj_texpr **at) { (void)data, (void)at; }

static void follow_stmt(void *data, kj_tstmt *stmt)
{
  pass *p = data;
  if (stmt->kind == KJ_TS_ASSIGN && follows_x(p, stmt->value)) set_follows(p, stmt->var);
  if (stmt->kind == KJ_TS_FOR && follows_x(p, stmt->first)) set_follows(p, stmt->var);
  bool is_range = stmt->kind == KJ_TS_GRID_FOR || stmt->kind == KJ_TS_BLOCK_FOR;
  if (is_range) set_follows(p, stmt->vars.items[stmt->vars.count - 1]);
}

/* ---- accesses ---- */

static void look_at(pass *p, const kj_texpr *array, const kj_texprs *indices, kj_location location)
{
  const kj_type_info *info = kj_type(p->c->types, array->type);
  bool is_rows = info->space == KJ_SPACE_GLOBAL && info->rank > 1 && indices->count == info->rank;
  if (!is_rows || info->layout == KJIT_LAYOUT_STRIDED || p->count >= MOST_REMARKS) return;
  bool is_c = info->layout == KJIT_LAYOUT_C, walks = false;
  uint32_t contiguous = is_c ? info->rank - 1 : 0;
  const kj_texpr *along = indices->items[contiguous];
  /* a constant: the parts of a record */
  if (along->kind == KJ_T_CONST || follows_x(p, along)) return;
  for (uint32_t d = 0; d < info->rank; d++)
    walks = walks || (d != contiguous && follows_x(p, indices->items[d]));
  if (!walks) return;
  p->count++;
  const char *name = array->kind == KJ_T_VAR && array->var->name ? array->var->name : "the array";
  kj_warn(p->c, location, KJIT_SEVERITY_REMARK,
          "neighbouring threads (threadIdx.x) are a %s of `%s` apart here: the %s index is the "
          "contiguous one; let threadIdx.x be in it",
          is_c ? "row" : "column", name, is_c ? "last" : "first");
}

static void look_expr(void *data, kj_texpr **at)
{
  const kj_texpr *e = *at;
  if (e->kind == KJ_T_LOAD) look_at(data, e->x, &e->args, e->location);
}

static void look_stmt(void *data, kj_tstmt *stmt)
{
  if (stmt->kind == KJ_TS_STORE) look_at(data, stmt->array, &stmt->indices, stmt->location);
}

void kj_remark_strides(kj_compilation *c)
{
  pass p = { .c = c };
  for (size_t i = 0; i < c->instances.count; i++) {
    kj_instance *instance = c->instances.items[i];
    p.follows = KJ_NEW_ARRAY(c->arena, bool, instance->params.count + instance->locals.count + 1);
    do {
      p.has_changed = false;
      kj_walk_tstmts(&instance->body, follow_stmt, skip, &p);
    } while (p.has_changed);
    kj_walk_tstmts(&instance->body, look_stmt, look_expr, &p);
  }
}
