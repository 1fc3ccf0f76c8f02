// AgentProgram: the agent's file on this machine, as what gets copied to hosts. Read once, when
// first needed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

namespace hv::launcher {

class AgentProgram {
 public:
  explicit AgentProgram(std::string file) : file_(std::move(file)) {}
  // All of it. Throws Error(kStart) when it cannot be read or is no program.
  const std::string& content();
  // What `uname -m` says on the machines that it runs on.
  std::string machine();

 private:
  std::string file_;
  std::optional<std::string> content_;
};

// The machine in an ELF header as uname names it; empty when bytes begin no ELF file. A number for
// unknown ones.
std::string elf_machine(const std::string& bytes);

}  // namespace hv::launcher
