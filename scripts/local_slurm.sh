#!/usr/bin/env bash
# A real SLURM on one machine: its own munged, one slurmctld, and several virtual nodes. For tests and for trying job scripts.
#
#   scripts/local_slurm.sh up [DIR] [NODES]    starts what is not running; DIR build/slurm, NODES 4; prints how to use it
#   scripts/local_slurm.sh down [DIR]          ends the jobs, then exactly the daemons that `up` started
#
# Root with apt installs slurm-wlm and munge where they are missing. Everything else (key, sockets, state, logs, process ids) lies
# in DIR, and ports are free ones, so another SLURM of this machine is neither used nor disturbed: clients find this
# one by SLURM_CONF=DIR/slurm.conf alone. The nodes pretend to have 128 cores and 4 GPUs each; processes share the machine's own.
#
# A node is a slurmd in namespaces of its own: host name and /dev/shm, so that MPI takes nodes for nodes, and process ids, so that
# with its slurmd all of the node dies, as by a power cut: kill -9 $(cat DIR/run/node2.pid). `up` brings it back.
#
# Exit codes: 0 done, 1 something failed, 2 usage, 77 this machine cannot do it (the message says what is missing).
set -uo pipefail

readonly CANNOT=77
readonly CORES=128 THREADS=256 GPUS=4 MEMORY_MB=500000

say() { echo "local_slurm.sh: $*"; }
cannot() { say "$*" >&2; exit "$CANNOT"; }
fail() { say "$*" >&2; exit 1; }
usage() { echo "usage: scripts/local_slurm.sh up [DIR] [NODES] | down [DIR]" >&2; exit 2; }

# ---- What the machine must have --------------------------------------------------------------------------------------

find_missing_programs() {
  local program
  for program in munged slurmctld slurmd srun sbatch; do command -v "$program" >/dev/null || echo "$program"; done
}

install_packages() {
  local log apt=(apt-get -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3)
  command -v apt-get >/dev/null || cannot "SLURM is not installed ($1 missing), and there is no apt-get to install it with"
  say "installing slurm-wlm and munge"
  log=$(mktemp)
  # Packages may start their services or not: no service of theirs is used here.
  if ! { "${apt[@]}" update; DEBIAN_FRONTEND=noninteractive "${apt[@]}" install -y --no-install-recommends slurm-wlm munge; } \
    >"$log" 2>&1 </dev/null; then
    tail -n 5 "$log" >&2
    rm -f "$log"
    cannot "SLURM is not installed ($1 missing), and apt-get could not install slurm-wlm and munge"
  fi
  rm -f "$log"
}

require_machine() {
  local missing
  [ "$(id -u)" = 0 ] || cannot "virtual nodes need root: they have host names and process ids of their own"
  unshare --uts --mount --pid --fork --kill-child --propagation private sh -c \
    'hostname trial && mount -t proc proc /proc && mount -t tmpfs none /dev/shm' 2>/dev/null ||
    cannot "this container may not make namespaces (unshare --uts --mount --pid), which virtual nodes need"
  missing=$(find_missing_programs)
  [ -z "$missing" ] || install_packages "${missing//$'\n'/, }"
  missing=$(find_missing_programs)
  [ -z "$missing" ] || cannot "still missing after installing slurm-wlm and munge: ${missing//$'\n'/, }"
}

# ---- Configuration ---------------------------------------------------------------------------------------------------

is_free_port() { ! (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# The first of COUNT successive ports on which nobody listens.
find_ports() { # find_ports COUNT
  local base port attempt
  for attempt in {1..50}; do
    base=$((20000 + RANDOM % 10000))
    for ((port = base; port < base + $1; ++port)); do is_free_port "$port" || continue 2; done
    echo "$base"
    return
  done
  fail "found no $1 successive free ports in $attempt attempts"
}

# What differs from a site's configuration, and why:
#   TmpFS per node          pmix keeps its sockets there and would find the other nodes' ("File exists")
#   cred_expire=5           a requeued job starts after some 10 s instead of two minutes
#   SlurmdTimeout, KillWait a dead node is found in half a minute instead of five, and a job that hangs is killed sooner
#   ReturnToService=2       a node that comes back is used again
#   task/none, linuxproc    no binding to pretended cores, no cgroups
#   no accounting           so no sacct; see DIR/log/jobs.txt
write_configuration() {
  local port host
  port=$(find_ports $((NODES + 1))) || exit 1
  host=$(hostname -s)
  cat >"$DIR/slurm.conf" <<END
ClusterName=espalier
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmctldPidFile=$DIR/run/slurmctld.own.pid
SlurmctldLogFile=$DIR/log/slurmctld.log
SlurmdPidFile=$DIR/run/%n.own.pid
SlurmdLogFile=$DIR/log/%n.log
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$DIR/state
SlurmdSpoolDir=$DIR/spool/%n
TmpFS=$DIR/tmp/%n
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$DIR/run/munge.socket,cred_expire=5
MpiDefault=pmix
SwitchType=switch/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc=$DIR/log/jobs.txt
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,bf_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
PropagateResourceLimits=NONE
MessageTimeout=30
SlurmdTimeout=20
KillWait=15
ReturnToService=2
JobRequeue=1
MailProg=/bin/true
GresTypes=gpu
NodeName=node[1-$NODES] NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 1))-$((port + NODES)) CPUs=$THREADS Boards=1 SocketsPerBoard=1 CoresPerSocket=$CORES ThreadsPerCore=2 RealMemory=$MEMORY_MB Gres=gpu:$GPUS Feature=cpu,gpu
PartitionName=batch Nodes=ALL Default=YES MaxTime=UNLIMITED State=UP
END
  echo "NodeName=node[1-$NODES] Name=gpu File=$DIR/gpu/[0-$((GPUS - 1))]" >"$DIR/gres.conf"
  # pmix's other way of gathering addresses, "tree", lets MPI_Init begin before all are there, and tasks crash now and then.
  echo "PMIxCollFence=ring" >"$DIR/mpi.conf"
}

prepare_folder() {
  local node gpu
  mkdir -p "$DIR"/{run,log,state,spool,tmp,gpu} || fail "cannot write to $DIR"
  chmod 755 "$DIR" "$DIR/run"
  [ -s "$DIR/munge.key" ] || (umask 077 && head -c 128 /dev/urandom >"$DIR/munge.key")
  for ((node = 1; node <= NODES; ++node)); do mkdir -p "$DIR"/{spool,tmp}/node"$node"; done
  # GPUs that exist for slurmd only: further names of /dev/null.
  for ((gpu = 0; gpu < GPUS; ++gpu)); do [ -c "$DIR/gpu/$gpu" ] || mknod "$DIR/gpu/$gpu" c 1 3; done
}

# ---- Daemons ---------------------------------------------------------------------------------------------------------

# pid_of NAME: prints the process id of a daemon that `up` started, if it lives; an id that went to another process does not count.
pid_of() {
  local pid
  pid=$(cat "$DIR/run/$1.pid" 2>/dev/null) || return 1
  { tr '\0' ' ' <"/proc/$pid/cmdline"; } 2>/dev/null | grep -qF -- "$DIR/" || return 1
  echo "$pid"
}

# start NAME COMMAND...: in a session of its own, so that it outlives this script and its terminal.
start() {
  local name=$1
  shift
  setsid "$@" </dev/null >"$DIR/log/$name.out" 2>&1 &
  echo $! >"$DIR/run/$name.pid"
}

# The shell inside is process 1 of the node: it collects orphans, and when slurmd ends, so do it and with it the node.
start_node() {
  local name=$1
  rm -f "$DIR/run/$name.pid"
  setsid unshare --uts --mount --pid --fork --kill-child --propagation private bash -c '
    hostname "$2" && mount -t tmpfs none /dev/shm || exit 1
    {
      read -r pid _ </proc/self/stat   # as the machine counts
      mount -t proc proc /proc || exit 1
      echo "$pid" >"$1/run/$2.pid"
      exec slurmd -D -f "$1/slurm.conf" -N "$2"
    } &
    wait $!' node "$DIR" "$name" </dev/null >"$DIR/log/$name.out" 2>&1 &
}

wait_until() { # wait_until SECONDS COMMAND...
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    [ "$SECONDS" -lt "$end" ] || return 1
    sleep 0.2
  done
}

munge_answers() { munge --socket="$DIR/run/munge.socket" -n -o /dev/null 2>/dev/null; }
controller_answers() { timeout 5 scontrol ping 2>/dev/null | grep -q ' UP'; }
nodes_are_ready() {
  [ "$(timeout 5 sinfo -h -N -o %T 2>/dev/null | grep -cE '^(idle|mixed|allocated|completing)$')" = "$NODES" ]
}

stop() { # stop NAME...: TERM, and KILL for what is still there after 10 s
  local name pid pids=()
  for name in "$@"; do
    pid=$(pid_of "$name") && kill -TERM "$pid" 2>/dev/null && pids+=("$pid")
  done
  [ ${#pids[@]} = 0 ] || wait_until 10 none_lives "${pids[@]}" || kill -KILL "${pids[@]}" 2>/dev/null
  for name in "$@"; do rm -f "$DIR/run/$name.pid"; done
}
none_lives() { ! kill -0 "$@" 2>/dev/null; }

something_lives() {
  local file
  for file in "$DIR"/run/*.pid; do pid_of "$(basename "$file" .pid)" >/dev/null && return; done
  return 1
}

names_of_nodes() { for ((node = 1; node <= NODES; ++node)); do echo "node$node"; done; }

# ---- Commands --------------------------------------------------------------------------------------------------------

up() {
  local name
  require_machine
  prepare_folder
  if something_lives; then
    [ "$(count_nodes)" = "$NODES" ] || fail "$DIR is up with $(count_nodes) nodes; \`down\` first"
  else
    write_configuration
  fi

  pid_of munged >/dev/null || start munged munged --foreground --force --socket="$DIR/run/munge.socket" --key-file="$DIR/munge.key" \
    --seed-file="$DIR/state/munge.seed" --log-file="$DIR/log/munged.log" --pid-file="$DIR/run/munged.own.pid"
  wait_until 10 munge_answers || fail "munged does not answer: $(tail -n 2 "$DIR/log/munged.out" "$DIR/log/munged.log" 2>&1)"

  # -c: a controller that starts anew knows no job of an earlier one.
  pid_of slurmctld >/dev/null || start slurmctld slurmctld -D -c -f "$DIR/slurm.conf"
  wait_until 30 controller_answers || fail "slurmctld does not answer: $(tail -n 3 "$DIR/log/slurmctld.log")"

  for name in $(names_of_nodes); do pid_of "$name" >/dev/null || start_node "$name"; done
  wait_until 90 nodes_are_ready || fail "not all nodes are ready: $(timeout 5 sinfo -h -N -o '%n %T' | xargs); see $DIR/log"
  say "up: $NODES nodes; now: export SLURM_CONF=$DIR/slurm.conf"
}

count_nodes() { sed -n 's/^NodeName=node\[1-\([0-9]*\)\].*/\1/p' "$DIR/slurm.conf"; }

no_job_is_left() { [ -z "$(timeout 5 squeue -h -o %i 2>/dev/null)" ]; }

down() {
  [ -e "$DIR/slurm.conf" ] || { say "nothing to take down in $DIR"; return; }
  NODES=$(count_nodes)
  if pid_of slurmctld >/dev/null; then
    timeout 5 scancel --full --user="$(id -un)" 2>/dev/null
    wait_until 5 no_job_is_left
  fi
  mapfile -t names < <(names_of_nodes)
  stop "${names[@]}"
  stop slurmctld
  stop munged
  say "down"
}

main() {
  local command=${1:-}
  [ $# -ge 1 ] && [ $# -le 3 ] || usage
  DIR=$(realpath -m "${2:-build/slurm}")
  NODES=${3:-4}
  [[ $NODES =~ ^[1-9][0-9]?$ ]] || usage
  [[ $DIR != *[[:space:]]* && ${#DIR} -le 70 ]] ||
    fail "$DIR: SLURM takes no blanks there, and its sockets' names no more than 70 characters; choose another DIR"
  export SLURM_CONF=$DIR/slurm.conf
  case $command in
    up) up ;;
    down) [ $# -le 2 ] || usage; down ;;
    *) usage ;;
  esac
}

main "$@"
