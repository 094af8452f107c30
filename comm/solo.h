// World and Communicator of a program that was started without mpirun: one rank, nothing to agree
// on, nothing to communicate. Made by the factories in comm/mpi.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/comm/communicator.h"
#include "core/comm/world.h"

namespace ddp::comm {

class SoloWorld final : public World {
 public:
  explicit SoloWorld(std::string host_name) : host_name_(std::move(host_name)) {}
  int rank() const override { return 0; }
  int size() const override { return 1; }
  int local_rank() const override { return 0; }
  int local_size() const override { return 1; }
  std::string host_name() const override { return host_name_; }
  void sum(std::span<std::int64_t>) override {}
  std::vector<std::string> gather(std::string_view mine) override { return {std::string(mine)}; }
  std::string broadcast(std::string_view mine, int) override { return std::string(mine); }
  void barrier() override {}
  void announce(const Failure&) override {}
  std::optional<Failure> announced() const override { return std::nullopt; }
  void arrive() override {}
  std::vector<int> missing(int) override { return {}; }

 private:
  std::string host_name_;
};

class SoloCommunicator final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void post(const Collective& collective, TensorView, Event&, Event&) override {
    DDP_CHECK(false, "\"{}\" is posted in a world of one rank", collective.label);
  }
  void check() const override {}
};

}  // namespace ddp::comm
