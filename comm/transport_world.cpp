#include "comm/transport_world.h"

#include <cstring>

namespace ddp::comm {

void TransportWorld::run(const std::function<void()>& start) {
  run_exchange(*transport_, start, [this] {
    if (auto failure = announced()) throw PeerFailed(*std::move(failure));
  });
}

void TransportWorld::sum(std::span<std::int64_t> values) {
  run([&] {
    transport_->start_all_reduce(values.data(), values.size(), DType::kI64, Reduction::kSum);
  });
}

std::vector<std::string> TransportWorld::gather(std::string_view mine) {
  const auto length = static_cast<std::int64_t>(mine.size());
  std::int64_t longest = length;
  run([&] { transport_->start_all_reduce(&longest, 1, DType::kI64, Reduction::kMax); });

  const std::size_t block = sizeof length + static_cast<std::size_t>(longest);
  std::vector<std::byte> sent(block);
  std::memcpy(sent.data(), &length, sizeof length);
  std::memcpy(sent.data() + sizeof length, mine.data(), mine.size());
  std::vector<std::byte> received(block * static_cast<std::size_t>(size()));
  run([&] { transport_->start_gather(sent, received); });

  std::vector<std::string> all;
  for (const std::byte* from = received.data(); from != received.data() + received.size();
       from += block) {
    std::int64_t theirs = 0;
    std::memcpy(&theirs, from, sizeof theirs);
    all.emplace_back(reinterpret_cast<const char*>(from + sizeof theirs),
                     static_cast<std::size_t>(theirs));
  }
  return all;
}

std::string TransportWorld::broadcast(std::string_view mine, int root) {
  std::int64_t length = static_cast<std::int64_t>(mine.size());
  broadcast(std::as_writable_bytes(std::span(&length, 1)), root);
  std::string text(rank() == root ? mine : std::string_view());
  text.resize(static_cast<std::size_t>(length));
  broadcast(std::as_writable_bytes(std::span(text)), root);
  return text;
}

void TransportWorld::broadcast(std::span<std::byte> data, int root) {
  run([&] { transport_->start_broadcast(data, root); });
}

void TransportWorld::barrier() {
  std::int64_t nothing = 0;
  sum({&nothing, 1});
}

}  // namespace ddp::comm
