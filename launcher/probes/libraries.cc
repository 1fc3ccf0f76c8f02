// SPDX-License-Identifier: Apache-2.0
#include "launcher/probes/libraries.h"

#include <elf.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "launcher/facts/read_file.h"
#include "src/base/text.h"
#include "src/process/captured.h"

namespace hv::launcher {
namespace {

constexpr const char* kOnlyFirst = "error while loading shared libraries: ";  // glibc's
constexpr const char* kNoLibrary = "Error loading shared library ";           // musl's

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// What stands between two pieces of a line; "" where they are not there.
std::string between(const std::string& line, const std::string& before, const std::string& behind) {
  const std::size_t at = line.find(before);
  if (at == std::string::npos) return {};
  const std::size_t end = line.find(behind, at + before.size());
  if (end == std::string::npos) return {};
  return line.substr(at + before.size(), end - at - before.size());
}

void take_missing(const std::string& name, LibraryList* list) {
  if (name.empty()) return;
  if (std::find(list->missing.begin(), list->missing.end(), name) == list->missing.end())
    list->missing.push_back(name);
}

// "\tlibm.so.6 => /lib/libm.so.6 (0x7f...)", "\tlibx.so => not found"; the vDSO and the loader have
// no arrow.
void take_line(const std::string& line, LibraryList* list) {
  take_missing(between(line, kOnlyFirst, ": "), list);
  take_missing(between(line, kNoLibrary, ": "), list);
  const std::string version = between(line, ": version `", "' not found");
  if (!version.empty()) {
    const std::string file = line.substr(0, line.find(": version `"));
    take_missing(version + " of " + file_name(file.substr(file.rfind(' ') + 1)), list);
  }
  const std::size_t arrow = line.find(" => ");
  if (arrow == std::string::npos) return;
  const std::string name(trim(line.substr(0, arrow)));
  const std::string rest = line.substr(arrow + 4);
  if (rest.rfind("not found", 0) == 0) return take_missing(name, list);
  const std::string file = rest.substr(0, rest.rfind(" (0x"));
  if (!file.empty()) list->libraries.emplace_back(name, file);
}

}  // namespace

LibraryList parse_library_list(const std::string& text) {
  LibraryList list;
  for (const std::string& line : split(text, '\n')) take_line(line, &list);
  std::sort(list.libraries.begin(), list.libraries.end());
  return list;
}

std::string list_libraries(const std::string& loader, const std::string& program,
                           const std::string& directory, const Environment& environment,
                           TimePoint until, LibraryList* list) {
  Command command;
  command.argv = {loader, "--list", program};
  command.program = loader;
  command.directory = directory;
  command.environment = environment.entries();
  Captured captured = capture_output(command, until - now(), true);
  // glibc's ends with the first that is missing. Asked by a variable it tells of all: but only
  // glibc's knows that, and another would run the program.
  if (captured.text.find(kOnlyFirst) != std::string::npos) {
    Environment with = environment;
    with.set("LD_TRACE_LOADED_OBJECTS", "1");
    command.argv = {loader, program};
    command.environment = with.entries();
    captured = capture_output(command, until - now(), true);
  }
  if (!captured.trouble.empty()) return loader + " --list: " + captured.trouble;
  *list = parse_library_list(captured.text);
  const bool has_told = !list->libraries.empty() || !list->missing.empty();
  if (captured.is_well() || has_told) return "";
  return loader + " --list " + program + ": " + captured.status->text();
}

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
