// NcclCommunicator: a Communicator for device memory. Collectives run on a stream of its own, in
// the order in which they are posted, and may be captured in a graph. NCCL works without blocking
// the caller: every call is polled until it is done, so that the failure of another rank ends every
// wait.
#pragma once

#include <exception>
#include <memory>

#include "comm/nccl/connection.h"
#include "comm/nccl_communicator.h"
#include "comm/rendezvous.h"

namespace ddp::comm {

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(World& world, Backend& backend, const NcclOptions& options);
  ~NcclCommunicator() override;
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  /// Collective; once, before anything else.
  void connect();

  int rank() const override { return world_.rank(); }
  int size() const override { return world_.size(); }
  /// All-reduce takes F32, F64, BF16 and I64, broadcast any dtype. The events are the backend's.
  void post(const Collective& collective, TensorView data, Event& after, Event& signal) override;
  /// Throws the first failure: CommunicationError when NCCL fails, PeerFailed when a rank announced
  /// one. Collectives in flight are aborted, those posted later do nothing. A peer that is lost
  /// without a word is not seen here: NCCL waits for it.
  void check() const override;

  Buffer allocate_symmetric(std::size_t bytes);
  void abandon() noexcept { connection_->abort(); }

 private:
  void interrupt() const;
  void fail() const;
  void agree_on_version();
  /// Done when the connection is settled; only then may more be enqueued.
  void enqueue(const Collective& collective, TensorView data);
  void try_sums(float* memory, std::size_t elements);
  bool may_register(const NcclConnection::Memory& memory);
  void register_memory(const NcclConnection::Memory& memory, std::size_t bytes);

  World& world_;
  Backend& backend_;
  const NcclOptions options_;
  const int exceptions_;  ///< being thrown when this was made
  Rendezvous rendezvous_;
  std::shared_ptr<NcclConnection> connection_;
  mutable std::exception_ptr failure_;
};

}  // namespace ddp::comm
