/* Determines from the untyped tree which array parameters a function may read and write. Without
 * types it is not known whether `x[i]` is an element or a view. Every name that can refer to a
 * parameter, or to a view of it, is therefore treated like the parameter. The analysis propagates
 * sets of parameters through let, var, `? :`, calls and views until they no longer change. */
#include <string.h>

#include "ir/module.h"
#include "support/containers.h"

/* One word of a bit set in which each bit stands for a parameter of the function. */
typedef uint64_t word;
enum { WORD_BITS = 64 };

typedef struct effects {
  /* indexed by parameter: whether the function may read the array; whether it may write to it */
  bool *read, *written;
  bool is_done, is_busy;
} effects;

typedef struct finder {
  const kjit_module *module;
  kj_arena arena;
  effects *known; /* known effects of each function; indexed by its declaration */
  /* Parameters to which some func of the module writes. A func argument can be any of these funcs.
   * Bit i stands for parameter i, and the last bit for all further parameters. */
  word funcs_write;
  bool has_recursion, has_changed;
} finder;

typedef struct walk {
  finder *finder;
  const ki_function *function;
  effects *effects;
  size_t words;   /* number of words in a set */
  word *sets;     /* the set of each parameter or local; indexed by its declaration */
  bool *was_used; /* whether each set has been used in this round */
  /* another round is needed, because a set has grown after it was used, as happens in loops */
  bool is_stale;
} walk;

static const effects *find_effects(finder *f, const ki_function *function);
static void walk_value(walk *w, const ki_expr *expr, word *set);

static word *new_set(walk *w) { return KJ_NEW_ARRAY(&w->finder->arena, word, w->words); }

static word *set_of(const walk *w, const ki_decl *decl) { return w->sets + decl->index * w->words; }

static void join(walk *w, const ki_decl *decl, const word *from)
{
  word *into = set_of(w, decl);
  for (size_t i = 0; i < w->words; i++) {
    w->is_stale |= w->was_used[decl->index] && (from[i] & ~into[i]) != 0;
    into[i] |= from[i];
  }
}

static void mark(walk *w, const word *set, bool *flags)
{
  for (size_t i = 0; i < w->function->params.count; i++) {
    if (!(set[i / WORD_BITS] >> i % WORD_BITS & 1) || flags[i]) continue;
    flags[i] = true;
    w->finder->has_changed = true;
  }
}

/* ---- expressions: the walk adds to `set` the parameters to which the value can refer ---- */

static void add(walk *w, word *set, const word *from)
{
  for (size_t i = 0; set && i < w->words; i++) set[i] |= from[i];
}

static void use(walk *w, const ki_decl *decl, word *set)
{
  w->was_used[decl->index] = true;
  add(w, set, set_of(w, decl));
}

static void walk_list(walk *w, const ki_exprs *list, word *set)
{
  for (size_t i = 0; i < list->count; i++) walk_value(w, list->items[i], set);
}

static void walk_index(walk *w, const ki_expr *expr, word *set)
{
  KJ_ASSERT(expr->kind == KJ_EXPR_INDEX);
  word *base = new_set(w);
  walk_value(w, expr->x, base);
  walk_list(w, &expr->args, NULL);
  mark(w, base, w->effects->read);
  add(w, set, base);
}

/* Visits an assignment's lvalue. Its indices are read. The element itself is read only if is_read
 * is set, for operators such as `+=`. */
static void walk_place(walk *w, const ki_expr *place, bool is_read)
{
  word *base = new_set(w);
  const ki_expr *root = place;
  for (; root->kind == KJ_EXPR_INDEX || root->kind == KJ_EXPR_FIELD; root = root->x)
    walk_list(w, &root->args, NULL);
  walk_value(w, root, base);
  if (place->kind != KJ_EXPR_INDEX && place->kind != KJ_EXPR_FIELD) return; /* a var */
  mark(w, base, w->effects->written);
  if (is_read) mark(w, base, w->effects->read);
}

static void walk_function_call(walk *w, const ki_expr *call, word *set)
{
  KJ_ASSERT(call->x->kind == KJ_EXPR_DECL && call->x->decl->kind == KJ_DECL_FUNCTION);
  const ki_function *callee = call->x->decl->function;
  const effects *of_callee = find_effects(w->finder, callee);
  for (size_t i = 0; i < call->args.count && i < callee->params.count; i++) {
    word *argument = new_set(w);
    walk_value(w, call->args.items[i], argument);
    if (of_callee->read[i]) mark(w, argument, w->effects->read);
    if (of_callee->written[i]) mark(w, argument, w->effects->written);
    add(w, set, argument); /* the result can be a view of an argument */
  }
}

static word bit_of(size_t parameter)
{
  return (word)1 << (parameter < WORD_BITS ? parameter : WORD_BITS - 1);
}

/* Visits a call of a func parameter. The func is unknown, so every argument is assumed to be read.
 * The func can be a result of bind_back, which passes additional arguments. walk_bind_back handles
 * the effects on the additional arguments; this function only records that the result can be a view
 * of an additional argument. */
static void walk_unknown_call(walk *w, const ki_expr *call, word *set)
{
  for (size_t i = 0; i < call->args.count; i++) {
    word *argument = new_set(w);
    walk_value(w, call->args.items[i], argument);
    mark(w, argument, w->effects->read);
    if (w->finder->funcs_write & bit_of(i)) mark(w, argument, w->effects->written);
    add(w, set, argument);
  }
  walk_value(w, call->x, set);
}

/* Visits bind_back(f, values). The result can be called anywhere, so each value is treated as if f
 * were called here with this value as an argument. */
static void walk_bind_back(walk *w, const ki_expr *call, word *set)
{
  const ki_expr *callee = call->args.items[0];
  bool is_known = callee->kind == KJ_EXPR_DECL && callee->decl->kind == KJ_DECL_FUNCTION;
  const ki_function *function = is_known ? callee->decl->function : NULL;
  const effects *of_callee = is_known ? find_effects(w->finder, function) : NULL;
  size_t count = call->args.count - 1;
  for (size_t i = 0; i < count; i++) {
    word *argument = new_set(w);
    walk_value(w, call->args.items[1 + i], argument);
    size_t param =
      is_known && function->params.count >= count ? function->params.count - count + i : SIZE_MAX;
    if (param == SIZE_MAX || of_callee->read[param]) mark(w, argument, w->effects->read);
    if (param == SIZE_MAX ? w->finder->funcs_write != 0 : of_callee->written[param])
      mark(w, argument, w->effects->written);
    add(w, set, argument); /* a call of the result can return a view of the argument */
  }
  walk_value(w, callee, set);
}

/* Returns whether the result of the built-in can be a view of this operand. */
static bool hands_on(ki_builtin_id id, size_t operand)
{
  return id == KJ_BUILTIN_SELECT
           ? operand > 0
           : (id == KJ_BUILTIN_TRANSPOSE || id == KJ_BUILTIN_RESHAPE || id == KJ_BUILTIN_REFER) &&
               operand == 0;
}

static bool is_const(const ki_decl *param)
{
  return param->type_expr && (param->type_expr->read_only || param->is_const);
}

/* Visits an operand whose address is taken. Any code can read and write through the address, unless
 * the array is read-only. */
static void walk_address(walk *w, const ki_expr *place)
{
  const ki_expr *root = place;
  while (root->kind == KJ_EXPR_INDEX || root->kind == KJ_EXPR_FIELD) root = root->x;
  bool is_read_only =
    root->kind == KJ_EXPR_DECL && root->decl->kind == KJ_DECL_PARAM && is_const(root->decl);
  if (is_read_only) walk_value(w, place, NULL);
  else walk_place(w, place, true);
}

static void walk_builtin_call(walk *w, const ki_expr *call, word *set)
{
  KJ_ASSERT(call->x->kind == KJ_EXPR_BUILTIN);
  const ki_builtin *builtin = call->x->builtin;
  bool has_place = (builtin->flags & (KJ_PLACE | KJ_ADDRESS)) && call->args.count;
  if (builtin->flags & KJ_UNEVALUATED) return;
  if (builtin->id == KJ_BUILTIN_BIND_BACK && call->args.count) {
    walk_bind_back(w, call, set);
    return;
  }
  if (builtin->id == KJ_BUILTIN_POINTER && call->args.count) {
    walk_address(w, call->args.items[0]);
    return;
  }
  if (has_place) walk_place(w, call->args.items[0], true);
  for (size_t i = has_place; i < call->args.count; i++)
    walk_value(w, call->args.items[i], hands_on(builtin->id, i) ? set : NULL);
}

/* Visits a call such as jvp(f)(...). Its first arguments are the arguments of f, and the others are
 * derivatives. jvp reads all derivatives, and writes the derivatives of arrays that f writes. vjp
 * and grad write all arrays of derivatives. adjoint(k) writes only arrays of derivatives. A custom
 * rule of f can write to any argument. This analysis does not know which derivative belongs to
 * which parameter, because that depends on types. */
static void walk_derivative_call(walk *w, const ki_expr *call)
{
  const ki_expr *callee = call->x->args.count ? call->x->args.items[0] : NULL;
  bool is_known = callee && callee->kind == KJ_EXPR_DECL &&
                  callee->decl->kind == KJ_DECL_FUNCTION &&
                  !ki_find_named_func(callee->decl->function, KJ_ATTRIBUTE_JVP) &&
                  !ki_find_named_func(callee->decl->function, KJ_ATTRIBUTE_VJP);
  const ki_function *function = is_known ? callee->decl->function : NULL;
  const effects *of_callee = is_known ? find_effects(w->finder, function) : NULL;
  bool is_adjoint = call->x->x->builtin->id == KJ_BUILTIN_ADJOINT;
  bool writes = !is_known || call->x->x->builtin->id != KJ_BUILTIN_JVP;
  for (size_t i = 0; is_known && i < function->params.count; i++) writes |= of_callee->written[i];
  walk_value(w, call->x, NULL);
  for (size_t i = 0; i < call->args.count; i++) {
    word *argument = new_set(w);
    bool is_own = is_known && i < function->params.count;
    walk_value(w, call->args.items[i], argument);
    mark(w, argument, w->effects->read);
    if (is_own ? of_callee->written[i] && !is_adjoint : writes)
      mark(w, argument, w->effects->written);
  }
}

static void walk_call(walk *w, const ki_expr *call, word *set)
{
  KJ_ASSERT(call->kind == KJ_EXPR_CALL);
  const ki_expr *callee = call->x;
  if (callee->kind == KJ_EXPR_BUILTIN) walk_builtin_call(w, call, set);
  else if (callee->kind == KJ_EXPR_DECL && callee->decl->kind == KJ_DECL_FUNCTION)
    walk_function_call(w, call, set);
  else if (callee->kind == KJ_EXPR_DECL) walk_unknown_call(w, call, set);
  else if (callee->kind == KJ_EXPR_CALL) walk_derivative_call(w, call);
  else walk_list(w, &call->args, NULL); /* a cast */
}

static bool is_field(const kjit_module *module, const char *name)
{
  for (size_t i = 0; i < module->decls.count; i++) {
    const ki_decls *fields = &module->decls.items[i]->fields;
    for (size_t j = 0; j < fields->count; j++)
      if (strcmp(fields->items[j]->name, name) == 0) return true;
  }
  return false;
}

/* Returns whether the name is a property of arrays, such as `shape`, whose value is not a view of
 * the array. */
static bool is_property(const walk *w, const char *name)
{
  bool is_named = strcmp(name, "shape") == 0 || strcmp(name, "strides") == 0 ||
                  strcmp(name, "size") == 0 || strcmp(name, "ndim") == 0;
  return is_named && !is_field(w->finder->module, name);
}

/* Visits a field access. On an array of rank 0 it reads the element. */
static void walk_field(walk *w, const ki_expr *expr, word *set)
{
  KJ_ASSERT(expr->kind == KJ_EXPR_FIELD);
  word *base = new_set(w);
  walk_value(w, expr->x, base);
  if (is_property(w, expr->name)) return;
  mark(w, base, w->effects->read);
  add(w, set, base);
}

static void walk_value(walk *w, const ki_expr *expr, word *set)
{
  if (!expr) return;
  switch (KJ_AMONG(expr->kind)) {
  case KJ_EXPR_DECL:
    if (expr->decl->function == w->function && expr->decl->kind != KJ_DECL_FUNCTION)
      use(w, expr->decl, set);
    break;
  case KJ_EXPR_INDEX: walk_index(w, expr, set); break;
  case KJ_EXPR_CALL: walk_call(w, expr, set); break;
  case KJ_EXPR_TUPLE: walk_list(w, &expr->args, set); break;
  case KJ_EXPR_TYPE: walk_list(w, &expr->type_expr->extents, NULL); break; /* view(f32[n], p) */
  case KJ_EXPR_COND:
    walk_value(w, expr->x, NULL);
    walk_value(w, expr->y, set);
    walk_value(w, expr->z, set);
    break;
  case KJ_EXPR_BINARY: /* the operands of `+` can be tuples, whose items can be views */
    walk_value(w, expr->x, expr->op == KJIT_OP_ADD ? set : NULL);
    walk_value(w, expr->y, expr->op == KJIT_OP_ADD ? set : NULL);
    break;
  case KJ_EXPR_FIELD: walk_field(w, expr, set); break;
  default: /* other operators do not return views */
    walk_value(w, expr->x, NULL);
    walk_value(w, expr->y, NULL);
    walk_value(w, expr->z, NULL);
    break;
  }
}

/* ---- statements ---- */

static void walk_stmts(walk *w, const ki_stmts *body);

static void walk_assign(walk *w, const ki_stmt *stmt, const word *value)
{
  KJ_ASSERT(stmt->kind == KJ_STMT_ASSIGN);
  for (size_t i = 0; i < stmt->places.count; i++) {
    const ki_expr *place = stmt->places.items[i];
    walk_place(w, place, stmt->op != KJIT_OP_STORE);
    /* if an array of rank 0 is assigned as a value, its element is read */
    if (place->kind != KJ_EXPR_DECL) mark(w, value, w->effects->read);
    if (place->kind == KJ_EXPR_DECL && place->decl->function == w->function)
      join(w, place->decl, value);
  }
}

static void walk_stmt(walk *w, const ki_stmt *stmt)
{
  word *value = new_set(w);
  walk_value(w, stmt->value, value);
  if (stmt->kind == KJ_STMT_FOR && stmt->range == KJ_ITEMS) {
    walk_value(w, stmt->args.items[0], value);
    mark(w, value, w->effects->read);
  } else walk_list(w, &stmt->args, NULL);
  /* loop variables of ranges are numbers, so their sets are empty */
  if (stmt->kind == KJ_STMT_DECLARE || stmt->kind == KJ_STMT_FOR)
    for (size_t i = 0; i < stmt->decls.count; i++) join(w, stmt->decls.items[i], value);
  if (stmt->kind == KJ_STMT_ASSIGN) walk_assign(w, stmt, value);
  walk_stmts(w, &stmt->body);
  walk_stmts(w, &stmt->otherwise);
}

static void walk_stmts(walk *w, const ki_stmts *body)
{
  for (size_t i = 0; i < body->count; i++) walk_stmt(w, body->items[i]);
}

/* ---- functions ---- */

/* Assumes all effects that the types of the parameters allow, for code that is not available. Views
 * that func parameters return are an exception: no func of lib/library stores to such views. */
static void assume(const ki_function *function, effects *result)
{
  KJ_ASSERT(result->read && result->written);
  for (size_t i = 0; i < function->params.count; i++) {
    const ki_decl *param = function->params.items[i];
    const ki_type_expr *type = param->type_expr;
    result->read[i] = true;
    result->written[i] =
      (!type || !type->read_only) && !(function->is_header && (param->is_func || param->is_const));
  }
}

/* Looks for the func that provides the code of an open func (an extern func without code) after
 * linking. If there is one, sets *result to its effects and returns true. */
static bool ask_meaning(finder *f, const ki_function *function, effects *result)
{
  const ki_function *meaning = ki_find_meaning(f->module, function->decl);
  if (!meaning || meaning->params.count < function->params.count || meaning->is_extern)
    return false;
  size_t count = meaning->params.count;
  bool *found = KJ_NEW_ARRAY(&f->arena, bool, 2 * count + 1);
  ki_find_accesses(meaning->module, meaning, found, found + count);
  memcpy(result->read, found, function->params.count * sizeof *found);
  memcpy(result->written, found + count, function->params.count * sizeof *found);
  return true;
}

/* Computes the effects of one function. Visits its body until no set grows any more. */
static void analyze(finder *f, const ki_function *function, effects *result)
{
  walk w = { .finder = f,
             .function = function,
             .effects = result,
             .words = function->params.count / WORD_BITS + 1 };
  size_t count = function->local_count + 1;
  w.sets = KJ_NEW_ARRAY(&f->arena, word, w.words * count);
  w.was_used = KJ_NEW_ARRAY(&f->arena, bool, count);
  for (size_t i = 0; i < function->params.count; i++)
    w.sets[i * w.words + i / WORD_BITS] |= (word)1 << i % WORD_BITS;
  do {
    w.is_stale = false;
    memset(w.was_used, 0, count * sizeof *w.was_used);
    walk_stmts(&w, &function->body);
  } while (w.is_stale);
}

static const effects *find_effects(finder *f, const ki_function *function)
{
  KJ_ASSERT(function->decl->index < f->module->decls.count);
  effects *found = &f->known[function->decl->index];
  f->has_recursion |= found->is_busy;
  if (found->is_done) return found;
  if (!found->read) {
    found->read = KJ_NEW_ARRAY(&f->arena, bool, function->params.count + 1);
    found->written = KJ_NEW_ARRAY(&f->arena, bool, function->params.count + 1);
  }
  found->is_done = found->is_busy = true;
  if (function->is_header) assume(function, found);
  else if (!function->is_extern) analyze(f, function, found);
  else if (!ask_meaning(f, function, found)) assume(function, found);
  found->is_busy = false;
  return found;
}

static bool is_func(const ki_decl *decl)
{
  return decl->kind == KJ_DECL_FUNCTION && !decl->function->is_kernel;
}

/* Analyzes the function, or all funcs in the module if function is NULL. If functions are
 * recursive, the first analysis can be incomplete, so it is repeated with the effects found so far
 * until it finds nothing new. */
static void find_all_effects(finder *f, const ki_function *function)
{
  const ki_decls *decls = &f->module->decls;
  do {
    f->has_recursion = f->has_changed = false;
    for (size_t i = 0; i < decls->count; i++) f->known[i].is_done = false;
    if (function) (void)find_effects(f, function);
    for (size_t i = 0; i < decls->count && !function; i++)
      if (is_func(decls->items[i])) (void)find_effects(f, decls->items[i]->function);
  } while (f->has_recursion && f->has_changed);
}

/* Returns the parameters to which some func of the module writes, as a bit set in the form of
 * funcs_write. */
static word find_written(finder *f)
{
  word found = 0;
  const ki_decls *decls = &f->module->decls;
  find_all_effects(f, NULL);
  for (size_t i = 0; i < decls->count; i++) {
    const ki_decl *decl = decls->items[i];
    if (!is_func(decl)) continue;
    for (size_t j = 0; j < decl->function->params.count; j++)
      if (f->known[decl->index].written[j]) found |= bit_of(j);
  }
  return found;
}

static void find(finder *f, const ki_function *function, bool *read, bool *written)
{
  size_t count = f->module->decls.count + 1;
  word known, written_now = f->module->hands_over_writer ? ~(word)0 : 0;
  do { /* a new bit in funcs_write can make a func a writer, and this can add further bits */
    f->funcs_write = known = written_now;
    f->known = KJ_NEW_ARRAY(&f->arena, effects, count);
    if (known != ~(word)0) written_now |= find_written(f);
  } while (written_now != known);
  /* Analyzes recursive functions repeatedly, if the loop above has not done so. The loop analyzes
   * the funcs but no kernels, and it skips the funcs if every bit of `known` is set. For a kernel
   * whose funcs have been analyzed, the single analysis below is enough, because no code calls the
   * kernel. */
  if (known == ~(word)0 || !function->is_kernel) find_all_effects(f, function);
  const effects *found = find_effects(f, function);
  memcpy(read, found->read, function->params.count * sizeof *read);
  memcpy(written, found->written, function->params.count * sizeof *written);
  /* The analysis can report a write to an array that a func argument only reads. Parameters
   * declared const are certainly never written, because type checking rejects stores to them. */
  for (size_t i = 0; i < function->params.count; i++)
    if (is_const(function->params.items[i])) written[i] = false;
}

void ki_find_accesses(const kjit_module *module, const ki_function *function, bool *read,
                      bool *written)
{
  jmp_buf on_failure;
  finder f = { .module = module };
  kj_init_arena(&f.arena, &on_failure);
  if (setjmp(on_failure) == 0) {
    find(&f, function, read, written);
  } else { /* out of memory: assume that everything is read and written, which is always correct */
    memset(read, 1, function->params.count * sizeof *read);
    memset(written, 1, function->params.count * sizeof *written);
  }
  kj_free_arena(&f.arena);
}
