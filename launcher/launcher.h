// Entry of the program behind main(): parses the command line and runs one subcommand.
#pragma once

namespace ddp {

/// Returns the process's exit code; never throws.
int run_launcher(int argc, char** argv);

}  // namespace ddp
