#include <limits>
#include <memory>

#include "core/ops/augment/augmentation.h"
#include "core/ops/row_grid.cuh"

namespace ddp {
namespace {

using namespace cuda;

struct Image {
  int height, width, channels;
};

/// Change of an image whose extents are ints: beyond them, all is out of view.
struct PixelChange {
  int down = 0, right = 0;
  bool flip = false;

  PixelChange() = default;
  __device__ PixelChange(const Change& change, const Image& image)
      : down(within(change.down, image.height)),
        right(within(change.right, image.width)),
        flip(change.flip) {}
  static __device__ int within(std::int64_t shift, int extent) {
    return shift < -extent ? -extent : shift > extent ? extent : static_cast<int>(shift);
  }
};

/// Pixel values of N elements of the changed image from element `at` on; 0 from outside.
template <int N>
__device__ Pack<std::uint8_t, N> changed_pixels(const Image& image, const PixelChange& change,
                                                int at, int c, const std::uint8_t* pixels) {
  int h = at / image.channels / image.width;
  int w = at / image.channels - h * image.width;
  Pack<std::uint8_t, N> result;
  for (int j = 0; j < N; ++j) {
    const int row = h + change.down;
    const int column = (change.flip ? image.width - 1 - w : w) + change.right;
    const bool inside = row >= 0 && row < image.height && column >= 0 && column < image.width;
    result.element[j] = inside ? pixels[(row * image.width + column) * image.channels + c] : 0;
    if (++c < image.channels) continue;
    c = 0;
    if (++w < image.width) continue;
    w = 0;
    ++h;
  }
  return result;
}

/// A row is an image of `packs` packs. `scales` has one (scale, shift) for each channel.
template <class T, int N, bool Augmented>
__global__ void input_kernel(Augmentation augmentation, Image image, std::int64_t samples,
                             std::int64_t packs, const float2* scales, const std::uint8_t* pixels,
                             const std::int64_t* sample_ids, const StepState* state, T* y) {
  for (std::int64_t n = first_row(); n < samples; n += row_stride()) {
    const std::uint8_t* from = pixels + n * packs * N;
    PixelChange change;
    if constexpr (Augmented)
      change = PixelChange(
          augmentation.draw(state->step, static_cast<std::uint64_t>(sample_ids[n])), image);
    for (std::int64_t pack = first_pack(); pack < packs; pack += pack_stride()) {
      const int at = static_cast<int>(pack) * N;
      int c = at % image.channels;
      Pack<std::uint8_t, N> bytes;
      if constexpr (Augmented)
        bytes = changed_pixels<N>(image, change, at, c, from);
      else
        bytes = load<std::uint8_t, N>(from + at);
      Pack<T, N> result;
      for (int j = 0; j < N; ++j) {
        const float2 channel = scales[c];
        result.element[j] =
            from_float<T>(static_cast<float>(bytes.element[j]) * channel.x + channel.y);
        if (++c == image.channels) c = 0;
      }
      store(y + n * packs * N + at, result);
    }
  }
}

/// The scales in device memory.
std::shared_ptr<const Buffer> upload(const std::vector<PixelScale>& scales, Device& gpu) {
  std::vector<float2> table;
  for (const PixelScale& s : scales)
    table.push_back({static_cast<float>(s.scale), static_cast<float>(s.shift)});
  const std::size_t bytes = table.size() * sizeof(float2);
  void* memory = nullptr;
  check(cudaMalloc(&memory, bytes), "scales of the network input");
  auto buffer = std::make_shared<const Buffer>(memory, bytes, [](void* p) { cudaFree(p); });
  check(
      cudaMemcpyAsync(memory, table.data(), bytes, cudaMemcpyHostToDevice, gpu.compute().handle()),
      "a copy to the GPU");
  gpu.compute().synchronize();
  return buffer;
}

template <class T, int N, bool Augmented>
Kernel network_input(const OpSignature& s, const KernelContext& context) {
  const Shape& shape = s.inputs[0].shape;
  const std::int64_t samples = shape[0], elements = s.inputs[0].elements() / samples;
  DDP_CHECK(elements <= std::numeric_limits<int>::max(), "an image has {} elements", elements);
  constexpr std::int64_t kPacksPerThread = Augmented ? 4 : 1;  // that share a draw
  const RowGrid launch = row_grid(samples, elements / N, kPacksPerThread);
  const Image image{static_cast<int>(shape[1]), static_cast<int>(shape[2]),
                    static_cast<int>(shape[3])};
  Augmentation drawn{};
  if constexpr (Augmented) drawn = augmentation(s.attributes);
  const auto scales = upload(pixel_scales(s.attributes), *context.gpu);
  return {.run = [=](const KernelArgs& args) {
    const std::int64_t* sample_ids = nullptr;
    if constexpr (Augmented) sample_ids = args.inputs[1].as<std::int64_t>();
    input_kernel<T, N, Augmented><<<launch.grid, launch.block, 0, stream_of(args)>>>(
        drawn, image, samples, elements / N, reinterpret_cast<const float2*>(scales->data()),
        args.inputs[0].as<std::uint8_t>(), sample_ids, args.state, args.outputs[0].as<T>());
    check_launch(Augmented ? "augment" : "normalize");
  }};
}

template <bool Augmented>
Kernel input_factory(const OpSignature& s, const KernelContext& context) {
  const std::int64_t elements = s.inputs[0].elements() / s.inputs[0].shape[0];
  return with_packs(s.outputs[0].dtype, elements, [&](auto type, auto pack) {
    return network_input<decltype(type), decltype(pack)::value, Augmented>(s, context);
  });
}
constexpr KernelFactory normalize_factory = input_factory<false>;
constexpr KernelFactory augment_factory = input_factory<true>;
DDP_REGISTER_CUDA_KERNEL("normalize", normalize_factory);
DDP_REGISTER_CUDA_KERNEL("augment", augment_factory);

}  // namespace
}  // namespace ddp
