#include "core/telemetry/progress.h"

#include <fmt/format.h>

#include "core/base/text.h"

namespace ddp {

std::string progress_line(const Progress& progress) {
  const StepMetrics& m = progress.metrics;
  const std::string total = fmt::format("{}", progress.total_steps);
  return fmt::format(
      "step {:>{}}/{}  epoch {:.2f}  loss {:.4f}  lr {:.3g}  grad norm {:.3f}  "
      "{:.0f} samples/s ({:.0f} per rank)  "
      "step {:.1f} ms: data {:.1f}, compute {:.1f}, exposed comm {:.1f}, optimizer {:.1f}  "
      "memory {} of {}  ETA {}{}",
      m.step, total.size(), total, m.epoch, m.loss, m.lr, m.grad_norm, m.samples_per_s,
      m.samples_per_s / progress.ranks, progress.step_ms, m.data_ms, m.forward_ms + m.backward_ms,
      m.exposed_comm_ms, m.optimizer_ms, human_bytes(progress.allocated_bytes),
      human_bytes(progress.reserved_bytes), human_duration(progress.eta_seconds),
      m.skipped ? "  (update skipped)" : "");
}

std::string evaluation_text(const EvaluationMetrics& metrics) {
  return fmt::format("loss {:.4f}, top-1 {:.2f} %, top-5 {:.2f} %", metrics.loss,
                     100 * metrics.top1, 100 * metrics.top5);
}

std::string evaluation_line(std::int64_t step, const EvaluationMetrics& metrics,
                            std::string_view what) {
  return fmt::format("{} after step {}: {}", what, step, evaluation_text(metrics));
}

std::string two_column_table(const std::vector<std::pair<std::string, std::string>>& rows) {
  std::vector<std::vector<std::string>> cells;
  for (const auto& [name, value] : rows) cells.push_back({"  " + name, value});
  return align_columns(cells);
}

}  // namespace ddp
