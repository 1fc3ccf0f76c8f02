# The libraries of the distribution that hvrun stands on; one place, one message when one is missing.
# SPDX-License-Identifier: Apache-2.0
find_package(PkgConfig REQUIRED)
find_package(Boost 1.81 REQUIRED)
pkg_check_modules(SODIUM REQUIRED IMPORTED_TARGET libsodium)
pkg_check_modules(LIBSSH REQUIRED IMPORTED_TARGET libssh)
pkg_check_modules(YAML_CPP REQUIRED IMPORTED_TARGET yaml-cpp)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)

# The agent is static, and libhvrun must not ask a rank's host for libsodium: both take the archive.
find_library(HVRUN_SODIUM_ARCHIVE NAMES libsodium.a REQUIRED)
add_library(hv_sodium INTERFACE)
target_include_directories(hv_sodium SYSTEM INTERFACE ${SODIUM_INCLUDE_DIRS})
target_link_libraries(hv_sodium INTERFACE ${HVRUN_SODIUM_ARCHIVE})

# Asio comes with Boost as headers; its warnings are not ours.
add_library(hv_asio INTERFACE)
target_include_directories(hv_asio SYSTEM INTERFACE ${Boost_INCLUDE_DIRS})
target_compile_definitions(hv_asio INTERFACE BOOST_ASIO_NO_DEPRECATED BOOST_ASIO_SEPARATE_COMPILATION)

# hwloc as headers only: hvrun-inventory opens the library where there is one.
find_path(HVRUN_HWLOC_INCLUDE hwloc.h REQUIRED)
add_library(hv_hwloc INTERFACE)
target_include_directories(hv_hwloc SYSTEM INTERFACE ${HVRUN_HWLOC_INCLUDE})
