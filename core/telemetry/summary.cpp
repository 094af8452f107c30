#include "core/telemetry/summary.h"

#include "core/base/class_names.h"
#include "core/base/file.h"
#include "core/telemetry/json.h"

namespace ddp {

std::string_view status_of(ExitCode exit) {
  if (exit == ExitCode::kFinished) return "finished";
  return exit == ExitCode::kStopped ? "stopped" : "failed";
}

namespace {

OrderedJson per_class_json(const RunSummary& s) {
  OrderedJson classes = OrderedJson::array();
  for (int label = 0; label < std::ssize(s.per_class); ++label) {
    const ClassScore& score = s.per_class[static_cast<std::size_t>(label)];
    const std::string name = class_name(s.class_names, label);
    classes.push_back({{"class", label},
                       {"name", name.empty() ? OrderedJson(nullptr) : OrderedJson(name)},
                       {"samples", score.samples},
                       {"correct", score.correct},
                       {"recall", or_null(score.recall)},
                       {"precision", or_null(score.precision)},
                       {"confused_with", or_null(score.confused_with)},
                       {"confused", score.confused}});
  }
  return classes;
}

}  // namespace

std::string summary_json(const RunSummary& s) {
  OrderedJson json{
      {"status", status_of(s.exit)},
      {"exit", static_cast<int>(s.exit)},
      {"run_dir", or_null(s.run_dir)},
      {"steps", s.steps},
      {"epochs", s.epochs},
      {"final",
       {{"train_loss", or_null(s.final.train_loss)},
        {"val_loss", or_null(s.final.val_loss)},
        {"val_top1", or_null(s.final.val_top1)},
        {"val_top5", or_null(s.final.val_top5)},
        {"val_ema_loss", or_null(s.final.val_ema_loss)},
        {"val_ema_top1", or_null(s.final.val_ema_top1)},
        {"val_ema_top5", or_null(s.final.val_ema_top5)}}},
      {"best",
       {{"metric", or_null(s.best.metric)},
        {"value", or_null(s.best.value)},
        {"step", or_null(s.best.step)},
        {"path", or_null(s.best.path)}}},
      {"last_checkpoint", or_null(s.last_checkpoint)},
      {"samples_per_s", or_null(s.samples_per_s)},
      {"exposed_comm_ms", or_null(s.exposed_comm_ms)},
      {"peak_memory",
       {{"allocated_bytes", or_null(s.peak_memory.allocated_bytes)},
        {"reserved_bytes", or_null(s.peak_memory.reserved_bytes)}}},
      {"early_stopped", s.early_stopped},
      {"skipped_steps", s.skipped_steps},
  };
  if (!s.per_class.empty()) json["per_class"] = per_class_json(s);
  return to_text(json, -1);
}

std::string_view failure_advice(ExitCode exit) {
  switch (exit) {
    case ExitCode::kFinished: return "nothing to do";
    case ExitCode::kInternal:
      return "this is a defect of ddptrain: report it with this file and the logs beside it";
    case ExitCode::kUsage: return "correct the flag or the configuration file and start again";
    case ExitCode::kData: return "repair or replace the data file and start again";
    case ExitCode::kDevice: return "check the device and its driver, or train with --device cpu";
    case ExitCode::kMemory:
      return "use a smaller --micro-batch, with --accum to keep the global batch";
    case ExitCode::kCommunication:
      return "look at the logs of all ranks for the first one that failed, then start again";
    case ExitCode::kStorage:
      return "free space or name a writable directory with --out, then start again";
    case ExitCode::kDiverged: return "use a smaller --lr, a longer --warmup or --clip-norm";
    case ExitCode::kRegression: return "compare the figures above with those expected";
    case ExitCode::kStopped: return "nothing is wrong: the run was asked to stop, and its weights are saved";
  }
  return "";
}

std::string failure_json(const FailureReport& report) {
  const OrderedJson json{
      {"rank", report.rank},
      {"host", report.host},
      {"device", report.device},
      {"step", or_null(report.step)},
      {"phase", report.phase},
      {"cause", report.cause},
      {"advice", report.advice.empty() ? std::string(failure_advice(report.exit)) : report.advice},
      {"exit", static_cast<int>(report.exit)},
  };
  return to_text(json, 2) + '\n';
}

void write_failure_report(const std::filesystem::path& path, const FailureReport& report) {
  write_file_atomically(path, failure_json(report));
}

}  // namespace ddp
