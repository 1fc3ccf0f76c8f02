# Programs that time collectives: the layer alone, through the engine, and OpenMPI's.
# SPDX-License-Identifier: Apache-2.0
add_executable(bench_collective ${CMAKE_CURRENT_LIST_DIR}/collective_layer.cc ${CMAKE_CURRENT_LIST_DIR}/blocking.cc
               ${CMAKE_CURRENT_LIST_DIR}/forked_store.cc)
target_link_libraries(bench_collective PRIVATE hv_compile hv_runtime)

add_executable(bench_engine ${CMAKE_CURRENT_LIST_DIR}/engine.cc)
target_link_libraries(bench_engine PRIVATE hv_compile hvrun_lib hv_base)

foreach(_flavour openmpi mpich)
  if(TARGET hv_mpi_${_flavour})
    string(REPLACE open "" _name ${_flavour})
    add_executable(bench_${_name} ${CMAKE_CURRENT_LIST_DIR}/mpi_collective.cc)
    target_link_libraries(bench_${_name} PRIVATE hv_compile hv_base hv_mpi_${_flavour})
  endif()
endforeach()
