// The command line of TrainConfig: each field is a flag, and --config FILE reads files. Flags and
// files only override the defaults; nothing is checked against the job or the data here, that is
// resolve()'s part. The launcher calls these for each subcommand:
//
//   CLI::App app;
//   CLI::App* train = app.add_subcommand("train", "train a model");
//   add_config_flags(*train);
//   parse_command_line(app, {"train", "--micro-batch", "32"});   // ConfigError, or CLI::Success
//   Configuration asked = read_configuration(*train);            // after a --help or --version
//   ResolvedConfig run = resolve(asked, {.ranks = 2, .train_samples = 60000});
#pragma once

#include <CLI/App.hpp>
#include <span>
#include <string>
#include <vector>

#include "core/config/configuration.h"

namespace ddp {

inline constexpr const char* kDefaultConfigFile = "./ddptrain.pbtxt";

/// Adds --config and the flags of the fields named in `fields` (all, if empty) to a subcommand. A
/// bool takes --flag, --flag=false and --no-flag. The help lists every flag once, under its group.
void add_config_flags(CLI::App& app, std::span<const std::string> fields = {});

/// Parses `arguments` (without the program's name). Like CLI::App::parse, but errors are
/// ConfigError sentences, and an unknown flag or command comes with the nearest known name;
/// CLI::Success (help, version) passes through.
void parse_command_line(CLI::App& app, std::vector<std::string> arguments);

/// The configuration a parsed subcommand asks for: default < files in order < flags. Without
/// --config, `default_file` is read if it is there, and a note says so; empty: no such file.
/// ConfigError for a bad file, a bad value, or a flag given twice with different values.
Configuration read_configuration(const CLI::App& app,
                                 const std::string& default_file = kDefaultConfigFile);

}  // namespace ddp
