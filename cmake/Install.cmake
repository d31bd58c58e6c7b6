# cmake --install: headers, the two libraries side by side, tools, find_package(kjit), pkg-config, man pages.
include(CMakePackageConfigHelpers)
get_property(tools GLOBAL PROPERTY KJIT_TOOLS)
install(TARGETS kjit EXPORT kjit LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development)
install(TARGETS kjit-compiler LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_SKIP) # opened by its full name, linked by nobody
if(tools)
  install(TARGETS ${tools} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
endif()
install(DIRECTORY include/kjit DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp" PATTERN "*.def")
install(FILES LICENSE NOTICE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime)
install(FILES README.md CHANGELOG.md SECURITY.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT documentation)
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs COMPONENT documentation FILES_MATCHING PATTERN "*.md" PATTERN "*.svg" PATTERN "*.png" PATTERN "*.in.md" EXCLUDE PATTERN "*.prose.md" EXCLUDE PATTERN "man" EXCLUDE)
install(DIRECTORY examples/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples USE_SOURCE_PERMISSIONS COMPONENT documentation PATTERN "__pycache__" EXCLUDE)
file(GLOB manuals CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/man/*.1)
if(manuals)
  install(FILES ${manuals} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT tools)
  install(FILES ${PROJECT_SOURCE_DIR}/docs/man/kjit.7 DESTINATION ${CMAKE_INSTALL_MANDIR}/man7 COMPONENT tools)
endif()

# man(3) of the API, from the comments in the headers, where there is what reads them.
find_program(KJIT_DOXYGEN doxygen)
if(KJIT_DOXYGEN)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  install(CODE "execute_process(COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/scripts/make-reference.py --man \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_MANDIR}/man3\" OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)" COMPONENT development)
endif()

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/kjit)
install(EXPORT kjit NAMESPACE kjit:: DESTINATION ${package} COMPONENT development)
configure_package_config_file(cmake/kjitConfig.cmake.in ${PROJECT_BINARY_DIR}/kjitConfig.cmake INSTALL_DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/kjitConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/kjitConfig.cmake ${PROJECT_BINARY_DIR}/kjitConfigVersion.cmake DESTINATION ${package} COMPONENT development)

# Relative to the file itself, so that an installed tree can be moved.
file(RELATIVE_PATH KJIT_PC_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
cmake_path(SET KJIT_PC_PREFIX NORMALIZE "${KJIT_PC_PREFIX}")
configure_file(cmake/kjit.pc.in ${PROJECT_BINARY_DIR}/kjit.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/kjit.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
include(cmake/Package.cmake)
