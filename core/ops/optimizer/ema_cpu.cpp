#include "core/ops/optimizer/ema_update.h"
#include "core/ops/optimizer/update_cpu.h"

namespace ddp {
namespace {

Kernel ema_factory(const OpSignature& s, const KernelContext& context) {
  return update_kernel<EmaStep>(s, context, s.attributes.real("decay"),
                                whole_slab(s.inputs[0].elements()));
}
DDP_REGISTER_CPU_KERNEL("ema", ema_factory);

}  // namespace
}  // namespace ddp
