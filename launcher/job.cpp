#include "launcher/job.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "comm/mpi/mpi_world.h"
#include "core/config/difference.h"
#include "launcher/print.h"

namespace ddp {
namespace {

// A rank that fails alone leaves after this time at the latest; rank 0 ends the job as soon as it
// has said why.
constexpr std::chrono::seconds kGrace{5};

/// "rank 1 (host, device): " in front of a failure that is one rank's.
std::string attribution(const Job& job, int rank) {
  if (rank == kAllRanks || job.world->size() == 1) return "";
  if (job.places.empty()) return fmt::format("rank {}: ", rank);
  const RankPlace& place = job.places[static_cast<std::size_t>(rank)];
  return fmt::format("rank {} ({}, {}): ", rank, place.host, place.device);
}

void write_report(const Job& job, const Failure& failure) {
  const int rank = failure.rank == kAllRanks ? 0 : failure.rank;
  FailureReport report{.rank = rank,
                       .host = job.world->host_name(),
                       .device = "",
                       .step = job.step,
                       .phase = job.phase,
                       .cause = failure.sentence,
                       .advice = "",
                       .exit = failure.code};
  if (!job.places.empty()) {
    report.host = job.places[static_cast<std::size_t>(rank)].host;
    report.device = job.places[static_cast<std::size_t>(rank)].device;
  }
  try {
    write_failure_report(job.directory->failure(), report);
  } catch (const Error& error) {
    job.log->warn("{}", error.what());
  }
}

/// The last line on stdout. StorageError when stdout does not take it.
void print_summary(Job& job, ExitCode code) {
  if (job.world->rank() != 0 || job.stdout_is_taken) return;
  job.summary.exit = code;
  if (job.directory) job.summary.run_dir = job.directory->root.string();
  print(summary_json(job.summary) + "\n");
}

/// Collective. The end of a job that went well on all ranks.
int finish(Job& job, ExitCode code) {
  agree(*job.world, [&] { print_summary(job, code); });
  job.log->flush();
  return static_cast<int>(code);
}

int fail(Job& job, const Failure& failure) {
  job.log->error("{}{}", attribution(job, failure.rank), failure.sentence);
  if (job.world->rank() == 0 && job.directory) write_report(job, failure);
  try {
    print_summary(job, failure.code);
  } catch (const StorageError&) {
    // Why the job failed is said already, and no other exit code would say more.
  }
  job.log->flush();
  return static_cast<int>(failure.code);
}

/// The ranks are at different places, so MPI cannot be finalised: rank 0 ends all of them, the
/// others wait for that.
[[noreturn]] void leave_at_once(Job& job, int code) {
  if (job.world->size() == 1) _exit(code);
  if (job.world->rank() != 0) std::this_thread::sleep_for(kGrace);
  job.session.abort(static_cast<ExitCode>(code));
}

Failure own_failure(const Job& job, ExitCode code, const char* sentence) {
  const Failure failure{.rank = job.world->rank(), .code = code, .sentence = sentence};
  job.world->announce(failure);
  return failure;
}

}  // namespace

Job::Job(const ParsedCommand& parsed)
    : command(parsed), world(comm::make_mpi_world(session)), log(make_logger(world->rank())) {
  stop.on_report_request([log = log] {
    log->info("SIGUSR2: a report on demand is not there yet, so the signal is ignored");
  });
}

int run_job(const ParsedCommand& command, const std::function<ExitCode(Job&)>& body) {
  Job job(command);
  try {
    return finish(job, body(job));
  } catch (const AgreedFailure& error) {
    return fail(job, error.failure());
  } catch (const PeerFailed& error) {
    leave_at_once(job, fail(job, error.failure()));
  } catch (const Error& error) {
    leave_at_once(job, fail(job, own_failure(job, error.code(), error.what())));
  } catch (const std::bad_alloc&) {
    leave_at_once(job,
                  fail(job, own_failure(job, ExitCode::kMemory, "the host has no memory left")));
  } catch (const std::exception& error) {
    leave_at_once(job, fail(job, own_failure(job, ExitCode::kInternal, error.what())));
  }
}

void agree_on_command(Job& job) {
  agree(*job.world, [&] {
    if (!job.command.error.empty()) throw ConfigError("{}", job.command.error);
  });
  const std::vector<std::string> tasks = job.world->gather(job.command.task);
  const auto other =
      std::ranges::find_if(tasks, [&](const std::string& task) { return task != tasks[0]; });
  if (other != tasks.end())
    throw AgreedFailure(
        {.rank = kAllRanks,
         .code = ExitCode::kUsage,
         .sentence = fmt::format("the ranks were started with different commands: '{}' on rank 0, "
                                 "'{}' on rank {}; start all with the same command",
                                 tasks[0], *other, other - tasks.begin())});
  const std::vector<std::string> all =
      job.world->gather(job.command.configuration.values.SerializeAsString());
  if (const std::string differences = describe_differences(all); !differences.empty())
    throw AgreedFailure(
        {.rank = kAllRanks,
         .code = ExitCode::kUsage,
         .sentence =
             "the ranks were started with different configurations; start all with the same "
             "command and files:\n" +
             differences});
}

}  // namespace ddp
