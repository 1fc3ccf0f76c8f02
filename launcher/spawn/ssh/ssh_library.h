// libssh's functions, in the library that is opened when the first of them is called.
// SPDX-License-Identifier: Apache-2.0
//
// Linked, libssh with libcrypto and Kerberos would take half of every start of hvrun. Jobs on this
// machine, srun, kubectl and --rsh do not need it.
#pragma once

#include <libssh/callbacks.h>
#include <libssh/libssh.h>

// Every function of libssh that hvrun calls.
#define HVRUN_SSH_FUNCTIONS(FUNCTION)    \
  FUNCTION(ssh_blocking_flush)           \
  FUNCTION(ssh_channel_get_exit_status)  \
  FUNCTION(ssh_channel_is_closed)        \
  FUNCTION(ssh_channel_is_eof)           \
  FUNCTION(ssh_channel_new)              \
  FUNCTION(ssh_channel_open_session)     \
  FUNCTION(ssh_channel_read_nonblocking) \
  FUNCTION(ssh_channel_request_exec)     \
  FUNCTION(ssh_channel_write)            \
  FUNCTION(ssh_clean_pubkey_hash)        \
  FUNCTION(ssh_connect)                  \
  FUNCTION(ssh_disconnect)               \
  FUNCTION(ssh_free)                     \
  FUNCTION(ssh_get_error)                \
  FUNCTION(ssh_get_fingerprint_hash)     \
  FUNCTION(ssh_get_poll_flags)           \
  FUNCTION(ssh_get_publickey_hash)       \
  FUNCTION(ssh_get_server_publickey)     \
  FUNCTION(ssh_get_status)               \
  FUNCTION(ssh_key_free)                 \
  FUNCTION(ssh_key_type)                 \
  FUNCTION(ssh_key_type_from_name)       \
  FUNCTION(ssh_key_type_to_char)         \
  FUNCTION(ssh_known_hosts_parse_line)   \
  FUNCTION(ssh_knownhosts_entry_free)    \
  FUNCTION(ssh_new)                      \
  FUNCTION(ssh_options_set)              \
  FUNCTION(ssh_pki_export_pubkey_base64) \
  FUNCTION(ssh_pki_import_privkey_file)  \
  FUNCTION(ssh_pki_import_pubkey_base64) \
  FUNCTION(ssh_pki_import_pubkey_file)   \
  FUNCTION(ssh_pki_key_ecdsa_name)       \
  FUNCTION(ssh_set_blocking)             \
  FUNCTION(ssh_set_channel_callbacks)    \
  FUNCTION(ssh_string_free_char)         \
  FUNCTION(ssh_userauth_agent)           \
  FUNCTION(ssh_userauth_list)            \
  FUNCTION(ssh_userauth_none)            \
  FUNCTION(ssh_userauth_publickey)

namespace hv::launcher {

// By their own names and types: libssh().ssh_new().
struct SshFunctions {
#define HVRUN_SSH_MEMBER(name) decltype(&::name) name = nullptr;
  HVRUN_SSH_FUNCTIONS(HVRUN_SSH_MEMBER)
#undef HVRUN_SSH_MEMBER
};

// Any thread. Never closed. Throws Error(kStart) where the library cannot be opened.
const SshFunctions& libssh();

}  // namespace hv::launcher
