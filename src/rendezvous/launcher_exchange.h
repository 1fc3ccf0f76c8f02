// Opens the exchange by which ranks that another launcher has started find each other.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "src/base/environment.h"
#include "src/rendezvous/exchange.h"

namespace hv {

// By PMIx, by PMI, or, for the tasks of a Slurm step, by munge or a file. nullptr and success: the
// environment names none of them. Blocks at most meeting.limits.timeout.
Status open_launcher_exchange(const Environment& environment, const MeetingTerms& meeting,
                              std::unique_ptr<Exchange>* exchange);

}  // namespace hv
