# The libraries of the distribution that hvrun stands on; one place, one message when one is missing.
# SPDX-License-Identifier: Apache-2.0
find_package(PkgConfig REQUIRED)
find_package(Boost 1.81 REQUIRED)
pkg_check_modules(SODIUM REQUIRED IMPORTED_TARGET libsodium)
pkg_check_modules(LIBSSH REQUIRED libssh)
pkg_check_modules(YAML_CPP REQUIRED yaml-cpp)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)

# The agent is static, and libhvrun must not ask a rank's host for libsodium: both take the archive.
find_library(HVRUN_SODIUM_ARCHIVE NAMES libsodium.a REQUIRED)
add_library(hv_sodium INTERFACE)
target_include_directories(hv_sodium SYSTEM INTERFACE ${SODIUM_INCLUDE_DIRS})
target_link_libraries(hv_sodium INTERFACE ${HVRUN_SODIUM_ARCHIVE})

# yaml-cpp's archive where there is one: hvrun starts faster than with the shared library.
find_library(HVRUN_YAML_CPP NAMES libyaml-cpp.a yaml-cpp HINTS ${YAML_CPP_LIBRARY_DIRS} REQUIRED)
add_library(hv_yaml_cpp INTERFACE)
target_include_directories(hv_yaml_cpp SYSTEM INTERFACE ${YAML_CPP_INCLUDE_DIRS})
target_link_libraries(hv_yaml_cpp INTERFACE ${HVRUN_YAML_CPP})

# libssh as headers only: launcher/spawn/ssh/ssh_library.h opens the library when it is used.
add_library(hv_libssh INTERFACE)
target_include_directories(hv_libssh SYSTEM INTERFACE ${LIBSSH_INCLUDE_DIRS})
target_link_libraries(hv_libssh INTERFACE ${CMAKE_DL_LIBS})

# Asio comes with Boost as headers; its warnings are not ours.
add_library(hv_asio INTERFACE)
target_include_directories(hv_asio SYSTEM INTERFACE ${Boost_INCLUDE_DIRS})
target_compile_definitions(hv_asio INTERFACE BOOST_ASIO_NO_DEPRECATED BOOST_ASIO_SEPARATE_COMPILATION)

# hwloc as headers only: hvrun-inventory opens the library where there is one.
find_path(HVRUN_HWLOC_INCLUDE hwloc.h REQUIRED)
add_library(hv_hwloc INTERFACE)
target_include_directories(hv_hwloc SYSTEM INTERFACE ${HVRUN_HWLOC_INCLUDE})
