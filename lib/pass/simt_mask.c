/* Which threads are active: the slot variable `off`, see simt.c. */
#include "pass/simt_build.h"

enum { PLACES_A_SITE = 2 };

static kj_tvar *off_of(kj_simt_builder *b)
{
  kj_instance *kernel = b->s->kernel;
  if (!kernel->off) {
    kernel->off = kj_new_local(b->s, KJ_V_VAR, "off", KJIT_I32, kj_no_location());
    kernel->off->simt = KJ_NEW(b->s->c->arena, kj_simt_variable);
  }
  return kernel->off;
}

static uint32_t site_of(kj_simt_builder *b, kj_tstmt *stmt)
{
  if (!stmt->site) stmt->site = ++b->s->site_count;
  return stmt->site;
}

int64_t kj_off_code(kj_simt_builder *b, kj_tstmt *stmt, kj_off_place place)
{
  return KJ_OFF_LEFT_KERNEL + 1 + (int64_t)(site_of(b, stmt) - 1) * PLACES_A_SITE + place;
}

kj_texpr *kj_off_value(kj_simt_builder *b) { return kj_new_var(b->s, off_of(b), kj_no_location()); }
kj_texpr *kj_off_const(kj_simt_builder *b, int64_t value)
{
  return kj_new_const(b->s, KJIT_I32, value, kj_no_location());
}
kj_texpr *kj_off_is(kj_simt_builder *b, int64_t value)
{
  return kj_new_compare(b->s, KJIT_EQ, kj_off_value(b), kj_off_const(b, value));
}
kj_tstmt *kj_set_off(kj_simt_builder *b, kj_texpr *value)
{
  return kj_new_assign(b->s, off_of(b), value);
}

bool kj_is_masked(const kj_simt_builder *b, const kj_simt_position *position)
{
  return b->has_left || position->divergence != NULL;
}

void kj_guard(kj_simt_builder *b, kj_tstmt *stmt, const kj_simt_position *position)
{
  stmt->is_guarded = kj_is_masked(b, position);
  b->s->reads_off |= stmt->is_guarded;
}

void kj_restore_active(kj_simt_builder *b, kj_tstmt *stmt, kj_off_place place,
                       const kj_simt_position *position)
{
  b->s->reads_off = true;
  kj_push_for_all(b,
                  kj_set_off(b, kj_new_cond(b->s, kj_off_is(b, kj_off_code(b, stmt, place)),
                                            kj_off_const(b, 0), kj_off_value(b))),
                  position);
}

/* ---- the end ---- */

/* Nobody asks which threads are off: only the last run turns some off. */
static kj_tstmts drop_off(kj_simt_builder *b, const kj_tstmts *list)
{
  kj_tstmts kept = { 0 };
  for (size_t i = 0; i < list->count; i++) {
    kj_tstmt *stmt = list->items[i];
    if (stmt->kind == KJ_TS_ASSIGN && stmt->var == b->s->kernel->off) continue;
    stmt->body = drop_off(b, &stmt->body);
    stmt->otherwise = drop_off(b, &stmt->otherwise);
    if (stmt->kind == KJ_TS_THREADS && !stmt->body.count) continue;
    kj_append_stmt(b->s, &kept, stmt);
  }
  return kept;
}

/* Takes a variable that nothing mentions any more off the kernel's list. */
static void drop_local(kj_instance *kernel, const kj_tvar *var)
{
  size_t kept = 0;
  for (size_t i = 0; i < kernel->locals.count; i++) {
    kj_tvar *local = kernel->locals.items[i];
    if (local == var) continue;
    local->index = (uint32_t)(kernel->params.count + kept);
    kernel->locals.items[kept++] = local;
  }
  kernel->locals.count = kept;
}

void kj_settle_off(kj_simt_builder *b)
{
  kj_instance *kernel = b->s->kernel;
  if (!kernel->off) return;
  if (b->s->reads_off) {
    kernel->off->is_slot = true;
    return;
  }
  kernel->body = drop_off(b, &kernel->body);
  drop_local(kernel, kernel->off);
  kernel->off = NULL;
}
