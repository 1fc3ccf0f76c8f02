// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/ssh/known_hosts.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>

#include "launcher/spawn/ssh/ssh_library.h"
#include "src/base/error.h"
#include "src/base/text.h"
#include "src/base/unique_fd.h"

namespace hv::launcher {
namespace {

constexpr std::size_t kMaxLine = 32 << 10;
constexpr std::size_t kMostFileBytes = 16 << 20;

// '*' any run, '?' any one character; case does not count.
bool matches(std::string_view pattern, std::string_view name) {
  std::size_t p = 0, n = 0, star = std::string_view::npos, resume = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

// A comma list; one negated pattern that matches turns the whole list down.
bool matches_list(const std::string& patterns, const std::string& name) {
  bool found = false;
  for (const std::string& pattern : split(lower(patterns), ',')) {
    if (pattern.empty()) continue;
    if (pattern[0] == '!') {
      if (matches(std::string_view(pattern).substr(1), name)) return false;
    } else {
      found = found || matches(pattern, name);
    }
  }
  return found;
}

// The name's hash (HMAC-SHA1 with the line's salt) is libssh's to compute.
bool matches_hash(const std::string& line, const std::string& name) {
  ssh_knownhosts_entry* entry = nullptr;
  const bool same =
      libssh().ssh_known_hosts_parse_line(name.c_str(), line.c_str(), &entry) == SSH_OK;
  if (entry) libssh().ssh_knownhosts_entry_free(entry);
  return same;
}

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  std::size_t start = 0;
  while ((start = line.find_first_not_of(" \t\r", start)) != std::string_view::npos) {
    const std::size_t end = std::min(line.find_first_of(" \t\r", start), line.size());
    words.emplace_back(line.substr(start, end - start));
    start = end;
  }
  return words;
}

bool take_marker(std::vector<std::string>* words, KnownKey* key) {
  if (words->empty() || (*words)[0][0] != '@') return true;
  if ((*words)[0] == "@cert-authority")
    key->marker = KnownKey::Marker::kAuthority;
  else if ((*words)[0] == "@revoked")
    key->marker = KnownKey::Marker::kRevoked;
  else
    return false;
  words->erase(words->begin());
  return true;
}

std::string folder_of(const std::string& file) {
  const std::size_t slash = file.rfind('/');
  return slash == std::string::npos || slash == 0 ? "" : file.substr(0, slash);
}

[[noreturn]] void throw_append(const std::string& file, int error) {
  throw Error(ErrorKind::kStart, "add a host's key to " + file + ": " + errno_text(error),
              "make that file writable, or add the key there yourself");
}

// "" where there is none, or where it may not be read. Never a part of it: a revoked key may stand
// behind the limit.
std::string read_whole(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string text;
  char piece[16 << 10];
  while (text.size() <= kMostFileBytes && (stream.read(piece, sizeof piece), stream.gcount() > 0))
    text.append(piece, static_cast<std::size_t>(stream.gcount()));
  if (text.size() > kMostFileBytes)
    throw Error(
        ErrorKind::kStart,
        "read known hosts from " + file + ": it is larger than " + format_bytes(kMostFileBytes),
        "remove what is not needed from it, or name another by UserKnownHostsFile in "
        "~/.ssh/config");
  return text;
}

// A last line without its newline would swallow ours.
bool ends_in_line(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size == 0) return true;
  char last = '\n';
  return ::pread(fd, &last, 1, info.st_size - 1) != 1 || last == '\n';
}

}  // namespace

std::string known_hosts_name(const std::string& host, std::uint16_t port) {
  return port == 22 ? host : "[" + host + "]:" + std::to_string(port);
}

std::vector<KnownKey> keys_in(std::string_view text, const std::string& name,
                              const std::string& file) {
  std::vector<KnownKey> keys;
  int number = 0;
  for (const std::string& line : split(text, '\n')) {
    ++number;
    if (line.size() > kMaxLine || trim(line).empty() || trim(line)[0] == '#') continue;
    KnownKey key;
    std::vector<std::string> words = words_of(line);
    if (!take_marker(&words, &key) || words.size() < 3) continue;
    const bool hashed = words[0][0] == '|';
    if (hashed ? !matches_hash(words[0] + " " + words[1] + " " + words[2], name)
               : !matches_list(words[0], name))
      continue;
    key.type = words[1];
    key.base64 = words[2];
    key.file = file;
    key.line = number;
    keys.push_back(std::move(key));
  }
  return keys;
}

bool KnownKeys::has_authority() const {
  return std::any_of(keys.begin(), keys.end(), [](const KnownKey& key) {
    return key.marker == KnownKey::Marker::kAuthority;
  });
}

std::vector<std::string> KnownKeys::types() const {
  std::vector<std::string> types;
  for (const auto* list : {&keys, &without_port}) {
    for (const KnownKey& key : *list) {
      const bool is_new = std::find(types.begin(), types.end(), key.type) == types.end();
      if (key.marker == KnownKey::Marker::kNone && is_new) types.push_back(key.type);
    }
  }
  return types;
}

KnownKeys find_known_keys(const std::vector<std::string>& files, const std::string& host,
                          std::uint16_t port) {
  KnownKeys known;
  for (const std::string& file : files) {
    const std::string text = read_whole(file);
    for (KnownKey& key : keys_in(text, known_hosts_name(host, port), file))
      known.keys.push_back(std::move(key));
    if (port == 22) continue;
    for (KnownKey& key : keys_in(text, host, file)) known.without_port.push_back(std::move(key));
  }
  return known;
}

HostKeyVerdict judge_host_key(const KnownKeys& known, const std::string& base64) {
  using Kind = HostKeyVerdict::Kind;
  HostKeyVerdict verdict;
  for (const auto* list : {&known.keys, &known.without_port}) {
    for (const KnownKey& key : *list) {
      const bool same = key.base64 == base64;
      if (same && key.marker == KnownKey::Marker::kRevoked)
        return {Kind::kRevoked, key.file, key.line};
      if (key.marker != KnownKey::Marker::kNone || verdict.kind == Kind::kKnown) continue;
      if (same)
        verdict = {Kind::kKnown, key.file, key.line};
      else if (list == &known.keys && verdict.kind == Kind::kUnknown)
        verdict = {Kind::kChanged, key.file, key.line};
    }
  }
  return verdict;
}

void append_known_host(const std::string& file, const std::string& name, const std::string& type,
                       const std::string& base64) {
  const std::string folder = folder_of(file);
  if (!folder.empty() && ::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    throw_append(file, errno);
  const UniqueFd fd(::open(file.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600));
  if (!fd) throw_append(file, errno);
  // Appended in one write: several hosts, or several hvruns, never clash. The lock is held for that
  // write only.
  (void)::flock(fd.get(), LOCK_EX);
  const std::string line =
      (ends_in_line(fd.get()) ? "" : "\n") + name + " " + type + " " + base64 + "\n";
  const ssize_t written = ::write(fd.get(), line.data(), line.size());
  if (written != static_cast<ssize_t>(line.size()))
    throw_append(file, written < 0 ? errno : ENOSPC);
}

}  // namespace hv::launcher
