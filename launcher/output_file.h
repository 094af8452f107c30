// The result files of eval and predict: one rule for their names, and opened before anything is
// computed, so that a place that takes no file costs no evaluation.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "launcher/job.h"

namespace ddp {

/// Collective. The file that `flag` names, open on rank 0; null on the other ranks and when `path`
/// is empty. AgreedFailure: exit 2 unless the name ends with one of `endings`, exit 7 when the file
/// cannot be written.
std::unique_ptr<AtomicFile> open_output(Job& job, std::string_view option, const std::string& path,
                                        const std::vector<std::string>& endings);

}  // namespace ddp
