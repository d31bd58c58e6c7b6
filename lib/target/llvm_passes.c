/* Measures the size of modules and runs LLVM's passes. Both targets use these functions. After all
 * passes, this file compares the number of instructions with the limit of the compilation. For a
 * large module, it also does so between the passes. */
#include <llvm-c/Core.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <stdlib.h>
#include <string.h>

#include "target/llvm.h"

/* ---- size ---- */

uint64_t kg_count_function(LLVMValueRef function, uint64_t most)
{
  uint64_t count = 0;
  for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(function); b; b = LLVMGetNextBasicBlock(b))
    for (LLVMValueRef i = LLVMGetFirstInstruction(b); i && count <= most;
         i = LLVMGetNextInstruction(i))
      count++;
  return count;
}

uint64_t kg_count_instructions(LLVMModuleRef module, uint64_t most)
{
  uint64_t count = 0;
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f && count <= most;
       f = LLVMGetNextFunction(f))
    count += kg_count_function(f, most - count);
  return count;
}

static uint32_t vector_bits(LLVMTypeRef type, LLVMTargetDataRef layout)
{
  if (LLVMGetTypeKind(type) != LLVMVectorTypeKind) return 0;
  unsigned long long lane = LLVMSizeOfTypeInBits(layout, LLVMGetElementType(type));
  return lane > 1 ? (uint32_t)lane * LLVMGetVectorSize(type) : 0;
}

uint32_t kg_measure_vectors(LLVMModuleRef module, LLVMTargetDataRef layout)
{
  uint32_t most = 0;
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
      for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i)) {
        uint32_t bits = vector_bits(LLVMTypeOf(i), layout);
        if (bits > most) most = bits;
      }
  return most;
}

static unsigned optnone(void)
{
  static const char name[] = "optnone";
  return LLVMGetEnumAttributeKindForName(name, sizeof name - 1);
}

bool kg_is_settled(LLVMValueRef function)
{
  return LLVMGetEnumAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                                     optnone());
}

kg_module_size kg_measure_function(LLVMValueRef function)
{
  enum {
    MOST_BLOCKS = 1024,
    HUGE_BLOCKS = 2048,
    MOST_INSTRUCTIONS = 4096,
    HUGE_INSTRUCTIONS = 1 << 16
  };
  uint32_t blocks = LLVMCountBasicBlocks(function);
  uint64_t instructions = kg_count_function(function, HUGE_INSTRUCTIONS);
  return blocks > HUGE_BLOCKS || instructions > HUGE_INSTRUCTIONS ? KJ_SIZE_HUGE
         : blocks > MOST_BLOCKS                                   ? KJ_SIZE_LARGE
         : instructions > MOST_INSTRUCTIONS                       ? KJ_SIZE_LONG
                                                                  : KJ_SIZE_USUAL;
}

static bool is_access(LLVMValueRef instruction)
{
  LLVMOpcode opcode = LLVMGetInstructionOpcode(instruction);
  return opcode == LLVMLoad || opcode == LLVMStore;
}

static bool is_address(LLVMValueRef instruction)
{
  if (LLVMGetInstructionOpcode(instruction) != LLVMGetElementPtr) return false;
  unsigned last = (unsigned)LLVMGetNumOperands(instruction) - 1;
  return !LLVMIsAConstantInt(LLVMGetOperand(instruction, last));
}

static bool has_more_than(LLVMModuleRef module, uint32_t most,
                          bool (*is_counted)(LLVMValueRef instruction))
{
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f)) {
    if (kg_is_settled(f)) continue;
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b)) {
      uint32_t count = 0;
      for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i))
        if (is_counted(i) && ++count > most) return true;
    }
  }
  return false;
}

bool kg_is_dense(LLVMModuleRef module)
{
  enum { MOST_ACCESSES = 1024 };
  return has_more_than(module, MOST_ACCESSES, is_access);
}

static int compare_addresses(const void *a, const void *b)
{
  const LLVMValueRef *first = a, *second = b;
  uintptr_t x = (uintptr_t)*first, y = (uintptr_t)*second;
  return (x > y) - (x < y);
}

/* Returns whether some value occurs more than `most` times in a list of values. Sorts the list. */
static bool has_longer_run(LLVMValueRef *values, size_t count, size_t most)
{
  size_t run = 0;
  qsort(values, count, sizeof *values, compare_addresses);
  for (size_t i = 0; i < count; i++) {
    run = i && values[i] == values[i - 1] ? run + 1 : 1;
    if (run > most) return true;
  }
  return false;
}

/* Returns whether the value occupies a register. Constant integers are encoded in instructions. */
static bool is_in_register(LLVMValueRef value)
{
  return !LLVMIsAConstantInt(value) && !LLVMIsAFunction(value) && !LLVMValueIsBasicBlock(value);
}

static bool uses_more_than(kj_arena *arena, LLVMBasicBlockRef block, size_t most)
{
  size_t instructions = 0, operands = 0, count = 0;
  for (LLVMValueRef i = LLVMGetFirstInstruction(block); i; i = LLVMGetNextInstruction(i))
    instructions++;
  if (instructions <= most) return false;
  for (LLVMValueRef i = LLVMGetFirstInstruction(block); i; i = LLVMGetNextInstruction(i))
    operands += (size_t)LLVMGetNumOperands(i);
  LLVMValueRef *values = KJ_NEW_ARRAY(arena, LLVMValueRef, operands);
  for (LLVMValueRef i = LLVMGetFirstInstruction(block); i; i = LLVMGetNextInstruction(i))
    for (unsigned k = 0; k < (unsigned)LLVMGetNumOperands(i); k++) {
      LLVMValueRef value = LLVMGetOperand(i, k);
      if (is_in_register(value)) values[count++] = value;
    }
  return has_longer_run(values, count, most);
}

bool kg_has_frequent_value(kj_arena *arena, LLVMModuleRef module)
{
  enum { MOST_USES = 8192 };
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f)) {
    if (kg_is_settled(f)) continue;
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
      if (uses_more_than(arena, b, MOST_USES)) return true;
  }
  return false;
}

static bool is_any(LLVMValueRef instruction) { return instruction != NULL; }

bool kg_has_long_block(LLVMModuleRef module)
{
  enum { MOST_INSTRUCTIONS = 2048 };
  return has_more_than(module, MOST_INSTRUCTIONS, is_any);
}

bool kg_has_many_addresses(LLVMModuleRef module)
{
  enum { MOST_ADDRESSES = 256 };
  return has_more_than(module, MOST_ADDRESSES, is_address);
}

bool kg_is_lengthy(LLVMModuleRef module)
{
  enum { MOST_INSTRUCTIONS = 8192 };
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f)) {
    uint32_t count = 0;
    if (kg_is_settled(f)) continue;
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
      for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i))
        if (++count > MOST_INSTRUCTIONS) return true;
  }
  return false;
}

kg_module_size kg_measure_module(LLVMModuleRef module)
{
  kg_module_size most = KJ_SIZE_USUAL;
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f)) {
    kg_module_size size = kg_is_settled(f) ? KJ_SIZE_USUAL : kg_measure_function(f);
    if (size > most) most = size;
  }
  return most;
}

/* ---- passes ----
 *
 * LLVM-C cannot stop a pipeline. The passes over a large module therefore run one at a time, and
 * the limits are checked between them. LLVM must then repeat analyses for each pass, but analyses
 * are cheap compared with the passes. */

static void check_instructions(kt_compilation *c, LLVMModuleRef module, const char *after)
{
  uint64_t count = kg_count_instructions(module, c->budget->limits[KJ_LIMIT_INSTRUCTIONS]);
  kt_check_limit(c, KJ_LIMIT_INSTRUCTIONS, count, c->request->kernel->decl->location,
                 "LLVM has created this number by the end of %s", after);
}

/* Estimates the number of steps of SROA, which LLVM cannot interrupt. SROA follows each variable of
 * a function through all blocks, so its time is proportional to the number of variables times the
 * number of blocks. */
static uint64_t count_steps(LLVMValueRef function)
{
  uint64_t variables = 0;
  if (LLVMIsDeclaration(function)) return 0;
  for (LLVMValueRef i = LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(function)); i;
       i = LLVMGetNextInstruction(i))
    variables += LLVMGetInstructionOpcode(i) == LLVMAlloca;
  return variables * LLVMCountBasicBlocks(function);
}

/* Checks the number of steps against the limit for instructions. A step takes about a quarter of a
 * microsecond; STEPS steps take as long as one instruction. */
static void check_steps(kt_compilation *c, uint64_t steps)
{
  enum { STEPS = 32 };
  kt_check_limit(c, KJ_LIMIT_INSTRUCTIONS, steps / STEPS, c->request->kernel->decl->location,
                 "its functions have so many variables and branches that LLVM would take %llu "
                 "steps to follow each variable through all basic blocks",
                 (unsigned long long)steps);
}

typedef struct unit {
  LLVMModuleRef module;
  LLVMValueRef function; /* NULL means the whole module */
} unit;

static void run(kt_compilation *c, unit of, LLVMTargetMachineRef machine, const char *pipeline,
                kg_llvm_errors *errors)
{
  LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
  kg_enter_llvm(c, errors);
  LLVMErrorRef error = of.function
                         ? LLVMRunPassesOnFunction(of.function, pipeline, machine, options)
                         : LLVMRunPasses(of.module, pipeline, machine, options);
  kg_leave_llvm();
  LLVMDisposePassBuilderOptions(options);
  kg_check_llvm_error(c, error, "optimizing");
  kg_check_llvm_errors(c, errors, "optimizing");
}

static void run_pass(kt_compilation *c, LLVMModuleRef module, LLVMTargetMachineRef machine,
                     const char *pipeline, kg_llvm_errors *errors)
{
  run(c, (unit){ .module = module }, machine, pipeline, errors);
}

/* Returns the length of the first pass in the text, including its parameters in brackets. */
static size_t measure_pass(const char *text)
{
  size_t length = 0;
  for (int open = 0; text[length] && (open > 0 || (text[length] != ',' && text[length] != ')'));
       length++)
    open += text[length] == '(' || text[length] == '<'   ? 1
            : text[length] == ')' || text[length] == '>' ? -1
                                                         : 0;
  return length;
}

static void run_step(kt_compilation *c, LLVMModuleRef module, LLVMTargetMachineRef machine,
                     const char *step, kg_llvm_errors *errors)
{
  const char *name = kj_format(c->arena, "LLVM's pass %s", step);
  kt_begin_step(c, name);
  run_pass(c, module, machine, step, errors);
  check_instructions(c, module, name);
}

static void run_steps(kt_compilation *c, LLVMModuleRef module, LLVMTargetMachineRef machine,
                      const char *pipeline, kg_llvm_errors *errors)
{
  static const char of_functions[] = "function(";
  size_t prefix = sizeof of_functions - 1;
  bool is_inside = false;
  for (const char *at = pipeline; *at;) {
    bool opens = !is_inside && strncmp(at, of_functions, prefix) == 0;
    if (opens) at += prefix;
    is_inside |= opens;
    size_t length = measure_pass(at);
    const char *pass = kj_copy_string(c->arena, at, length);
    run_step(c, module, machine, is_inside ? kj_format(c->arena, "function(%s)", pass) : pass,
             errors);
    at += length;
    if (*at == ')') is_inside = false, at++;
    if (*at == ',') at++;
  }
}

void kg_run_passes(kt_compilation *c, LLVMModuleRef module, LLVMTargetMachineRef machine,
                   const char *pipeline, kg_llvm_errors *errors)
{
  enum { MOST_AT_ONCE = 1 << 14 };
  bool is_large = kg_count_instructions(module, MOST_AT_ONCE) > MOST_AT_ONCE;
  uint64_t steps = 0;
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
    steps += count_steps(f);
  check_steps(c, steps);
  if (is_large) {
    check_instructions(c, module, c->budget->step);
    run_steps(c, module, machine, pipeline, errors);
  } else {
    kt_begin_step(c, "LLVM's passes");
    run_pass(c, module, machine, pipeline, errors);
    check_instructions(c, module, "its passes");
  }
}

void kg_run_function_passes(kt_compilation *c, LLVMValueRef function, LLVMTargetMachineRef machine,
                            const char *pipeline, kg_llvm_errors *errors)
{
  kt_begin_step(c, "LLVM's passes");
  check_steps(c, count_steps(function));
  run(c, (unit){ .function = function }, machine, pipeline, errors);
}

/* ---- rewriting of single instructions ---- */

void kg_rewrite_each(LLVMModuleRef module,
                     LLVMValueRef (*rewrite)(LLVMBuilderRef builder, LLVMValueRef instruction))
{
  LLVMBuilderRef builder = LLVMCreateBuilderInContext(LLVMGetModuleContext(module));
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
      for (LLVMValueRef i = LLVMGetFirstInstruction(b); i;) i = rewrite(builder, i);
  LLVMDisposeBuilder(builder);
}

LLVMValueRef kg_replace(LLVMValueRef instruction, LLVMValueRef by)
{
  LLVMValueRef next = LLVMGetNextInstruction(instruction);
  LLVMReplaceAllUsesWith(instruction, by);
  LLVMInstructionEraseFromParent(instruction);
  return next;
}
