// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/slurm/sealed_channel.h"

#include <algorithm>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <cstring>

namespace hv::launcher {
namespace {

namespace asio = boost::asio;

constexpr std::size_t kReadBytes = 64 << 10;

}  // namespace

SealedChannel::SealedChannel(TcpSocket socket, const ControlKeys& keys)
    : socket_(std::move(socket)),
      sealer_(keys.to_agent),
      opener_(keys.to_hvrun),
      sealed_(kReadBytes, '\0') {}

asio::awaitable<std::size_t> SealedChannel::read_some(asio::mutable_buffer buffer) {
  while (taken_ == arrived_.size()) {
    arrived_.clear();
    taken_ = 0;
    boost::system::error_code error;
    const std::size_t got = co_await socket_.async_read_some(
        asio::buffer(sealed_), asio::redirect_error(asio::use_awaitable, error));
    if (error) {
      if (error != asio::error::eof && words_.empty()) words_ = error.message();
      co_return 0;
    }
    if (opener_.open({sealed_.data(), got}, &arrived_)) continue;
    words_ = "what came from the agent had been changed on its way";
    close();
    co_return 0;
  }
  const std::size_t size = std::min(buffer.size(), arrived_.size() - taken_);
  std::memcpy(buffer.data(), arrived_.data() + taken_, size);
  taken_ += size;
  co_return size;
}

asio::awaitable<bool> SealedChannel::write(asio::const_buffer buffer) {
  std::string sealed;
  sealer_.seal({static_cast<const char*>(buffer.data()), buffer.size()}, &sealed);
  boost::system::error_code error;
  co_await asio::async_write(socket_, asio::buffer(sealed),
                             asio::redirect_error(asio::use_awaitable, error));
  co_return !error;
}

void SealedChannel::close() {
  boost::system::error_code ignored;
  socket_.close(ignored);
}

}  // namespace hv::launcher
