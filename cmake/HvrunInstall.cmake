# cmake --install: programs, library, header, CMake package, pkg-config file, man pages, docs.
# SPDX-License-Identifier: Apache-2.0
#
# The whole prefix can be moved afterwards: hvrun looks for its other programs beside itself, the CMake package and the pkg-config
# file find the prefix from where they lie, and programs take libhvrun's place from those.
include(CMakePackageConfigHelpers)

install(TARGETS hvrun hvrun-agent hvrun-inventory hvrun-pmix RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
set_target_properties(hvrun_lib PROPERTIES EXPORT_NAME hvrun)
install(TARGETS hvrun_lib EXPORT hvrun LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
foreach(_plugin hvrun_nccl hvrun_openmpi hvrun_mpich)
  if(TARGET ${_plugin})
    install(TARGETS ${_plugin} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})  # libhvrun looks for it beside itself
  endif()
endforeach()
install(FILES ${PROJECT_SOURCE_DIR}/runtime/include/hvrun/hvrun.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/hvrun)

set(_package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/hvrun)
install(EXPORT hvrun NAMESPACE hvrun:: FILE hvrun-targets.cmake DESTINATION ${_package_folder})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/hvrun-config.cmake.in ${PROJECT_BINARY_DIR}/hvrun-config.cmake
                              INSTALL_DESTINATION ${_package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/hvrun-config-version.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/hvrun-config.cmake ${PROJECT_BINARY_DIR}/hvrun-config-version.cmake
        DESTINATION ${_package_folder})

# From <libdir>/pkgconfig back to the prefix, however deep libdir is (lib, lib64, lib/x86_64-linux-gnu).
file(RELATIVE_PATH HVRUN_PREFIX_FROM_PC /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" HVRUN_PREFIX_FROM_PC "${HVRUN_PREFIX_FROM_PC}")
configure_file(${PROJECT_SOURCE_DIR}/cmake/hvrun.pc.in ${PROJECT_BINARY_DIR}/hvrun.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/hvrun.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

foreach(_section 1 3 5 7)
  file(GLOB _pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/man/*.${_section})
  install(FILES ${_pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${_section})
endforeach()

# hvrun holds them, too: these are for reading, copying, and editors that know JSON schemas.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/hostfiles/sites DESTINATION ${CMAKE_INSTALL_DATADIR}/hvrun FILES_MATCHING PATTERN "*.json")

# man hvrun_enqueue, and so on for every function: a page that says where they are described.
set(_header ${PROJECT_SOURCE_DIR}/runtime/include/hvrun/hvrun.h)
set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${_header})
file(STRINGS ${_header} _declarations REGEX "^HVRUN_API.*hvrun_[a-z_]+\\(")
foreach(_declaration ${_declarations})
  string(REGEX REPLACE ".*(hvrun_[a-z_]+)\\(.*" "\\1" _function "${_declaration}")
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/man3/${_function}.3 CONTENT ".so man3/hvrun.3\n" @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/man3/${_function}.3 DESTINATION ${CMAKE_INSTALL_MANDIR}/man3)
endforeach()

# The pages keep their links: to each other, and by a symbolic link beside them to the installed examples.
install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR}
        FILES_MATCHING PATTERN "*.md" PATTERN "*.png")
file(RELATIVE_PATH _examples_from_docs /prefix/${CMAKE_INSTALL_DOCDIR} /prefix/${CMAKE_INSTALL_DATADIR}/hvrun/examples)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/doc)
file(CREATE_LINK ${_examples_from_docs} ${PROJECT_BINARY_DIR}/doc/examples SYMBOLIC)
install(FILES ${PROJECT_BINARY_DIR}/doc/examples DESTINATION ${CMAKE_INSTALL_DOCDIR})
