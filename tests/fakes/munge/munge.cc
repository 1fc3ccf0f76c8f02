// A stand-in for libmunge.so.2: credentials in clear, MAKER:READER:BYTES, that keep munge's rules.
// SPDX-License-Identifier: Apache-2.0
//
// HVRUN_TEST_MUNGE is the user who calls; without it nobody answers, as where munged does not run.
// A reader of -1 is everybody.
#include <sys/types.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

// As in munge.h.
constexpr int kSuccess = 0, kSilent = 6, kInvalid = 8, kUnauthorized = 18;
constexpr int kUidRestriction = 9;

struct Context {
  long reader = -1;
};

std::optional<long> caller() {
  const char* const user = std::getenv("HVRUN_TEST_MUNGE");
  if (user == nullptr) return std::nullopt;
  return std::atol(user);
}

}  // namespace

EXPORTED void* munge_ctx_create() { return new Context; }
EXPORTED void munge_ctx_destroy(void* context) { delete static_cast<Context*>(context); }

EXPORTED int munge_ctx_set(void* context, int option, ...) {
  if (option != kUidRestriction) return kInvalid;
  va_list values;
  va_start(values, option);
  static_cast<Context*>(context)->reader = static_cast<long>(va_arg(values, uid_t));
  va_end(values);
  return kSuccess;
}

EXPORTED int munge_encode(char** credential, void* context, const void* bytes, int size) {
  const auto maker = caller();
  if (!maker) return kSilent;
  const long reader = context == nullptr ? -1 : static_cast<Context*>(context)->reader;
  const bool is_made = ::asprintf(credential, "%ld:%ld:%.*s", *maker, reader, size,
                                  static_cast<const char*>(bytes)) >= 0;
  return is_made ? kSuccess : kInvalid;
}

EXPORTED int munge_decode(const char* credential, void*, void** bytes, int* size, uid_t* user,
                          gid_t* group) {
  const auto own = caller();
  if (!own) return kSilent;
  long maker = 0, reader = 0;
  int at = 0;
  if (std::sscanf(credential, "%ld:%ld:%n", &maker, &reader, &at) != 2 || at == 0) return kInvalid;
  if (reader != -1 && reader != *own) return kUnauthorized;
  *size = static_cast<int>(std::strlen(credential + at));
  *bytes = ::strdup(credential + at);
  *user = *group = static_cast<uid_t>(maker);
  return kSuccess;
}

EXPORTED const char* munge_strerror(int error) {
  if (error == kSilent) return "Failed to access \"/run/munge/munge.socket.2\"";
  return error == kUnauthorized ? "Unauthorized credential" : "Invalid credential";
}
