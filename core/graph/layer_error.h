// What Graph::add_op throws when an op cannot be computed from its inputs and attributes: a
// ConfigError whose sentence names op, kind and inputs. Builders that know what the user wrote
// (models as text) take the detail alone and say the rest in the user's names.
#pragma once

#include <string>

#include "core/base/error.h"

namespace ddp {

class LayerError : public ConfigError {
 public:
  /// `inputs` are names and shapes; `detail` is what is wrong, without the layer's name.
  LayerError(const std::string& name, std::string_view kind, std::string detail,
             const std::string& inputs)
      : ConfigError("layer '{}' ({}): {} (inputs: {})", name, kind, detail, inputs),
        detail_(std::move(detail)) {}
  const std::string& detail() const noexcept { return detail_; }

 private:
  std::string detail_;
};

}  // namespace ddp
