#!/usr/bin/env bash
# Proves the CUDA backend on a machine with GPUs, stage by stage, each well under 8 minutes:
#   tests/gpu/run_on_device.sh STAGE …
#   build      configure and build here (not needed with .carry/gpu, see tests/gpu/pack.sh)
#   facts      the machine: GPUs, driver, libraries
#   ops        every op, forward and backward, against float64 on the CPU
#   train      whole runs: against the CPU, against themselves, in each precision
#   sanitize   ops under compute-sanitizer memcheck
#   nccl       the communicator over all GPUs
#   job        the default job and ResNet-50 through mpirun, one rank per GPU
# Prints one line per test program, and a table last. Exit 1 if anything failed.
set -uo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."

out=${OUT:-$(mktemp -d)}
bin=build/bin
tests=build/tests
if [ -d .carry/gpu/bin ]; then
  bin=.carry/gpu/bin
  tests=.carry/gpu/bin
  export LD_LIBRARY_PATH=$PWD/.carry/gpu/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
fi
# PyTorch brings newer versions of cuDNN and NCCL than some systems have: those that the program was built with.
if site=$(python3 -c 'import site; print(site.getsitepackages()[0])' 2>/dev/null) && [ -d "$site/nvidia/cudnn/lib" ]; then
  export LD_LIBRARY_PATH=$site/nvidia/cudnn/lib:$site/nvidia/nccl/lib:${LD_LIBRARY_PATH:-}
fi
if [ "$(id -u)" -eq 0 ]; then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
gpus=$(nvidia-smi -L 2>/dev/null | wc -l)
export DDP_REQUIRE_GPUS=${DDP_REQUIRE_GPUS:-1}
table=()
failed=0

# run NAME COMMAND…: its output goes to a file; the table gets how it ended and how long it took.
run() {
  local name=$1 start=$SECONDS status=0
  shift
  echo "== $name: $*"
  "$@" >"$out/$name.log" 2>&1 || status=$?
  if [ "$status" -ne 0 ]; then
    failed=1
    grep -aE '^\[  FAILED|Failure|error|Error|instead of|Trace' "$out/$name.log" | head -n 40
  fi
  table+=("$(printf '%-28s exit %-4s %4s s  %s' "$name" "$status" "$((SECONDS - start))" \
    "$(grep -aE '^\[  (PASSED|FAILED)  \]' "$out/$name.log" | head -n 1)")")
}

for stage in "$@"; do
  case $stage in
    build)
      run build bash -c './docker/install.sh && cmake --preset release && cmake --build --preset release'
      ;;
    facts)
      nvidia-smi --query-gpu=name,driver_version,memory.total,memory.used --format=csv
      nvidia-smi topo -m 2>/dev/null | head -n 12
      env | grep -E '^(NCCL|CUDA|TORCH_SYMM)' | sort
      ldd "$bin/ddptrain" | grep -E 'cudnn|nccl|cublas|mpi\.|not found'
      ;;
    ops)
      run gradcheck "$tests/gpu_gradcheck"
      run ops "$tests/gpu_ops"
      ;;
    train) run train "$tests/gpu_train" ;;
    sanitize)
      run sanitize-gradcheck compute-sanitizer --error-exitcode 9 "$tests/gpu_gradcheck"
      run sanitize-slabs compute-sanitizer --error-exitcode 9 "$tests/gpu_ops" --gtest_filter='GpuSlabOps.*:*mlp*:*convnet*'
      ;;
    nccl) run nccl mpirun -np "$gpus" "$tests/gpu_nccl" ;;
    job)
      data=${DDPTRAIN_DATA:-synthetic}
      run job-default mpirun -np "$gpus" "$bin/ddptrain" --data "$data" --out "$out/default" --epochs 8
      tail -n 1 "$out/job-default.log"
      run job-resnet50 mpirun -np "$gpus" "$bin/ddptrain" --model resnet50 --data synthetic --micro-batch 256 \
        --steps 60 --log-every 20 --synthetic-train 15360 --synthetic-val 1024 --out "$out/resnet50"
      grep -aE 'step +[0-9]+/' "$out/job-resnet50.log" | tail -n 3
      tail -n 1 "$out/job-resnet50.log"
      ;;
    *)
      echo "run_on_device.sh: there is no stage '$stage'" >&2
      exit 2
      ;;
  esac
done
echo
printf '%s\n' "${table[@]}"
exit "$failed"
