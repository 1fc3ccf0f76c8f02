# Run by the build (cmake -P): hashes the agent's sources in FOLDERS, and FILES, and writes OUTPUT. See HvrunVersion.cmake.
# SPDX-License-Identifier: Apache-2.0
set(_all "${VERSION} ${FLAVOUR}\n")
foreach(_folder ${FOLDERS})
  file(GLOB_RECURSE _files RELATIVE ${SOURCE_DIR} ${SOURCE_DIR}/${_folder}/*.cc ${SOURCE_DIR}/${_folder}/*.h
       ${SOURCE_DIR}/${_folder}/*.py)
  list(SORT _files)
  foreach(_file ${_files})
    file(SHA256 ${SOURCE_DIR}/${_file} _hash)
    string(APPEND _all "${_hash} ${_file}\n")
  endforeach()
endforeach()
foreach(_file ${FILES})
  file(SHA256 ${SOURCE_DIR}/${_file} _hash)
  string(APPEND _all "${_hash} ${_file}\n")
endforeach()
string(SHA256 _id "${_all}")
string(SUBSTRING ${_id} 0 16 _id)

file(WRITE ${OUTPUT} "// Made by cmake/WriteVersionHeader.cmake. SPDX-License-Identifier: Apache-2.0
#pragma once
#define HVRUN_VERSION_TEXT \"${VERSION}\"
#define HVRUN_BUILD_ID \"${VERSION}-${_id}\"
")
