#include "core/telemetry/metrics.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <iterator>
#include <utility>
#include <variant>

#include "core/base/text.h"

namespace ddp {
namespace {

using Field = std::variant<std::int64_t StepMetrics::*, double StepMetrics::*,
                           std::optional<double> StepMetrics::*, bool StepMetrics::*>;
struct Column {
  std::string_view name;
  Field field;
};

constexpr std::array kColumns{
    Column{"step", &StepMetrics::step},
    Column{"epoch", &StepMetrics::epoch},
    Column{"loss", &StepMetrics::loss},
    Column{"lr", &StepMetrics::lr},
    Column{"grad_norm", &StepMetrics::grad_norm},
    Column{"samples_per_s", &StepMetrics::samples_per_s},
    Column{"data_ms", &StepMetrics::data_ms},
    Column{"forward_ms", &StepMetrics::forward_ms},
    Column{"backward_ms", &StepMetrics::backward_ms},
    Column{"exposed_comm_ms", &StepMetrics::exposed_comm_ms},
    Column{"optimizer_ms", &StepMetrics::optimizer_ms},
    Column{"val_loss", &StepMetrics::val_loss},
    Column{"val_top1", &StepMetrics::val_top1},
    Column{"val_top5", &StepMetrics::val_top5},
    Column{"skipped", &StepMetrics::skipped},
};

/// What a format writes for a value it has no number for.
struct Blanks {
  std::string_view unknown;
  std::optional<std::string_view> not_finite;  ///< nothing: nan, inf
};
constexpr Blanks kJson{.unknown = "null", .not_finite = "null"};
constexpr Blanks kCsv{.unknown = "", .not_finite = {}};

void append_value(std::string& out, double value, const Blanks& blanks) {
  if (std::isfinite(value) || !blanks.not_finite)
    append_number(out, value);
  else
    out += *blanks.not_finite;
}
void append_value(std::string& out, std::int64_t value, const Blanks&) {
  fmt::format_to(std::back_inserter(out), "{}", value);
}
void append_value(std::string& out, bool value, const Blanks&) { out += value ? '1' : '0'; }
void append_value(std::string& out, const std::optional<double>& value, const Blanks& blanks) {
  if (value)
    append_value(out, *value, blanks);
  else
    out += blanks.unknown;
}

void append_field(std::string& out, const StepMetrics& metrics, const Column& column,
                  const Blanks& blanks) {
  std::visit([&](auto member) { append_value(out, metrics.*member, blanks); }, column.field);
}

}  // namespace

std::string metrics_csv_header() {
  std::string header;
  for (const Column& column : kColumns) {
    if (!header.empty()) header += ',';
    header += column.name;
  }
  return header;
}

void append_metrics_csv(std::string& out, const StepMetrics& metrics) {
  for (const Column& column : kColumns) {
    append_field(out, metrics, column, kCsv);
    out += ',';
  }
  out.back() = '\n';
}

void append_metrics_json(std::string& out, const StepMetrics& metrics) {
  out += '{';
  for (const Column& column : kColumns) {
    fmt::format_to(std::back_inserter(out), "\"{}\":", column.name);
    append_field(out, metrics, column, kJson);
    out += ',';
  }
  out.back() = '}';
  out += '\n';
}

MetricsWriter::MetricsWriter(const std::filesystem::path& jsonl, const std::filesystem::path& csv,
                             Logger logger)
    : jsonl_(jsonl), csv_(csv), logger_(std::move(logger)) {
  append(csv_, metrics_csv_header() + '\n');
}

MetricsWriter::~MetricsWriter() { finish(); }

void MetricsWriter::step(const StepMetrics& metrics) {
  finish();
  held_ = metrics;
}

void MetricsWriter::evaluation(const EvaluationMetrics& metrics) {
  if (!held_) return;
  held_->val_loss = metrics.loss;
  held_->val_top1 = metrics.top1;
  held_->val_top5 = metrics.top5;
}

void MetricsWriter::finish() noexcept {
  if (!held_) return;
  row_.clear();
  append_metrics_json(row_, *held_);
  append(jsonl_, row_);
  row_.clear();
  append_metrics_csv(row_, *held_);
  append(csv_, row_);
  held_.reset();
}

void MetricsWriter::append(AppendFile& file, std::string_view row) noexcept {
  if (failed_) return;
  const int error = file.append(row);
  if (error == 0) return;
  failed_ = true;
  logger_->warn("no more metrics are written, training goes on: cannot write '{}': {}",
                file.path().string(), storage_reason(error));
}

}  // namespace ddp
