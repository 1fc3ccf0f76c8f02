// A command whose output answers a question about the scheduler, such as `scontrol show config`.
// io_context thread only.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/base/environment.h"

namespace hv::launcher {

struct QueryCommand {
  std::vector<std::string> argv;
  std::string doing{};         // "ask Slurm", for messages
  std::size_t most_bytes = 0;  // of its output
  Duration timeout{};
};

struct QueryOutput {
  std::string text{};    // its standard output, also where it failed
  std::string reason{};  // why that is not all; empty: it has ended well
};

// Runs it and ends it at the timeout. Throws nothing.
boost::asio::awaitable<QueryOutput> run_query(boost::asio::any_io_executor executor,
                                              const Environment& environment, QueryCommand query);

}  // namespace hv::launcher
