#!/usr/bin/env bash
# Training speed of the default job on the CPU, 2 ranks of 1 thread: ddptrain and PyTorch take turns, so that a slow
# minute of the machine hits both. Writes bench/results/cpu-convnet-DATE.json and .md. Nothing else should run meanwhile:
# the table says how much of the machine other processes took.
#   bench/peers/run_cpu.sh [ROUNDS] [STEPS]     (5 rounds of 400 steps; PyTorch comes from PyPI into bench/peers/.venv)
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."

rounds=${1:-5}
steps=${2:-400}
ranks=2
layouts=(channels_first channels_last)

[ -x build/bin/ddptrain ] || { echo "run_cpu: build/bin/ddptrain is not there; run ./demo.sh first." >&2; exit 1; }
venv=bench/peers/.venv
if ! "$venv/bin/python" -c 'import torch' 2>/dev/null; then
  echo "run_cpu: installing PyTorch into $venv (several GB)." >&2
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet torch numpy
fi

export OMP_NUM_THREADS=1
if [ "$(id -u)" -eq 0 ]; then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
measurements=$scratch/measurements.jsonl

measure() { python3 bench/peers/measure.py "$@" | sed "s|$scratch|DIR|g" >>"$measurements"; }

# By default glibc gives PyTorch's large tensors back to the kernel after each step and takes them again, which costs it
# a fifth of its time.
keep_memory=(env MALLOC_MMAP_THRESHOLD_=1073741824 MALLOC_TRIM_THRESHOLD_=4294967296 MALLOC_TOP_PAD_=67108864)

for ((round = 1; round <= rounds; ++round)); do
  echo "run_cpu: round $round of $rounds" >&2
  measure ddptrain mpirun -np "$ranks" build/bin/ddptrain train --threads 1 --steps "$steps" --out "$scratch/run" --overwrite
  for layout in "${layouts[@]}"; do
    measure "pytorch $layout" "${keep_memory[@]}" "$venv/bin/torchrun" --standalone --nproc-per-node "$ranks" \
      bench/peers/pytorch_cpu_ddp.py --steps "$steps" --layout "$layout"
  done
done

python3 bench/peers/report.py "$measurements" "bench/results/cpu-convnet-$(date +%Y-%m-%d)"
