#!/usr/bin/env bash
# make bundle: the GPU build, its tests and benches, and what they run on, as one archive for a machine that has neither MPI
# nor HDF5 nor a compiler: only glibc, a driver, and CUDA's libraries.
#
#   bin/         espalier, espalier-cpu, mpirun, gpu-check, and run, which starts any program of the bundle; they find all else
#                relative to their own folder, and CUDA in CUDA_HOME, /usr/local/cuda or beside python3 (pip's nvidia-*)
#   programs/    the two programs        tests/, bench/   as in build/cuda
#   mpi/         Open MPI's runtime      lib/             all shared libraries but glibc's and CUDA's
#   stubs/       an NCCL that only says that it is none, for machines without it: one GPU needs none
#   scripts/, peers/, inputs/, manifest.json (what was built, which tests, at which rank counts)
#
# The CPU side is compiled for x86-64-v3 (AVX2: any server processor since 2013) in build/bundle, apart from build/cpu.
set -euo pipefail
cd "$(dirname "$0")/.."

MAKE=${MAKE:-make}
JOBS=${JOBS:-$(nproc)}
CUDA_HOME=${CUDA_HOME:-/usr/local/cuda}
MOST_MIB=40
BUNDLE=build/espalier-bundle

# Of glibc, which is the machine's.
GLIBC='^(ld-linux.*|linux-vdso.*|lib(c|m|dl|rt|pthread|resolv|util|anl|nsl|mvec|nss_.*))\.so'
# Open MPI's plugins for hardware and schedulers that one machine does not need, and those of OpenSHMEM.
NEEDLESS='(ucx|ofi|psm2?|openib|flux|slurm|jsm|gridengine|simulator|spml|scoll|sshmem|memheap|treematch|monitoring|pessimist)'

names() { # names KIND: ROOM/OP_KIND of every tests/ROOM/OP_test.cu, bench/ROOM/OP_bench.cu
  case $1 in test) ls tests/*/*_test.cu ;; bench) ls bench/*/*_bench.cu ;; esac 2>/dev/null | sed -E 's,^[a-z]*/,,; s,\.cu$,,'
}

build() {
  local targets=(build/bundle/cpu/espalier build/bundle/cuda/espalier build/bundle/cuda/bench/train/epochs)
  mapfile -t -O 3 targets < <(names test | sed 's,^,build/bundle/cuda/tests/,'; names bench | sed 's,^,build/bundle/cuda/bench/,')
  "$MAKE" -j"$JOBS" BUILD=build/bundle/cpu ARCH=x86-64-v3 "${targets[@]}"
}

copy_programs() {
  mkdir -p "$BUNDLE"/{bin,programs,tests,bench,lib,stubs,mpi/bin,mpi/plugins,mpi/etc,scripts/gpu,peers}
  cp build/bundle/cuda/espalier "$BUNDLE/programs/espalier"
  cp build/bundle/cpu/espalier "$BUNDLE/programs/espalier-cpu"
  local name
  for name in $(names test); do install -D "build/bundle/cuda/tests/$name" "$BUNDLE/tests/$name"; done
  for name in $(names bench); do install -D "build/bundle/cuda/bench/$name" "$BUNDLE/bench/$name"; done
  install -D build/bundle/cuda/bench/train/epochs "$BUNDLE/bench/train/epochs"
  cp scripts/gpu_check.py scripts/kernel_names.py "$BUNDLE/scripts/"
  cp scripts/gpu/*.py "$BUNDLE/scripts/gpu/"
  cp bench/peers/gpu_peer.py "$BUNDLE/peers/"
  cp -r inputs "$BUNDLE/inputs"
  find "$BUNDLE"/{programs,tests,bench} -type f -exec strip --strip-unneeded {} +
}

copy_mpi() {
  local plugins help
  plugins=$(ompi_info --path pkglibdir --parsable | sed -n 's/^path:pkglibdir://p')
  help=$(ompi_info --path pkgdatadir --parsable | sed -n 's/^path:pkgdatadir://p')
  cp -L "$(command -v mpirun)" "$(command -v orted)" "$BUNDLE/mpi/bin/"
  find "$plugins" -name 'mca_*.so' | grep -vE "_$NEEDLESS[._]|mca_$NEEDLESS" | xargs cp -t "$BUNDLE/mpi/plugins"
  cp -r "$help" "$BUNDLE/mpi/share"
}

# What the loader finds for every program and plugin, but glibc and CUDA. The names of CUDA's are kept for bin/run.
copy_libraries() {
  local needed name path
  needed=$(find "$BUNDLE" -type f \( -name '*.so' -o -path '*/programs/*' -o -path '*/tests/*' -o -path '*/bench/*' -o -path '*/mpi/bin/*' \) \
    -exec env LD_LIBRARY_PATH="$CUDA_HOME/lib64" ldd {} + | awk '$2 == "=>" {print $1, $3, $4}' | sort -u)
  : >"$BUNDLE/lib/of_cuda"
  while read -r name path _; do
    [[ $name =~ $GLIBC ]] && continue
    [ "$path" != not ] || { echo "make_bundle.sh: nothing provides $name" >&2; return 1; }
    case $(basename "$name") in
      libcudart* | libcublas* | libcusparse* | libnvJitLink* | libnccl*) echo "$name" >>"$BUNDLE/lib/of_cuda" ;;
      *) cp -L "$path" "$BUNDLE/lib/$name" ;;
    esac
  done <<<"$needed"
  sort -u -o "$BUNDLE/lib/of_cuda" "$BUNDLE/lib/of_cuda"
}

# An NCCL whose every function says "internal error", with the functions that the programs name.
make_nccl_stub() {
  local symbols
  symbols=$(find "$BUNDLE"/{programs,tests,bench} -type f -exec nm -D --undefined-only {} + | grep -oE '\bnccl[A-Za-z]+' | sort -u || true)
  {
    echo 'static const char text[] = "NCCL is not installed here (libnccl.so.2)";'
    for symbol in $symbols; do
      case $symbol in
        ncclGet*String | ncclGetLastError) echo "const char* $symbol(void) { return text; }" ;;
        *) echo "int $symbol(void) { return 3; }" ;;
      esac
    done
  } | gcc -shared -fPIC -O1 -x c - -Wl,-soname,libnccl.so.2 -o "$BUNDLE/stubs/libnccl.so.2"
}

write_manifest() {
  python3 - "$BUNDLE" "$(git describe --always --dirty 2>/dev/null || echo unknown)" <<'PYTHON'
import json, pathlib, re, sys

bundle, commit = pathlib.Path(sys.argv[1]), sys.argv[2]
def ranks(source):
    found = re.findall(r"^// ranks:([ 0-9]+)", "".join(source.open().readlines()[:12]), re.M) or ["1"]
    return [int(n) for n in " ".join(found).split()]
def name(source):
    return str(source.relative_to(source.parents[1]).with_suffix(""))
tests = {name(s): ranks(s) for s in sorted(pathlib.Path("tests").glob("*/*_test.cu"))}
benches = [name(s) for s in sorted(pathlib.Path("bench").glob("*/*_bench.cu"))]
(bundle / "manifest.json").write_text(json.dumps({"commit": commit, "tests": tests, "benches": benches}, indent=1) + "\n")
PYTHON
}

# ---- The wrappers ----------------------------------------------------------------------------------------------------

write_run() {
  cat >"$BUNDLE/bin/run" <<'RUN'
#!/usr/bin/env bash
# run [--without-cuda OTHER] PROGRAM ARGUMENTS: starts a program with the libraries of this bundle and CUDA's of this
# machine; where there are none of CUDA's, OTHER instead.
bundle=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)

# missing FOLDERS: the first of CUDA's libraries but NCCL that is in none of them. Its name has a version: that of another
# CUDA does not serve.
missing() {
  local name folder found
  while read -r name; do
    [[ $name == libnccl* ]] && continue
    found=
    for folder in "$@"; do [ -e "$folder/$name" ] && found=1; done
    [ -n "$found" ] || { echo "$name"; return; }
  done <"$bundle/lib/of_cuda"
}
pip_folders() {  # where pip puts nvidia-cublas and its kin
  local site
  site=$(env -u LD_LIBRARY_PATH python3 -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])' 2>/dev/null) || return 0
  ls -d "$site"/nvidia/*/lib 2>/dev/null
}
cuda_folders() {
  local folder
  for folder in "${CUDA_HOME:+$CUDA_HOME/lib64}" "${CUDA_HOME:+$CUDA_HOME/lib}" /usr/local/cuda/lib64 \
    /usr/local/cuda/targets/x86_64-linux/lib /usr/lib/x86_64-linux-gnu; do
    [ -n "$folder" ] && [ -z "$(missing "$folder")" ] && { echo "$folder"; break; }
  done
  # A toolkit that lacks one may be another CUDA, some of whose libraries (libcusparse.so.12) have the names of this one's.
  pip_folders
  ls -d "${CUDA_HOME:-/usr/local/cuda}/lib64" 2>/dev/null
}

if [ -z "${ESPALIER_BUNDLE:-}" ]; then  # a program that is started by another has it all
  export ESPALIER_BUNDLE=$bundle
  LD_LIBRARY_PATH=$bundle/lib:$(cuda_folders | paste -sd:):${LD_LIBRARY_PATH:-/usr/local/nvidia/lib64}:$bundle/stubs
  export LD_LIBRARY_PATH
  export OPAL_PREFIX=$bundle/mpi OPAL_BINDIR=$bundle/mpi/bin OPAL_LIBDIR=$bundle/lib OPAL_PKGLIBDIR=$bundle/mpi/plugins \
    OPAL_PKGDATADIR=$bundle/mpi/share OPAL_SYSCONFDIR=$bundle/mpi/etc PMIX_PREFIX=$bundle/mpi
  export PMIX_MCA_pcompress_base_silence_warning=1
  # One machine, perhaps a container, perhaps as root.
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_pml=${OMPI_MCA_pml:-ob1} \
    OMPI_MCA_btl=${OMPI_MCA_btl:-self,vader} OMPI_MCA_plm=${OMPI_MCA_plm:-isolated} \
    OMPI_MCA_rmaps_base_oversubscribe=${OMPI_MCA_rmaps_base_oversubscribe:-1} \
    OMPI_MCA_hwloc_base_binding_policy=${OMPI_MCA_hwloc_base_binding_policy:-none}
fi
if [ "${1:-}" = --without-cuda ]; then
  other=$2
  shift 2
  IFS=: read -ra folders <<<"$LD_LIBRARY_PATH"
  lacking=$(missing "${folders[@]}")
  if [ -n "$lacking" ]; then
    echo "espalier: no $lacking of CUDA here (CUDA_HOME, /usr/local/cuda, pip's nvidia-*); this is the program for CPUs" >&2
    set -- "$other" "${@:2}"
  fi
fi
exec "$@"
RUN
}

# wrapper NAME COMMAND: bin/NAME runs COMMAND, in which $bundle is the bundle's folder.
wrapper() {
  printf '#!/usr/bin/env bash\nbundle=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)\nexec %s "$@"\n' "$2" >"$BUNDLE/bin/$1"
}
write_wrappers() {
  write_run
  wrapper espalier '"$bundle/bin/run" --without-cuda "$bundle/programs/espalier-cpu" "$bundle/programs/espalier"'
  wrapper espalier-cpu '"$bundle/bin/run" "$bundle/programs/espalier-cpu"'
  wrapper mpirun '"$bundle/bin/run" "$bundle/mpi/bin/mpirun"'
  wrapper gpu-check 'python3 "$bundle/scripts/gpu_check.py"'
  chmod +x "$BUNDLE"/bin/*
}

pack() {
  local archive=build/espalier-bundle.tar.zst
  rm -f build/espalier-bundle.tar.*
  if command -v zstd >/dev/null; then
    tar -C build -c espalier-bundle | zstd -q -T0 -19 --long=27 -o "$archive"
  else
    archive=build/espalier-bundle.tar.gz
    tar -C build -cz espalier-bundle >"$archive"
  fi
  local bytes
  bytes=$(stat -c %s "$archive")
  echo "bundle $archive, $((bytes / 1048576)) MiB, $(du -sm "$BUNDLE" | cut -f1) MiB unpacked; bin/gpu-check starts it"
  [ "$bytes" -le $((MOST_MIB * 1048576)) ] || { echo "make_bundle.sh: more than $MOST_MIB MiB" >&2; return 1; }
}

main() {
  [ -x "$CUDA_HOME/bin/nvcc" ] || command -v nvcc >/dev/null || { echo "make_bundle.sh: nvcc not found (set CUDA_HOME)" >&2; return 1; }
  build
  rm -rf "$BUNDLE"
  copy_programs
  copy_mpi
  copy_libraries
  make_nccl_stub
  write_manifest
  write_wrappers
  pack
}

main "$@"
