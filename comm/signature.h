// Signature: what a rank says of a collective before it takes part in it. Two collectives match
// exactly when their signatures do; ranks that differ get one sentence, the same on all of them,
// that names who posted what.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <span>
#include <string>

#include "core/comm/communicator.h"

namespace ddp::comm {

struct SignatureKey {
  std::int64_t sequence = 0;  ///< number of the collective since the start
  std::int64_t kind = 0;
  std::int64_t root = 0;
  std::int64_t plan_sequence = 0;  ///< Collective::sequence
  std::int64_t elements = 0;
  std::int64_t dtype = 0;
  std::int64_t label_hash = 0;
  auto operator<=>(const SignatureKey&) const = default;
};

/// Trivially copyable, so that it travels as bytes.
struct Signature {
  SignatureKey key;
  std::array<char, 64> label{};  ///< shortened if need be, ends in 0
};

Signature signature_of(std::int64_t sequence, const Collective& collective, const TensorType& type);

/// Each field x of a key as x and ~x. The element-wise maximum over ranks holds max(x) and ~min(x),
/// so that a message of constant size shows any difference between any number of ranks.
using Extremes = std::array<std::int64_t, 2 * sizeof(SignatureKey) / sizeof(std::int64_t)>;
Extremes extremes_of(const SignatureKey& key);
/// Whether all keys were equal, from the maximum of their extremes.
bool all_equal(const Extremes& maxima);

/// The sentence for signatures that differ, by rank: groups of ranks that agree, largest first, and
/// who is outvoted.
std::string describe_mismatch(std::span<const Signature> by_rank);

}  // namespace ddp::comm
