// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/ssh/ssh_config_query.h"

#include <pwd.h>
#include <unistd.h>

#include "launcher/spawn/process_channel.h"
#include "src/base/log.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

namespace asio = boost::asio;

constexpr std::size_t kMaxConfig = 256 << 10;

Command ssh_dash_g(const HostTarget& host, const SpawnOptions& options,
                   const std::string& program) {
  Command command;
  command.argv = {"ssh", "-G"};
  command.program = program;
  command.environment = options.environment.entries();
  if (!host.user.empty()) command.argv.insert(command.argv.end(), {"-l", host.user});
  if (host.port != 0) command.argv.insert(command.argv.end(), {"-p", std::to_string(host.port)});
  if (!host.identity_file.empty())
    command.argv.insert(command.argv.end(), {"-i", host.identity_file});
  if (!host.address.empty())
    command.argv.insert(command.argv.end(), {"-o", host_name_option(host.address)});
  command.argv.insert(command.argv.end(), {"--", host.name});
  return command;
}

// Without ssh there is nobody to read its configuration; the user is told once if there is one.
// reason: "ssh is not installed here".
SshConfig config_without_ssh(const HostTarget& host, const SshSurroundings& surroundings,
                             const std::string& reason) {
  static bool told = false;
  const std::string file = surroundings.home + "/.ssh/config";
  if (!told && surroundings.exists(file)) {
    told = true;
    HV_LOG(kWarn, "ssh") << reason << ", so " << file << " is not read";
  }
  SshConfig config = default_ssh_config(surroundings);
  if (!host.user.empty()) config.user = host.user;
  if (!host.address.empty()) config.host_name = host.address;
  if (host.port != 0) config.port = host.port;
  if (!host.identity_file.empty()) {
    config.identity_files = {host.identity_file};
    config.identities_are_chosen = true;
  }
  return config;
}

// Why `ssh -G` failed: it names the configuration's file in that case. Without what the user has
// configured there, hvrun might log in to another host.
bool is_about_configuration(const std::string& words) {
  return words.find("config") != std::string::npos;
}

asio::awaitable<CommandOutput> run_ssh(Command command, std::string host, std::string doing,
                                       StartDeadline& deadline) {
  std::function<void()> cancel;
  const auto phase = deadline.enter(doing, "look what keeps 'ssh -G " + host + "' busy", [&cancel] {
    if (cancel) cancel();
  });
  CommandOutput output = co_await run_command(std::move(command), kMaxConfig, doing, &cancel);
  deadline.throw_if_passed();
  co_return output;
}

}  // namespace

SshSurroundings ssh_surroundings(const std::string& host) {
  SshSurroundings surroundings;
  surroundings.host = host;
  if (const passwd* entry = ::getpwuid(::getuid())) {
    surroundings.home = entry->pw_dir;
    surroundings.local_user = entry->pw_name;
  }
  surroundings.exists = [](const std::string& file) { return ::access(file.c_str(), F_OK) == 0; };
  return surroundings;
}

asio::awaitable<SshChoice> query_ssh_config(HostTarget host, const SpawnOptions& options,
                                            StartDeadline& deadline) {
  const SshSurroundings surroundings = ssh_surroundings(host.name);
  std::string reason;
  const std::string path = options.environment.get_or("PATH", "/usr/local/bin:/usr/bin:/bin");
  const std::string program = find_program("ssh", path, "", &reason);
  if (program.empty())
    co_return SshChoice{config_without_ssh(host, surroundings, "ssh is not installed here")};

  const std::string doing = "read the ssh configuration for host " + host.name;
  Command command = ssh_dash_g(host, options, program);
  const CommandOutput output = co_await run_ssh(std::move(command), host.name, doing, deadline);
  if (!output.clean && !is_about_configuration(output.words))
    co_return SshChoice{config_without_ssh(
        host, surroundings, "'ssh -G' fails here (" + printable(output.words, 300) + ")")};
  if (!output.clean) {
    throw Error(ErrorKind::kStart, doing + ": " + printable(output.words, 600),
                "look what 'ssh -G " + host.name + "' says");
  }
  const SshWords words = parse_ssh_words(output.text);
  const std::string& requested = host.address.empty() ? host.name : host.address;
  co_return SshChoice{interpret_ssh_words(words, surroundings),
                      reason_for_system_ssh(words, surroundings), login_gate(words),
                      has_own_route(words, requested)};
}

asio::awaitable<std::string> query_login_gate(std::vector<std::string> ssh_command,
                                              std::string host, const SpawnOptions& options,
                                              StartDeadline& deadline) {
  Command command;
  command.argv = std::move(ssh_command);
  command.argv.insert(command.argv.begin() + 1, "-G");
  command.environment = options.environment.entries();
  const std::string doing = "read the ssh configuration for host " + host;
  const CommandOutput output = co_await run_ssh(std::move(command), host, doing, deadline);
  try {
    if (output.clean) co_return login_gate(parse_ssh_words(output.text));
  } catch (const Error&) {  // a wrapper by the name of ssh, without -G
  }
  co_return host;
}

}  // namespace hv::launcher
