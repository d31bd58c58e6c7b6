/* The entry points of libkjit-compiler: the stages of a compilation in order, and the interface
 * that libkjit calls. */
#include <stdlib.h>
#include <string.h>

#include "compiler.h"
#include "derive/derive.h"
#include "pass/pass.h"
#include "target/target.h"
#include "support/host_process.h"

static const kg_target *const targets[] = {
  [KJ_TARGET_CPU] = &kg_host_target, [KJ_TARGET_NVPTX] = &kg_nvptx_target
};
enum { TARGETS = sizeof targets / sizeof *targets };

struct kj_compiler {
  kg_state *states[TARGETS];
};

/* Stores a string as the code of a stage. The caller of libkjit-compiler frees it. */
static void set_text(kt_compilation *c, kj_buffer *buffer)
{
  c->code->size_bytes = buffer->length;
  c->code->data = kj_take_text(buffer);
  if (!c->code->data) longjmp(*c->on_failure, KJ_JUMP_MEMORY);
}

/* ---- passes ---- */

static bool is_cpu(const kt_compilation *c) { return c->request->target.kind == KJ_TARGET_CPU; }

/* The conditions in passes.def. A pass runs if its condition is true for the request. */
static bool is_ALWAYS(const kt_compilation *c) { return c != NULL; }
static bool is_GPU(const kt_compilation *c) { return !is_cpu(c); }
static bool is_C_FUNCTION(const kt_compilation *c) { return c->request->symbol != NULL; }
static bool is_CPU_KERNEL(const kt_compilation *c) { return is_cpu(c) && !c->request->symbol; }
static bool is_WITHOUT_THREAD_LOOPS(const kt_compilation *c) { return !is_CPU_KERNEL(c); }
/* A C function without a failure record is not interruptible, because it cannot report the
 * interrupt to its caller. */
static bool is_INTERRUPTIBLE(const kt_compilation *c)
{
  return c->request->is_interruptible && (!c->request->symbol || c->request->has_record);
}
static bool is_CHECKED(const kt_compilation *c)
{
  return c->request->checks & (KJIT_CHECK_BOUNDS | KJIT_CHECK_DIVISION);
}
/* If a load fails, the stores that precede it must have been executed. A pass can therefore move
 * loads only if no thread can fail. */
static bool is_GPU_NEVER_FAILING(const kt_compilation *c)
{
  return !is_cpu(c) && !c->instances.items[0]->may_fail;
}

static const struct pass {
  const char *name;
  void (*run)(kt_compilation *c);
  bool (*is_for)(const kt_compilation *c);
  uint32_t needs, gives; /* kt_tree_state */
  enum { VERIFY_DEBUG, VERIFY_RELEASE } verify;
} passes[] = {
#define PASS(name, function, condition, needs, gives, verify, what) \
  { name, function, is_##condition, needs, gives, VERIFY_##verify },
#include "pass/passes.def"
#undef PASS
};
enum { PASSES = sizeof passes / sizeof *passes };

static _Noreturn void refuse_after_pass(kt_compilation *c)
{
  const char *names = "";
  for (size_t i = 0; i < PASSES; i++)
    if (passes[i].is_for(c))
      names = kj_format(c->arena, "%s%s%s", names, *names ? ", " : "", passes[i].name);
  kt_fail(c, (kj_location){ 0 }, KJIT_ERROR_ARGUMENT,
          "after: expected a pass that runs for this kernel and target, %s, got `%s`", names,
          c->request->after_pass);
}

/* Converts the module to the typed trees from which code is lowered. If request->after_pass is set,
 * stops after that pass. */
static void run_passes(kt_compilation *c)
{
  const char *last = c->request->after_pass;
  for (size_t i = 0; i < PASSES; i++) {
    const struct pass *pass = &passes[i];
    if (!pass->is_for(c)) continue;
    KJ_ASSERT((c->state & pass->needs) == pass->needs);
    if (KJ_HAS_ASSERTIONS || pass->verify == VERIFY_RELEASE) kt_verify_typed(c);
    kt_begin_step(c, kj_format(c->arena, "the pass `%s`", pass->name));
    pass->run(c);
    c->state |= pass->gives;
    if (last && strcmp(last, pass->name) == 0) return;
  }
  if (KJ_HAS_ASSERTIONS) kt_verify_typed(c);
  if (last) refuse_after_pass(c);
}

/* CPU: makes the version of the kernel for blocks in which the hoisted checks cannot fail
 * (pass/prove.c). Type inference runs again, because passes have changed the trees. The diagnostics
 * of this second run are discarded, because the first run has reported them. */
static kt_compilation *make_unchecked(kt_compilation *c)
{
  kt_compilation *unchecked = KJ_NEW(c->arena, kt_compilation);
  size_t said = c->diagnostics->count;
  *unchecked = (kt_compilation){ .request = c->request,
                                 .module = c->module,
                                 .types = c->types,
                                 .arena = c->arena,
                                 .diagnostics = c->diagnostics,
                                 .on_failure = c->on_failure,
                                 .budget = c->budget,
                                 .builtin_code = c->builtin_code,
                                 .code = KJ_NEW(c->arena, kj_code),
                                 .drops_hoisted = true };
  run_passes(unchecked);
  kj_drop_diagnostics(c->diagnostics, said);
  return unchecked;
}

/* Runs the stages of a compilation up to the requested one. An error jumps to compile(). */
static void run_stages(kj_compiler *compiler, kt_compilation *c)
{
  const kj_compile_request *request = c->request;
  const kg_target *target = targets[request->target.kind];
  kj_buffer text = { 0 };

  if (request->stage == KJIT_STAGE_KIR) {
    ki_print_module(request->module, &text);
    set_text(c, &text);
    return;
  }

  uint64_t start = kj_clock_ns();
  if (target->check) target->check(c);
  run_passes(c);
  bool has_unchecked =
    is_cpu(c) && c->hoisted.count && !c->code->is_watched && !request->symbol && !request->debug;
  c->unchecked = has_unchecked ? make_unchecked(c) : NULL;
  c->code->infer_time_ns = kj_clock_ns() - start;

  if (request->stage == KJIT_STAGE_TYPED) {
    if (request->is_check) return;
    kt_print_typed(c, &text);
    set_text(c, &text);
    return;
  }

  if (request->stage == KJIT_STAGE_DERIVATIVES) {
    kd_print_facts(c, &text);
    set_text(c, &text);
    return;
  }

  target->emit(compiler->states[request->target.kind], c);
}

/* Returns the request with the vector size set. Code of guests (untrusted code) gets bounds checks
 * even if the application has not enabled them. */
static kj_compile_request make_own_request(const kj_compiler *compiler,
                                           const kj_compile_request *given)
{
  kj_compile_request own = *given;
  kj_target_kind kind = own.target.kind;
  own.target.vector_bytes = targets[kind]->vector_bytes(compiler->states[kind], &own.target);
  if (own.module->has_guest) own.checks |= KJIT_CHECK_BOUNDS;
  return own;
}

static kjit_status compile(kj_compiler *compiler, const kj_compile_request *given,
                           kj_diagnostics *diagnostics, kj_code *code)
{
  const kj_compile_request own = make_own_request(compiler, given), *request = &own;
  jmp_buf on_failure;
  kj_arena arena;
  kj_init_arena(&arena, &on_failure);
  memset(code, 0, sizeof *code);
  kt_budget budget;
  kt_open_budget(&budget, request);
  kt_compilation *volatile c = NULL;
  int jump = setjmp(on_failure);
  if (jump == 0) {
    c = KJ_NEW(&arena, kt_compilation);
    *c = (kt_compilation){ .request = request,
                           .module = request->module,
                           .types = request->module->types,
                           .arena = &arena,
                           .diagnostics = diagnostics,
                           .on_failure = &on_failure,
                           .budget = &budget,
                           .builtin_code = KJ_NEW(&arena, kt_builtin_code),
                           .code = code };
    code->is_guest = request->module->has_guest;
    arena.most_bytes = budget.limits[KJ_LIMIT_MEMORY];
    run_stages(compiler, c);
  } else {
    kj_free_code(code);
    if (jump == KJ_JUMP_LIMIT) kt_report_memory_limit(c);
    if (jump == KJ_JUMP_MEMORY)
      kj_report(diagnostics, NULL, (kj_location){ 0 }, KJIT_SEVERITY_ERROR, KJIT_ERROR_MEMORY,
                "out of memory while compiling");
  }
  for (size_t i = 0; c && c->builtin_code && i < c->builtin_code->count; i++)
    ki_destroy_module(c->builtin_code->items[i]);
  kj_free_arena(&arena);
  return jump ? diagnostics->status : KJIT_OK;
}

static void destroy(kj_compiler *compiler)
{
  if (!compiler) return;
  for (size_t i = 0; i < TARGETS; i++) targets[i]->destroy(compiler->states[i]);
  free(compiler);
}

static kjit_status create(const char *libdevice_path, kj_diagnostics *diagnostics,
                          kj_compiler **compiler)
{
  kj_compiler *created = calloc(1, sizeof *created);
  if (!created) {
    kj_report(diagnostics, NULL, (kj_location){ 0 }, KJIT_SEVERITY_ERROR, KJIT_ERROR_MEMORY,
              "out of memory for the compiler");
    return KJIT_ERROR_MEMORY;
  }
  kjit_status status = KJIT_OK;
  for (size_t i = 0; i < TARGETS && status == KJIT_OK; i++)
    status = targets[i]->create(libdevice_path, diagnostics, &created->states[i]);
  if (status != KJIT_OK) {
    destroy(created);
    return status;
  }
  *compiler = created;
  return KJIT_OK;
}

static kjit_status load(kj_compiler *compiler, const kj_code *code, const kj_outside *outside,
                        kj_diagnostics *diagnostics, kj_loaded **loaded, kj_cpu_kernel *kernel)
{
  return kg_load_host(compiler->states[KJ_TARGET_CPU], code, outside, diagnostics, loaded, kernel);
}

static void unload(kj_compiler *compiler, kj_loaded *loaded)
{
  (void)compiler;
  kg_unload_host(loaded);
}

const kj_compiler_interface *kjit_get_compiler_interface(void)
{
  static const kj_compiler_interface interface = {
    sizeof interface, KJ_COMPILER_VERSION, kj_build, create, destroy, compile, load, unload
  };
  return &interface;
}
