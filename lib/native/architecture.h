/* Definitions that depend on the processor architecture for which kjit is built. kjit generates CPU
 * code only for this architecture. To support another architecture, add a block here, a row in
 * cmake/Architecture.cmake, its levels in cpu_levels.def, and the files
 * runtime/code/processor_<name>.c and runtime/cpu/relocate_<name>.c. */
#ifndef KJ_NATIVE_ARCHITECTURE_H
#define KJ_NATIVE_ARCHITECTURE_H

#include <stdbool.h>
#include <stdint.h>

/* KJ_LLVM_HOST(Part): LLVM's function that initializes a part of the target, such as AsmPrinter.
 * KJ_HOST_TRIPLE: the target triple of code for the CPU.
 * KJ_OWN_FEATURES: features in LLVM's notation that replace the features that LLVM finds on the
 * machine. KJ_HAS_WIDE_ATOMICS: every processor of the architecture has 16-byte atomic operations.
 * KJ_CYCLE_COUNTER: the LLVM intrinsic that reads a counter that user programs are allowed to read.
 * KJ_STORE_FENCE: the LLVM intrinsic that orders non-temporal stores before later stores; "" means
 * that code has no non-temporal stores.
 * KJ_OBJECT_MACHINE, KJ_OBJECT_NAME: the machine in the header of object files, and its name.
 * KJ_LEVEL_NAMES: the names in cpu_levels.def, as a list for messages. */
#if defined __x86_64__

#define KJ_LLVM_HOST(part) LLVMInitializeX86##part
#define KJ_HOST_TRIPLE "x86_64-unknown-linux-gnu"
#define KJ_OWN_FEATURES ""
#define KJ_HAS_WIDE_ATOMICS false
#define KJ_CYCLE_COUNTER "llvm.readcyclecounter"
#define KJ_STORE_FENCE "llvm.x86.sse.sfence"
#define KJ_OBJECT_MACHINE EM_X86_64
#define KJ_OBJECT_NAME "x86-64"
#define KJ_LEVEL_NAMES "x86-64-v2, x86-64-v3 or x86-64-v4"

/* Tells the processor that the caller is polling in a loop. */
static inline void kn_pause(void) { __builtin_ia32_pause(); }

/* Returns true only if floating-point operations in this thread round and trap as in a new process.
 * Can return false even if they do. */
static inline bool kn_has_default_environment(void)
{
  enum { DEFAULT = 0x1f80, STATUS = 0x3f };
  return (__builtin_ia32_stmxcsr() & ~(unsigned)STATUS) == DEFAULT;
}

#elif defined __aarch64__

#define KJ_LLVM_HOST(part) LLVMInitializeAArch64##part
#define KJ_HOST_TRIPLE "aarch64-unknown-linux-gnu"
/* Vector registers have 16 bytes on every machine. The size of SVE registers is known only at run
 * time, but kjit's loops and cache keys need a constant size. */
#define KJ_OWN_FEATURES "-sve"
#define KJ_HAS_WIDE_ATOMICS true
/* The cycle counter, PMCCNTR_EL0, traps in user programs. */
#define KJ_CYCLE_COUNTER "llvm.readsteadycounter"
#define KJ_STORE_FENCE ""
#define KJ_OBJECT_MACHINE EM_AARCH64
#define KJ_OBJECT_NAME "aarch64"
#define KJ_LEVEL_NAMES "armv8-a"

static inline void kn_pause(void) { __asm__ volatile("yield" ::: "memory"); }

static inline bool kn_has_default_environment(void)
{
  uint64_t control;
  __asm__ volatile("mrs %0, fpcr" : "=r"(control));
  return control == 0;
}

#else
#error "kjit runs on x86-64 and aarch64 processors"
#endif

#endif
