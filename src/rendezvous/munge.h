// MUNGE: credentials that prove who has made them, to every host of a cluster. libmunge is opened
// at run time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "src/base/status.h"

namespace hv {

class Munge {
 public:
  // Fails where there is no libmunge, or nobody answers it.
  static Status open(std::unique_ptr<Munge>* munge);
  ~Munge();
  Munge(const Munge&) = delete;
  Munge& operator=(const Munge&) = delete;

  // Encrypted; only this user, on any host of the cluster, can read it, and once.
  Status seal(const std::string& bytes, std::string* credential) const;
  // What this user has sealed; anything else is refused.
  Status unseal(const std::string& credential, std::string* bytes) const;

 private:
  struct Library;
  explicit Munge(std::unique_ptr<Library> library);
  std::unique_ptr<Library> library_;
};

}  // namespace hv
