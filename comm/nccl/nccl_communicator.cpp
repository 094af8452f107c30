#include "comm/nccl/nccl_communicator.h"

#include <algorithm>
#include <cstring>

#include "comm/nccl_settings.h"
#include "comm/polling.h"
#include "comm/solo.h"

namespace ddp::comm {
namespace {

ncclDataType_t nccl_type(DType dtype, const std::string& label) {
  switch (dtype) {
    case DType::kF32: return ncclFloat32;
    case DType::kF64: return ncclFloat64;
    case DType::kBF16: return ncclBfloat16;
    case DType::kI64: return ncclInt64;
    default: break;
  }
  DDP_CHECK(false, "\"{}\" reduces {}, which this communicator does not", label, name_of(dtype));
  return ncclFloat32;
}

int gpu_of(Backend& backend) {
  DDP_CHECK(backend.kind() == BackendKind::kCuda, "NCCL needs the CUDA backend");
  return backend.kernel_context().gpu->ordinal();
}

/// NCCL connects what it needs at the first use, and that differs by size: small, medium, large.
constexpr std::size_t kTriedElements[] = {std::size_t{1} << 10, std::size_t{1} << 18,
                                          std::size_t{1} << 23};

}  // namespace

NcclCommunicator::NcclCommunicator(World& world, Backend& backend, const NcclOptions& options)
    : world_(world),
      backend_(backend),
      options_(options),
      exceptions_(std::uncaught_exceptions()),
      rendezvous_(world, std::chrono::seconds(options.init_timeout_seconds), options.places),
      connection_(std::make_shared<NcclConnection>(gpu_of(backend))) {}

NcclCommunicator::~NcclCommunicator() {
  try {
    // A peer that has failed does not take part in an end in order.
    if (!failure_ && std::uncaught_exceptions() == exceptions_ && !world_.announced()) {
      connection_->close();
      return;
    }
  } catch (const Error&) {
    // The world is gone as well.
  }
  connection_->abort();
}

void NcclCommunicator::connect() {
  rendezvous_.meet("the start of NCCL");
  agree(world_, [this] {
    if (options_.deterministic) request_deterministic_algorithm();
  });
  agree_on_version();
  ncclUniqueId id{};
  if (rank() == 0) check_nccl(ncclGetUniqueId(&id), "ncclGetUniqueId");
  const std::string bytes = world_.broadcast({id.internal, sizeof id.internal}, 0);
  std::memcpy(id.internal, bytes.data(), sizeof id.internal);
  world_.barrier();

  connection_->connect(rank(), size(), id);
  rendezvous_.reach("the connections of NCCL",
                    [this] { return connection_->settled("ncclCommInitRankConfig"); });
  const std::size_t most = *std::ranges::max_element(kTriedElements);
  const Buffer tried = backend_.allocate(most * sizeof(float));
  backend_.compute().synchronize();
  try_sums(reinterpret_cast<float*>(tried.data()), most);
}

void NcclCommunicator::agree_on_version() {
  const std::vector<std::string> versions = world_.gather(fmt::format("{}", nccl_version()));
  const auto other = std::ranges::find_if(
      versions, [&](const std::string& version) { return version != versions[0]; });
  if (other == versions.end()) return;
  throw AgreedFailure(
      {.rank = kAllRanks,
       .code = ExitCode::kCommunication,
       .sentence = fmt::format("the ranks have different versions of NCCL: {} on rank 0, {} on "
                               "rank {}; install the same everywhere",
                               versions[0], *other, other - versions.begin())});
}

void NcclCommunicator::try_sums(float* memory, std::size_t elements) {
  const cudaStream_t stream = connection_->stream().handle();
  const auto mine = static_cast<float>(rank() + 1);
  const float expected = static_cast<float>(size()) * static_cast<float>(size() + 1) / 2;
  cuda::CudaEvent done;
  for (const std::size_t tried : kTriedElements) {
    const std::size_t n = std::min(tried, elements);
    std::vector<float> values(n, mine);
    cuda::check(
        cudaMemcpyAsync(memory, values.data(), n * sizeof(float), cudaMemcpyHostToDevice, stream),
        "a copy to the GPU");
    enqueue({.label = "first sum"}, {memory, {{static_cast<std::int64_t>(n)}, DType::kF32}});
    bool enqueued = false;
    rendezvous_.reach("the first all-reduce of NCCL", [&] {
      if (!connection_->settled("ncclAllReduce")) return false;
      if (!std::exchange(enqueued, true)) connection_->stream().record(done);
      return done.done();
    });
    cuda::check(
        cudaMemcpyAsync(values.data(), memory, n * sizeof(float), cudaMemcpyDeviceToHost, stream),
        "a copy from the GPU");
    connection_->stream().synchronize();
    const auto wrong = std::ranges::find_if(values, [&](float value) { return value != expected; });
    if (wrong != values.end())
      throw CommunicationError(
          "the first all-reduce of NCCL is wrong: element {} of {} is {} instead of {}. GPUs that "
          "cannot reach each other's memory do this (ACS or IOMMU of the host are on); "
          "NCCL_P2P_DISABLE=1 in the environment goes around it",
          wrong - values.begin(), n, *wrong, expected);
    if (tried >= elements) break;
  }
}

void NcclCommunicator::post(const Collective& collective, TensorView data, Event& after,
                            Event& signal) {
  DDP_CHECK(size() > 1, "\"{}\" is posted in a world of one rank", collective.label);
  if (failure_ || connection_->aborted()) return;
  try {
    connection_->stream().wait_for(after);
    enqueue(collective, data);
    poll_until([&] { return connection_->settled(collective.label); }, [this] { interrupt(); });
    connection_->stream().record(signal);
  } catch (const InternalError&) {
    throw;
  } catch (const Error&) {
    fail();
  }
}

void NcclCommunicator::enqueue(const Collective& collective, TensorView data) {
  const cudaStream_t stream = connection_->stream().handle();
  const ncclComm_t handle = connection_->handle();
  if (collective.kind == CollectiveKind::kBroadcast) {
    connection_->begun(ncclBroadcast(data.data, data.data, data.bytes(), ncclUint8, collective.root,
                                     handle, stream),
                       "ncclBroadcast");
  } else {
    connection_->begun(
        ncclAllReduce(data.data, data.data, static_cast<std::size_t>(data.type.elements()),
                      nccl_type(data.type.dtype, collective.label), ncclSum, handle, stream),
        "ncclAllReduce");
  }
}

void NcclCommunicator::check() const {
  if (failure_) std::rethrow_exception(failure_);
  if (connection_->aborted())
    throw CommunicationError("rank {} has given up its communicator", rank());
  try {
    interrupt();
    connection_->settled("a collective of NCCL");
  } catch (const Error&) {
    fail();
    throw;
  }
}

void NcclCommunicator::fail() const {
  failure_ = std::current_exception();
  connection_->abort();
}

void NcclCommunicator::interrupt() const {
  if (auto failure = world_.announced()) throw PeerFailed(*std::move(failure));
}

Buffer NcclCommunicator::allocate_symmetric(std::size_t bytes) {
  // Windows begin and end at pages.
  constexpr std::size_t kPage = 4096;
  const std::size_t size = std::max(kPage, (bytes + kPage - 1) / kPage * kPage);
  const NcclConnection::Memory memory = connection_->allocate(size);
  Buffer buffer(memory.data, bytes,
                [connection = connection_, memory](void*) { connection->free(memory); });
  try {
    if (may_register(memory)) register_memory(memory, size);
  } catch (...) {
    connection_->abort();  // NCCL may be at work on the memory: it must not be freed
    throw;
  }
  cuda::check(cudaMemsetAsync(memory.data, 0, size, connection_->stream().handle()), "cudaMemset");
  connection_->stream().synchronize();
  return buffer;
}

bool NcclCommunicator::may_register(const NcclConnection::Memory& memory) {
  // Windows bring kernels that NCCL_ALGO does not choose.
  if (!options_.windows || options_.deterministic || !has_windows()) return false;
  std::int64_t willing = memory.of_nccl ? 1 : 0;
  world_.sum({&willing, 1});
  return willing == size();
}

void NcclCommunicator::register_memory(const NcclConnection::Memory& memory, std::size_t bytes) {
  connection_->register_window(memory.data, bytes);
  rendezvous_.reach("the registration of memory with NCCL",
                    [this] { return connection_->settled("ncclCommWindowRegister"); });
  // Other kernels serve registered memory; they are loaded at their first use.
  try_sums(static_cast<float*>(memory.data), bytes / sizeof(float));
}

std::unique_ptr<Communicator> make_nccl_communicator(World& world, Backend& backend,
                                                     const NcclOptions& options) {
  if (world.size() == 1) return std::make_unique<SoloCommunicator>();
  auto communicator = std::make_unique<NcclCommunicator>(world, backend, options);
  communicator->connect();
  return communicator;
}

Buffer allocate_symmetric(Communicator& communicator, Backend& backend, std::size_t bytes) {
  auto* nccl = dynamic_cast<NcclCommunicator*>(&communicator);
  return nccl != nullptr ? nccl->allocate_symmetric(bytes) : backend.allocate(bytes);
}

void abandon(Communicator& communicator) noexcept {
  if (auto* nccl = dynamic_cast<NcclCommunicator*>(&communicator)) nccl->abandon();
}

}  // namespace ddp::comm
