/* What holds across functions: bounded call depth, recursion apart, and nothing in a grid_range or
 * block_range, also through calls, that its independent iterations could not do. A function handed
 * over as an argument counts as called where it is handed over. */
#include "ir/verify.h"

enum { MAX_CALL_HEIGHT = 100 };

static kj_summary *summary_of(kj_verifier *v, const kj_decl *decl)
{
  return &v->summaries[decl->index];
}

static void visit(kj_verifier *v, const kj_decl *decl, uint32_t depth)
{
  kj_summary *summary = summary_of(v, decl);
  if (summary->state == 2) return;
  summary->state = 1;
  summary->height = 1;
  for (size_t i = 0; i < summary->calls.count; i++) {
    const kj_call_site *site = &summary->calls.items[i];
    kj_summary *callee = summary_of(v, site->callee);
    /* recursion: whether its types can be known is seen when it is typed */
    if (callee->state == 1) continue;
    if (depth < MAX_CALL_HEIGHT) visit(v, site->callee, depth + 1);
    if (depth >= MAX_CALL_HEIGHT || callee->height >= MAX_CALL_HEIGHT) {
      kj_fail_verify(v, site->location, KJIT_ERROR_UNSUPPORTED,
                     "calls nest more than %d functions deep", MAX_CALL_HEIGHT);
      longjmp(*v->arena->on_failure, KJ_JUMP_ERROR);
    }
    if (callee->height + 1 > summary->height) summary->height = callee->height + 1;
    if (callee->forbidden && !summary->forbidden) {
      summary->forbidden = callee->forbidden;
      summary->forbidden_at = callee->forbidden_at;
    }
  }
  summary->state = 2;
}

static void verify_ranges(kj_verifier *v, const kj_decl *decl)
{
  const kj_summary *summary = summary_of(v, decl);
  for (size_t i = 0; i < summary->calls.count; i++) {
    const kj_call_site *site = &summary->calls.items[i];
    const kj_summary *callee = summary_of(v, site->callee);
    if (!site->range || !callee->forbidden) continue;
    kj_fail_verify(
      v, site->location, KJIT_ERROR_TYPE,
      "`%s` is called inside a %s and holds %s: iterations are independent and run in any order",
      site->callee->name, kj_range_names[site->range->range], callee->forbidden);
    kj_note_verify(v, callee->forbidden_at, "%s is here", callee->forbidden);
  }
}

void kj_verify_calls(kj_verifier *v)
{
  const kjit_module *module = v->module;
  for (size_t i = 0; i < module->decls.count; i++)
    if (module->decls.items[i]->kind == KJ_DECL_FUNCTION) visit(v, module->decls.items[i], 0);
  for (size_t i = 0; i < module->decls.count; i++)
    if (module->decls.items[i]->kind == KJ_DECL_FUNCTION) verify_ranges(v, module->decls.items[i]);
}
