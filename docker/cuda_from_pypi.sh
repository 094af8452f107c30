#!/usr/bin/env bash
# Puts a CUDA Toolkit together from NVIDIA's wheels on PyPI, with cuDNN and NCCL, in .deps/cuda: for machines that have a
# driver but no toolkit. Called by docker/install.sh; needs no rights, about 2 GB of disk, and no Python later.
set -euo pipefail

home=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)/.deps/cuda
packages=(
  nvidia-cuda-nvcc==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-cccl==13.0.85
  nvidia-cuda-runtime==13.0.96 nvidia-cuda-nvrtc==13.0.88 nvidia-cublas==13.0.2.14
  nvidia-cudnn-cu13==9.19.0.56 nvidia-nccl-cu13==2.28.9
)
if [ "$(cat "$home/installed" 2>/dev/null)" = "${packages[*]}" ]; then
  exit 0
fi
echo "install: putting a CUDA Toolkit together from PyPI in $home (about 2 GB)" >&2

work=$(mktemp -d -p "$(dirname -- "$home")")
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/python"
"$work/python/bin/pip" --quiet --disable-pip-version-check install --no-deps --target "$work/wheels" "${packages[@]}" >&2
toolkit=$work/wheels/nvidia/cu13
for part in cudnn nccl; do
  cp -rn "$work/wheels/nvidia/$part/include/." "$toolkit/include/"
  cp -rn "$work/wheels/nvidia/$part/lib/." "$toolkit/lib/"
done
# Wheels carry libraries under the names that programs load; linking looks for the names without version.
for library in "$toolkit"/lib/lib*.so.*; do
  ln -sf "$(basename -- "$library")" "${library%%.so.*}.so"
done
ln -sfn lib "$toolkit/lib64"
rm -rf "$home"
mv "$toolkit" "$home"
echo "${packages[*]}" >"$home/installed"
