# The processor architectures that kjit runs on, one row each: name, pattern of CMAKE_SYSTEM_PROCESSOR, LLVM's target. What else depends on the architecture is in
# lib/native/architecture.h, lib/cpu_levels.def and the source files whose names end in the name of an architecture.
set(KJIT_ARCHITECTURES
  "x86_64 ^(x86_64|AMD64)$ X86"
  "aarch64 ^(aarch64|arm64)$ AArch64")
set(KJIT_ARCHITECTURE)
set(KJIT_OTHER_ARCHITECTURES)
foreach(row IN LISTS KJIT_ARCHITECTURES)
  separate_arguments(row)
  list(GET row 0 name)
  list(GET row 1 pattern)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "${pattern}")
    set(KJIT_ARCHITECTURE ${name})
    list(GET row 2 KJIT_LLVM_HOST)
  else()
    list(APPEND KJIT_OTHER_ARCHITECTURES ${name})
  endif()
endforeach()
if(NOT KJIT_ARCHITECTURE)
  message(FATAL_ERROR "kjit runs on x86-64 and aarch64 processors only, and this build is for ${CMAKE_SYSTEM_PROCESSOR}.")
endif()
if(KJIT_STATIC_RUNTIME AND NOT KJIT_ARCHITECTURE STREQUAL x86_64)
  message(FATAL_ERROR "KJIT_STATIC_RUNTIME (the wheel, the tarball and the bundle for older systems) supports x86-64 only, and this build is for ${KJIT_ARCHITECTURE}. "
    "Configure without it and install with cmake --install, or make Debian packages with scripts/make-packages.sh.")
endif()

# kj_remove_other_architectures(list): takes the sources of other architectures, named *_ARCHITECTURE.c, out of a list of source files.
function(kj_remove_other_architectures list)
  foreach(name IN LISTS KJIT_OTHER_ARCHITECTURES)
    list(FILTER ${list} EXCLUDE REGEX "_${name}\\.c$")
  endforeach()
  set(${list} ${${list}} PARENT_SCOPE)
endfunction()
