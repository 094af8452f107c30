// The updates that take the same step on each element: sgd, adamw, lion, ema.
#include "core/ops/optimizer/update_cuda.cuh"

#include "core/ops/optimizer/adamw_update.h"
#include "core/ops/optimizer/ema_update.h"
#include "core/ops/optimizer/lion_update.h"
#include "core/ops/optimizer/options.h"
#include "core/ops/optimizer/sgd_update.h"

namespace ddp {
namespace {

std::vector<OptimizerSegment> segments_of(const OpSignature& s) {
  return segments_from(s.attributes, s.inputs[0].elements());
}

Kernel sgd_factory(const OpSignature& s, const KernelContext& context) {
  return cuda::update_kernel<SgdStep>(s, context, sgd_options(s.attributes), segments_of(s));
}
Kernel adamw_factory(const OpSignature& s, const KernelContext& context) {
  return cuda::update_kernel<AdamWStep>(s, context, adamw_options(s.attributes), segments_of(s));
}
Kernel lion_factory(const OpSignature& s, const KernelContext& context) {
  return cuda::update_kernel<LionStep>(s, context, lion_options(s.attributes), segments_of(s));
}
Kernel ema_factory(const OpSignature& s, const KernelContext& context) {
  return cuda::update_kernel<EmaStep>(s, context, s.attributes.real("decay"),
                                      whole_slab(s.inputs[0].elements()));
}
DDP_REGISTER_CUDA_KERNEL("sgd", sgd_factory);
DDP_REGISTER_CUDA_KERNEL("adamw", adamw_factory);
DDP_REGISTER_CUDA_KERNEL("lion", lion_factory);
DDP_REGISTER_CUDA_KERNEL("ema", ema_factory);

}  // namespace
}  // namespace ddp
