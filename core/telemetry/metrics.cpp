#include "core/telemetry/metrics.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cmath>
#include <iterator>
#include <utility>
#include <variant>

#include "core/base/text.h"
#include "core/telemetry/tensorboard.h"

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
    Column{"val_ema_loss", &StepMetrics::val_ema_loss},
    Column{"val_ema_top1", &StepMetrics::val_ema_top1},
    Column{"val_ema_top5", &StepMetrics::val_ema_top5},
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

std::optional<double> scalar(double value) { return value; }
std::optional<double> scalar(std::int64_t value) { return static_cast<double>(value); }
std::optional<double> scalar(bool value) { return value ? 1 : 0; }
std::optional<double> scalar(const std::optional<double>& value) { return value; }

/// "train/loss", "time/data_ms", "val/top1": TensorBoard shows what stands before the slash as a
/// group.
void set_tag(std::string& tag, std::string_view column) {
  constexpr std::string_view kValidation = "val_", kTime = "_ms";
  if (column.starts_with(kValidation))
    tag.assign("val/").append(column.substr(kValidation.size()));
  else
    tag.assign(column.ends_with(kTime) ? "time/" : "train/").append(column);
}

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
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

void set_metrics_event(tensorboard::Event& event, const StepMetrics& metrics) {
  event.set_step(metrics.step);
  tensorboard::Summary& summary = *event.mutable_summary();
  summary.clear_value();
  for (const Column& column : kColumns) {
    if (column.name == "step") continue;  // the event's own
    const auto value =
        std::visit([&](auto member) { return scalar(metrics.*member); }, column.field);
    if (!value) continue;
    tensorboard::Summary::Value& entry = *summary.add_value();
    set_tag(*entry.mutable_tag(), column.name);
    entry.set_simple_value(static_cast<float>(*value));
  }
}

MetricsWriter::MetricsWriter(const MetricsFiles& files, Logger logger)
    : jsonl_(files.jsonl),
      csv_(files.csv),
      events_(files.events),
      logger_(std::move(logger)),
      event_(std::make_unique<tensorboard::Event>()) {
  append(csv_, metrics_csv_header() + '\n');
  append(events_, event_file_opening(seconds_since_1970()));
}

MetricsWriter::~MetricsWriter() { finish(); }

void MetricsWriter::step(const StepMetrics& metrics) {
  finish();
  held_ = metrics;
  event_->set_wall_time(seconds_since_1970());
}

void MetricsWriter::evaluation(const EvaluationMetrics& metrics) {
  if (!held_) return;
  held_->val_loss = metrics.loss;
  held_->val_top1 = metrics.top1;
  held_->val_top5 = metrics.top5;
}

void MetricsWriter::average_evaluation(const EvaluationMetrics& metrics) {
  if (!held_) return;
  held_->val_ema_loss = metrics.loss;
  held_->val_ema_top1 = metrics.top1;
  held_->val_ema_top5 = metrics.top5;
}

void MetricsWriter::finish() noexcept {
  if (!held_) return;
  row_.clear();
  append_metrics_json(row_, *held_);
  append(jsonl_, row_);
  row_.clear();
  append_metrics_csv(row_, *held_);
  append(csv_, row_);
  set_metrics_event(*event_, *held_);
  row_.clear();
  append_event(row_, *event_);
  append(events_, row_);
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
