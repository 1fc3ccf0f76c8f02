// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/ssh/ssh_session.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>

#include "launcher/spawn/ssh/ssh_advice.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

namespace asio = boost::asio;

// An RSA key in known_hosts is "ssh-rsa"; the signatures to ask for have other names (RFC 8332).
std::vector<std::string> signature_types(const std::string& key_type) {
  if (key_type == "ssh-rsa") return {"rsa-sha2-512", "rsa-sha2-256"};
  return {key_type};
}

// The allowed types, the known ones first.
std::string ordered_types(const std::string& allowed, const std::vector<std::string>& first_types) {
  const std::vector<std::string> all = split(allowed, ',');
  std::vector<std::string> order;
  const auto add = [&order](const std::string& type) {
    if (std::find(order.begin(), order.end(), type) == order.end()) order.push_back(type);
  };
  for (const std::string& known : first_types) {
    for (const std::string& type : signature_types(known)) {
      if (std::find(all.begin(), all.end(), type) != all.end()) add(type);
    }
  }
  for (const std::string& type : all) add(type);
  return join(order, ",");
}

// AES-GCM first: every machine with GPUs computes it in hardware. Nothing is added to what is
// allowed.
std::string fast_ciphers_first(const std::string& allowed) {
  std::vector<std::string> ciphers = split(allowed, ',');
  std::stable_partition(ciphers.begin(), ciphers.end(), [](const std::string& name) {
    return name.find("-gcm@") != std::string::npos;
  });
  return join(ciphers, ",");
}

constexpr const char* kHostKeyTypes =
    "ssh-ed25519,ecdsa-sha2-nistp256,ecdsa-sha2-nistp384,ecdsa-sha2-nistp521,rsa-sha2-512,rsa-sha2-"
    "256";

}  // namespace

SshSession::SshSession(asio::any_io_executor executor, UniqueFd socket, const SshConfig& config,
                       const std::vector<std::string>& first_types)
    : session_(libssh().ssh_new(), libssh().ssh_free),
      ready_(executor),
      signal_(executor, TimePoint::max()) {
  UniqueFd copy(::fcntl(socket.get(), F_DUPFD_CLOEXEC, 3));
  if (!session_ || !copy) {
    const int error = session_ ? errno : ENOMEM;
    throw Error(ErrorKind::kStart, "make an ssh session: " + errno_text(error),
                shortage_advice(error));
  }
  ready_.assign(copy.release());
  configure(config, first_types, socket.get());
  socket.release();  // libssh's from here on
}

SshSession::~SshSession() { close(); }

void SshSession::configure(const SshConfig& config, const std::vector<std::string>& first_types,
                           int socket) {
  const auto set = [this](ssh_options_e option, const void* value, const char* name) {
    if (libssh().ssh_options_set(raw(), option, value) < 0) {
      throw Error(ErrorKind::kStart,
                  std::string("use the ssh configuration's ") + name + ": " + error(),
                  "use --rsh ssh for hosts with this configuration");
    }
  };
  const auto set_list = [&set](ssh_options_e option, const std::string& list, const char* name) {
    if (!list.empty()) set(option, list.c_str(), name);
  };
  // hvrun has read the configuration and judges host keys: libssh shall do neither.
  const bool no = false;
  set(SSH_OPTIONS_PROCESS_CONFIG, &no, "own reading");
  set(SSH_OPTIONS_HOST, config.host_name.c_str(), "host name");
  set(SSH_OPTIONS_USER, config.user.c_str(), "user");
  set(SSH_OPTIONS_KNOWNHOSTS, "/dev/null", "known_hosts");
  set(SSH_OPTIONS_GLOBAL_KNOWNHOSTS, "/dev/null", "known_hosts");
  const std::string types = config.host_key_types.empty() ? kHostKeyTypes : config.host_key_types;
  set_list(SSH_OPTIONS_HOSTKEYS, ordered_types(types, first_types), "HostKeyAlgorithms");
  for (const ssh_options_e option : {SSH_OPTIONS_CIPHERS_C_S, SSH_OPTIONS_CIPHERS_S_C}) {
    set_list(option, config.ciphers.empty() ? "" : fast_ciphers_first(config.ciphers), "Ciphers");
  }
  for (const ssh_options_e option : {SSH_OPTIONS_HMAC_C_S, SSH_OPTIONS_HMAC_S_C})
    set_list(option, config.macs, "MACs");
  set_list(SSH_OPTIONS_KEY_EXCHANGE, config.key_exchanges, "KexAlgorithms");
  set_list(SSH_OPTIONS_PUBLICKEY_ACCEPTED_TYPES, config.public_key_types,
           "PubkeyAcceptedAlgorithms");
  if (config.least_rsa_bits > 0)
    set(SSH_OPTIONS_RSA_MIN_SIZE, &config.least_rsa_bits, "RequiredRSASize");
  set(SSH_OPTIONS_FD, &socket, "socket");
  libssh().ssh_set_blocking(raw(), 0);
}

std::string SshSession::error() const {
  const char* text = libssh().ssh_get_error(session_.get());
  return text && *text ? printable(text, 300) : "the connection was closed";
}

void SshSession::watch(asio::posix::descriptor_base::wait_type what, bool* watching) {
  if (*watching || closed_) return;
  *watching = true;
  ready_.async_wait(what, [self = shared_from_this(), watching](const boost::system::error_code&) {
    *watching = false;
    self->wake();
  });
}

asio::awaitable<void> SshSession::activity() {
  if (closed_) co_return;
  const auto self = shared_from_this();
  watch(asio::posix::descriptor_base::wait_read, &watching_read_);
  const bool unsent = ((libssh().ssh_get_poll_flags(raw()) | libssh().ssh_get_status(raw())) &
                       SSH_WRITE_PENDING) != 0;
  if (unsent) watch(asio::posix::descriptor_base::wait_write, &watching_write_);
  boost::system::error_code ignored;
  co_await signal_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

void SshSession::wake() { signal_.cancel(); }

void SshSession::close() {
  if (std::exchange(closed_, true)) return;
  boost::system::error_code ignored;
  if (in_thread_)
    in_thread_->abandon();
  else
    libssh().ssh_disconnect(raw());
  // libssh may have kept its last message back, and leaves the socket open as long as this object
  // lives, or that thread. The host need not wait for either.
  ::shutdown(ready_.native_handle(), SHUT_RDWR);
  ready_.close(ignored);
  wake();
}

asio::awaitable<int> SshSession::until_done_in_thread(std::string doing,
                                                      std::function<int(ssh_session)> call,
                                                      int again) {
  const auto self = shared_from_this();
  const auto executor = co_await asio::this_coro::executor;
  const auto result = std::make_shared<int>(again);
  while (!closed_) {
    const auto blocking = std::make_shared<BlockingCall>(
        executor, doing, [session = session_, call, result] { *result = call(session.get()); });
    in_thread_ = blocking;
    const bool is_through = co_await blocking->done();
    in_thread_ = nullptr;
    if (!is_through) co_return again;
    if (*result != again) co_return *result;
    co_await activity();
  }
  co_return again;
}

std::string fingerprint_of(ssh_key key) {
  unsigned char* hash = nullptr;
  std::size_t size = 0;
  if (libssh().ssh_get_publickey_hash(key, SSH_PUBLICKEY_HASH_SHA256, &hash, &size) != SSH_OK)
    return "unknown";
  char* text = libssh().ssh_get_fingerprint_hash(SSH_PUBLICKEY_HASH_SHA256, hash, size);
  const std::string result = text ? text : "unknown";
  libssh().ssh_string_free_char(text);
  libssh().ssh_clean_pubkey_hash(&hash);
  return result;
}

HostKey host_key_of(SshSession& session, const std::string& host) {
  ssh_key key = nullptr;
  if (libssh().ssh_get_server_publickey(session.raw(), &key) != SSH_OK)
    throw Error(ErrorKind::kStart, "read the key of host " + host + ": " + session.error(),
                "see what 'ssh -v " + host + " true' says, or use --rsh ssh");
  const bool is_ecdsa = libssh().ssh_key_type(key) == SSH_KEYTYPE_ECDSA;
  const char* type = is_ecdsa ? libssh().ssh_pki_key_ecdsa_name(key)
                              : libssh().ssh_key_type_to_char(libssh().ssh_key_type(key));
  char* text = nullptr;
  (void)libssh().ssh_pki_export_pubkey_base64(key, &text);
  HostKey result{type ? type : "", text ? text : "", fingerprint_of(key)};
  libssh().ssh_string_free_char(text);
  libssh().ssh_key_free(key);
  return result;
}

}  // namespace hv::launcher
