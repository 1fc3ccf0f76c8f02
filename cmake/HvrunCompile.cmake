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

# What a source forgot to include is found by ./dev lint, which compiles each alone.
option(HVRUN_BATCHES "Compile sources in batches" ON)

# Two false alarms of g++ 12: it takes a source in a batch for a header, and warns of coroutine frames with members of anonymous
# types; and it takes Asio's operators new and delete of such frames for mismatched.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND HVRUN_BATCHES)
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

# Programs lie at random addresses. CMake links them so only once it has been asked whether it can.
include(CheckPIESupported)
check_pie_supported(OUTPUT_VARIABLE _why LANGUAGES C CXX)
if(NOT CMAKE_CXX_LINK_PIE_SUPPORTED)
  message(WARNING "programs will lie at fixed addresses: the linker makes no position-independent ones: ${_why}")
endif()

# A write past the end of a buffer ends the program instead of becoming an attacker's. The sanitizers find more, and compile this out.
# What a distribution or a user asks for beyond that stays: _FORTIFY_SOURCE=3 in CXXFLAGS, or in the compiler itself. libc warns of
# it where nothing is optimized.
include(CheckSourceCompiles)
if(NOT HVRUN_SANITIZE AND NOT HVRUN_FUZZ)
  add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:-fstack-protector-strong>")
  foreach(_language C CXX)
    set(CMAKE_REQUIRED_FLAGS -O2)
    set(CMAKE_REQUIRED_QUIET ON)
    unset(HVRUN_FORTIFIED_${_language} CACHE)  # the flags may have changed
    check_source_compiles(${_language} "
      #if !defined _FORTIFY_SOURCE || _FORTIFY_SOURCE < 2
      #error the flags ask for less
      #endif
      int main(void) { return 0; }" HVRUN_FORTIFIED_${_language})
    unset(CMAKE_REQUIRED_FLAGS)
    unset(CMAKE_REQUIRED_QUIET)
    if(NOT HVRUN_FORTIFIED_${_language})
      set(_is_optimized "$<AND:$<COMPILE_LANGUAGE:${_language}>,$<CONFIG:Release,RelWithDebInfo,MinSizeRel>>")
      add_compile_options("$<${_is_optimized}:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>")
    endif()
  endforeach()
endif()

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

# hv_compile_batches(TARGET): compiles TARGET's sources in batches: a source that includes at most 8 of one directory, so that they
# share the time that headers take. Sources with options of their own stay alone. CMake's own batches name absolute paths, so that
# ccache would serve one clone alone.
function(hv_compile_batches target)
  if(NOT HVRUN_BATCHES)
    return()
  endif()
  get_target_property(_sources ${target} SOURCES)
  set(_kept)
  set(_directories)
  foreach(_source ${_sources})
    cmake_path(ABSOLUTE_PATH _source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE)
    file(RELATIVE_PATH _path ${PROJECT_SOURCE_DIR} ${_source})
    get_source_file_property(_options ${_source} COMPILE_OPTIONS)
    get_source_file_property(_definitions ${_source} COMPILE_DEFINITIONS)
    get_source_file_property(_is_generated ${_source} GENERATED)
    if(_options OR _definitions OR _is_generated OR NOT _path MATCHES "\\.cc$")
      list(APPEND _kept ${_source})
      continue()
    endif()
    cmake_path(GET _path PARENT_PATH _directory)
    string(MAKE_C_IDENTIFIER ${_directory} _directory)
    list(APPEND _directories ${_directory})
    list(APPEND _in_${_directory} ${_path})
  endforeach()
  list(REMOVE_DUPLICATES _directories)
  foreach(_directory ${_directories})
    list(SORT _in_${_directory})
    list(LENGTH _in_${_directory} _count)
    math(EXPR _batches "(${_count} + 7) / 8")
    math(EXPR _size "(${_count} + ${_batches} - 1) / ${_batches}")  # batches of nearly the same length
    set(_number 0)
    while(_in_${_directory})
      list(SUBLIST _in_${_directory} 0 ${_size} _batch)
      list(REMOVE_ITEM _in_${_directory} ${_batch})
      list(TRANSFORM _batch REPLACE "(.+)" "#include \"\\1\"\n")
      string(JOIN "" _text ${_batch})
      set(_file ${CMAKE_CURRENT_BINARY_DIR}/batches/${target}_${_directory}_${_number}.cc)
      file(CONFIGURE OUTPUT ${_file} CONTENT "${_text}" @ONLY)
      list(APPEND _kept ${_file})
      math(EXPR _number "${_number} + 1")
    endwhile()
  endforeach()
  set_target_properties(${target} PROPERTIES SOURCES "${_kept}")
endfunction()

# hv_library(NAME SOURCES... [DEPENDS targets...]): a room of the house as a static library.
function(hv_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_link_libraries(${name} PUBLIC hv_compile ${arg_DEPENDS})
  hv_compile_batches(${name})
  hv_precompile(${name})
endfunction()
