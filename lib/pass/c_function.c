/* Functions that others call as C functions: what has no meaning without a kernel around it is
 * refused.
 *
 * Needs: typed instances, checks marked. Guarantees: on the CPU nothing asks for a thread, a block
 * or a grid; nobody prints; who may fail has a record to say so in, or none does and failing ends
 * the program, as abort does in C. */
#include "typing/typed.h"

typedef struct finder {
  kj_compilation *c;
  const char *what; /* the first thing that needs a kernel */
  kj_location location;
} finder;

static void found(finder *f, const char *what, kj_location location)
{
  if (f->what) return;
  f->what = what;
  f->location = location;
}

static void find_in_expr(void *data, kj_texpr **at)
{
  const kj_texpr *e = *at;
  if (e->kind == KJ_T_BUILTIN && (e->builtin->flags & (KJ_THREAD | KJ_BARRIER | KJ_WARP)))
    found(data, e->builtin->name, e->location);
}

static void find_in_stmt(void *data, kj_tstmt *stmt)
{
  if (stmt->kind == KJ_TS_GRID_FOR) found(data, "grid_range", stmt->location);
  if (stmt->kind == KJ_TS_BLOCK_FOR) found(data, "block_range", stmt->location);
}

static void find_storage(finder *f, const kj_instance *instance)
{
  for (size_t i = 0; i < instance->locals.count; i++)
    if (instance->locals.items[i]->kind == KJ_V_SHARED)
      found(f, "shared memory", instance->locals.items[i]->location);
}

static void find_print(void *data, kj_tstmt *stmt)
{
  if (stmt->kind == KJ_TS_PRINT) found(data, "print", stmt->location);
}

static void skip(void *data, kj_texpr **at) { (void)data, (void)at; }

static void refuse(const finder *f, const char *where)
{
  const char *name = f->c->instances.items[0]->function->decl->name;
  if (f->what)
    kj_fail(f->c, f->location, KJIT_ERROR_UNSUPPORTED,
            "`%s` in a function that is called from outside of kernels%s: `%s`", f->what, where,
            name);
}

void kj_check_c_function(kj_compilation *c)
{
  finder f = { .c = c };
  bool is_cpu = c->request->target.kind == KJ_TARGET_CPU;
  for (size_t i = 0; i < c->instances.count; i++) {
    kj_instance *instance = c->instances.items[i];
    if (is_cpu) kj_walk_tstmts(&instance->body, find_in_stmt, find_in_expr, &f);
    if (is_cpu) find_storage(&f, instance);
  }
  refuse(&f, ", where there are no threads and blocks");
  for (size_t i = 0; i < c->instances.count; i++) {
    kj_walk_tstmts(&c->instances.items[i]->body, find_print, skip, &f);
    if (!c->request->has_record) c->instances.items[i]->may_fail = false;
  }
  refuse(&f, ", where nobody takes what is printed");
}
