# The negotiation of many ranks in one process. SPDX-License-Identifier: Apache-2.0
add_executable(bench_negotiation ${CMAKE_CURRENT_LIST_DIR}/negotiation.cc)
target_link_libraries(bench_negotiation PRIVATE hv_compile hv_backend hv_engine)
