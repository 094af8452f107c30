#include "comm/mpi/mpi_alarm.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace ddp::comm {
namespace {

constexpr int kTag = 1;
/// How long MPI gets to hand the messages on, should the network be slow to take them.
constexpr std::chrono::milliseconds kFlushLimit{200};

}  // namespace

void MpiAlarm::announce(const Failure& failure) {
  const std::lock_guard lock(mutex_);
  group_.session().give_up();
  if (!sends_.empty()) return;
  sent_.rank = failure.rank;
  sent_.code = static_cast<int>(failure.code);
  std::copy_n(failure.sentence.data(), std::min(failure.sentence.size(), sent_.sentence.size() - 1),
              sent_.sentence.data());
  for (int rank = 0; rank < group_.session().size(); ++rank) {
    if (rank == group_.session().rank()) continue;
    check_mpi(MPI_Isend(&sent_, sizeof sent_, MPI_BYTE, rank, kTag, group_.handle(),
                        &sends_.emplace_back()),
              "MPI_Isend");
  }
  const auto deadline = std::chrono::steady_clock::now() + kFlushLimit;
  for (int done = 0; done == 0 && std::chrono::steady_clock::now() < deadline;) {
    check_mpi(
        MPI_Testall(static_cast<int>(sends_.size()), sends_.data(), &done, MPI_STATUSES_IGNORE),
        "MPI_Testall");
    if (done == 0) std::this_thread::sleep_for(kLongestSleep);
  }
}

std::optional<Failure> MpiAlarm::announced() {
  const std::lock_guard lock(mutex_);
  if (heard_) return heard_;
  int arrived = 0;
  MPI_Message handle = MPI_MESSAGE_NULL;
  check_mpi(
      MPI_Improbe(MPI_ANY_SOURCE, kTag, group_.handle(), &arrived, &handle, MPI_STATUS_IGNORE),
      "MPI_Improbe");
  if (arrived == 0) return std::nullopt;
  Message message;
  check_mpi(MPI_Mrecv(&message, sizeof message, MPI_BYTE, &handle, MPI_STATUS_IGNORE), "MPI_Mrecv");
  group_.session().give_up();
  heard_ = Failure{message.rank, static_cast<ExitCode>(message.code), message.sentence.data()};
  return heard_;
}

}  // namespace ddp::comm
