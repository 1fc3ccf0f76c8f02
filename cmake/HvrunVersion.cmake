# hvrun_version.h: what hvrun and hvrun-agent say they are, made anew whenever a source of the agent changes.
# SPDX-License-Identifier: Apache-2.0
#
# HVRUN_BUILD_ID names an exact agent: a hash over its sources and over what else shapes its bytes. hvrun refuses to
# work with an agent of another build, so the two never have to understand yesterday's messages.
set(_agent_folders src launcher/agent launcher/facts python/rank_start)
set(_agent_files python/hvrun/_stacks.py)  # which the agent brings along with python/rank_start
set(_agent_patterns ${_agent_folders})
list(TRANSFORM _agent_patterns APPEND "/*.cc")
set(_agent_headers ${_agent_folders})
list(TRANSFORM _agent_headers APPEND "/*.h")
list(TRANSFORM _agent_patterns PREPEND "${PROJECT_SOURCE_DIR}/")
list(TRANSFORM _agent_headers PREPEND "${PROJECT_SOURCE_DIR}/")
file(GLOB_RECURSE _agent_sources CONFIGURE_DEPENDS ${_agent_patterns} ${_agent_headers} ${PROJECT_SOURCE_DIR}/python/rank_start/*.py)

set(HVRUN_VERSION_HEADER ${PROJECT_BINARY_DIR}/generated/hvrun_version.h)
set(_flavour "${CMAKE_SYSTEM_PROCESSOR} ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
string(APPEND _flavour " ${CMAKE_BUILD_TYPE} ${CMAKE_CXX_FLAGS} ${HVRUN_SANITIZE}")
add_custom_command(
  OUTPUT ${HVRUN_VERSION_HEADER}
  COMMAND ${CMAKE_COMMAND} "-DOUTPUT=${HVRUN_VERSION_HEADER}" "-DVERSION=${PROJECT_VERSION}" "-DFLAVOUR=${_flavour}"
          "-DSOURCE_DIR=${PROJECT_SOURCE_DIR}" "-DFOLDERS=${_agent_folders}" "-DFILES=${_agent_files}"
          -P ${PROJECT_SOURCE_DIR}/cmake/WriteVersionHeader.cmake
  DEPENDS ${_agent_sources} ${PROJECT_SOURCE_DIR}/${_agent_files} ${PROJECT_SOURCE_DIR}/cmake/WriteVersionHeader.cmake ${PROJECT_SOURCE_DIR}/CMakeLists.txt
  COMMENT "Naming this build"
  VERBATIM)
add_custom_target(hv_version DEPENDS ${HVRUN_VERSION_HEADER})
add_dependencies(hv_compile hv_version)  # every target links hv_compile, so the header is there before any compiles
