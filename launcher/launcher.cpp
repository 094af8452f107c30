#include "launcher/launcher.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "core/base/nearest.h"
#include "core/base/version.h"
#include "core/config/flags.h"
#include "launcher/commands.h"
#include "launcher/print.h"
#include "models/model.h"

namespace ddp {
namespace {

// What scoring depends on; model, classes, normalisation and precision are the weight file's.
const std::vector<std::string> kEvalFields{"data",   "limit_val",      "synthetic_val",
                                           "seed",   "loader_threads", "prefetch",
                                           "device", "threads",        "keep_binding"};
const std::vector<std::string> kPredictFields{
    "data",           "limit_train", "limit_val", "synthetic_train", "synthetic_val", "seed",
    "loader_threads", "prefetch",    "device",    "threads",         "keep_binding"};

std::string about() {
  std::string text =
      "ddptrain: distributed data-parallel training.\n"
      "  mpirun -np 2 ddptrain                  the default job: a small convolutional net on "
      "Fashion-MNIST\n"
      "  mpirun -np 2 ddptrain train --help     all flags\n"
      "Without a command it trains.\n\nModels:\n";
  for (const models::Model* model : models::all_models())
    text += fmt::format("  {:<10} {}\n", model->name, model->description);
  return text;
}

/// A whole number in [least, most]; refused as check_value() refuses a field.
CLI::Validator number_in(int least, int most = std::numeric_limits<int>::max()) {
  const auto check = [=](const std::string& text) -> std::string {
    int number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc::result_out_of_range)
      return text + " is out of the range of numbers this flag can hold";
    if (error != std::errc() || end != text.data() + text.size())
      return fmt::format("\"{}\" is not a whole number", text);
    if (number < least) return fmt::format("{} is below {}", number, least);
    return number > most ? fmt::format("{} is above {}", number, most) : "";
  };
  return {check, ""};
}

CLI::Validator one_of(std::vector<std::string> allowed) {
  const auto check = [allowed](const std::string& text) {
    return std::ranges::count(allowed, text) > 0 ? "" : not_one_of(text, allowed);
  };
  return {check, ""};
}

/// The command line as CLI11 sees it, and where its results go.
struct CommandLine {
  CLI::App app{about(), "ddptrain"};
  CLI::App* train;
  CLI::App* eval;
  CLI::App* predict;
  CLI::App* plan;
  CLI::App* data;
  CLI::App* data_check;
  CLI::App* data_stats;
  CLI::App* config;
  bool dry_run = false;
  std::string print_config;
  ScoringRequest scoring;
  std::string split = "val";
  int ranks = 0;
  bool dump_model = false;
  std::string json;
  DataRequest data_request;

  CommandLine() {
    app.set_version_flag("--version",
                         fmt::format("ddptrain {} ({}, {})", version(), commit(), compiler()));
    // A word that is no command is then reported as such, with the nearest one.
    app.require_subcommand(0, 1);
    train = app.add_subcommand("train", "train a model (the default)");
    add_config_flags(*train);
    train->add_flag("--dry-run", dry_run,
                    "set everything up, say what would be done, and do no step");
    add_print_config(*train);
    eval = app.add_subcommand("eval", "score a weight file on the validation data");
    add_config_flags(*eval, kEvalFields);
    add_weights(*eval);
    eval->add_flag("--per-class", scoring.per_class,
                   "print samples, recall, precision and the most common confusion of each class");
    eval->add_option("--confusion", scoring.confusion,
                     "write the confusion matrix to this file, a row for each label: CSV, or JSON "
                     "if it ends with .json");
    predict = app.add_subcommand("predict", "write the predicted class of each sample");
    add_config_flags(*predict, kPredictFields);
    add_weights(*predict);
    predict->add_option("--split", split, "the samples to predict (val or train; default val)")
        ->check(one_of({"val", "train"}));
    predict->add_option("--output", scoring.output,
                        "write to this file, which ends with .csv or .jsonl (unset: CSV on stdout, "
                        "with no summary behind it)");
    predict
        ->add_option("--top", scoring.top,
                     "write so many classes of each sample, the most probable first (default 1)")
        ->check(number_in(1));
    plan = app.add_subcommand(
        "plan",
        "print the step plan: steps, memory, FLOPs, buckets, hashes; needs no GPU and no data");
    add_config_flags(*plan);
    plan->add_option("--ranks", ranks,
                     "number of ranks to plan for (unset: those it runs under, at least 2)")
        ->check(number_in(1));
    plan->add_option("--json", json, "write the plan to this file as JSON as well");
    plan->add_flag("--dump-model", dump_model,
                   "print the model as text, for --model FILE.pbtxt, and nothing else");
    data = app.add_subcommand("data", "look into a data set: check, stats");
    data->require_subcommand(0, 1);
    data_check = data->add_subcommand(
        "check", "list every defect of a data set's files at once; exit 3 if there is one");
    data_stats = data->add_subcommand(
        "stats", "print classes, brightness and repeated images of a data set");
    add_data_options(*data_check);
    add_data_options(*data_stats);
    data_stats->add_option("--json", data_request.json,
                           "write the figures to this file as JSON as well");
    config =
        app.add_subcommand("config", "print the configuration and where each value comes from");
    add_config_flags(*config);
    add_print_config(*config);
  }

  void add_weights(CLI::App& command) {
    command
        .add_option("--weights", scoring.weights,
                    "safetensors file of a run: RUN/weights/best.safetensors")
        ->required();
    for (const char* flag :
         {"--model", "--stem", "--classes", "--precision", "--synthetic-image"}) {
      // Without a group an option is not listed, and has no name in CLI11's own errors.
      const auto refuse = [flag](const std::string&) -> std::string {
        throw ConfigError("{}: comes from the weight file; leave this flag out", flag);
      };
      command.add_option(flag)->check(CLI::Validator(refuse, ""))->group("");
    }
  }

  /// What the ranks must do alike, beside the configuration.
  std::string task() const {
    std::string text = *predict ? "predict" : *eval ? "eval" : "train";
    if (dry_run) text += " --dry-run";
    if (!scoring.weights.empty()) text += " --weights " + scoring.weights;
    if (scoring.per_class) text += " --per-class";
    if (!scoring.confusion.empty()) text += " --confusion " + scoring.confusion;
    if (split != "val") text += " --split " + split;
    if (!scoring.output.empty()) text += " --output " + scoring.output;
    if (scoring.top != 1) text += fmt::format(" --top {}", scoring.top);
    return text;
  }

  void add_data_options(CLI::App& command) {
    command
        .add_option("DIR", data_request.data,
                    "directory with MNIST idx or CIFAR binary files, or the name of a data set")
        ->required();
    command
        .add_option("--classes", data_request.classes,
                    "number of classes (unset: of the set, or one more than the largest label)")
        ->check(number_in(2, 256));
  }

  void add_print_config(CLI::App& command) {
    command
        .add_option("--print-config", print_config,
                    "print each value and where it came from, and exit: full or diff")
        ->expected(0, 1)
        ->default_str("full")
        ->check(one_of({"full", "diff"}));
  }
};

/// Without a command, ddptrain trains.
std::vector<std::string> with_command(std::vector<std::string> arguments) {
  const bool about_itself =
      !arguments.empty() &&
      (arguments[0] == "--help" || arguments[0] == "-h" || arguments[0] == "--version");
  if (arguments.empty() || (arguments[0].starts_with("-") && !about_itself))
    arguments.insert(arguments.begin(), "train");
  return arguments;
}

/// Commands that no job of ranks is needed for, and that report their own bad command lines.
bool runs_alone(const std::string& command) {
  return command == "plan" || command == "data" || command == "config";
}

/// Commands that are about a run to come; the others take no notice of its settings.
bool reads_default_file(const std::string& command) {
  return command == "train" || command == "plan" || command == "config";
}

/// For commands that are not a job of all ranks: rank 0 does it, once. Ranks that were started
/// together still agree that all do the same, since some may wait for the others otherwise.
int run_alone(const ParsedCommand& parsed, const std::function<ExitCode()>& body) {
  if (comm::MpiSession::launched_size() > 1)
    return run_job(parsed, [&](Job& job) {
      job.stdout_is_taken = true;
      agree_on_command(job);
      auto code = static_cast<std::int64_t>(ExitCode::kFinished);
      agree(*job.world, [&] {
        if (job.world->rank() == 0) code = static_cast<std::int64_t>(body());
      });
      job.world->sum({&code, 1});  // that of rank 0: the others have 0
      return static_cast<ExitCode>(code);
    });
  try {
    if (!parsed.error.empty()) throw ConfigError("{}", parsed.error);
    return static_cast<int>(body());
  } catch (const Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return static_cast<int>(error.code());
  }
}

int run_command(const CommandLine& line, ParsedCommand& parsed) {
  if (*line.plan)
    return run_alone(parsed, [&] {
      return plan_command({.configuration = parsed.configuration,
                           .ranks = line.ranks == 0 ? std::nullopt : std::optional(line.ranks),
                           .json = line.json,
                           .dump_model = line.dump_model});
    });
  if (*line.data)
    return run_alone(parsed, [&] {
      if (*line.data_check) return data_check_command(line.data_request);
      if (*line.data_stats) return data_stats_command(line.data_request);
      throw ConfigError("data: say what to do, check or stats; --help lists both");
    });
  if (*line.config || !line.print_config.empty())
    return run_alone(parsed, [&] {
      return config_command(parsed.configuration,
                            line.print_config == "diff" ? PrintStyle::kDiff : PrintStyle::kFull);
    });
  return run_job(parsed, *line.predict ? predict_command
                         : *line.eval  ? eval_command
                                       : train_command);
}

}  // namespace

int run_launcher(int argc, char** argv) try {
  CommandLine line;
  ParsedCommand parsed;
  parsed.command_line.assign(argv, argv + argc);
  const std::vector<std::string> arguments = with_command({argv + 1, argv + argc});
  const std::string as_typed = fmt::format("{}", fmt::join(arguments, " "));
  try {
    parse_command_line(line.app, arguments);
    const CLI::App& command = *line.app.get_subcommands().front();
    parsed.configuration = read_configuration(
        command, reads_default_file(command.get_name()) ? kDefaultConfigFile : "");
    parsed.scoring = line.scoring;
    parsed.scoring.split = line.split == "train" ? Split::kTrain : Split::kValidation;
    parsed.task = runs_alone(arguments[0]) || !line.print_config.empty() ? as_typed : line.task();
    parsed.dry_run = line.dry_run;
  } catch (const CLI::Success& success) {
    parsed.task = as_typed;
    return run_alone(parsed, [&] {
      std::ostringstream text;
      line.app.exit(success, text, text);
      print(text.str());
      return ExitCode::kFinished;
    });
  } catch (const ConfigError& error) {
    // Told to all ranks by the job, so that none of them waits for the others.
    parsed.error = error.what();
    if (runs_alone(arguments[0])) return run_alone(parsed, [] { return ExitCode::kUsage; });
    return run_job(parsed, train_command);
  }
  return run_command(line, parsed);
} catch (const std::exception& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return static_cast<int>(ExitCode::kInternal);
}

}  // namespace ddp
