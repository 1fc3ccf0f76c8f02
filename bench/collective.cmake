# The collective layer's benchmark and its OpenMPI peer. SPDX-License-Identifier: Apache-2.0
add_executable(bench_collective_allreduce ${CMAKE_CURRENT_LIST_DIR}/collective_allreduce.cc)
target_link_libraries(bench_collective_allreduce PRIVATE hv_compile hv_backend hv_rendezvous)

if(NOT HVRUN_WITH_MPI STREQUAL "OFF")
  find_package(MPI COMPONENTS CXX)
  if(MPI_CXX_FOUND)
    add_executable(bench_mpi_allreduce ${CMAKE_CURRENT_LIST_DIR}/mpi_allreduce.cc)
    target_link_libraries(bench_mpi_allreduce PRIVATE hv_compile MPI::MPI_CXX)
  elseif(HVRUN_WITH_MPI STREQUAL "ON")
    message(FATAL_ERROR "HVRUN_WITH_MPI=ON, but no MPI was found (Debian: libopenmpi-dev)")
  endif()
endif()
