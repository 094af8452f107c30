#!/usr/bin/env bash
# Installs what is missing, builds everything and runs the tests. Tests labelled slow run with --slow only; all other
# arguments go to ctest: ./test.sh -R BucketPlan
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")"

selection=(--label-exclude slow)
install=()
arguments=()
for argument in "$@"; do
  case $argument in
    --slow)
      selection=()
      install=(--readers)
      ;;
    *) arguments+=("$argument") ;;
  esac
done

./docker/install.sh "${install[@]}"
cmake --preset release
cmake --build --preset release

# The tests start more ranks than there may be cores, and as root in a container.
export OMPI_MCA_rmaps_base_oversubscribe=1
if [ "$(id -u)" -eq 0 ]; then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
ctest --preset release --parallel "$(nproc)" "${selection[@]}" "${arguments[@]}"
