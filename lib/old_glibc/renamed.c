/* This file is part of builds that must run on systems older than the build machine. With the
 * option --wrap, the linker turns each call of a function listed in renamed.def, including calls in
 * LLVM, into a call of __wrap_<function>. This file defines the functions __wrap_<function>. Each
 * of them jumps to the older version of the function. */
#define RENAMED(function, version) \
  __asm__(".section .text.__wrap_" #function ",\"ax\",@progbits\n" \
          ".symver kj_old_" #function ", " #function "@" version "\n" \
          ".globl __wrap_" #function "\n" \
          ".hidden __wrap_" #function "\n" \
          ".type __wrap_" #function ", @function\n" \
          "__wrap_" #function ":\n" \
          "  jmp kj_old_" #function "@PLT\n" \
          ".size __wrap_" #function ", . - __wrap_" #function "\n" \
          ".text\n");
#include "old_glibc/renamed.def"
