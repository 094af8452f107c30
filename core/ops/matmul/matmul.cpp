// With A and B the matrices after transposition: dA = dC Bᵀ and dB = Aᵀ dC, or the transpose of
// that where the operand itself is stored transposed. Each is a matmul again.
#include "core/ops/matmul/matmul.h"

#include "core/graph/differentiate.h"
#include "core/ops/flag_attribute.h"
#include "core/ops/op_name.h"

namespace ddp {
namespace {

std::vector<TensorType> infer(const OpSignature& s) {
  const TensorType& a = s.inputs[0];
  const TensorType& b = s.inputs[1];
  if (a.dtype != b.dtype)
    throw ConfigError("the matrices are {} and {}, they need one type", name_of(a.dtype),
                      name_of(b.dtype));
  if (a.shape.rank() < 2 || a.shape.rank() != b.shape.rank())
    throw ConfigError("a matrix product needs two values [..., rows, columns] of equal rank");
  std::vector<std::int64_t> extents(a.shape.extents().begin(), a.shape.extents().end());
  for (int i = 0; i < a.shape.rank() - 2; ++i)
    if (a.shape[i] != b.shape[i])
      throw ConfigError("axis {} is {} in a and {} in b; outer axes have to be equal", i,
                        a.shape[i], b.shape[i]);
  const bool transpose_a = flag(s.attributes, "transpose_a");
  const bool transpose_b = flag(s.attributes, "transpose_b");
  const std::int64_t columns = a.shape[transpose_a ? -2 : -1];
  const std::int64_t rows = b.shape[transpose_b ? -1 : -2];
  if (columns != rows)
    throw ConfigError("a{} has {} columns, b{} has {} rows; they have to be equal",
                      transpose_a ? " transposed" : "", columns, transpose_b ? " transposed" : "",
                      rows);
  extents[extents.size() - 2] = a.shape[transpose_a ? -1 : -2];
  extents[extents.size() - 1] = b.shape[transpose_b ? -2 : -1];
  return {{Shape{extents}, a.dtype}};
}

Attributes transposes(bool a, bool b) {
  return {{"transpose_a", std::int64_t{a}}, {"transpose_b", std::int64_t{b}}};
}

void gradient(GradientBuilder& builder, const OpRef& op) {
  const Value a = op.input(0), b = op.input(1), dc = builder.grad(op.output(0));
  const bool ta = flag(op.attributes(), "transpose_a"), tb = flag(op.attributes(), "transpose_b");
  const auto product = [&](std::string_view suffix, Value left, bool transpose_left, Value right,
                           bool transpose_right) {
    return builder.emit("matmul", op, suffix, {left, right},
                        transposes(transpose_left, transpose_right));
  };
  if (builder.wants(a))
    builder.give(
        a, ta ? product("backward_a", b, tb, dc, true) : product("backward_a", dc, false, b, !tb));
  if (builder.wants(b))
    builder.give(
        b, tb ? product("backward_b", dc, true, a, ta) : product("backward_b", a, !ta, dc, false));
}

const OpDefinition kMatmul{
    .name = "matmul",
    .infer = infer,
    .gradient = gradient,
    .cost =
        [](const OpSignature& s) {
          const std::int64_t terms = s.inputs[0].shape[flag(s.attributes, "transpose_a") ? -2 : -1];
          return Cost{.flops = 2 * static_cast<double>(s.outputs[0].elements()) *
                               static_cast<double>(terms),
                      .bytes = bytes_touched(s)};
        },
};
DDP_REGISTER_OP(kMatmul);

}  // namespace

Value matmul(Value a, Value b, const MatmulOptions& options) {
  return a.graph->add("matmul", op_name(*a.graph, options.name, "matmul"), {a, b},
                      transposes(options.transpose_a, options.transpose_b));
}

}  // namespace ddp
