#!/usr/bin/env python3
"""Checks who may include whom: dependency_rule.py ROOT. Prints each violation as file:line and exits 1 if there is one.

core includes nothing of comm, models and launcher; comm and models never see each other; only launcher sees all. MPI
stays in comm and launcher. Headers of CUDA and its libraries stay in the few places that are left out of a build
without CUDA. Quoted includes start at the repository root, so that none of this can be passed by with "../".
"""
import pathlib
import re
import sys

MODULES = ("core", "comm", "models", "launcher")
MAY_INCLUDE = {
    "core": {"core"},
    "comm": {"core", "comm"},
    "models": {"core", "models"},
    "launcher": set(MODULES),
}
SOURCES = {".h", ".cpp", ".cu", ".cuh"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')

MPI_HEADER = re.compile(r"(mpi|mpi-ext)\.h$")
MPI_PLACES = re.compile(r"(comm|launcher)/")
CUDA_HEADER = re.compile(
    r"(cuda|cublas|cudnn|curand|cufft|cupti|nvtx|nvml|nvrtc|nccl|cooperative_groups|cub/|thrust/|device_launch_parameters)")
CUDA_PLACES = re.compile(r"core/ops/[^/]+/.*(\.cuh?|_cuda\.(cpp|h))$|core/backend/cuda/|comm/nccl/|comm/topology/measure")


def violation(file: str, quote: str, header: str) -> str | None:
    """What is wrong with `file` (path from the root) including `header`; None when it may."""
    module, target = file.split("/")[0], header.split("/")[0]
    if quote == '"' and target not in MODULES:
        return f'"{header}" does not start at the repository root; write "{module}/…"'
    if target in MODULES and target not in MAY_INCLUDE[module]:
        return f"{module} must not include {target} ({header})"
    if MPI_HEADER.match(header) and not MPI_PLACES.match(file):
        return f"MPI belongs in comm and launcher; use core/comm/world.h instead of <{header}>"
    if CUDA_HEADER.match(header) and not CUDA_PLACES.match(file):
        return (f"<{header}> belongs in CUDA files of core/ops rooms, core/backend/cuda, comm/nccl and "
                "comm/topology/measure*; everything else builds without CUDA")
    return None


def check(root: pathlib.Path) -> tuple[list[str], int]:
    """Violations below `root` and the number of files read."""
    found, files = [], 0
    for module in MODULES:
        for path in sorted((root / module).rglob("*")):
            if path.suffix not in SOURCES:
                continue
            files += 1
            name = path.relative_to(root).as_posix()
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                include = INCLUDE.match(line)
                wrong = violation(name, *include.groups()) if include else None
                if wrong:
                    found.append(f"{name}:{number}: {wrong}")
    return found, files


def main() -> int:
    found, files = check(pathlib.Path(sys.argv[1]))
    for line in found:
        print(line)
    print(f"{files} files read, {len(found)} includes against the dependency rule")
    return 1 if found or files == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
