#include "launcher/launcher.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "core/base/version.h"
#include "core/config/flags.h"
#include "launcher/commands.h"
#include "models/model.h"

namespace ddp {
namespace {

// What scoring depends on; model, classes, normalisation and precision are the weight file's.
const std::vector<std::string> kEvalFields{"data",   "limit_val",      "synthetic_val",
                                           "seed",   "loader_threads", "prefetch",
                                           "device", "threads",        "keep_binding"};

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

/// The command line as CLI11 sees it, and where its results go.
struct CommandLine {
  CLI::App app{about(), "ddptrain"};
  CLI::App* train;
  CLI::App* eval;
  CLI::App* plan;
  CLI::App* config;
  bool dry_run = false;
  std::string print_config;
  std::string weights;
  int ranks = 0;
  std::string json;

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
    eval->add_option("--weights", weights,
                     "safetensors file of a run: RUN/weights/best.safetensors")
        ->required();
    plan = app.add_subcommand(
        "plan",
        "print the step plan: steps, memory, FLOPs, buckets, hashes; needs no GPU and no data");
    add_config_flags(*plan);
    plan->add_option("--ranks", ranks,
                     "number of ranks to plan for (unset: those it runs under, at least 2)")
        ->check(CLI::PositiveNumber);
    plan->add_option("--json", json, "write the plan to this file as JSON as well");
    config =
        app.add_subcommand("config", "print the configuration and where each value comes from");
    add_config_flags(*config);
    add_print_config(*config);
  }

  void add_print_config(CLI::App& command) {
    command
        .add_option("--print-config", print_config,
                    "print each value and where it came from, and exit: full or diff")
        ->expected(0, 1)
        ->default_str("full")
        ->check(CLI::IsMember({"full", "diff"}));
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

bool speaks() { return comm::MpiSession::launched_rank().value_or(0) == 0; }

/// For commands that are not a job of all ranks: rank 0 does it, once.
int run_alone(const std::function<ExitCode()>& body) {
  if (!speaks()) return 0;
  try {
    return static_cast<int>(body());
  } catch (const Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return static_cast<int>(error.code());
  }
}

int run_command(const CommandLine& line, ParsedCommand& parsed) {
  if (*line.plan)
    return run_alone([&] {
      return plan_command({.configuration = parsed.configuration,
                           .ranks = line.ranks == 0 ? std::nullopt : std::optional(line.ranks),
                           .json = line.json});
    });
  if (*line.config || !line.print_config.empty())
    return run_alone([&] {
      return config_command(parsed.configuration,
                            line.print_config == "diff" ? PrintStyle::kDiff : PrintStyle::kFull);
    });
  return run_job(parsed, *line.eval ? eval_command : train_command);
}

}  // namespace

int run_launcher(int argc, char** argv) try {
  CommandLine line;
  ParsedCommand parsed;
  parsed.command_line.assign(argv, argv + argc);
  const std::vector<std::string> arguments = with_command({argv + 1, argv + argc});
  try {
    parse_command_line(line.app, arguments);
    const CLI::App& command = *line.app.get_subcommands().front();
    parsed.configuration = read_configuration(command, *line.eval ? "" : kDefaultConfigFile);
    parsed.weights = line.weights;
    parsed.dry_run = line.dry_run;
  } catch (const CLI::Success& success) {
    return speaks() ? line.app.exit(success) : 0;
  } catch (const ConfigError& error) {
    if (arguments[0] == "plan" || arguments[0] == "config")
      return run_alone([&]() -> ExitCode { throw error; });
    // Told to all ranks by the job, so that none of them waits for the others.
    parsed.error = error.what();
    return run_job(parsed, train_command);
  }
  return run_command(line, parsed);
} catch (const std::exception& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return static_cast<int>(ExitCode::kInternal);
}

}  // namespace ddp
