// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/agent_program.h"

#include <elf.h>

#include <cerrno>
#include <fstream>
#include <sstream>
#include <utility>

#include "src/base/error.h"
#include "src/base/text.h"

namespace hv::launcher {

const std::string& AgentProgram::content() {
  if (content_) return *content_;
  std::ifstream stream(file_, std::ios::binary);
  std::ostringstream bytes;  // an iterator over the file would throw for a folder, in its own words
  if (!stream || !(bytes << stream.rdbuf())) {
    throw Error(ErrorKind::kStart, "read the agent from " + file_ + ": " + errno_text(errno),
                "reinstall hvrun");
  }
  return content_.emplace(std::move(bytes).str());
}

std::string AgentProgram::machine() { return elf_machine(content()); }

std::string elf_machine(const std::string& bytes) {
  if (bytes.size() < 20 || bytes.compare(0, SELFMAG, ELFMAG) != 0) return {};
  const bool little = bytes[EI_DATA] == ELFDATA2LSB;
  // e_machine lies behind the 16 bytes of e_ident and the 2 of e_type.
  const auto byte = [&bytes](std::size_t i) {
    return static_cast<unsigned>(static_cast<unsigned char>(bytes[i]));
  };
  const unsigned number = little ? byte(18) | byte(19) << 8 : byte(18) << 8 | byte(19);
  switch (number) {
    case EM_X86_64:
      return "x86_64";
    case EM_AARCH64:
      return "aarch64";
    case EM_RISCV:
      return "riscv64";
    case EM_S390:
      return "s390x";
    case EM_PPC64:
      return little ? "ppc64le" : "ppc64";
    default:
      return "ELF machine " + std::to_string(number);
  }
}

}  // namespace hv::launcher
