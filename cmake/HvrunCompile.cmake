# How everything here is compiled: language level, warnings, sanitizers, where outputs lie.
# SPDX-License-Identifier: Apache-2.0
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

# CMake's own -O3 makes the first build a tenth longer and nothing here faster; the kernels ask for it themselves.
foreach(_flags CMAKE_C_FLAGS_RELEASE CMAKE_CXX_FLAGS_RELEASE)
  string(REPLACE "-O3" "-O2" ${_flags} "${${_flags}}")
endforeach()

# Batches of sources are compiled as one: a first build takes a third of the time. Sources with options of their own stay alone.
# What a source forgot to include is found by ./dev lint, which compiles each alone.
option(CMAKE_UNITY_BUILD "Compile sources in batches" ON)

# g++ 12 takes coroutine frames, whose names are of a header's kind in a batch, for types that two sources define; and Asio's
# operators new and delete of them for mismatched.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage> $<$<COMPILE_LANGUAGE:CXX>:-Wno-mismatched-new-delete>)
endif()

find_program(HVRUN_CCACHE ccache)
if(HVRUN_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # What one folder of build/ has compiled serves the others, also that of `pip install .`, which has no variables of ./dev's.
  set(_shared CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1)
  set(CMAKE_C_COMPILER_LAUNCHER env ${_shared} ${HVRUN_CCACHE})
  # Without these words ccache keeps nothing that was compiled with a precompiled header.
  set(CMAKE_CXX_COMPILER_LAUNCHER env ${_shared} CCACHE_SLOPPINESS=pch_defines,time_macros ${HVRUN_CCACHE})
endif()
find_program(HVRUN_MOLD mold)
if(HVRUN_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

# All symbols are bound at the start: binding one at its first call would save the registers on the stack, and with them what a
# copy of the job's key has left there, where a core dump would hold it.
add_link_options(-Wl,-z,relro,-z,now)

# hv_compile: linked by every target of this project, by nobody outside.
add_library(hv_compile INTERFACE)
target_include_directories(hv_compile INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated)
target_compile_options(hv_compile INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor
                       $<$<BOOL:${HVRUN_WERROR}>:-Werror>)
target_compile_definitions(hv_compile INTERFACE _GNU_SOURCE)
find_package(Threads REQUIRED)
target_link_libraries(hv_compile INTERFACE Threads::Threads)
get_target_property(_options hv_compile INTERFACE_COMPILE_OPTIONS)
list(REMOVE_ITEM _options -Wnon-virtual-dtor)
set_target_properties(hv_compile PROPERTIES INTERFACE_COMPILE_OPTIONS
                      "${_options};$<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>")

# What the address sanitizer finds by itself, at half the time of a build: in Asio's templates there are thousands.
set(HVRUN_UNDEFINED_LEFT_OUT -fno-sanitize=null,vptr,object-size)
if(HVRUN_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined ${HVRUN_UNDEFINED_LEFT_OUT} -fno-sanitize-recover=undefined
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
elseif(HVRUN_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
elseif(HVRUN_SANITIZE)
  message(FATAL_ERROR "HVRUN_SANITIZE is '${HVRUN_SANITIZE}': use 'address', 'thread' or nothing")
endif()

# hv_unity(TARGET): groups TARGET's sources into batches of at most 8 and of nearly the same length, each of one directory.
function(hv_unity target)
  get_target_property(_sources ${target} SOURCES)
  list(FILTER _sources INCLUDE REGEX "\\.cc$")
  list(SORT _sources)
  set(_directories)
  foreach(_source ${_sources})
    cmake_path(GET _source PARENT_PATH _directory)
    list(APPEND _directories "x${_directory}")
    list(APPEND "_in_x${_directory}" ${_source})
  endforeach()
  list(REMOVE_DUPLICATES _directories)
  foreach(_directory ${_directories})
    list(LENGTH "_in_${_directory}" _count)
    math(EXPR _batches "(${_count} + 7) / 8")
    math(EXPR _size "(${_count} + ${_batches} - 1) / ${_batches}")
    string(MAKE_C_IDENTIFIER "${_directory}" _name)
    set(_index 0)
    foreach(_source ${_in_${_directory}})
      math(EXPR _batch "${_index} / ${_size}")
      set_source_files_properties(${_source} PROPERTIES UNITY_GROUP "${_name}_${_batch}")
      math(EXPR _index "${_index} + 1")
    endforeach()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
endfunction()

# hv_library(NAME SOURCES... [DEPENDS targets...]): a room of the house as a static library.
function(hv_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_link_libraries(${name} PUBLIC hv_compile ${arg_DEPENDS})
  hv_unity(${name})
  hv_precompile(${name})
endfunction()
