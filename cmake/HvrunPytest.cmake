# hvrun_pytest(LABEL files...): each pytest file becomes one ctest test of that label, named by its path below tests/.
# SPDX-License-Identifier: Apache-2.0
#
# The file's single tests are counted by tests/summary from the junit file that each run leaves in <build>/pytest.
# Tests find the programs through HVRUN_TEST_BUILD_DIR (its bin/ and lib/) and the sources through HVRUN_TEST_SOURCE_DIR.
# The distribution's Python: another one on PATH (pyenv, conda) has no pytest of ours.
find_program(HVRUN_PYTHON NAMES python3 PATHS /usr/bin NO_DEFAULT_PATH REQUIRED)

# Seconds that one file may take. Clusters build hosts and count to 100 under --full.
set(HVRUN_PYTEST_TIMEOUT_cluster 5400)
set(HVRUN_PYTEST_TIMEOUT_cli 1800)
set(HVRUN_PYTEST_TIMEOUT_lint 600)
set(HVRUN_PYTEST_TIMEOUT_c 600)
set(HVRUN_PYTEST_TIMEOUT_ranks 1200)
set(HVRUN_PYTEST_TIMEOUT_python 1800)
set(HVRUN_PYTEST_TIMEOUT_gpu 1800)
set(HVRUN_PYTEST_TIMEOUT_large 1800)

function(hvrun_pytest label)
  foreach(_file ${ARGN})
    file(RELATIVE_PATH _name ${PROJECT_SOURCE_DIR}/tests ${_file})
    string(REPLACE "/" "." _junit ${_name})
    add_test(NAME ${_name}
             COMMAND ${HVRUN_PYTHON} -B -m pytest -q -p no:cacheprovider -rs --junitxml=${PROJECT_BINARY_DIR}/pytest/${_junit}.xml
                     ${_file}
             WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(${_name} PROPERTIES LABELS ${label} TIMEOUT ${HVRUN_PYTEST_TIMEOUT_${label}} ENVIRONMENT
                         "HVRUN_TEST_BUILD_DIR=${PROJECT_BINARY_DIR};HVRUN_TEST_SOURCE_DIR=${PROJECT_SOURCE_DIR}")
    # What takes long begins first. python computes, and takes two of the slots; cluster waits most of its time, and Slurm's
    # tests, for minutes that no signal shortens.
    if(_name MATCHES "test_slurm|test_job_script")
      set_tests_properties(${_name} PROPERTIES COST 2000)
    elseif(label STREQUAL "python" OR _name MATCHES "test_wheel")
      set_tests_properties(${_name} PROPERTIES COST 1500 PROCESSORS 2)
    elseif(label STREQUAL "cluster")
      set_tests_properties(${_name} PROPERTIES COST 1000)
    endif()
  endforeach()
endfunction()
