#!/usr/bin/env bash
# Installs what ddptrain needs to be built, run and tested on Debian 12 and Ubuntu 24.04. The one list of packages and
# the one place that installs; called by demo.sh and test.sh. Does nothing when all is there. With --readers it also installs,
# from PyPI, what the slow tests read our files with.
set -euo pipefail

required=(
  build-essential cmake ninja-build ccache    # build
  libopenmpi-dev openmpi-bin                  # MPI and mpirun
  protobuf-compiler libprotobuf-dev           # configuration
  libcli11-dev libfmt-dev libspdlog-dev       # command line, messages, logs
  nlohmann-json3-dev libxxhash-dev zlib1g-dev # records, checksums, compressed data sets
  libopenblas-openmp-dev                      # matrix products
  libgtest-dev libgmock-dev python3           # tests
)
# Missing in some distributions; the program says what to do without it.
optional=(dataset-fashion-mnist)
# Headers of NVIDIA's cudnn-frontend, for builds with CUDA: from PyPI, unpacked, since no system package brings them. The
# toolkit itself comes from there too (cuda_from_pypi.sh) where there is a driver but no nvcc.
cudnn_frontend=nvidia-cudnn-frontend==1.32.0
# From PyPI, into an environment of their own, and without dependencies, since reading needs no others than these.
readers=(tensorboard==2.18.0 protobuf==5.29.3 absl-py==2.1.0 numpy==2.1.3)
deps=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)/.deps
readers_home=$deps/python
cudnn_frontend_home=$deps/cudnn-frontend

with_readers=
if [ "${1:-}" = --readers ]; then
  with_readers=yes
  required+=(python3-venv)
fi

say() { echo "install: $*" >&2; }
die() {
  say "$*"
  exit 1
}

is_installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }
is_available() { apt-cache show --no-all-versions "$1" >/dev/null 2>&1; }

missing_of() {
  local package
  for package in "$@"; do
    is_installed "$package" || echo "$package"
  done
}

# Nothing but slow tests needs the readers, and those say so: their absence is no reason to stop.
install_readers() {
  [ -n "$with_readers" ] || return 0
  local installed=$readers_home/installed
  if [ "$(cat "$installed" 2>/dev/null)" = "${readers[*]}" ]; then
    return
  fi
  say "installing into ${readers_home}: ${readers[*]}"
  if rm -rf "$readers_home" && python3 -m venv "$readers_home" &&
    "$readers_home/bin/pip" --quiet --disable-pip-version-check install --no-deps "${readers[@]}" >&2; then
    echo "${readers[*]}" >"$installed"
  else
    say "going on without them: the messages above say why. The test e2e.tensorboard will fail; to have them, run $0 --readers where PyPI can be reached."
  fi
}

has_nvcc() { command -v nvcc >/dev/null || [ -x /usr/local/cuda/bin/nvcc ]; }
has_driver() { [ -e /dev/nvidiactl ]; }
# A driver without a toolkit: the toolkit comes from PyPI. What fails here leaves a build for the CPU.
install_cuda() {
  if has_driver && ! has_nvcc; then
    "$(dirname -- "${BASH_SOURCE[0]}")/cuda_from_pypi.sh" ||
      say "going on without CUDA: the messages above say why. The program will be built for the CPU only."
  fi
}
# Where a CUDA compiler is. Without the headers the program is built for the CPU, and the build says so.
needs_cudnn_frontend() {
  { has_nvcc || has_driver; } && [ "$(cat "$cudnn_frontend_home/installed" 2>/dev/null)" != "$cudnn_frontend" ]
}
install_cudnn_frontend() {
  needs_cudnn_frontend || return 0
  say "unpacking the headers of $cudnn_frontend into $cudnn_frontend_home"
  local work
  work=$(mktemp -d)
  if python3 -m venv "$work/python" &&
    "$work/python/bin/pip" --quiet --disable-pip-version-check download --no-deps --only-binary=:all: \
      --dest "$work" "$cudnn_frontend" >&2 &&
    python3 -m zipfile -e "$work"/*.whl "$work/wheel" && rm -rf "$cudnn_frontend_home" &&
    mkdir -p "$cudnn_frontend_home" && mv "$work/wheel/include" "$cudnn_frontend_home/include"; then
    echo "$cudnn_frontend" >"$cudnn_frontend_home/installed"
  else
    say "going on without them: the messages above say why. The program will be built for the CPU only."
  fi
  rm -rf "$work"
}
install_from_pypi() {
  install_cuda
  install_cudnn_frontend
  install_readers
}

if needs_cudnn_frontend; then
  required+=(python3-venv)
fi
if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  die "this system has no apt-get. ddptrain is set up on Debian 12 and Ubuntu 24.04; elsewhere install the counterparts of: ${required[*]}"
fi

mapfile -t missing < <(missing_of "${required[@]}")
mapfile -t missing_optional < <(missing_of "${optional[@]}")
all_missing=("${missing[@]}" "${missing_optional[@]}")
if [ ${#all_missing[@]} -eq 0 ]; then
  install_from_pypi
  say "all packages are there already, nothing to do."
  exit 0
fi
say "missing: ${all_missing[*]}"

# Without the rights to install, a missing optional package is no reason to stop.
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    trouble="you are not root and sudo is not installed"
  elif ! sudo -n true 2>/dev/null && [ ! -t 0 ]; then
    trouble="sudo asks for a password and there is no terminal to type it in"
  fi
  if [ -n "${trouble:-}" ]; then
    advice="as root: apt-get update && apt-get install ${all_missing[*]}"
    [ ${#missing[@]} -eq 0 ] || die "$trouble. Install them $advice"
    say "going on without ${missing_optional[*]}, because $trouble. To have it, $advice"
    install_from_pypi
    exit 0
  fi
  as_root=(sudo)
fi

apt_get() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -qq "$@"
}

say "refreshing the package lists."
apt_get update || say "not all package lists could be refreshed; going on with those at hand."

for package in "${missing_optional[@]}"; do
  if is_available "$package"; then
    missing+=("$package")
  else
    say "$package does not exist for this system; going on without it."
  fi
done
for package in "${missing[@]}"; do
  is_available "$package" ||
    die "$package does not exist for this system, or its package source is off (on Ubuntu: add-apt-repository universe). ddptrain needs Debian 12, Ubuntu 24.04 or newer."
done
if [ ${#missing[@]} -gt 0 ]; then
  say "installing ${missing[*]}"
  apt_get install -y --no-install-recommends "${missing[@]}" >&2 ||
    die "apt-get could not install these packages; its messages above say why."
fi
install_from_pypi
say "done."
