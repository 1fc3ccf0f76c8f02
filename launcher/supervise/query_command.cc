// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/query_command.h"

#include <boost/asio/steady_timer.hpp>
#include <exception>
#include <functional>
#include <memory>
#include <utility>

#include "launcher/spawn/process_channel.h"
#include "src/base/text.h"

namespace hv::launcher {

namespace asio = boost::asio;

asio::awaitable<QueryOutput> run_query(asio::any_io_executor executor,
                                       const Environment& environment, QueryCommand query) {
  Command command;
  command.argv = query.argv;
  command.environment = environment.entries();
  const std::string name = join(query.argv, " ");
  // Shared with the timer's handler, which may still be queued when this coroutine has ended.
  const auto cancel = std::make_shared<std::function<void()>>();
  const auto is_late = std::make_shared<bool>(false);
  asio::steady_timer limit(executor, query.timeout);
  limit.async_wait([cancel, is_late](const boost::system::error_code& error) {
    if (error || !*cancel) return;
    *is_late = true;
    (*cancel)();
  });
  try {
    CommandOutput output =
        co_await run_command(command, query.most_bytes, query.doing, cancel.get());
    if (*is_late)
      co_return QueryOutput{std::move(output.text),
                            name + " has not answered within " + format_duration(query.timeout)};
    if (output.text.size() > query.most_bytes)
      co_return QueryOutput{
          {}, name + " printed more than " + std::to_string(query.most_bytes >> 10) + " KiB"};
    co_return QueryOutput{std::move(output.text), output.clean ? "" : output.words};
  } catch (const std::exception& error) {  // whoever waits must see the end of the query
    co_return QueryOutput{{}, error.what()};
  }
}

}  // namespace hv::launcher
