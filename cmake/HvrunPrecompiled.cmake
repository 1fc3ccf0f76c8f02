# Precompiled headers: what nearly every source includes, read once. They take a quarter off a first build.
# SPDX-License-Identifier: Apache-2.0
#
# ./dev lint compiles each source without them, and so finds one that forgot an include.
option(HVRUN_PRECOMPILE "Read the headers that most sources share once, not once a source" ON)

set(_hvrun_headers <algorithm> <atomic> <cerrno> <chrono> <condition_variable> <cstring> <deque> <functional>
    <map> <memory> <mutex> <optional> <set> <string> <string_view> <unordered_map> <utility> <vector>)
set(_hvrun_headers_asio <boost/asio/any_io_executor.hpp> <boost/asio/awaitable.hpp> <boost/asio/co_spawn.hpp>
    <boost/asio/detached.hpp> <boost/asio/local/stream_protocol.hpp> <boost/asio/posix/stream_descriptor.hpp>
    <boost/asio/redirect_error.hpp> <boost/asio/steady_timer.hpp> <boost/asio/this_coro.hpp>
    <boost/asio/use_awaitable.hpp>)
set(_hvrun_headers_doctest <doctest/doctest.h>)

# hv_precompile(TARGET): a library of ours reads the shared headers precompiled, Asio's too when it links Asio; a test
# program (it links doctest) reads doctest's. gcc takes a precompiled header only with the options that made it, and
# programs are -fPIE where libraries are -fPIC. To be called when TARGET's libraries are linked.
function(hv_precompile target)
  if(NOT HVRUN_PRECOMPILE)
    return()
  endif()
  get_target_property(_libraries ${target} LINK_LIBRARIES)
  set(_kind shared)
  foreach(_other asio doctest)
    if(_libraries MATCHES "${_other}")
      set(_kind ${_other})
    endif()
  endforeach()
  if(NOT TARGET hv_headers_${_kind})
    hv_precompiled_headers(${_kind})
  endif()
  target_precompile_headers(${target} REUSE_FROM hv_headers_${_kind})
  # gcc 12 doubts the small buffer of std::string once its header comes precompiled.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
  endif()
endfunction()

# The target hv_headers_KIND, whose one source is empty: only its precompiled headers matter.
function(hv_precompiled_headers kind)
  set(_target hv_headers_${kind})
  set(_source ${PROJECT_BINARY_DIR}/generated/${_target}.cc)
  file(CONFIGURE OUTPUT ${_source} CONTENT "// Made by cmake/HvrunPrecompiled.cmake\n")
  if(kind STREQUAL "doctest")
    add_executable(${_target} ${_source})
    target_link_libraries(${_target} PRIVATE hv_compile doctest::doctest hv_test_main)
  else()
    add_library(${_target} STATIC ${_source})
    target_link_libraries(${_target} PRIVATE hv_compile $<$<STREQUAL:${kind},asio>:hv_asio>)
  endif()
  target_precompile_headers(${_target} PRIVATE ${_hvrun_headers} ${_hvrun_headers_${kind}})
  set_target_properties(${_target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/generated
                                              ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/generated)
endfunction()
