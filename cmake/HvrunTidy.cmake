# Target tidy: clang-tidy with the few checks of .clang-tidy, each an error, over every translation unit of ours.
# SPDX-License-Identifier: Apache-2.0
#
# clang knows neither gcc's "ivdep" nor all of its CPU features: the one warning is off, the one file left out.
# run-clang-tidy reads compile_commands.json of this build folder, so generated headers must be there first.
find_program(HVRUN_RUN_TIDY NAMES run-clang-tidy-16 run-clang-tidy)
find_program(HVRUN_TIDY NAMES clang-tidy-16 clang-tidy)
if(HVRUN_RUN_TIDY AND HVRUN_TIDY)
  add_custom_target(tidy
    COMMAND ${HVRUN_RUN_TIDY} -quiet -extra-arg=-Wno-unknown-pragmas -clang-tidy-binary ${HVRUN_TIDY}
            -p ${PROJECT_BINARY_DIR} "^${PROJECT_SOURCE_DIR}/(src|launcher|runtime|examples)/(?!.*kernels_avx2).*"
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    USES_TERMINAL VERBATIM
    COMMENT "clang-tidy")
  add_dependencies(tidy hv_version)
endif()
