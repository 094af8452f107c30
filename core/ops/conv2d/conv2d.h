// Two-dimensional convolution of images [N, H, W, C] with filters [K, R, S, C] to [N, P, Q, K], in
// the sense of deep learning (cross-correlation). Models call the builder; the geometry is shared
// by the definitions and their kernels.
#pragma once

#include <string>

#include "core/graph/graph.h"

namespace ddp {

/// How filters start: uniform within 1/sqrt(C*R*S), PyTorch's default, or normal with variance
/// 2/(K*R*S) (He et al., ICCV 2015, by fan-out), torchvision's for ResNets.
enum class FilterInit : std::uint8_t { kUniformFanIn, kKaimingNormalFanOut };

struct Conv2d {
  std::string name;
  std::int64_t filters = 0;  ///< K
  std::int64_t kernel = 1;   ///< R = S
  std::int64_t stride = 1;
  std::int64_t pad = 0;  ///< zeros on each side of both axes
  FilterInit init = FilterInit::kUniformFanIn;
};

/// y[n,p,q,k] = Σ_{r,s,c} x[n, p*stride + r - pad, q*stride + s - pad, c] * w[k,r,s,c], without
/// bias. Its parameter "<name>.weight" is [K, R, S, C] in memory and [K, C, R, S] in files; it
/// starts as `init` says. Throws ConfigError when the image does not fit.
///
/// The op "conv2d" also takes a third input, a bias [K], and an integer attribute "relu": then it
/// computes max(y + bias, 0) (or y + bias), for graphs that were fused after differentiation.
Value conv2d(Value x, const Conv2d& layer);

/// All extents of one convolution.
struct Conv2dGeometry {
  std::int64_t n, h, w, c;  ///< images
  std::int64_t k, r, s;     ///< filters
  std::int64_t p, q;        ///< rows and columns of the result
  std::int64_t stride, pad;
};
Conv2dGeometry conv2d_geometry(const Shape& x, const Shape& filters, const Attributes& attributes);
/// The same from the signatures of "conv2d_backward_data" (filters, dy) and
/// "conv2d_backward_filter" (x, dy).
Conv2dGeometry conv2d_backward_data_geometry(const OpSignature& signature);
Conv2dGeometry conv2d_backward_filter_geometry(const OpSignature& signature);

}  // namespace ddp
