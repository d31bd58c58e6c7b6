# Finds libclc's library of math functions for nvptx, LLVM bitcode that becomes part of libkjit-compiler: a GPU's math functions need no CUDA toolkit then.
# The package libclc-22 has it; KJIT_LIBCLC names another file.
find_file(KJIT_LIBCLC nvptx64--.bc PATHS /usr/lib/clc /usr/share/clc ${LLVM_INSTALL_PREFIX}/share/clc ${LLVM_INSTALL_PREFIX}/lib/clc NO_DEFAULT_PATH
  DOC "libclc's nvptx64--.bc, the math functions for GPUs where no CUDA toolkit is found")
if(NOT KJIT_LIBCLC OR NOT EXISTS ${KJIT_LIBCLC})
  message(FATAL_ERROR "kjit needs nvptx64--.bc of libclc ${KJIT_LLVM_VERSION_MAJOR}: install the package libclc-${KJIT_LLVM_VERSION_MAJOR}, or set KJIT_LIBCLC to the file.")
endif()
file(READ ${KJIT_LIBCLC} KJIT_LIBCLC_MAGIC LIMIT 4 HEX)
if(NOT KJIT_LIBCLC_MAGIC STREQUAL "4243c0de")
  message(FATAL_ERROR "${KJIT_LIBCLC} is not LLVM bitcode.")
endif()

# kj_embed_libclc(target): the file's bytes become part of the target, between the symbols kg_libclc and kg_libclc_end.
function(kj_embed_libclc target)
  set(output ${PROJECT_BINARY_DIR}/libclc.c)
  file(CONFIGURE OUTPUT ${output} @ONLY CONTENT [[
/* Made by cmake/Libclc.cmake. */
__asm__(".section .rodata\n"
        ".balign 16\n"
        ".globl kg_libclc, kg_libclc_end\n"
        ".hidden kg_libclc, kg_libclc_end\n"
        "kg_libclc:\n"
        ".incbin \"@KJIT_LIBCLC@\"\n"
        "kg_libclc_end:\n"
        ".text\n");
]])
  set_source_files_properties(${output} PROPERTIES OBJECT_DEPENDS ${KJIT_LIBCLC})
  target_sources(${target} PRIVATE ${output})
endfunction()
