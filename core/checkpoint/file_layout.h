// Permutation of a parameter between its layout in memory (filters [K, R, S, C]) and in weight
// files ([K, C, R, S]). The layouts come from the op that owns the parameter; both directions are
// exact copies and inverse to each other.
#pragma once

#include <cstddef>
#include <span>

#include "core/graph/graph.h"

namespace ddp {

/// Copies one parameter from its memory layout to its file layout. Both spans hold
/// layout.view.elements() elements of `element_bytes` (4 or 8) and do not overlap; any alignment.
void permute_to_file(const FileLayout& layout, std::size_t element_bytes,
                     std::span<const std::byte> memory, std::span<std::byte> file);
/// The inverse of permute_to_file.
void permute_from_file(const FileLayout& layout, std::size_t element_bytes,
                       std::span<const std::byte> file, std::span<std::byte> memory);

}  // namespace ddp
