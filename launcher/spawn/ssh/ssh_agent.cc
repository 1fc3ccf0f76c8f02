// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/ssh/ssh_agent.h"

#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <cstdint>
#include <memory>
#include <optional>

namespace hv::launcher {
namespace {

namespace asio = boost::asio;
using Socket = asio::local::stream_protocol::socket;

constexpr auto kSshAgentTimeout = std::chrono::seconds(3);
constexpr std::size_t kMaxMessage = 256 << 10;
constexpr char kRequestIdentities = 11, kIdentitiesAnswer = 12;

std::uint32_t big_endian(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

std::optional<std::string_view> take_string(std::string_view* rest) {
  if (rest->size() < 4) return std::nullopt;
  const std::size_t size = big_endian(*rest);
  if (rest->size() - 4 < size) return std::nullopt;
  const std::string_view text = rest->substr(4, size);
  rest->remove_prefix(4 + size);
  return text;
}

// Shared with the timer's handler, which may still be queued when the talk is over.
struct Talk {
  explicit Talk(asio::any_io_executor executor)
      : socket(executor), patience(executor, kSshAgentTimeout) {}
  Socket socket;
  asio::steady_timer patience;
  bool too_late = false;
};

boost::system::error_code connect_agent(Socket& socket, const std::string& path) {
  boost::system::error_code error;
  if (path.size() >= 100) return asio::error::name_too_long;
  socket.open(asio::local::stream_protocol(), error);
  if (!error) socket.non_blocking(true, error);
  if (!error) socket.connect(asio::local::stream_protocol::endpoint(path), error);
  return error;
}

// False when the agent hung up or sent what is no message.
asio::awaitable<bool> exchange(Socket& socket, std::string* answer) {
  const std::string request{0, 0, 0, 1, kRequestIdentities};
  boost::system::error_code error;
  co_await asio::async_write(socket, asio::buffer(request),
                             asio::redirect_error(asio::use_awaitable, error));
  std::string length(4, '\0');
  if (!error)
    co_await asio::async_read(socket, asio::buffer(length),
                              asio::redirect_error(asio::use_awaitable, error));
  if (error || big_endian(length) > kMaxMessage) co_return false;
  answer->resize(big_endian(length));
  co_await asio::async_read(socket, asio::buffer(*answer),
                            asio::redirect_error(asio::use_awaitable, error));
  co_return !error;
}

}  // namespace

bool parse_agent_identities(std::string_view message, std::vector<AgentKey>* keys) {
  if (message.size() < 5 || message[0] != kIdentitiesAnswer) return false;
  std::uint32_t count = big_endian(message.substr(1));
  message.remove_prefix(5);
  while (count-- > 0) {
    const auto blob = take_string(&message);
    const auto comment = take_string(&message);
    if (!blob || !comment) return false;
    std::string_view inside = *blob;
    const auto type = take_string(&inside);
    if (!type) return false;
    keys->push_back({std::string(*type), std::string(*blob), std::string(*comment)});
  }
  return true;
}

asio::awaitable<AgentKeys> ask_ssh_agent(std::string path) {
  AgentKeys result;
  const auto talk = std::make_shared<Talk>(co_await asio::this_coro::executor);
  if (connect_agent(talk->socket, path)) {
    result.trouble = "cannot be reached at " + path;
    co_return result;
  }
  talk->patience.async_wait([talk](const boost::system::error_code& cancelled) {
    if (cancelled) return;
    talk->too_late = true;
    boost::system::error_code ignored;
    talk->socket.close(ignored);
  });
  std::string answer;
  const bool answered = co_await exchange(talk->socket, &answer);
  talk->patience.cancel();
  if (!answered || !parse_agent_identities(answer, &result.keys)) {
    result.keys.clear();
    result.trouble = talk->too_late ? "does not answer" : "gives no answer that makes sense";
  }
  co_return result;
}

std::string base64(std::string_view bytes) {
  static const char* digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j)
      group = group << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0);
    for (std::size_t j = 0; j < 4; ++j)
      text += i + j > bytes.size() ? '=' : digits[group >> (18 - 6 * j) & 63];
  }
  return text;
}

}  // namespace hv::launcher
