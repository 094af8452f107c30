#include <algorithm>
#include <cstring>

#include "core/backend/cpu/parallel.h"
#include "core/graph/op_definition.h"
#include "core/ops/augment/augmentation.h"

namespace ddp {
namespace {

/// Scale and shift of each byte of an image row, so that a row of any number of channels is one
/// vectorised loop.
template <class T>
struct RowNormalizer {
  std::vector<T> scale, shift;

  RowNormalizer(std::int64_t width, const Attributes& attributes) {
    const std::vector<PixelScale> channels = pixel_scales(attributes);
    for (std::int64_t w = 0; w < width; ++w)
      for (const PixelScale& channel : channels) {
        scale.push_back(static_cast<T>(channel.scale));
        shift.push_back(static_cast<T>(channel.shift));
      }
  }
  void operator()(const std::uint8_t* __restrict row, T* __restrict y) const {
    for (std::size_t i = 0; i < scale.size(); ++i)
      y[i] = static_cast<T>(row[i]) * scale[i] + shift[i];
  }
};

template <class T>
Kernel normalize_images(const OpSignature& s, int threads) {
  const Shape& shape = s.inputs[0].shape;
  return {.run = [rows = shape[0] * shape[1], row_bytes = shape[2] * shape[3], threads,
                  normalizer = RowNormalizer<T>(shape[2], s.attributes)](const KernelArgs& args) {
    const std::uint8_t* pixels = args.inputs[0].as<std::uint8_t>();
    T* y = args.outputs[0].as<T>();
    cpu::parallel_for(threads, rows, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t row = begin; row < end; ++row)
        normalizer(pixels + row * row_bytes, y + row * row_bytes);
    });
  }};
}

/// Copies pixels in reverse order.
void mirror(const std::uint8_t* __restrict from, std::int64_t pixels, std::int64_t channels,
            std::uint8_t* __restrict to) {
  if (channels == 1) {
    std::reverse_copy(from, from + pixels, to);
    return;
  }
  for (std::int64_t p = 0; p < pixels; ++p)
    for (std::int64_t c = 0; c < channels; ++c)
      to[(pixels - 1 - p) * channels + c] = from[p * channels + c];
}

/// Row h of the changed image, as bytes. `image` is [height, width, channels].
void changed_row(const std::uint8_t* image, const Shape& shape, const Change& change,
                 std::int64_t h, std::uint8_t* row) {
  const std::int64_t height = shape[1], width = shape[2], channels = shape[3];
  const auto bytes = [channels](std::int64_t columns) {
    return static_cast<std::size_t>(columns * channels);
  };
  const std::int64_t source_row = h + change.down;
  const std::int64_t first = std::clamp<std::int64_t>(-change.right, 0, width);
  const std::int64_t last = std::clamp<std::int64_t>(width - change.right, first, width);
  if (source_row < 0 || source_row >= height) {
    std::memset(row, 0, bytes(width));
    return;
  }
  const auto source = [&](std::int64_t w) {
    return image + (source_row * width + change.right + w) * channels;
  };
  if (!change.flip) {
    std::memset(row, 0, bytes(first));
    std::memcpy(row + first * channels, source(first), bytes(last - first));
    std::memset(row + last * channels, 0, bytes(width - last));
    return;
  }
  std::memset(row, 0, bytes(width - last));
  mirror(source(first), last - first, channels, row + (width - last) * channels);
  std::memset(row + (width - first) * channels, 0, bytes(first));
}

template <class T>
Kernel augment_images(const OpSignature& s, int threads) {
  const Shape& shape = s.inputs[0].shape;
  const std::int64_t row_bytes = shape[2] * shape[3];
  return {.run =
              [shape, row_bytes, threads, augmentation = augmentation(s.attributes),
               normalizer = RowNormalizer<T>(shape[2], s.attributes)](const KernelArgs& args) {
                const std::uint8_t* pixels = args.inputs[0].as<std::uint8_t>();
                const std::int64_t* sample_ids = args.inputs[1].as<std::int64_t>();
                T* y = args.outputs[0].as<T>();
                const std::int64_t height = shape[1];
                const std::uint64_t step = args.state->step;
                cpu::parallel_for(
                    threads, shape[0], [&](std::int64_t begin, std::int64_t end, int thread) {
                      auto* row = reinterpret_cast<std::uint8_t*>(args.workspace.data()) +
                                  thread * row_bytes;
                      for (std::int64_t n = begin; n < end; ++n) {
                        const Change change =
                            augmentation.draw(step, static_cast<std::uint64_t>(sample_ids[n]));
                        for (std::int64_t h = 0; h < height; ++h) {
                          changed_row(pixels + n * height * row_bytes, shape, change, h, row);
                          normalizer(row, y + (n * height + h) * row_bytes);
                        }
                      }
                    });
              },
          .workspace_bytes = static_cast<std::size_t>(threads * row_bytes)};
}

Kernel normalize_factory(const OpSignature& s, const KernelContext& context) {
  return s.outputs[0].dtype == DType::kF64 ? normalize_images<double>(s, context.threads)
                                           : normalize_images<float>(s, context.threads);
}

Kernel augment_factory(const OpSignature& s, const KernelContext& context) {
  return s.outputs[0].dtype == DType::kF64 ? augment_images<double>(s, context.threads)
                                           : augment_images<float>(s, context.threads);
}

DDP_REGISTER_CPU_KERNEL("normalize", normalize_factory);
DDP_REGISTER_CPU_KERNEL("augment", augment_factory);

}  // namespace
}  // namespace ddp
