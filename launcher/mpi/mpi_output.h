// What mpirun writes, taken apart again: which bytes are which rank's, and which its own words.
// Pure.
// SPDX-License-Identifier: Apache-2.0
//
// mpirun mixes the ranks' bytes in one stream, in pieces that end anywhere. Both kinds can say
// before each piece, and each line, whose it is, so that no rank's own output is taken for that:
//   Open MPI  --tag-output       [1,3]<stdout>: before bytes that hvrun-agent has encoded
//                                (launcher/mpirank/carried_output.h), and in which there is no '['
//             --output tag       the same and a blank: from 5 on, as in openpmix's pmix_iof.c
//   Hydra     -prepend-pattern   <RANDOM 3>, with a random number
// Processes that ranks have spawned (MPI_Comm_spawn) have numbers of their own from 0: both kinds
// give them as the rank of that number. Open MPI's have another job than 1 in their tag, and nobody
// encodes what they write.
// The lines are then put together as those of any job are (launcher/output).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "launcher/mpi/mpirun.h"

namespace hv::launcher {

constexpr int kMpirunItself = -1;

struct MpiPiece {
  int rank = kMpirunItself;
  int stream = 1;  // 1 stdout, 2 stderr
  std::string_view bytes;
};

class MpiOutput {
 public:
  using Sink = std::function<void(const MpiPiece&)>;
  virtual ~MpiOutput() = default;
  // Calls sink for what can be told so far.
  virtual void feed(std::string_view bytes, const Sink& sink) = 0;
  // The stream has ended; what was held back comes out.
  virtual void end(const Sink& sink) = 0;
};

// stream: which of mpirun's own. tag: of Hydra's pieces.
std::unique_ptr<MpiOutput> make_mpi_output(const Mpirun& mpirun, int stream,
                                           const std::string& tag);

// Before "3>": the beginning of the tag of rank 3's pieces.
std::string hydra_tag_begin(const std::string& tag);

}  // namespace hv::launcher
