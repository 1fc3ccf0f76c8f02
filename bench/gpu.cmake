# What a GPU does for a bucket, and NCCL beside libhvrun. SPDX-License-Identifier: Apache-2.0
add_executable(bench_gpu ${CMAKE_CURRENT_LIST_DIR}/gpu.cc ${CMAKE_CURRENT_LIST_DIR}/gpu_ranks.cc)
target_link_libraries(bench_gpu PRIVATE hv_compile hv_nccl hv_runtime)
add_dependencies(bench_gpu hvrun_nccl)
