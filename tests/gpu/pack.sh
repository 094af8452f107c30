#!/usr/bin/env bash
# Packs what tests/gpu/run_on_device.sh needs into .carry/gpu: for a GPU machine that cannot install or build anything.
# tests/gpu/pack.sh [BUILD_DIRECTORY], which holds a build with DDP_PORTABLE=ON, or for a like processor.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."

build=${1:-build}
pack=.carry/gpu
rm -rf "$pack"
mkdir -p "$pack/bin" "$pack/lib"
for program in bin/ddptrain tests/gpu_gradcheck tests/gpu_ops tests/gpu_train tests/gpu_nccl; do
  if [ -x "$build/$program" ]; then
    strip -o "$pack/bin/$(basename "$program")" "$build/$program"
  fi
done
# Small libraries whose versions differ between distributions; MPI, CUDA and its libraries are the other machine's.
ldd "$pack"/bin/* | awk '/=> \// {print $3}' | sort -u |
  grep -E '/lib(spdlog|fmt|protobuf|xxhash)\.so' | xargs -r -I{} cp -L {} "$pack/lib/"
du -sh "$pack" >&2
