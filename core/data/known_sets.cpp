#include "core/data/known_sets.h"

#include <algorithm>

namespace ddp {

const KnownSet* known_set(std::string_view name) {
  static const std::vector<KnownSet> sets{
      {.name = "fashion-mnist",
       .classes = 10,
       .mean = {0.2860},
       .stddev = {0.3530},
       .class_names = {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt",
                       "Sneaker", "Bag", "Ankle boot"}},
      {.name = "mnist",
       .classes = 10,
       .mean = {0.1307},
       .stddev = {0.3081},
       .class_names = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}},
      {.name = "cifar-10",
       .classes = 10,
       .mean = {0.4914, 0.4822, 0.4465},
       .stddev = {0.2470, 0.2435, 0.2616}},
      {.name = "cifar-100",
       .classes = 100,
       .mean = {0.5071, 0.4865, 0.4409},
       .stddev = {0.2673, 0.2564, 0.2762}},
  };
  const auto set = std::ranges::find(sets, name, &KnownSet::name);
  return set == sets.end() ? nullptr : &*set;
}

}  // namespace ddp
