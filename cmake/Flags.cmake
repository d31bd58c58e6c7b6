# Language, warnings and sanitizers for all of kjit's own code.
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, Debug or RelWithDebInfo" FORCE)
endif()

add_library(kj_flags INTERFACE)
target_compile_options(kj_flags INTERFACE -Wall -Wextra -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition -Wpointer-arith -Wundef -Wvla -Wwrite-strings
  -Wimplicit-fallthrough -Werror=implicit-function-declaration -fno-math-errno -ffunction-sections -fdata-sections)
target_include_directories(kj_flags INTERFACE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/lib ${PROJECT_SOURCE_DIR}/runtime)
target_compile_definitions(kj_flags INTERFACE _GNU_SOURCE=) # empty: the same as a file's own #define
if(KJIT_WERROR)
  target_compile_options(kj_flags INTERFACE -Werror)
endif()

if(KJIT_SANITIZE)
  # -UNDEBUG: LLVM's verifier looks at all that is lowered, as in debug builds.
  add_compile_options(-fsanitize=${KJIT_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all -UNDEBUG)
  add_link_options(-fsanitize=${KJIT_SANITIZE})
endif()
