# CPack runs this before it makes the packages: it completes the staged files to what Debian's policy asks for. Manual pages are compressed, each package gets a changelog.
# CPACK_KJIT_SOURCE is set in Package.cmake.
# The date of the source: SOURCE_DATE_EPOCH, else the commit, else today.
set(date "")
if(NOT DEFINED ENV{SOURCE_DATE_EPOCH})
  execute_process(COMMAND git -C ${CPACK_KJIT_SOURCE} log -1 --format=%cD OUTPUT_VARIABLE date OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(NOT date)
  string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
endif()
foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  string(TOUPPER ${component} variable)
  set(package ${CPACK_DEBIAN_${variable}_PACKAGE_NAME})
  set(staged ${CPACK_TEMPORARY_DIRECTORY}/${component})
  set(changelog ${staged}/usr/share/doc/${package}/changelog)
  file(WRITE ${changelog} "kjit (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium\n\n  * /usr/share/doc/kjit/CHANGELOG.md of the package kjit-doc lists what changed.\n\n -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")
  file(GLOB_RECURSE pages ${staged}/usr/share/man/*.[1-9])
  foreach(file IN LISTS pages ITEMS ${changelog})
    # -n: no time in the compressed file, so that the same build makes the same packages.
    execute_process(COMMAND gzip -9n ${file} COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
endforeach()
