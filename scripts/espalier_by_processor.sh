#!/bin/sh
# Starts the program that was built for the processor it finds itself on, for nodes that differ: with AVX-512 (x86-64-v4),
# or with AVX2 (x86-64-v3). All builds draw the same samples and, of float32, compute the same losses, to the last bit.
#
#     make by-processor                            # build/by_processor/: this script as espalier, and both programs beside it
#     mpirun -np 16 --hostfile hosts build/by_processor/espalier train inputs/products.toml
#
# ESPALIER_LEVEL=x86-64-v3 names the program instead. A rank starts it once: `exec`, no process in between.
set -eu
cpuinfo=${ESPALIER_CPUINFO:-/proc/cpuinfo}
programs=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)

fail() {
  echo "espalier: error: $1" >&2
  exit 2
}
# The flags of the first processor; has FLAG...: are they all there?
flags=" $(sed -n '/^flags[[:space:]]*:/ {s/^[^:]*://p; q;}' "$cpuinfo" 2>/dev/null || true) "
has() {
  for flag in "$@"; do
    case $flags in *" $flag "*) ;; *) return 1 ;; esac
  done
}

level=${ESPALIER_LEVEL:-}
if [ -z "$level" ] && has avx avx2 bmi1 bmi2 f16c fma abm movbe xsave; then
  level=x86-64-v3
  if has avx512f avx512bw avx512cd avx512dq avx512vl && [ -x "$programs/espalier-x86-64-v4" ]; then level=x86-64-v4; fi
fi
[ -n "$level" ] || fail "this processor ($(uname -m)) has no AVX2, which the programs in $programs need; build one for it: make ARCH=native"
[ -x "$programs/espalier-$level" ] || fail "$programs/espalier-$level is not there: make by-processor"
exec "$programs/espalier-$level" "$@"
