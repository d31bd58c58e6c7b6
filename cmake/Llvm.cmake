# Finds LLVM 22 and makes the interface library kj_llvm. Any other version is refused: intrinsic names, pass names and PTX output change between versions,
# and LLVM fails at run time, not at link time, where they do.
set(KJIT_LLVM_VERSION_MAJOR 22)
set(KJIT_LLVM_HELP "kjit needs LLVM ${KJIT_LLVM_VERSION_MAJOR}: install the package llvm-${KJIT_LLVM_VERSION_MAJOR}-dev (in Debian 12 it comes from the security repository), \
or set LLVM_DIR to the folder of its LLVMConfig.cmake.")

# "22" would ask for 22.0 and fail, so the version is checked here. LLVM's own package stops the configuration when a library of its exported targets is missing.
find_package(LLVM CONFIG QUIET PATHS /usr/lib/llvm-${KJIT_LLVM_VERSION_MAJOR} NO_DEFAULT_PATH)
if(NOT LLVM_FOUND)
  find_package(LLVM CONFIG QUIET)
endif()
if(NOT LLVM_FOUND)
  message(FATAL_ERROR "No LLVM found. ${KJIT_LLVM_HELP}")
endif()
if(NOT LLVM_VERSION_MAJOR EQUAL KJIT_LLVM_VERSION_MAJOR)
  message(FATAL_ERROR "Found LLVM ${LLVM_PACKAGE_VERSION} in ${LLVM_DIR}. ${KJIT_LLVM_HELP}")
endif()
foreach(target ${KJIT_LLVM_HOST} NVPTX)
  if(NOT target IN_LIST LLVM_TARGETS_TO_BUILD)
    message(FATAL_ERROR "LLVM in ${LLVM_DIR} was built without its ${target} target. ${KJIT_LLVM_HELP}")
  endif()
endforeach()
message(STATUS "LLVM ${LLVM_PACKAGE_VERSION} in ${LLVM_DIR}")

if(KJIT_STATIC_RUNTIME)
  # LLVM's archives name zlib and zstd by these imported targets.
  find_library(KJIT_ZLIB_ARCHIVE libz.a REQUIRED)
  find_library(KJIT_ZSTD_ARCHIVE libzstd.a REQUIRED)
  set_target_properties(ZLIB::ZLIB PROPERTIES IMPORTED_LOCATION ${KJIT_ZLIB_ARCHIVE} IMPORTED_LOCATION_RELEASE ${KJIT_ZLIB_ARCHIVE})
  set_target_properties(zstd::libzstd_shared PROPERTIES IMPORTED_LOCATION ${KJIT_ZSTD_ARCHIVE})
endif()

add_library(kj_llvm INTERFACE)
if(KJIT_LLVM_SHARED)
  target_link_libraries(kj_llvm INTERFACE LLVM)
else()
  # The compiler, 47 MB stripped, has all of LLVM's passes, of which about half are named in a pipeline: text of a pipeline
  # is read by one function that knows them all, and two of NVPTX's own passes are reached through it only. Linkers that fold functions alike save 4 MB more, but where LLVM compares
  # addresses of functions they change what it does.
  # Code generation only: nvptx and the host's target as groups would add assembly parsers and disassemblers.
  string(TOLOWER ${KJIT_LLVM_HOST} host)
  llvm_map_components_to_libnames(KJIT_LLVM_LIBRARIES core support analysis passes target bitreader bitwriter irreader linker orcjit orcdebugging
    nvptxcodegen nvptxdesc nvptxinfo ${host}codegen ${host}desc ${host}info)
  target_link_libraries(kj_llvm INTERFACE ${KJIT_LLVM_LIBRARIES})
endif()
