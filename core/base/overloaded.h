// Builds a visitor out of lambdas, for std::visit.
#pragma once

namespace ddp {

template <class... Fs>
struct overloaded : Fs... {
  using Fs::operator()...;
};

}  // namespace ddp
