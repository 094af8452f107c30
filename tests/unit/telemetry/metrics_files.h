// Where tests of the metrics writer put its files.
#pragma once

#include "core/telemetry/metrics.h"
#include "tests/support/temporary_directory.h"

namespace ddp {

inline MetricsFiles files_in(const TemporaryDirectory& directory) {
  return {.jsonl = directory / "m.jsonl", .csv = directory / "m.csv", .events = directory / "m.ev"};
}

}  // namespace ddp
