#!/usr/bin/env bash
# Proves that the bundle (make bundle) runs where there is only glibc, bash, coreutils, Python and CUDA's libraries:
#
#   scripts/try_bundle.sh [ROOT]     as root; ROOT: a bare Debian 12 file system, made by debootstrap where it is not there
#
# unpacks it there under a path with a space, binds /proc, /dev, /sys and CUDA into it, and runs each kind of thing that the bundle has.
# Prints `ok` or `FAILED` and the name of each trial; ends with 1 if one failed.
set -uo pipefail
cd "$(dirname "$0")/.."

ROOT=$(realpath -m "${1:-build/bare_root}")
CUDA=$(realpath "${CUDA_HOME:-/usr/local/cuda}")
ARCHIVE=$(ls build/espalier-bundle.tar.* 2>/dev/null | head -1)
PLACE="/opt/some where"
FAILED=0

make_root() {
  [ -x "$ROOT/bin/bash" ] && return
  command -v debootstrap >/dev/null || apt-get install -y -qq --no-install-recommends debootstrap >/dev/null || return 1
  debootstrap --variant=minbase --include=python3 bookworm "$ROOT" >"$ROOT.log" 2>&1
}

bind() {
  mkdir -p "$ROOT$2" && mount --rbind "$1" "$ROOT$2" && mount --make-rslave "$ROOT$2"
}
unbind() {
  local place
  for place in /usr/local/cuda /dev /sys /proc; do umount -R -l "$ROOT$place" 2>/dev/null; done
}

inside() { # inside COMMAND: in the bundle's folder, with nothing of this environment
  env -i PATH=/usr/sbin:/usr/bin:/bin HOME=/root TMPDIR=/tmp timeout 300 chroot "$ROOT" bash -c "cd '$PLACE/espalier-bundle' && $1"
}

try() { # try NAME COMMAND [PATTERN]: the command ends with 0 and prints the pattern
  local output code
  output=$(inside "$2" 2>&1)
  code=$?
  if [ $code = 0 ] && grep -qE "${3:-.*}" <<<"$output"; then
    echo "ok      $1"
  else
    echo "FAILED  $1 (exit code $code)"
    sed 's/^/        /' <<<"$output" | tail -20
    FAILED=1
  fi
}

main() {
  [ "$(id -u)" = 0 ] || { echo "try_bundle.sh: mounting needs root" >&2; return 2; }
  [ -n "$ARCHIVE" ] || { echo "try_bundle.sh: no bundle; make bundle first" >&2; return 2; }
  make_root || { echo "try_bundle.sh: cannot make $ROOT" >&2; return 2; }
  trap unbind EXIT
  mkdir -p "$ROOT$PLACE" && rm -rf "$ROOT$PLACE/espalier-bundle"
  case $ARCHIVE in
    *.zst) zstd -q -d --long=27 -c "$ARCHIVE" | tar -x -C "$ROOT$PLACE" ;;
    *) tar -xzf "$ARCHIVE" -C "$ROOT$PLACE" ;;
  esac
  bind /proc /proc && bind /dev /dev && bind /sys /sys

  local train='train inputs/debian.toml --overwrite graph.file=/tmp/g.h5 train.epochs=2 output.dir=/tmp/out'
  try "nothing of MPI or HDF5 is there" '! ls /usr/lib/x86_64-linux-gnu | grep -E "libmpi|hdf5|libhwloc|libevent"'
  try "without CUDA: the CPU program" 'bin/espalier version' 'program for CPUs'
  bind "$CUDA" /usr/local/cuda
  try "generate" 'bin/espalier generate planted --nodes 3000 --classes 5 --features 16 -o /tmp/g.h5 --overwrite' '3000 vertices'
  try "train on the CPU" "bin/espalier $train run.device=cpu && test -s /tmp/out/report.json" 'test accuracy'
  try "train on the CPU, CPU program" "bin/espalier-cpu $train" 'test accuracy'
  try "mpirun -np 2" "bin/mpirun -q -np 2 bin/espalier $train run.device=cpu grid.replication=2" 'grid +2 ranks'
  try "train on a GPU that is not there: refused" "! bin/espalier $train run.device=cuda" 'espalier: error'
  local test
  for test in $(cd "$ROOT$PLACE/espalier-bundle/tests" && ls */*_test); do
    try "$test: starts, skips itself" "bin/run tests/$test --gtest_brief=1" 'SKIPPED|PASSED  . 0 tests'
  done
  for test in $(cd "$ROOT$PLACE/espalier-bundle/bench" && ls */*_bench 2>/dev/null); do
    try "$test: starts, says that there is no GPU" "bin/run bench/$test --quick" 'no GPU'
  done
  try "gpu-check says that there is no GPU" 'bin/gpu-check' 'no GPU'
  return $FAILED
}

main
