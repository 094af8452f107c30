// Where the threads of a rank may run. mpirun binds small jobs to one core a rank, which starves
// reading threads; a rank therefore widens its own mask, unless told not to, and shares the cores
// fairly with the other ranks of its host.
#pragma once

#include <string>

#include "core/comm/world.h"

namespace ddp {

struct ThreadPlacement {
  int cores = 1;    ///< in this rank's mask
  int sharing = 1;  ///< ranks of this host whose masks overlap with it
  int threads = 1;  ///< compute threads of this rank
};

/// Collective. Widens the mask to all cores the job may use unless `keep_binding`, and derives the
/// compute threads: `threads` if it is not 0, otherwise cores / ranks that share them, at least 1.
/// Call before other threads start.
ThreadPlacement place_threads(World& world, bool keep_binding, int threads);

}  // namespace ddp
