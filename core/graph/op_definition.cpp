#include "core/graph/op_definition.h"

#include <map>

namespace ddp {
namespace {

// Function-local statics: registrars in other translation units may run before this one is
// initialised.
std::map<std::string_view, const OpDefinition*>& definitions() {
  static std::map<std::string_view, const OpDefinition*> map;
  return map;
}
std::map<std::pair<BackendKind, std::string_view>, KernelFactory>& factories() {
  static std::map<std::pair<BackendKind, std::string_view>, KernelFactory> map;
  return map;
}

}  // namespace

double bytes_touched(const OpSignature& signature) {
  double bytes = 0;
  for (const TensorType& type : signature.inputs) bytes += static_cast<double>(type.bytes());
  for (const TensorType& type : signature.outputs) bytes += static_cast<double>(type.bytes());
  return bytes;
}

void register_op(const OpDefinition& definition) {
  const bool added = definitions().emplace(definition.name, &definition).second;
  DDP_CHECK(added, "two ops are registered as '{}'", definition.name);
}

void register_kernel(BackendKind backend, std::string_view op, KernelFactory factory) {
  const bool added = factories().emplace(std::pair{backend, op}, factory).second;
  DDP_CHECK(added, "two kernels are registered for '{}'", op);
}

const OpDefinition& op_definition(std::string_view name) {
  const auto found = definitions().find(name);
  DDP_CHECK(found != definitions().end(), "no op is registered as '{}'", name);
  return *found->second;
}

KernelFactory kernel_factory(BackendKind backend, std::string_view op) {
  const auto found = factories().find(std::pair{backend, op});
  DDP_CHECK(found != factories().end(), "op '{}' has no kernel for the {} backend", op,
            backend == BackendKind::kCpu ? "CPU" : "CUDA");
  return found->second;
}

std::vector<std::string_view> registered_ops() {
  std::vector<std::string_view> names;
  for (const auto& item : definitions()) names.push_back(item.first);
  return names;
}

}  // namespace ddp
