#include "core/ops/optimizer/adamw_update.h"
#include "core/ops/optimizer/options.h"
#include "core/ops/optimizer/update_cpu.h"

namespace ddp {
namespace {

Kernel adamw_factory(const OpSignature& s, const KernelContext& context) {
  return update_kernel<AdamWStep>(s, context, adamw_options(s.attributes),
                                  segments_from(s.attributes, s.inputs[0].elements()));
}
DDP_REGISTER_CPU_KERNEL("adamw", adamw_factory);

}  // namespace
}  // namespace ddp
