// Layers that training and evaluation graphs compute in different ways. Models call them with their
// options and need not know the difference.
#pragma once

#include "core/ops/batchnorm/batchnorm.h"
#include "core/ops/dropout/dropout.h"
#include "models/model.h"

namespace ddp::models {

/// Batch norm with the statistics of the micro-batch in training, the running ones in evaluation.
inline Value batch_norm(Value x, const BatchNorm& layer, const ModelOptions& options) {
  return options.training ? batchnorm(x, options.sample_weights, layer)
                          : batchnorm_inference(x, layer);
}

/// Dropout in training, with the model's seed; evaluation leaves it out.
inline Value drop(Value x, DropoutOptions layer, const ModelOptions& options) {
  if (!options.training) return x;
  layer.seed = options.seed;
  return dropout(x, options.sample_ids, layer);
}

}  // namespace ddp::models
