#!/usr/bin/env bash
# Training speed of the default job on the CPU, 2 ranks of 1 thread: ddptrain and PyTorch take turns, so that a slow
# minute of the machine hits both. Writes bench/results/cpu-convnet-DATE.json and .md.
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

# measure NAME COMMAND…: the command's last line, a JSON object with samples_per_s, with its name and command added.
measure() {
  local name=$1
  shift
  "$@" 2>"$scratch/stderr" | tail -n 1 |
    python3 -c 'import json, sys; print(json.dumps({"name": sys.argv[1], "command": " ".join(sys.argv[2:]),
                                                    **json.load(sys.stdin)}))' "$name" "${@//$scratch/DIR}" >>"$measurements" || {
    echo "run_cpu: $name failed:" >&2
    tail -n 20 "$scratch/stderr" >&2
    exit 1
  }
  tail -n 1 "$measurements" | python3 -c 'import json, sys; m = json.load(sys.stdin)
print(f"""{m["name"]}: {m["samples_per_s"]:.0f} samples/s""", file=sys.stderr)'
}

for ((round = 1; round <= rounds; ++round)); do
  echo "run_cpu: round $round of $rounds" >&2
  measure ddptrain mpirun -np "$ranks" build/bin/ddptrain train --threads 1 --steps "$steps" --out "$scratch/run" --overwrite
  for layout in "${layouts[@]}"; do
    measure "pytorch $layout" "$venv/bin/torchrun" --standalone --nproc-per-node "$ranks" \
      bench/peers/pytorch_cpu_ddp.py --steps "$steps" --layout "$layout"
  done
done

python3 bench/peers/report.py "$measurements" "bench/results/cpu-convnet-$(date +%Y-%m-%d)"
