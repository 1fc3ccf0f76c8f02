// SPDX-License-Identifier: Apache-2.0
#include "launcher/probes/elf_file.h"

#include <elf.h>

#include <bit>
#include <cstdint>
#include <cstring>

#include "launcher/facts/read_file.h"

namespace hv::launcher {
namespace {

constexpr std::size_t kHead = 16 << 10;  // program headers and the loader's name come first
constexpr unsigned char kOwnOrder =
    std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;

std::string machine_name(std::uint16_t machine) {
  switch (machine) {
    case EM_X86_64:
      return "x86_64";
    case EM_386:
      return "i386";
    case EM_AARCH64:
      return "aarch64";
    case EM_ARM:
      return "arm";
    case EM_PPC64:
      return std::endian::native == std::endian::little ? "ppc64le" : "ppc64";
    case EM_S390:
      return "s390x";
    case EM_RISCV:
      return "riscv64";
    default:
      return "ELF machine " + std::to_string(machine);
  }
}

template <class T>
bool copy_from(const std::string& bytes, std::uint64_t offset, T* value) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof *value) return false;
  std::memcpy(value, bytes.data() + offset, sizeof *value);
  return true;
}

template <class Header, class Segment>
std::optional<ElfFile> parse(const std::string& bytes) {
  Header header;
  if (!copy_from(bytes, 0, &header)) return std::nullopt;
  ElfFile file{machine_name(header.e_machine), ""};
  for (std::uint64_t i = 0; i < header.e_phnum; ++i) {
    Segment segment;
    if (!copy_from(bytes, header.e_phoff + i * sizeof segment, &segment)) break;
    if (segment.p_type != PT_INTERP || segment.p_offset >= bytes.size()) continue;
    file.loader = bytes.substr(segment.p_offset, segment.p_filesz);
    file.loader = file.loader.substr(0, file.loader.find('\0'));
  }
  return file;
}

}  // namespace

std::optional<ElfFile> read_elf(const std::string& path) {
  const std::string bytes = read_file(path, kHead).value_or("");
  if (bytes.size() < EI_NIDENT || bytes.compare(0, SELFMAG, ELFMAG) != 0) return std::nullopt;
  if (static_cast<unsigned char>(bytes[EI_DATA]) != kOwnOrder) return std::nullopt;
  return bytes[EI_CLASS] == ELFCLASS64 ? parse<Elf64_Ehdr, Elf64_Phdr>(bytes)
                                       : parse<Elf32_Ehdr, Elf32_Phdr>(bytes);
}

bool begins_as_elf(const std::string& path) {
  return read_file(path, SELFMAG).value_or("") == ELFMAG;
}

bool machine_runs(const std::string& machine, const std::string& program) {
  if (machine == program) return true;
  const bool is_32_bit_intel = machine.size() == 4 && machine[0] == 'i' && machine.ends_with("86");
  if (program == "i386") return machine == "x86_64" || is_32_bit_intel;
  return program == "arm" && (machine == "aarch64" || machine.rfind("arm", 0) == 0);
}

}  // namespace hv::launcher
