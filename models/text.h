// Models as text: a graph's forward layers printed in the format of model.proto, and such a text
// built into a graph again. What is printed reads back to the same layers, names and parameters.
#pragma once

#include <google/protobuf/text_format.h>

#include <map>
#include <string>
#include <vector>

#include "models/model.h"
#include "models/model.pb.h"

namespace ddp::models {

/// A text that was read, and what errors need of it.
class TextModel {
 public:
  /// Reads `text`; `name` stands for the file in errors. ConfigError with line and column for bad
  /// syntax, an unknown field, an input that cannot be, a layer without name or kind or with the
  /// name of another, a dropout with the instance of another.
  TextModel(std::string text, std::string name);

  /// Adds the layers to images [N, H, W, C]. ConfigError naming the layer's place in the text, the
  /// layer it reads and the shapes when they do not fit, for an unknown bottom (with the nearest),
  /// a layer that nobody reads, and a last layer that does not give [N, classes].
  Value build(Graph& graph, Value images, const ModelOptions& options) const;
  DefaultInput input() const;
  const std::string& text() const { return text_; }
  /// One sentence for each place where a block goes on that other layers have ended: it is another
  /// block there, so that recomputation saves less than the names promise.
  std::vector<std::string> block_notes() const;

 private:
  using Positions = google::protobuf::TextFormat::ParseInfoTree;
  void check_input(const Positions& positions) const;
  void check_layers() const;
  void number_dropouts(const Positions& positions);
  /// The values that layer `index` reads, by the names it reads them by.
  std::vector<Value> bottoms(int index, const std::vector<std::string>& names,
                             const std::map<std::string, Value>& built) const;
  Value build_layer(int index, const std::vector<Value>& bottoms,
                    const ModelOptions& options) const;
  std::string where(int layer) const;
  std::string where(google::protobuf::TextFormat::ParseLocation location) const;

  std::string text_, name_;
  ModelText model_;
  std::vector<std::string> positions_;   ///< "FILE:LINE:COL" by layer
  std::vector<std::int64_t> instances_;  ///< of dropout, by layer; 0 for other kinds
};

/// Number of layers that a layer of this kind reads.
std::size_t bottoms_of(const LayerText& layer);

/// The forward layers of a training graph whose backward ops have not been added yet, and the input
/// it was built for.
std::string print_model(const Graph& graph, const DefaultInput& input, const ModelOptions& options);

}  // namespace ddp::models
