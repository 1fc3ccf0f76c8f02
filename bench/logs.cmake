# Programs of the log rows (bench/logs.py).
# SPDX-License-Identifier: Apache-2.0
add_executable(bench_log_lines ${CMAKE_CURRENT_LIST_DIR}/logs/log_lines.cc)
target_link_libraries(bench_log_lines PRIVATE hv_base)
add_executable(bench_output_room ${CMAKE_CURRENT_LIST_DIR}/logs/output_room_rate.cc)
target_link_libraries(bench_output_room PRIVATE hv_output)
