#!/usr/bin/env bash
# Installs what is missing, builds ddptrain and trains the default job on 2 ranks: a small convolutional net on
# Fashion-MNIST. Arguments go to ddptrain: ./demo.sh --epochs 2
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")"

say() { echo "demo: $*" >&2; }

./docker/install.sh
cmake --preset release
cmake --build --preset release

# One rank per GPU; on the CPU two ranks show that there is more than one.
ranks=2
gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU' || true)
if [ "$gpus" -gt 0 ] && ldd build/bin/ddptrain | grep -q libnccl; then
  ranks=$gpus
fi
launch=(mpirun -np "$ranks")
if [ "$(id -u)" -eq 0 ]; then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  say "you are root, which mpirun refuses by default: OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 are set."
fi
if [ "$(nproc)" -lt "$ranks" ]; then
  launch+=(--oversubscribe)
  say "this machine has fewer than $ranks cores: mpirun gets --oversubscribe, and the ranks share a core."
fi

job=("$@")
if [ ! -d /usr/share/datasets/fashion-mnist ] && [[ " $* " != *" --data"* ]]; then
  job+=(--data synthetic)
  say "Fashion-MNIST is not here (Debian package dataset-fashion-mnist): training on synthetic images instead."
  say "With its idx files in a directory: ./demo.sh --data DIR"
fi

command=("${launch[@]}" build/bin/ddptrain "${job[@]}")
say "${command[*]}"
results=$(mktemp)
trap 'rm -f "$results"' EXIT
status=0
"${command[@]}" | tee "$results" || status=$?
if [ "$status" -ne 0 ]; then
  say "training ended with exit code $status; the messages above say why."
  exit "$status"
fi

# The last line is the summary of the run; a dry run has no directory.
run_dir=$(tail -n 1 "$results" | python3 -c 'import json, os, sys
directory = json.load(sys.stdin)["run_dir"]
print(os.path.abspath(directory) if directory else "")')
if [ -n "$run_dir" ]; then
  say "the results are in $run_dir: metrics.csv (one row a step), weights/final.safetensors, weights/best.safetensors, logs/."
fi
