// The GPU that a test program runs on. Its main function makes the backend once; tests ask for it
// here.
#pragma once

#include "core/backend/cuda_backend.h"

namespace ddp::test {

/// Without TF32, deterministic. There is one while tests run.
Backend& gpu();

}  // namespace ddp::test
