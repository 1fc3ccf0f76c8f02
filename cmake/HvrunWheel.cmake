# What goes into the Python wheel: programs beside the environment's python, libhvrun and its header into the package.
# SPDX-License-Identifier: Apache-2.0
#
# A wheel holds no symbolic links: libhvrun is there once, by the name that programs ask for.
install(TARGETS hvrun hvrun-agent hvrun-inventory hvrun-pmix RUNTIME DESTINATION ${SKBUILD_SCRIPTS_DIR})
install(FILES $<TARGET_FILE:hvrun_lib> DESTINATION hvrun/lib RENAME $<TARGET_SONAME_FILE_NAME:hvrun_lib>)
foreach(_plugin hvrun_nccl hvrun_openmpi hvrun_mpich)
  if(TARGET ${_plugin})
    install(TARGETS ${_plugin} LIBRARY DESTINATION hvrun/lib)  # libhvrun looks for it beside itself
  endif()
endforeach()
install(FILES ${PROJECT_SOURCE_DIR}/runtime/include/hvrun/hvrun.h DESTINATION hvrun/include/hvrun)
foreach(_section 1 3 5 7)
  file(GLOB _pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/man/*.${_section})
  install(FILES ${_pages} DESTINATION ${SKBUILD_DATA_DIR}/share/man/man${_section})
endforeach()
