/* Runs of statements without synchronization: each becomes one THREADS. Uniform assignments are
 * moved in front of the run that they interrupt. */
#include "pass/simt_build.h"

void kj_flush_run(kj_simt_builder *b)
{
  if (!b->run.count) return;
  kj_tstmt *threads = kj_new_tstmt(b->s->c, KJ_TS_THREADS, b->run.items[0]->location);
  threads->body = b->run;
  threads->is_guarded = b->is_run_guarded;
  b->s->reads_off |= threads->is_guarded;
  kj_append_stmt(b->s, b->out, threads);
  b->run = (kj_tstmts){ 0 };
  b->run_number++;
  b->run_writes = false;
}

void kj_emit_joint(kj_simt_builder *b, kj_tstmt *stmt) { kj_append_stmt(b->s, b->out, stmt); }

static void mention(void *data, kj_texpr **expr)
{
  kj_simt_builder *b = data;
  const kj_tvar *var = (*expr)->kind == KJ_T_VAR ? (*expr)->var : NULL;
  if (var && var->simt) var->simt->run = b->run_number;
}

static void append_to_run(kj_simt_builder *b, kj_tstmt *stmt)
{
  kj_tstmts one = { .items = &stmt, .count = 1 };
  kj_walk_tstmts(&one, NULL, mention, b);
  kj_simt_effects effects = { 0 };
  kj_find_stmt_effects(stmt, &effects);
  b->run_writes |= effects.writes;
  kj_append_stmt(b->s, &b->run, stmt);
}

/* A run that started before some of them were turned off goes on: those have jumped to its end. */
void kj_push_active(kj_simt_builder *b, kj_tstmt *stmt, const kj_simt_position *position)
{
  bool masked = kj_is_masked(b, position);
  if (b->run.count && !b->is_run_guarded && b->is_run_masked && masked) kj_flush_run(b);
  if (!b->run.count) b->is_run_guarded = b->is_run_masked = masked;
  append_to_run(b, stmt);
  if (kj_stmt_may_fail(stmt)) b->has_left = true;
}

void kj_push_for_all(kj_simt_builder *b, kj_tstmt *stmt, const kj_simt_position *position)
{
  kj_flush_run(b);
  b->is_run_guarded = false;
  b->is_run_masked = kj_is_masked(b, position);
  append_to_run(b, stmt);
}

static bool is_assigned_in_run(const kj_simt_builder *b, const kj_tstmt *stmt)
{
  if ((stmt->kind == KJ_TS_ASSIGN || stmt->kind == KJ_TS_FOR) && stmt->var->simt &&
      stmt->var->simt->run == b->run_number)
    return true;
  for (size_t i = 0; i < stmt->body.count; i++)
    if (is_assigned_in_run(b, stmt->body.items[i])) return true;
  for (size_t i = 0; i < stmt->otherwise.count; i++)
    if (is_assigned_in_run(b, stmt->otherwise.items[i])) return true;
  return false;
}

void kj_build_scalar(kj_simt_builder *b, kj_tstmt *stmt)
{
  kj_simt_effects effects = { 0 };
  kj_find_stmt_effects(stmt, &effects);
  if (is_assigned_in_run(b, stmt) || (effects.loads && b->run_writes)) kj_flush_run(b);
  stmt->body = kj_drop_declarations(b->s, &stmt->body);
  stmt->otherwise = kj_drop_declarations(b->s, &stmt->otherwise);
  kj_emit_joint(b, stmt);
}

kj_tvar *kj_new_uniform(kj_simt_builder *b, const char *name, kjit_type type, kj_location location)
{
  kj_tvar *var = kj_new_local(b->s, KJ_V_LET, name, type, location);
  var->is_uniform = true;
  return var;
}
