// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/handshake.h"

#include <cstring>

#include "src/net/socket.h"

namespace hv::runtime {

bool Hello::has_mark() const { return std::memcmp(mark, Hello{}.mark, sizeof mark) == 0; }

std::string purpose_of(const std::string& job_id, const Hello& hello) {
  return "job " + job_id + " ranks " + std::to_string(hello.from) + ">" + std::to_string(hello.to) +
         " epoch " + std::to_string(hello.epoch) + " use " + std::to_string(hello.use);
}

Status prove_as_client(int socket, const JobKey& key, const std::string& job_id, Hello hello,
                       std::chrono::milliseconds timeout) {
  hello.nonce = random_nonce();
  if (Status status = send_all(socket, &hello, sizeof hello, timeout); !status.ok()) return status;
  ServerAnswer answer;
  if (Status status = read_exactly(socket, &answer, sizeof answer, timeout); !status.ok())
    return status;
  const std::string purpose = purpose_of(job_id, hello);
  if (!equal_proofs(answer.proof, server_proof(key, purpose, hello.nonce, answer.nonce)))
    return {StatusCode::kSystem, "the other end does not hold this job's key"};
  const Proof mine = client_proof(key, purpose, hello.nonce, answer.nonce);
  return send_all(socket, mine.data(), mine.size(), timeout);
}

Status prove_as_server(int socket, const JobKey& key, const std::string& job_id,
                       const Hello& expected, Hello* hello, std::chrono::milliseconds timeout) {
  if (Status status = read_exactly(socket, hello, sizeof *hello, timeout); !status.ok())
    return status;
  if (!hello->has_mark() || hello->to != expected.to || hello->epoch != expected.epoch ||
      hello->use != expected.use)
    return {StatusCode::kSystem, "a stranger connected"};
  const std::string purpose = purpose_of(job_id, *hello);
  ServerAnswer answer;
  answer.nonce = random_nonce();
  answer.proof = server_proof(key, purpose, hello->nonce, answer.nonce);
  if (Status status = send_all(socket, &answer, sizeof answer, timeout); !status.ok())
    return status;
  Proof theirs;
  if (Status status = read_exactly(socket, theirs.data(), theirs.size(), timeout); !status.ok())
    return status;
  if (!equal_proofs(theirs, client_proof(key, purpose, hello->nonce, answer.nonce)))
    return {StatusCode::kSystem, "the other end does not hold this job's key"};
  return Status::success();
}

}  // namespace hv::runtime
