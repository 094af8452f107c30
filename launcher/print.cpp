#include "launcher/print.h"

#include <cerrno>
#include <cstdio>

#include "core/base/error.h"
#include "core/base/file.h"

namespace ddp {

void print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0)
    return;
  const int error = errno;
  std::clearerr(stdout);
  throw StorageError("stdout could not be written: {}", storage_reason(error));
}

}  // namespace ddp
