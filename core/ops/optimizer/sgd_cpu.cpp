#include "core/ops/optimizer/options.h"
#include "core/ops/optimizer/sgd_update.h"
#include "core/ops/optimizer/update_cpu.h"

namespace ddp {
namespace {

Kernel sgd_factory(const OpSignature& s, const KernelContext& context) {
  return update_kernel<SgdStep>(s, context, sgd_options(s.attributes),
                                segments_from(s.attributes, s.inputs[0].elements()));
}
DDP_REGISTER_CPU_KERNEL("sgd", sgd_factory);

}  // namespace
}  // namespace ddp
