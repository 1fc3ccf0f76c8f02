# What measures the table of algorithms; bench/algorithms.py runs it. SPDX-License-Identifier: Apache-2.0
add_executable(bench_algorithms ${CMAKE_CURRENT_LIST_DIR}/algorithms.c)
target_link_libraries(bench_algorithms PRIVATE hv_compile hvrun_lib)
