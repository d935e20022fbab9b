#!/usr/bin/env bash
# run_example.sh PROGRAM RANKS [typed|links]: trains a 3-layer GraphSAGE on the Debian package graph, made from this machine's own
# apt lists; with `typed` R-GCN on Debian's archive with all its relations, with `links` the same to find dependencies. Where there
# are no lists (or no numpy to read them), a planted graph takes its place, and the script says so.
set -euo pipefail
program=$1 ranks=$2 kind=${3:-plain}
cd "$(dirname "$0")/.."

# One node, perhaps fewer cores than ranks, perhaps root in a container.
if [ "$(id -u)" = 0 ]; then export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; fi
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_mpi_yield_when_idle=1
# Ranks that share a core wait politely.
export OMP_WAIT_POLICY=passive

python=$(for p in python3 /usr/bin/python3; do "$p" -c 'import numpy' 2>/dev/null && echo "$p" && break; done || true)
replication=1
[ $((ranks % 2)) = 0 ] && replication=2
overrides=()
input=inputs/debian.toml

if [ "$kind" != plain ]; then
  input=inputs/debian_$kind.toml typed=data/debian_typed.h5 learnt=package.depends.package
  if [ ! -f data/debian_typed.h5 ]; then
    mkdir -p data
    if [ -n "$python" ] && "$python" scripts/debian_graph.py --typed data/debian_typed_ogb; then
      "$program" import ogb data/debian_typed_ogb --split source_seed0 -o data/debian_typed.h5
    else
      echo "No Debian archive here; training on a planted graph instead."
      "$program" generate planted --types paper=20000:64,author=12000,field=300 \
        --relations author.writes.paper=60000,paper.cites.paper=90000,paper.about.field=40000 --homophily 0.6 --seed 1 \
        -o data/planted_typed.h5 --overwrite
      typed=data/planted_typed.h5 learnt=paper.cites.paper
      overrides=(graph.file=$typed output.dir=output/planted_typed)
    fi
  fi
  if [ "$kind" = links ]; then
    overrides=(graph.file=${typed%_typed.h5}_links.h5 "output.dir=output/$(basename "${typed%_typed.h5}")_links")
    "$program" prepare "$typed" --split-links 0.8,0.1,0.1 --relations $learnt -o "${typed%_typed.h5}_links.h5" --overwrite
  fi
elif [ ! -f data/debian.h5 ]; then
  mkdir -p data
  if [ -n "$python" ] && "$python" scripts/debian_graph.py data/debian_ogb; then
    "$program" import ogb data/debian_ogb --split random_seed0 --symmetrize -o data/debian.h5
  else
    echo "No Debian package graph here; training on a planted graph instead."
    "$program" generate planted --nodes 60000 --classes 16 --degree 10 --homophily 0.6 --features 64 --seed 1 -o data/planted.h5 --overwrite
    overrides=(graph.file=data/planted.h5 output.dir=output/planted train.epochs=10)
  fi
fi
set -x
mpirun -q -np "$ranks" "$program" train "$input" --overwrite grid.replication="$replication" "${overrides[@]}"
