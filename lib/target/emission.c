#include "target/emission.h"

bool kj_is_unoptimized(const kj_emission *e) { return e->c->request->debug == KJIT_DEBUG_FULL; }

static void take_machine(kj_emission *e)
{
  e->machine = kj_take_machine(e->machines, &e->kind);
  if (!e->machine) longjmp(*e->c->on_failure, KJ_JUMP_MEMORY);
}

static void prepare(kj_emission *e)
{
  bool is_dump =
    e->c->request->stage == KJIT_STAGE_LLVM || e->c->request->stage == KJIT_STAGE_LLVM_OPT;
  e->context = kj_create_llvm_context(&e->errors, is_dump);
  e->module = LLVMModuleCreateWithNameInContext("kjit", e->context);
  take_machine(e);
  LLVMSetTarget(e->module, e->kind.triple);
  LLVMSetModuleDataLayout(e->module, e->machine->layout);
}

/* The layout is the module's: it remembers structs by their address, which another context may use
 * again. */
static void lower(kj_emission *e)
{
  e->lowering = (kj_lowering){ .c = e->c,
                               .context = e->context,
                               .module = e->module,
                               .layout = LLVMGetModuleDataLayout(e->module),
                               .target = e->steps->lowering,
                               .target_state = e->state };
  kj_lower(&e->lowering);
  if (e->steps->finish_lowering) e->steps->finish_lowering(e);
  kj_check_module(e->c, e->module);
}

/* The machine for emission differs from that for lowering in its level only. */
static void select_emission(kj_emission *e)
{
  if (!kj_is_unoptimized(e) && !e->steps->is_emitted_fast(e)) return;
  if (!kj_is_unoptimized(e) && e->steps->prepare_fast) e->steps->prepare_fast(e);
  kj_return_machine(e->machines, e->machine);
  e->machine = NULL;
  e->kind.level = LLVMCodeGenLevelNone;
  take_machine(e);
}

static void run(kj_emission *e)
{
  kjit_stage stage = e->c->request->stage;
  uint64_t start = kj_now_ns();
  prepare(e);
  lower(e);
  uint64_t lowered = kj_now_ns();
  e->code->lower_time_ns = lowered - start;
  if (!kj_describe_code(&e->lowering, e->code)) longjmp(*e->c->on_failure, KJ_JUMP_MEMORY);
  if (stage == KJIT_STAGE_LLVM) {
    kj_take_module_text(e->c, e->module, e->code);
    return;
  }
  e->steps->optimize(e);
  uint64_t optimized = kj_now_ns();
  e->code->optimize_time_ns = optimized - lowered;
  if (stage == KJIT_STAGE_LLVM_OPT) {
    kj_take_module_text(e->c, e->module, e->code);
    return;
  }
  select_emission(e);
  kj_emit_module(e->c, e->module, e->machine->machine,
                 stage == KJIT_STAGE_OBJECT ? LLVMObjectFile : LLVMAssemblyFile, &e->errors,
                 e->code);
  e->code->emit_time_ns = kj_now_ns() - optimized;
}

static void finish(kj_emission *e)
{
  if (e->errors.is_fatal) return;
  if (e->steps->finish) e->steps->finish(e);
  kj_end_lowering(&e->lowering);
  if (e->module) LLVMDisposeModule(e->module);
  if (e->context) LLVMContextDispose(e->context);
  if (e->machine) kj_return_machine(e->machines, e->machine);
}

void kj_emit_code(kj_emission *e)
{
  kj_compilation *c = e->c;
  jmp_buf *outer = c->on_failure, *outer_arena = c->arena->on_failure, here;
  c->on_failure = c->arena->on_failure = &here;
  if (c->fast) c->fast->on_failure = &here;
  int jump = setjmp(here);
  if (jump == 0) run(e);
  c->on_failure = outer;
  c->arena->on_failure = outer_arena;
  finish(e);
  if (jump) longjmp(*outer, jump);
}
