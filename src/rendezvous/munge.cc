// SPDX-License-Identifier: Apache-2.0
#include "src/rendezvous/munge.h"

#include <dlfcn.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdlib>

#include "src/base/symbol.h"
#include "src/wire/wipe.h"

namespace hv {
namespace {

constexpr const char* kLibrary = "libmunge.so.2";
constexpr int kSuccess = 0;         // EMUNGE_SUCCESS
constexpr int kUidRestriction = 9;  // MUNGE_OPT_UID_RESTRICTION

}  // namespace

struct Munge::Library {
  int (*encode)(char** credential, void* context, const void* bytes, int size) = nullptr;
  int (*decode)(const char* credential, void* context, void** bytes, int* size, uid_t*,
                gid_t*) = nullptr;
  void* (*create)() = nullptr;
  void (*destroy)(void* context) = nullptr;
  int (*set)(void* context, int option, ...) = nullptr;
  const char* (*words)(int error) = nullptr;

  Status failure(const std::string& doing, int error) const {
    return {StatusCode::kContract, doing + " by munge: " + words(error)};
  }
};

Munge::Munge(std::unique_ptr<Library> library) : library_(std::move(library)) {}
Munge::~Munge() = default;

Status Munge::open(std::unique_ptr<Munge>* munge) {
  void* const handle = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return {StatusCode::kContract, std::string(kLibrary) + " is not there"};
  auto library = std::make_unique<Library>();
  if (!find_function(handle, "munge_encode", &library->encode) ||
      !find_function(handle, "munge_decode", &library->decode) ||
      !find_function(handle, "munge_ctx_create", &library->create) ||
      !find_function(handle, "munge_ctx_destroy", &library->destroy) ||
      !find_function(handle, "munge_ctx_set", &library->set) ||
      !find_function(handle, "munge_strerror", &library->words))
    return {StatusCode::kContract, std::string(kLibrary) + " lacks a function"};
  std::unique_ptr<Munge> made(new Munge(std::move(library)));
  std::string ignored;
  if (Status status = made->seal("", &ignored); !status.ok()) return status;
  *munge = std::move(made);
  return Status::success();
}

Status Munge::seal(const std::string& bytes, std::string* credential) const {
  void* const context = library_->create();
  if (context == nullptr) return {StatusCode::kMemory, "make a credential by munge: out of memory"};
  char* made = nullptr;
  int error = library_->set(context, kUidRestriction, ::geteuid());
  if (error == kSuccess)
    error = library_->encode(&made, context, bytes.data(), static_cast<int>(bytes.size()));
  library_->destroy(context);
  if (error != kSuccess) return library_->failure("make a credential", error);
  *credential = made;
  std::free(made);
  return Status::success();
}

Status Munge::unseal(const std::string& credential, std::string* bytes) const {
  void* payload = nullptr;
  int size = 0;
  uid_t user = 0;
  gid_t group = 0;
  const int error = library_->decode(credential.c_str(), nullptr, &payload, &size, &user, &group);
  // Of one that is too old or was used before it tells what was in it, too.
  if (error == kSuccess && user == ::geteuid())
    bytes->assign(static_cast<const char*>(payload), static_cast<std::size_t>(size));
  if (payload != nullptr) {
    wipe(static_cast<char*>(payload), static_cast<std::size_t>(size));
    std::free(payload);
  }
  if (error != kSuccess) return library_->failure("check a credential", error);
  if (user != ::geteuid())
    return {StatusCode::kContract,
            "check a credential by munge: it is user " + std::to_string(user) + "'s"};
  return Status::success();
}

}  // namespace hv
