# Sources are found by folder: a new file needs no line in a list.

# kj_add_part(name folder...): the .c files directly in the folders, without those of other processor architectures, as an object library.
function(kj_add_part name)
  set(sources)
  foreach(folder IN LISTS ARGN)
    file(GLOB found CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.c)
    list(APPEND sources ${found})
  endforeach()
  kj_remove_other_architectures(sources)
  add_library(${name} OBJECT ${sources})
  target_link_libraries(${name} PRIVATE kj_flags)
  if(KJIT_HOSTILE)
    target_compile_options(${name} PRIVATE -DKJIT_HOSTILE -include ${PROJECT_SOURCE_DIR}/lib/support/hostile.h)
  endif()
  target_include_directories(${name} SYSTEM PRIVATE ${XXHASH_INCLUDE_DIR})
endfunction()

# kj_embed_library(target folder): the .kir files of the folder become part of the target, see lib/library/library.h.
function(kj_embed_library target folder)
  file(GLOB inputs CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.kir)
  set(output ${PROJECT_BINARY_DIR}/library.c)
  add_custom_command(OUTPUT ${output} DEPENDS ${inputs} ${PROJECT_SOURCE_DIR}/cmake/Embed.cmake
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} "-DINPUTS=${inputs}" -P ${PROJECT_SOURCE_DIR}/cmake/Embed.cmake VERBATIM)
  target_sources(${target} PRIVATE ${output})
endfunction()

# kj_digest_build(target): kj_build and kj_compiler_file of lib/compiler.h become part of the target: the version, and a digest of the headers, tables and libclc that both libraries are made from.
function(kj_digest_build target)
  file(GLOB_RECURSE inputs CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/lib/*.h ${PROJECT_SOURCE_DIR}/lib/*.def ${PROJECT_SOURCE_DIR}/include/kjit/*.h ${PROJECT_SOURCE_DIR}/include/kjit/*.def)
  list(SORT inputs)
  list(APPEND inputs ${KJIT_LIBCLC})
  set(output ${PROJECT_BINARY_DIR}/build.c)
  set(response ${PROJECT_BINARY_DIR}/build-inputs.txt)
  file(GENERATE OUTPUT ${response} CONTENT "${inputs}")
  add_custom_command(OUTPUT ${output} DEPENDS ${inputs} ${response} ${PROJECT_SOURCE_DIR}/cmake/Digest.cmake
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DINPUTS=${response} "-DVERSION=${PROJECT_VERSION}" "-DOPTIONS=${CMAKE_BUILD_TYPE} ${KJIT_HOSTILE} ${KJIT_SANITIZE}"
      -P ${PROJECT_SOURCE_DIR}/cmake/Digest.cmake VERBATIM)
  target_sources(${target} PRIVATE ${output})
endfunction()

# kj_set_run_path(target path): where the loader looks for libraries of the target, in the build tree as where it is installed. CMake would otherwise pad the build tree's path with
# colons, and an empty element between colons is the current directory.
function(kj_set_run_path target path)
  set_target_properties(${target} PROPERTIES INSTALL_RPATH "${path}" BUILD_WITH_INSTALL_RPATH ON)
endfunction()

# kj_hide_symbols(target map): the version script's symbols are exported, nothing else; what is not reachable from them is dropped.
function(kj_hide_symbols target map)
  set(map ${PROJECT_SOURCE_DIR}/${map})
  target_link_options(${target} PRIVATE -Wl,--version-script=${map} -Wl,--gc-sections -Wl,-Bsymbolic)
  target_link_options(${target} PRIVATE -Wl,--build-id) # the disk cache tells builds apart by it
  if(NOT KJIT_SANITIZE) # a sanitizer's symbols come from the executable
    target_link_options(${target} PRIVATE -Wl,-z,defs)
  endif()
  set_target_properties(${target} PROPERTIES LINK_DEPENDS ${map})
endfunction()

# kj_add_examples(folder): every .c file in it is a host program, made as a host would make it. Those that include mpi.h are left out where there is no MPI.
function(kj_add_examples folder)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.c)
  foreach(source IN LISTS sources)
    cmake_path(GET source STEM name)
    file(STRINGS ${source} includes_mpi REGEX "#include <mpi.h>")
    if(includes_mpi)
      find_package(MPI QUIET COMPONENTS C)
      if(NOT MPI_C_FOUND)
        message(STATUS "No MPI: ${name} is not built.")
        continue()
      endif()
    endif()
    add_executable(example-${name} ${source})
    target_compile_options(example-${name} PRIVATE $<TARGET_PROPERTY:kj_flags,INTERFACE_COMPILE_OPTIONS>)
    target_link_libraries(example-${name} PRIVATE kjit m)
    if(includes_mpi)
      target_link_libraries(example-${name} PRIVATE MPI::MPI_C)
    endif()
    set_target_properties(example-${name} PROPERTIES OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/examples)
    add_dependencies(example-${name} kjit-compiler)
  endforeach()
endfunction()

# kj_add_columns(folder): the example that is a library, libcolumns, and the program that checks it.
function(kj_add_columns folder)
  set(folder ${PROJECT_SOURCE_DIR}/${folder})
  add_library(example-columns SHARED ${folder}/exchange.c ${folder}/apply.c ${folder}/group.c ${folder}/group_slots.c ${folder}/group_aggregates.c)
  set_target_properties(example-columns PROPERTIES OUTPUT_NAME columns C_VISIBILITY_PRESET hidden LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/examples)
  target_link_libraries(example-columns PRIVATE kjit)
  add_executable(example-columns_check ${folder}/columns_check.c)
  set_target_properties(example-columns_check PROPERTIES OUTPUT_NAME columns_check RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/examples)
  target_link_libraries(example-columns_check PRIVATE example-columns kjit m)
  foreach(target example-columns example-columns_check)
    target_compile_options(${target} PRIVATE $<TARGET_PROPERTY:kj_flags,INTERFACE_COMPILE_OPTIONS>)
    add_dependencies(${target} kjit-compiler)
  endforeach()
endfunction()
