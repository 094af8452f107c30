// Runs one slab op (commit, finish_step, sgd, adamw) on vectors of float64: converts to the slab
// type, runs the CPU kernel, converts back. For tests of core/ops/optimizer.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "core/graph/op_definition.h"

namespace ddp::test {

using Slabs = std::vector<std::vector<double>>;

template <class T>
void run_slab_op_as(std::string_view op, const Attributes& attributes, const Slabs& inputs,
                    Slabs& outputs, StepState& state, int threads) {
  std::vector<std::vector<T>> memory;
  const auto view_of = [&memory](const std::vector<double>& slab) {
    memory.emplace_back(slab.begin(), slab.end());
    return TensorView{memory.back().data(),
                      {{static_cast<std::int64_t>(slab.size())}, dtype_of<T>}};
  };
  OpSignature signature{.inputs = {}, .outputs = {}, .attributes = attributes};
  std::vector<TensorView> input_views, output_views;
  for (const std::vector<double>& slab : inputs) {
    input_views.push_back(view_of(slab));
    signature.inputs.push_back(input_views.back().type);
  }
  for (const std::vector<double>& slab : outputs) {
    output_views.push_back(view_of(slab));
    signature.outputs.push_back(output_views.back().type);
  }
  const Kernel kernel = kernel_factory(BackendKind::kCpu, op)(signature, {.threads = threads});
  std::vector<double> workspace(kernel.workspace_bytes / sizeof(double) + 1);
  kernel.run(
      {.inputs = input_views,
       .outputs = output_views,
       .workspace = std::as_writable_bytes(std::span(workspace)).first(kernel.workspace_bytes),
       .state = &state});
  for (std::size_t i = 0; i < outputs.size(); ++i)
    outputs[i].assign(memory[inputs.size() + i].begin(), memory[inputs.size() + i].end());
}

inline void run_slab_op(std::string_view op, const Attributes& attributes, const Slabs& inputs,
                        Slabs& outputs, StepState& state, int threads = 1,
                        DType dtype = DType::kF64) {
  if (dtype == DType::kF64)
    run_slab_op_as<double>(op, attributes, inputs, outputs, state, threads);
  else
    run_slab_op_as<float>(op, attributes, inputs, outputs, state, threads);
}

}  // namespace ddp::test
