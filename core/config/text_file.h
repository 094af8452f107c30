// Configuration files: TrainConfig in protobuf text format, read strictly. Every error opens with
// FILE:LINE:COL of what is wrong; a field may stand only once in a file.
#pragma once

#include <string>

#include "core/config/configuration.h"

namespace ddp {

/// Reads a configuration file. ConfigError if it cannot be read, and as parse_config().
Configuration read_config_file(const std::string& path);

/// Reads a configuration from `text`; `name` stands for the file in origins and errors. ConfigError
/// for bad syntax, an unknown field (with the nearest name), or a value that check_value() refuses.
Configuration parse_config(const std::string& text, const std::string& name);

}  // namespace ddp
