#include "core/ops/cast/cast.h"

#include "core/graph/op_definition.h"
#include "core/ops/dtype_attribute.h"

namespace ddp {
namespace {

const OpDefinition kCast{
    .name = "cast",
    .infer =
        [](const OpSignature& s) {
          return std::vector<TensorType>{{s.inputs[0].shape, dtype_attribute(s.attributes)}};
        },
    .cost = [](const OpSignature& s) { return Cost{.flops = 0, .bytes = bytes_touched(s)}; },
};
DDP_REGISTER_OP(kCast);

}  // namespace

Attributes cast_attributes(DType to) { return {{"dtype", std::string(name_of(to))}}; }

}  // namespace ddp
