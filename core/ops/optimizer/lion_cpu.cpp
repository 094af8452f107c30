#include "core/ops/optimizer/lion_update.h"
#include "core/ops/optimizer/options.h"
#include "core/ops/optimizer/update_cpu.h"

namespace ddp {
namespace {

Kernel lion_factory(const OpSignature& s, const KernelContext& context) {
  return update_kernel<LionStep>(s, context, lion_options(s.attributes),
                                 segments_from(s.attributes, s.inputs[0].elements()));
}
DDP_REGISTER_CPU_KERNEL("lion", lion_factory);

}  // namespace
}  // namespace ddp
