// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/ssh/ssh_login.h"

#include <unistd.h>

#include <vector>

#include "launcher/spawn/ssh/identity_file.h"
#include "launcher/spawn/ssh/ssh_agent.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

namespace asio = boost::asio;

std::string method_names(int methods) {
  std::vector<std::string> names;
  if (methods & SSH_AUTH_METHOD_PUBLICKEY) names.emplace_back("publickey");
  if (methods & SSH_AUTH_METHOD_PASSWORD) names.emplace_back("password");
  if (methods & SSH_AUTH_METHOD_INTERACTIVE) names.emplace_back("keyboard-interactive");
  if (methods & SSH_AUTH_METHOD_HOSTBASED) names.emplace_back("hostbased");
  if (methods & SSH_AUTH_METHOD_GSSAPI_MIC) names.emplace_back("gssapi-with-mic");
  return names.empty() ? "nothing" : join(names, ", ");
}

class Login {
 public:
  Login(SshSession& session, const SshConfig& config, std::string host, std::string agent_socket)
      : session_(session),
        config_(config),
        host_(std::move(host)),
        agent_socket_(std::move(agent_socket)) {}

  asio::awaitable<std::optional<LoginRefusal>> run() {
    // Asking for "none" makes the server say what it takes.
    result_ = co_await session_.until_done(
        [this] { return libssh().ssh_userauth_none(session_.raw(), nullptr); }, SSH_AUTH_AGAIN);
    if (result_ != SSH_AUTH_SUCCESS && result_ != SSH_AUTH_ERROR && !session_.is_closed()) {
      methods_ = libssh().ssh_userauth_list(session_.raw(), nullptr);
      if (config_.public_keys && (methods_ & SSH_AUTH_METHOD_PUBLICKEY)) co_await try_all_keys();
    }
    if (result_ == SSH_AUTH_SUCCESS) co_return std::nullopt;
    co_return refusal();
  }

 private:
  bool is_over() const {
    return result_ == SSH_AUTH_SUCCESS || result_ == SSH_AUTH_ERROR || session_.is_closed();
  }

  asio::awaitable<void> try_all_keys() {
    if (config_.identities_are_chosen) co_await try_files();
    if (!is_over()) co_await try_agent();
    if (!is_over() && !config_.identities_are_chosen) co_await try_files();
  }

  asio::awaitable<void> try_files() {
    for (const std::string& file : config_.identity_files) {
      if (is_over()) co_return;
      if (::access(file.c_str(), F_OK) == 0) {
        co_await try_file(file);
      } else if (config_.identities_are_chosen) {
        note(file + " (is not there)");
      }
    }
  }

  asio::awaitable<void> try_file(const std::string& file) {
    const LoadedKey loaded = load_private_key(file);
    if (!loaded.key) {
      // Such keys belong into the agent.
      has_locked_key_ = has_locked_key_ || loaded.has_passphrase;
      note(file + " (" + loaded.trouble + ")");
      co_return;
    }
    const ssh_key key = loaded.key.get();
    note(file + " (" + fingerprint_of(key) + ")");
    result_ = co_await session_.until_done(
        [&] { return libssh().ssh_userauth_publickey(session_.raw(), nullptr, key); },
        SSH_AUTH_AGAIN);
  }

  asio::awaitable<void> try_agent() {
    if (agent_socket_.empty() || agent_socket_ == "none") co_return;
    const AgentKeys agent = co_await ask_ssh_agent(agent_socket_);
    if (!agent.trouble.empty()) note("ssh-agent (" + agent.trouble + ")");
    if (agent.keys.empty() || session_.is_closed()) co_return;
    // libssh's own idea of where the agent is would be the process's environment.
    if (libssh().ssh_options_set(session_.raw(), SSH_OPTIONS_IDENTITY_AGENT,
                                 agent_socket_.c_str()) < 0) {
      note("ssh-agent (" + session_.error() + ")");
      co_return;
    }
    for (const AgentKey& key : agent.keys)
      note("agent's " + key.type + " " + printable(key.comment, 60) + fingerprint(key));
    // The agent may ask its user before it signs, or wait for a touch.
    result_ = co_await session_.until_done_in_thread(
        "ask the ssh-agent for a signature for host " + host_,
        [](ssh_session session) { return libssh().ssh_userauth_agent(session, nullptr); },
        SSH_AUTH_AGAIN);
  }

  static std::string fingerprint(const AgentKey& key) {
    ssh_key raw = nullptr;
    const ssh_keytypes_e type = libssh().ssh_key_type_from_name(key.type.c_str());
    if (libssh().ssh_pki_import_pubkey_base64(base64(key.blob).c_str(), type, &raw) != SSH_OK)
      return "";
    const SshKey owner(raw);
    return " (" + fingerprint_of(raw) + ")";
  }

  void note(const std::string& text) { tried_.push_back(text); }

  LoginRefusal refusal() const {
    LoginRefusal refusal;
    const std::string login = "'" + config_.user + "'";
    if (result_ == SSH_AUTH_ERROR) {
      refusal.reason = "login as " + login + " failed: " + session_.error();
    } else {
      refusal.reason =
          "permission denied for user " + login + "; " + host_ + " takes " + method_names(methods_);
    }
    refusal.reason +=
        tried_.empty() ? "; there was no key to try" : "; tried: " + join(tried_, ", ");
    if (has_locked_key_) refusal.hint = "load the key with a passphrase by ssh-add, or ";
    refusal.hint += "give user and key (-l, -i), or let the host know a key: ssh-copy-id " + host_;
    refusal.gssapi_is_left = config_.gssapi && (methods_ & SSH_AUTH_METHOD_GSSAPI_MIC);
    return refusal;
  }

  SshSession& session_;
  const SshConfig& config_;
  std::string host_;
  std::string agent_socket_;
  int result_ = SSH_AUTH_DENIED;
  int methods_ = 0;
  std::vector<std::string> tried_;
  bool has_locked_key_ = false;
};

}  // namespace

asio::awaitable<std::optional<LoginRefusal>> log_in(SshSession& session, const SshConfig& config,
                                                    std::string host, std::string agent_socket) {
  Login login(session, config, std::move(host), std::move(agent_socket));
  co_return co_await login.run();
}

}  // namespace hv::launcher
