// A library to be preloaded into the ranks of a test: on rank 1 it flips a bit in the result of the
// first large all-reduce, as a broken link or memory would. The replicas then drift apart.
#include <cstdlib>
#include <cstring>

#include <mpi.h>

namespace {

constexpr int kLarge = 10000;  // elements; more than anything but gradients
MPI_Request* broken = nullptr;
unsigned char* result = nullptr;
bool flipped = false;

bool on_rank_one() {
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  return rank != nullptr && std::strcmp(rank, "1") == 0;
}

}  // namespace

extern "C" int MPI_Iallreduce(const void* from, void* to, int count, MPI_Datatype type, MPI_Op op,
                              MPI_Comm comm, MPI_Request* request) {
  if (on_rank_one() && !flipped && count >= kLarge) {
    broken = request;
    result = static_cast<unsigned char*>(to);
  }
  return PMPI_Iallreduce(from, to, count, type, op, comm, request);
}

extern "C" int MPI_Test(MPI_Request* request, int* done, MPI_Status* status) {
  const int code = PMPI_Test(request, done, status);
  if (request == broken && *done != 0) {
    constexpr int kHighMantissaByte = 2;  // of a little-endian float
    result[kHighMantissaByte] ^= 0x40;
    broken = nullptr;
    flipped = true;
  }
  return code;
}
