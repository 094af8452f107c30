// The model of a run: one that is registered, or one read from a text file. What the launcher
// builds from, whichever it is.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "models/model.h"

namespace ddp::models {

struct ChosenModel {
  std::function<Value(Graph& graph, Value images, const ModelOptions& options)> build;
  DefaultInput input;
  std::string text;  ///< of a model file; weight files keep it. Empty for registered models
  std::vector<std::string> block_notes = {};  ///< for who recomputes blocks: TextModel::block_notes
};

/// The model called `name`, or read from the file `name` when that ends in ".pbtxt". ConfigError
/// for an unknown name or a text that is no model.
ChosenModel choose_model(const std::string& name);
/// A model from its text; `name` stands for the file in errors.
ChosenModel model_from_text(const std::string& text, const std::string& name);

}  // namespace ddp::models
