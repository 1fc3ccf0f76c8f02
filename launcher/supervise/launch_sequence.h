// From a JobSpec to running ranks: the steps of host_steps.h, then wire, launch, go.
// SPDX-License-Identifier: Apache-2.0
//
// Nothing is started on any host before every host has said that it can.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "launcher/supervise/hosts/host_steps.h"

namespace hv::launcher {

boost::asio::awaitable<void> launch_job(LaunchContext& context);

}  // namespace hv::launcher
