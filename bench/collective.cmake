# Programs that time collectives: the layer alone, through the engine, and OpenMPI's.
# SPDX-License-Identifier: Apache-2.0
add_executable(bench_collective ${CMAKE_CURRENT_LIST_DIR}/collective_layer.cc)
target_link_libraries(bench_collective PRIVATE hv_compile hv_runtime)

add_executable(bench_engine ${CMAKE_CURRENT_LIST_DIR}/engine.cc)
target_link_libraries(bench_engine PRIVATE hv_compile hvrun_lib hv_base)

if(NOT HVRUN_WITH_MPI STREQUAL "OFF")
  find_package(MPI COMPONENTS CXX)
  if(MPI_CXX_FOUND)
    add_executable(bench_mpi ${CMAKE_CURRENT_LIST_DIR}/mpi_collective.cc)
    target_link_libraries(bench_mpi PRIVATE hv_compile hv_base MPI::MPI_CXX)
  elseif(HVRUN_WITH_MPI STREQUAL "ON")
    message(FATAL_ERROR "HVRUN_WITH_MPI=ON, but no MPI was found (Debian: libopenmpi-dev)")
  endif()
endif()
