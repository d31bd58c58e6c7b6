/* Assigns the symbols that a compilation's functions have in LLVM IR, PTX and object code. */
#include <string.h>

#include "native/functions.h"
#include "typing/infer.h"

/* Symbols of different kinds of functions have different forms, so that they cannot conflict:
 *
 *   kernel         its name, or name$kernel if generated code calls a library function of that name
 *   func           name$number
 *   extern func    name$extern..., see ki_append_extern_symbol
 *   C function     the symbol in the request
 *
 * An extern func keeps its name if the code is compiled ahead of time, so that another program
 * links it, or if linked code defines the function. If its name conflicts with another symbol, the
 * compilation reports an error. */

bool kt_is_linked(const kt_compilation *c, const ki_function *function)
{
  KJ_ASSERT(function->is_extern);
  return c->request->target.kind != KJ_TARGET_CPU && function->bound &&
         function->bound->kind == KJ_CODE_LINKED;
}

bool kt_has_plain_symbol(const kt_compilation *c, const ki_function *function)
{
  const ki_bound_extern *bound = function->bound;
  KJ_ASSERT(function->is_extern);
  bool is_linked = c->request->target.kind != KJ_TARGET_CPU && bound &&
                   (bound->kind == KJ_CODE_BITCODE || bound->kind == KJ_CODE_LLVM_TEXT);
  KJ_ASSERT(bound || c->request->is_ahead);
  return (c->request->is_ahead && !is_linked) || kt_is_linked(c, function);
}

static const char *make_extern_symbol(kt_compilation *c, const ki_function *function)
{
  kj_buffer text = { 0 };
  if (kt_is_linked(c, function)) return function->bound->symbol;
  if (kt_has_plain_symbol(c, function)) return function->decl->name;
  ki_append_extern_symbol(function, c->request->target.kind != KJ_TARGET_CPU, &text);
  return kj_keep_text(c->arena, &text);
}

static const char *make_symbol(kt_compilation *c, const kt_instance *instance)
{
  const char *name = instance->function->decl->name;
  if (!instance->caller && c->request->symbol) return c->request->symbol;
  if (instance->function->is_extern) return make_extern_symbol(c, instance->function);
  /* a kernel that is named `expf` and calls exp must not call itself */
  if (instance->is_kernel)
    return kn_is_library_name(name) ? kj_format(c->arena, "%s$kernel", name) : name;
  char *symbol = kj_format(c->arena, "%s$%u", name, instance->id);
  for (char *at = symbol; at[0] && at[0] != '$'; at++) {
    bool is_plain = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
                    (*at >= '0' && *at <= '9') || *at == '_';
    if (!is_plain) *at = '_';
  }
  return symbol;
}

/* ---- conflicts between symbols of extern funcs ---- */

/* Returns whether C passes values of both types in the same way. */
static bool is_passed_alike(const kt_compilation *c, kjit_type a, kjit_type b)
{
  const ki_type_info *x = ki_type(c->types, a), *y = ki_type(c->types, b);
  if (x->class_ != y->class_) return false;
  if (x->class_ == KJ_CLASS_POINTER) return true;
  if (x->class_ != KJ_CLASS_ARRAY) return a == b;
  return x->rank == y->rank &&
         (x->layout == KJIT_LAYOUT_STRIDED) == (y->layout == KJIT_LAYOUT_STRIDED);
}

static bool has_same_types(const kt_compilation *c, const kt_instance *a, const kt_instance *b)
{
  if (a->params.count != b->params.count || !is_passed_alike(c, a->result, b->result)) return false;
  for (size_t i = 0; i < a->params.count; i++)
    if (!is_passed_alike(c, a->params.items[i]->type, b->params.items[i]->type)) return false;
  return true;
}

/* Returns whether both extern funcs can be bound to the same function. A func without a binding can
 * still be bound to any function. */
static bool has_same_binding(const ki_bound_extern *a, const ki_bound_extern *b)
{
  return !a || !b || a == b ||
         (a->host_function == b->host_function && a->kind == b->kind &&
          a->digest[0] == b->digest[0] && a->digest[1] == b->digest[1]);
}

static void check_shared_symbol(kt_compilation *c, const kt_instance *first,
                                const kt_instance *instance)
{
  const ki_decl *decl = instance->function->decl;
  if (!first->function->is_extern)
    kt_fail(
      c, decl->location, KJIT_ERROR_NAME,
      "extern function `%s` has the same name as the %s that is compiled, so a linker could not "
      "tell the two apart; rename one of them",
      instance->symbol, first->is_kernel ? "kernel" : "C function");
  if (kt_has_plain_symbol(c, instance->function) &&
      !has_same_binding(first->function->bound, instance->function->bound))
    kt_fail(
      c, decl->location, KJIT_ERROR_NAME,
      "two extern functions `%s` are bound to different functions, but %s; rename one of them",
      instance->symbol,
      kt_is_linked(c, instance->function) ? "a linker knows both by this name"
                                          : "code compiled ahead of time calls both by name");
  if (!has_same_types(c, first, instance))
    kt_fail(
      c, decl->location, KJIT_ERROR_TYPE,
      "two extern functions `%s` are bound to the same function, but declared with different types",
      decl->name);
}

static void check_symbols(kt_compilation *c)
{
  kj_map known; /* maps each symbol to the first instance that has it */
  kj_init_map(&known, c->arena);
  for (size_t i = 0; i < c->instances.count; i++) {
    const kt_instance *instance = c->instances.items[i];
    kj_map_entry *entry = kj_get_entry(&known, instance->symbol, strlen(instance->symbol));
    KJ_ASSERT(!entry->value || instance->function->is_extern);
    if (!entry->value) entry->value = (void *)instance;
    /* a request that only checks the kernel generates no code, so symbols cannot conflict */
    else if (!c->request->is_check) check_shared_symbol(c, entry->value, instance);
  }
}

void kt_name_instances(kt_compilation *c)
{
  for (size_t i = 0; i < c->instances.count; i++) {
    c->instances.items[i]->id = (uint32_t)i;
    c->instances.items[i]->symbol = make_symbol(c, c->instances.items[i]);
  }
  check_symbols(c);
}
