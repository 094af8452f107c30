#include "tests/gpu/gpu.h"

#include <cstdio>
#include <cstdlib>

#include <gtest/gtest.h>

#include "tests/support/gradcheck.h"

namespace ddp::test {
namespace {

constexpr int kSkipped = 77;  // what ctest shows as skipped
std::unique_ptr<Backend> backend;

}  // namespace

Backend& gpu() { return *backend; }

}  // namespace ddp::test

int main(int argc, char** argv) {
  using namespace ddp;
  ::testing::InitGoogleTest(&argc, argv);
  const char* required = std::getenv("DDP_REQUIRE_GPUS");
  const std::vector<cuda::GpuInfo> gpus = cuda::visible_gpus();
  if (gpus.empty()) {
    std::fprintf(stderr, "no GPU: %s\n", cuda::why_no_gpu().c_str());
    return required != nullptr ? 1 : test::kSkipped;
  }
  if (required != nullptr && gpus.size() < std::strtoul(required, nullptr, 10)) {
    std::fprintf(stderr, "DDP_REQUIRE_GPUS=%s, but there are %zu GPUs\n", required, gpus.size());
    return 1;
  }
  test::backend = cuda::make_backend({.deterministic = true});
  test::check_ops_on(test::backend.get());
  const int result = RUN_ALL_TESTS();
  test::backend.reset();
  return result;
}
