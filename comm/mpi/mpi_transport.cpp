#include "comm/mpi/mpi_transport.h"

#include <algorithm>
#include <limits>

namespace ddp::comm {
namespace {

constexpr std::size_t kStagedBytes = std::size_t{64} << 10;

int mpi_count(std::size_t n) {
  DDP_CHECK(n <= static_cast<std::size_t>(std::numeric_limits<int>::max()),
            "an MPI call of {} items is not split", n);
  return static_cast<int>(n);
}

MPI_Datatype mpi_type(DType dtype) {
  switch (dtype) {
    case DType::kF32: return MPI_FLOAT;
    case DType::kF64: return MPI_DOUBLE;
    case DType::kI64: return MPI_INT64_T;
    default: break;
  }
  DDP_CHECK(false, "MPI does not reduce {}", name_of(dtype));
  return MPI_DATATYPE_NULL;
}

}  // namespace

MpiGroup::MpiGroup(MpiSession& session) : session_(session) {
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &handle_), "MPI_Comm_dup");
}

MpiGroup::~MpiGroup() {
  if (!session_.given_up()) MPI_Comm_free(&handle_);
}

std::byte* MpiTransport::stage(std::span<std::byte> memory) {
  if (memory.size() > kStagedBytes) return memory.data();
  staged_.assign(memory.begin(), memory.end());
  unstaged_ = memory;
  return staged_.data();
}

void MpiTransport::start_all_reduce(void* data, std::size_t elements, DType dtype,
                                    Reduction reduction) {
  std::byte* memory = stage({static_cast<std::byte*>(data), elements * size_of(dtype)});
  check_mpi(
      MPI_Iallreduce(MPI_IN_PLACE, memory, mpi_count(elements), mpi_type(dtype),
                     reduction == Reduction::kSum ? MPI_SUM : MPI_MAX, group_.handle(), &request_),
      "MPI_Iallreduce");
}

void MpiTransport::start_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  std::ranges::copy(mine, all.subspan(static_cast<std::size_t>(rank()) * mine.size()).begin());
  check_mpi(MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, stage(all), mpi_count(mine.size()),
                           MPI_BYTE, group_.handle(), &request_),
            "MPI_Iallgather");
}

void MpiTransport::start_broadcast(std::span<std::byte> data, int root) {
  check_mpi(
      MPI_Ibcast(stage(data), mpi_count(data.size()), MPI_BYTE, root, group_.handle(), &request_),
      "MPI_Ibcast");
}

bool MpiTransport::test() {
  int done = 0;
  check_mpi(MPI_Test(&request_, &done, MPI_STATUS_IGNORE), "MPI_Test");
  if (done == 0) return false;
  std::ranges::copy(std::span(staged_).first(unstaged_.size()), unstaged_.begin());
  unstaged_ = {};
  return true;
}

}  // namespace ddp::comm
