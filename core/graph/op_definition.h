// OpDefinition: all that the program knows of one kind of op, kept in that op's room
// (core/ops/<op>/). Rooms register themselves; nothing outside a room names its ops in a switch.
// Kernels are registered beside the definition, one per backend, by a factory that runs while the
// plan is built: a step only calls what the factory returned.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/attributes.h"
#include "core/graph/step_state.h"
#include "core/tensor/tensor.h"

namespace ddp {

class GradientBuilder;
class OpRef;
class Stream;
namespace cuda {
class Device;
}

/// What an op works on: types of its tensors and its attributes. `outputs` is empty while `infer`
/// runs.
struct OpSignature {
  std::vector<TensorType> inputs;
  std::vector<TensorType> outputs;
  Attributes attributes;
};

/// Work of one run of an op. A multiply-add counts as two FLOPs; bytes are each input read once and
/// each output written once, the floor of what has to move.
struct Cost {
  double flops = 0;
  double bytes = 0;
};
/// Sum of the sizes of all inputs and outputs: the byte floor of an op that touches everything
/// once.
double bytes_touched(const OpSignature& signature);

/// Output `output` may be written over input `input` when that input dies at this op (sizes must be
/// equal).
struct InPlace {
  int input = 0;
  int output = 0;
};

struct OpDefinition {
  std::string_view name;
  /// Output types from input types and attributes; throws ConfigError naming the shapes when they
  /// do not fit.
  std::vector<TensorType> (*infer)(const OpSignature&) = nullptr;
  /// Emits the backward ops and gives each differentiable input its gradient; null: no input has a
  /// gradient.
  void (*gradient)(GradientBuilder&, const OpRef&) = nullptr;
  Cost (*cost)(const OpSignature&) = nullptr;
  std::vector<InPlace> in_place = {};
  /// Output 0 is the memory of input 0 under another shape; no kernel runs.
  bool is_view = false;
  /// The op reads or writes StepState, so it is kept although nobody uses its outputs.
  bool has_side_effect = false;
};

/// What a kernel gets when it runs. Views and workspace are resolved once, when the plan is bound
/// to memory.
struct KernelArgs {
  std::span<const TensorView> inputs;
  std::span<const TensorView> outputs;
  std::span<std::byte> workspace;  ///< as many bytes as the kernel asked for; contents undefined
  StepState* state = nullptr;      ///< in device memory
  Stream* stream = nullptr;        ///< where to enqueue; the CPU backend computes at once
};

/// A prepared kernel: everything decided (algorithm, blocking, attributes unpacked). `run` must not
/// allocate, and must write every element of every output.
struct Kernel {
  std::function<void(const KernelArgs&)> run;
  std::size_t workspace_bytes = 0;
  std::string algorithm = "direct";  ///< goes into kernel_hash and the printed plan
};

/// What a factory may know of the device it prepares a kernel for.
struct KernelContext {
  int threads = 1;  ///< of the CPU backend
  cuda::Device* gpu =
      nullptr;  ///< of the CUDA backend: library handles and facts, see core/backend/cuda/device.h
  bool tf32 = false;           ///< CUDA: matrix products of F32 may round their inputs to TF32
  bool deterministic = false;  ///< only algorithms that give the same bytes in every run
};
using KernelFactory = Kernel (*)(const OpSignature&, const KernelContext&);

enum class BackendKind { kCpu, kCuda };

/// Registry of definitions and kernels. Filled by static initialisers before main, read-only
/// afterwards.
void register_op(const OpDefinition& definition);
void register_kernel(BackendKind backend, std::string_view op, KernelFactory factory);
/// The definition called `name`; throws InternalError when there is none.
const OpDefinition& op_definition(std::string_view name);
/// The factory for `op` on `backend`; throws InternalError when there is none.
KernelFactory kernel_factory(BackendKind backend, std::string_view op);
std::vector<std::string_view> registered_ops();

struct OpRegistrar {
  explicit OpRegistrar(const OpDefinition& definition) { register_op(definition); }
};
struct KernelRegistrar {
  KernelRegistrar(BackendKind backend, std::string_view op, KernelFactory factory) {
    register_kernel(backend, op, factory);
  }
};

#define DDP_REGISTER_OP(definition) \
  static const ::ddp::OpRegistrar registrar_##definition(definition)
#define DDP_REGISTER_CUDA_KERNEL(op, factory)                                                 \
  static const ::ddp::KernelRegistrar cuda_registrar_##factory(::ddp::BackendKind::kCuda, op, \
                                                               factory)
#define DDP_REGISTER_CPU_KERNEL(op, factory) \
  static const ::ddp::KernelRegistrar cpu_registrar_##factory(::ddp::BackendKind::kCpu, op, factory)

}  // namespace ddp
