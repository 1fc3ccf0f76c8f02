# hv_doctest(TARGET LABEL files...): each source of the test program TARGET becomes one ctest test, named by its path below tests/.
# SPDX-License-Identifier: Apache-2.0
#
# A process for each source, not for each case: starting one costs more than most cases do. Its single cases are counted by
# tests/summary from what doctest prints. Options:
#   VARIANT name  what the name ends with, where a source is run in several variants
#   ARGUMENTS     for doctest; without them a source whose cases are not found is a failure
#   ENVIRONMENT   name=value ...
#   TIMEOUT       seconds, 300 unless said
function(hv_doctest target label)
  cmake_parse_arguments(arg "" "VARIANT;TIMEOUT" "ARGUMENTS;ENVIRONMENT" ${ARGN})
  set(_variant)
  if(arg_VARIANT)
    set(_variant " (${arg_VARIANT})")
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  foreach(_source ${arg_UNPARSED_ARGUMENTS})
    cmake_path(ABSOLUTE_PATH _source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE)
    file(RELATIVE_PATH _path ${PROJECT_SOURCE_DIR}/tests ${_source})
    set(_test "${_path}${_variant}")
    add_test(NAME ${_test} COMMAND ${target} --duration=true --source-file=*tests/${_path} ${arg_ARGUMENTS})
    set_tests_properties(${_test} PROPERTIES LABELS ${label} TIMEOUT ${arg_TIMEOUT} SKIP_RETURN_CODE 77
                         ENVIRONMENT "${arg_ENVIRONMENT}" FAIL_REGULAR_EXPRESSION "test cases: +0 ")
    if(label STREQUAL "ranks")
      set_tests_properties(${_test} PROPERTIES PROCESSORS 2)  # its ranks compute
    endif()
  endforeach()
endfunction()
