#include "models/choose.h"

#include <memory>

#include "core/config/text_message.h"
#include "models/text.h"

namespace ddp::models {

ChosenModel model_from_text(const std::string& text, const std::string& name) {
  const auto model = std::make_shared<const TextModel>(text, name);
  return {.build =
              [model](Graph& graph, Value images, const ModelOptions& options) {
                return model->build(graph, images, options);
              },
          .input = model->input(),
          .text = text,
          .block_notes = model->block_notes()};
}

ChosenModel choose_model(const std::string& name) {
  if (name.ends_with(".pbtxt")) return model_from_text(read_text_file(name, "model file"), name);
  const Model& model = find_model(name);
  return {.build = model.build, .input = model.input, .text = "", .block_notes = {}};
}

}  // namespace ddp::models
