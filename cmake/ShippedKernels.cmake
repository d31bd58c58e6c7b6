# The target kjit-kernels makes kernels.kjit, the file of compiled kernels that packages install beside libkjit. It takes minutes, so that only packages are built with it.
# A GPU finds code for exactly its architecture. From sm_90 on, launches use what only one architecture has, under a name with an `a`.
set(levels x86-64-v2 x86-64-v3 x86-64-v4)
if(KJIT_ARCHITECTURE STREQUAL aarch64)
  set(levels armv8-a)
endif()
set(KJIT_KERNEL_TARGETS sm_75 sm_80 sm_86 sm_89 sm_90a sm_100a sm_120a ${levels} CACHE STRING "Machines that the target kjit-kernels compiles for")
# A ptxas makes machine code for these beside the PTX, so that a first call does not wait for the driver's compiler. A CUDA toolkit has one, and so has the package nvidia-cuda-nvcc of PyPI.
set(KJIT_MACHINE_CODE_TARGETS sm_80 sm_86 sm_89 sm_90a sm_100a sm_120a CACHE STRING "GPUs for which the target kjit-kernels also makes machine code, if there is a ptxas")
find_program(KJIT_PTXAS ptxas PATHS /usr/local/cuda/bin DOC "The assembler that makes machine code for the target kjit-kernels; empty: PTX only")
set(shipped_parts)
# The package for Python ships the element-wise operations of kjit.numpy, too.
set(operations)
if(KJIT_PYTHON)
  set(operations ${PROJECT_BINARY_DIR}/kernels/operations/operations.list)
  add_custom_command(OUTPUT ${operations}
    COMMAND ${CMAKE_COMMAND} -E env PYTHONPATH=${PROJECT_BINARY_DIR}/python ${KJIT_PYTHON_PROGRAM} ${PROJECT_SOURCE_DIR}/scripts/make-operations-list.py ${PROJECT_BINARY_DIR}/kernels/operations
    DEPENDS ${PROJECT_SOURCE_DIR}/scripts/make-operations-list.py kjit-python kjit-python-package VERBATIM)
endif()
foreach(target ${KJIT_KERNEL_TARGETS})
  set(shipped_lists ${PROJECT_SOURCE_DIR}/tools/kjit-cache/shipped.list ${operations})
  if(target MATCHES "^sm_")
    list(APPEND shipped_lists ${PROJECT_SOURCE_DIR}/tools/kjit-cache/shipped-gpu.list)
  endif()
  set(machine_code)
  if(KJIT_PTXAS AND target IN_LIST KJIT_MACHINE_CODE_TARGETS)
    set(machine_code --machine-code=${KJIT_PTXAS})
  endif()
  set(part ${PROJECT_BINARY_DIR}/kernels/${target}.kjit)
  add_custom_command(OUTPUT ${part} COMMAND kjit-cache build ${shipped_lists} --target ${target} ${machine_code} --output ${part}
    DEPENDS kjit-cache kjit kjit-compiler ${shipped_lists} COMMENT "Compiling the kernels that ship for ${target}" VERBATIM)
  list(APPEND shipped_parts ${part})
endforeach()
# kjit takes files of compiled kernels from no folder that others may write to, and a umask may allow that.
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/kernels)
file(CHMOD ${PROJECT_BINARY_DIR}/kernels PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
# Not beside libkjit of the build tree: tests count what is compiled.
set(shipped_kernels ${PROJECT_BINARY_DIR}/kernels/kernels.kjit)
add_custom_command(OUTPUT ${shipped_kernels} COMMAND kjit-cache merge ${shipped_parts} --output ${shipped_kernels}
  COMMAND sh -c [[[ "$(stat -c %s "$1")" -le 40000000 ] || { echo "$1 has more than 40 MB" >&2; exit 1; }]] size ${shipped_kernels} DEPENDS ${shipped_parts} VERBATIM)
add_custom_target(kjit-kernels DEPENDS ${shipped_kernels})
# libkjit would ignore kernels of another build.
install(CODE "
  if(EXISTS \"${shipped_kernels}\")
    execute_process(COMMAND \"$<TARGET_FILE:kjit-cache>\" list \"${shipped_kernels}\" OUTPUT_QUIET ERROR_VARIABLE why RESULT_VARIABLE failed)
    if(failed)
      message(FATAL_ERROR \"\${why}Build the target kjit-kernels again, or remove ${shipped_kernels}.\")
    endif()
  endif()" COMPONENT runtime)
install(FILES ${shipped_kernels} DESTINATION ${CMAKE_INSTALL_LIBDIR}/kjit-${PROJECT_VERSION} COMPONENT runtime OPTIONAL)
