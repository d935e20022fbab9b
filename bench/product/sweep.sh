#!/usr/bin/env bash
# Bytes of every schedule and sampler on 1 to 16 ranks of this machine, counted against predicted: volume_bench at each
# number of ranks, then the table and the picture. `make bench-volumes` sets the environment and calls this.
#
#     bench/product/sweep.sh BENCH [GRAPH_FILE ...]        BENCH: build/cpu/bench/product/volume_bench
#
# The same bulk of BATCHES batches is spread over the ranks. The R-MAT has 2^SCALE vertices and, symmetrised, a mean
# degree of 64. Bytes are the same on every machine; seconds are medians of REPEATS runs. About 4 minutes and 7 GB on two
# idle cores. Writes volumes.csv and volumes.png to build/bench.
# Settings: SCALE=18 EDGE_FACTOR=38 RANKS="1 2 4 8 16" BATCHES=16 REPEATS=1 OUT=build/bench TIMEOUT=400 (seconds a run)
set -euo pipefail

[ $# -ge 1 ] || { sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2; }
bench=$1
shift
out=${OUT:-build/bench}
csv=$out/volumes.csv
here=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$out"
rm -f "$csv"

measure() {  # measure RANKS ARGUMENTS...: appends to the CSV file
  local ranks=$1
  shift
  timeout "${TIMEOUT:-400}" mpirun -q --oversubscribe --bind-to none -np "$ranks" "$bench" --csv "$csv" \
    --repeats "${REPEATS:-1}" --batches-per-rank $(((${BATCHES:-16} + ranks - 1) / ranks)) "$@" ||
    { echo "sweep.sh: failed on $ranks ranks: $*" >&2; exit 1; }
}

for ranks in ${RANKS:-1 2 4 8 16}; do
  measure "$ranks" --rmat "${SCALE:-18}" "${EDGE_FACTOR:-38}"
  for graph in "$@"; do measure "$ranks" --graph "$graph"; done
done

# Debian's python3 has Debian's matplotlib; another one that comes first in PATH may not.
python=${PYTHON:-python3}
for other in "$python" /usr/bin/python3; do
  "$other" -c 'import matplotlib' 2>/dev/null && python=$other && break
done
"$python" "$here/scripts/plot_volumes.py" "$csv" --table
"$python" "$here/scripts/plot_volumes.py" "$csv" -o "$out/volumes.png" ||
  echo "sweep.sh: no picture; the figures are in $csv" >&2
