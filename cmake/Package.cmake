# Debian packages by CPack: scripts/make-packages.sh. libkjit0 has the two libraries and the program that compiles in a child process, libkjit-dev what is needed to
# build against them, kjit-tools the programs with their manual pages and completion, kjit-doc the pages and examples. Debug symbols are packages of their own.
set(CPACK_PACKAGE_NAME kjit)
set(CPACK_PACKAGE_VENDOR "the kjit project")
# The maintainer of a package is who makes it, as for Debian's own tools: DEBFULLNAME and DEBEMAIL, else what git knows.
if(DEFINED ENV{DEBEMAIL})
  set(CPACK_PACKAGE_CONTACT "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
else()
  execute_process(COMMAND git -C ${PROJECT_SOURCE_DIR} var GIT_COMMITTER_IDENT OUTPUT_VARIABLE identity ERROR_QUIET)
  if(identity MATCHES "^(.* <[^<>]+@[^<>]+>)")
    set(CPACK_PACKAGE_CONTACT "${CMAKE_MATCH_1}")
  else()
    set(CPACK_PACKAGE_CONTACT "the kjit project <kjit@localhost>")
  endif()
endif()
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
# CPack puts debug symbols into packages of their own, libkjit0-dbgsym and kjit-tools-dbgsym, and strips what they are of; installing must not do that before it.
set(CPACK_DEBIAN_RUNTIME_DEBUGINFO_PACKAGE ON)
set(CPACK_DEBIAN_TOOLS_DEBUGINFO_PACKAGE ON)
set(CPACK_COMPONENTS_ALL runtime development tools documentation)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(same "= ${PROJECT_VERSION}")

set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME libkjit${PROJECT_VERSION_MAJOR})
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "compiles and runs kernels from inside a program: libraries
 A kernel is written in a small kernel IR, is specialized to the types of a
 call's arguments, compiled through LLVM to PTX for an NVIDIA GPU or to native
 code for the CPU, and kept for the next call. No CUDA toolkit is needed.")
# What packages of programs that link libkjit will depend on, and ldconfig's trigger. The interface grows, so at least this version.
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SUGGESTS "libcuda1")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libkjit-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "compiles and runs kernels from inside a program: headers
 For C and C++, with files for pkg-config and CMake.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libkjit${PROJECT_VERSION_MAJOR} (${same})")

set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME kjit-tools)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION devel)
set(CPACK_COMPONENT_TOOLS_DESCRIPTION "runs and compiles kernels of kernel IR files
 kjit-run runs kernels and algorithms over arrays, kjit-compile compiles ahead
 of time, kjit-cache tidies the directory of compiled code.")
set(CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS "libkjit${PROJECT_VERSION_MAJOR} (${same})")

set(CPACK_DEBIAN_DOCUMENTATION_PACKAGE_NAME kjit-doc)
set(CPACK_DEBIAN_DOCUMENTATION_PACKAGE_SECTION doc)
set(CPACK_DEBIAN_DOCUMENTATION_PACKAGE_ARCHITECTURE all)
set(CPACK_COMPONENT_DOCUMENTATION_DESCRIPTION "pages and examples of kjit
 The language, the tools, embedding in C, C++ and Python, how it is built.")
# The licence of each package where Debian's policy wants it. Only packages have this file.
file(READ LICENSE license)
string(REGEX MATCH "\n---- LLVM Exceptions.*" exceptions "${license}")
if(NOT exceptions)
  message(FATAL_ERROR "LICENSE has no section \"LLVM Exceptions\".")
endif()
string(STRIP "${exceptions}" exceptions)
string(REPLACE "\n\n" "\n.\n" exceptions "${exceptions}")
string(REPLACE "\n" "\n " exceptions "${exceptions}")
file(CONFIGURE OUTPUT copyright @ONLY CONTENT [[Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: kjit
Comment: /usr/share/doc/kjit/NOTICE of the package libkjit@PROJECT_VERSION_MAJOR@ names what the libraries and programs contain of other projects,
 with their copyright notices and licences.

Files: *
Copyright: 2026 the authors of kjit
License: Apache-2.0 with LLVM exception
 The text of the Apache License 2.0 is in /usr/share/common-licenses/Apache-2.0. The exceptions are:
 .
 @exceptions@
]])
foreach(component runtime development tools documentation)
  string(TOUPPER ${component} variable)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/copyright DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/${CPACK_DEBIAN_${variable}_PACKAGE_NAME} COMPONENT ${component} EXCLUDE_FROM_ALL)
endforeach()
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/PackageFiles.cmake)
set(CPACK_POST_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/PackageControl.cmake)
set(CPACK_KJIT_SOURCE ${PROJECT_SOURCE_DIR})
include(CPack)
