#!/usr/bin/env bash
# Installs what `compare.py` compares with into a virtual environment: PyTorch, PyG with torch-sparse (and pyg-lib where
# there is one), DGL with GraphBolt and dgl.distributed, SciPy.
#
#     bash bench/peers/setup.sh [FOLDER]        default: build/peers/venv; some 6 GB, 15 minutes on two cores
#
# Run again it installs only what is missing. What cannot be installed is named with pip's last words, also in the file
# FOLDER/missing/NAME that compare.py reads; the rest goes on. PYTHON chooses the interpreter.
#
# DGL's last release that pip installs is 2.1.0. Its GraphBolt is compiled for PyTorch 2.0.0 to 2.2.1, so all peers share 2.2.1
# and what was current beside it. torch-scatter and torch-sparse are compiled here, against it and without CUDA; pip's
# cache may hold them compiled against another PyTorch and is not asked.
set -uo pipefail

cd "$(dirname "$0")/../.." || exit 1
venv=${1:-build/peers/venv}
log=$venv/setup.log

find_python() {
  local python
  for python in ${PYTHON:-} python3 python3.11 python3.10 /usr/bin/python3; do
    "$python" -c 'import sys, venv, ensurepip; sys.exit(not (3, 8) <= sys.version_info < (3, 13))' 2>/dev/null &&
      command -v "$python" && return
  done
  echo "setup.sh: no python3 of 3.8 to 3.12 with venv (Debian: python3-venv); name one with PYTHON" >&2
  return 1
}

# install NAME 'CODE that works afterwards' PIP_ARGUMENT...
install() {
  local name=$1 check=$2
  shift 2
  if "$venv/bin/python" -c "$check" >>"$log" 2>&1; then
    echo "have       $name"
  elif echo "install    $name" && "$venv/bin/pip" install --constraint "$venv/constraints.txt" "$@" >>"$log" 2>&1 &&
    "$venv/bin/python" -c "$check" >>"$log" 2>&1; then
    :
  else
    mkdir -p "$venv/missing"
    grep -v '^ *$' "$log" | grep -E 'Error|ERROR|error:' | tail -1 | cut -c1-160 >"$venv/missing/$name"
    echo "missing    $name: $(cat "$venv/missing/$name") (more in $log)"
    return 1
  fi
  rm -f "$venv/missing/$name"
}

if [ ! -x "$venv/bin/pip" ]; then
  python=$(find_python) || exit 1
  mkdir -p "$(dirname "$venv")" && "$python" -m venv "$venv" || exit 1
fi
cat >"$venv/constraints.txt" <<'END'
torch==2.2.1
numpy<2
scipy<1.14
pandas<2.3
h5py<3.12
torchdata==0.7.1
setuptools<70
END
export FORCE_CUDA=0 MAX_JOBS="${MAX_JOBS:-$(nproc)}" DGLBACKEND=pytorch PIP_DISABLE_PIP_VERSION_CHECK=1

install scipy 'import h5py, numpy, scipy' numpy scipy h5py
if install torch 'import torch' torch numpy; then
  install dgl 'import dgl' dgl==2.1.0 torchdata pandas pydantic pyyaml setuptools
  install graphbolt 'import dgl.graphbolt' dgl==2.1.0 torchdata pandas pydantic pyyaml
  install torch-geometric 'import torch_geometric' torch_geometric==2.6.1
  install build-tools 'import ninja, setuptools, wheel' ninja setuptools wheel
  install torch-scatter 'import torch_scatter' --no-build-isolation --no-cache-dir torch-scatter==2.1.2
  install torch-sparse 'import torch_sparse' --no-build-isolation --no-cache-dir torch-sparse==0.6.18
  install pyg-lib 'import pyg_lib' --only-binary :all: pyg-lib
fi
exit 0
