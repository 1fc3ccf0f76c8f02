// SPDX-License-Identifier: Apache-2.0
#include "launcher/mpi/mpi_reach.h"

#include <algorithm>

#include "src/base/error.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

using Words = std::vector<std::string>;

constexpr const char* kIntoConfig =
    "write it into ~/.ssh/config, which mpirun's ssh reads, and leave it out here";
constexpr const char* kIntoScript =
    "write it into ~/.ssh/config, if it is for ssh, or all of it into a script, and name that";

// What the hosts' lines say of it, or the option for those that say nothing.
template <class Of>
std::string one_for_all(const HostList& list, const std::string& option, const char* what, Of of) {
  std::string shared;
  for (std::size_t i = 0; i < list.entries.size(); ++i) {
    const std::string stated = of(list.entries[i]);
    const std::string& own = stated.empty() ? option : stated;
    if (i > 0 && own != shared)
      throw Error(ErrorKind::kUsage,
                  std::string("--mpi: mpirun reaches all hosts with the same ") + what + ", and " +
                      printable(list.entries[i].name) + " has another than " +
                      printable(list.entries[0].name),
                  kIntoConfig);
    shared = own;
  }
  return list.entries.empty() ? option : shared;
}

// mpirun takes a text apart at these, and knows no quotes.
void refuse_words_with(const Words& words, const char* what, char separator, const char* instead) {
  for (const std::string& word : words)
    if (word.find(separator) != std::string::npos)
      throw Error(ErrorKind::kUsage,
                  std::string("--mpi: mpirun hands no words with ") + what + " to ssh, as in '" +
                      printable(word) + "'",
                  instead);
}

// Open MPI's has the program and its words in one text.
void refuse_program_with(const std::string& program, const char* what, char separator) {
  if (program.find(separator) == std::string::npos) return;
  const std::string name = program.substr(program.rfind('/') + 1);
  throw Error(ErrorKind::kUsage,
              "--mpi: Open MPI's mpirun takes no program with " + std::string(what) +
                  " in its path for --rsh: " + shell_quote(printable(program)),
              "name a link to it by a path without: ln -s " + shell_quote(printable(program)) +
                  " ~/" + (name.find(separator) == std::string::npos ? name : "rsh"));
}

// "-p 2222 -l ann".
Words ssh_words(const JobSpec& spec, const HostList& list) {
  const std::string port =
      one_for_all(list, spec.ssh_port == 0 ? "" : std::to_string(spec.ssh_port), "port",
                  [](const HostEntry& host) {
                    return host.port == 0 ? std::string() : std::to_string(host.port);
                  });
  const std::string user =
      one_for_all(list, spec.ssh_user, "user", [](const HostEntry& host) { return host.user; });
  const std::string key = one_for_all(list, spec.ssh_identity_file, "key",
                                      [](const HostEntry& host) { return host.identity; });
  Words words;
  if (!port.empty()) words.insert(words.end(), {"-p", port});
  if (!user.empty()) words.insert(words.end(), {"-l", user});
  if (!key.empty()) words.insert(words.end(), {"-i", key});
  if (spec.ssh_accept_new) words.insert(words.end(), {"-o", "StrictHostKeyChecking=accept-new"});
  refuse_words_with(words, "spaces", ' ', kIntoConfig);
  return words;
}

Words remote_shell_words(const JobSpec& spec) {
  const auto words = shell_words(spec.remote_shell);
  if (words && !words->empty()) {
    refuse_words_with({words->begin() + 1, words->end()}, "spaces", ' ', kIntoScript);
    return *words;
  }
  throw Error(ErrorKind::kUsage, "--rsh '" + printable(spec.remote_shell) + "' is no command",
              "write it as in a shell: --rsh 'ssh -J gateway'");
}

}  // namespace

bool are_all_here(const HostList& list) {
  return list.this_machine ||
         std::all_of(list.entries.begin(), list.entries.end(),
                     [](const HostEntry& host) { return host.name == "localhost"; });
}

Words reach_of_openmpi(const JobSpec& spec, const HostList& list) {
  Words words;
  if (!spec.remote_shell.empty()) {
    const Words command = remote_shell_words(spec);
    refuse_program_with(command[0], "spaces", ' ');
    refuse_program_with(command[0], "colons", ':');
    // Between commands, of which it takes the first.
    refuse_words_with(command, "colons", ':', kIntoScript);
    words.insert(words.end(), {"--mca", "plm_rsh_agent", join(command, " ")});
  }
  const Words ssh = ssh_words(spec, list);
  if (!ssh.empty()) words.insert(words.end(), {"--mca", "plm_rsh_args", join(ssh, " ")});
  return words;
}

Words reach_of_hydra(const JobSpec& spec, const HostList& list) {
  if (are_all_here(list)) return {"-launcher", "fork"};
  if (!spec.remote_shell.empty())
    return {"-launcher", "ssh", "-launcher-exec", remote_shell_words(spec)[0]};
  if (!ssh_words(spec, list).empty()) return {"-launcher", "ssh"};
  return {};
}

Words variables_for_hydra(const JobSpec& spec, const HostList& list) {
  Words words = ssh_words(spec, list);
  if (!spec.remote_shell.empty()) {
    const Words command = remote_shell_words(spec);
    words.insert(words.begin(), command.begin() + 1, command.end());
  }
  if (words.empty()) return {};
  return {"HYDRA_LAUNCHER_EXTRA_ARGS=" + join(words, " ")};
}

}  // namespace hv::launcher
