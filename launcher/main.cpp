#include "launcher/launcher.h"

int main(int argc, char** argv) { return ddp::run_launcher(argc, argv); }
