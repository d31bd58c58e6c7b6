/* Scopes: what inference knows of the function that it is in. */
#include <string.h>

#include "typing/infer.h"

enum { WORK_LIMIT = 4000000 };

void kj_init_scope(kj_scope *s, kj_inference *inference)
{
  memset(s, 0, sizeof *s);
  s->inference = inference;
  s->c = inference->c;
  s->arena = inference->c->arena;
}

void kj_count_work(kj_inference *inference, kj_location location)
{
  if (++inference->work > WORK_LIMIT)
    kj_fail(inference->c, location, KJIT_ERROR_UNSUPPORTED,
            "this specialization is too large: more than %d statements and expressions over all "
            "instances of its functions",
            WORK_LIMIT);
}

kj_tvar *kj_add_variable(kj_scope *s, kj_tvar_kind kind, const char *name, kjit_type type,
                         kj_location location, kj_level level)
{
  if (!s->instance)
    kj_fail(s->c, location, KJIT_ERROR_TYPE,
            "only constants and arithmetic on them can stand here");
  kj_tvar *var = kj_new_tvar(s->c, s->instance, kind, name, type, location);
  KJ_PUSH(s->arena, &s->levels, level);
  return var;
}

void kj_bind_variable(kj_scope *s, const kj_decl *decl, kj_tvar *var)
{
  s->meanings[decl->index] = (kj_meaning){ .kind = KJ_MEANS_VARIABLE, .var = var };
}

void kj_bind_value(kj_scope *s, const kj_decl *decl, kj_texpr *value)
{
  s->meanings[decl->index] = (kj_meaning){ .kind = KJ_MEANS_VALUE, .value = value };
}
