#!/bin/bash
# run_and_requeue.sh COMMAND...: the last line of the job scripts that train. Runs COMMAND, which is
# srun or mpirun with the program, and puts the job back into the queue until the training is done.
# Scripts `exec` it, so that it becomes the batch shell that SLURM signals.
#
#     exec bash slurm/run_and_requeue.sh srun ... espalier train inputs/products.toml \
#       output.dir=output/name-JOBID
#
# A requeued job keeps its id, its script and its arguments, hence its output folder;
# run.restart = "auto" continues from the checkpoint there.
#
# Exit code of COMMAND          what happens
#   0, 2, 3, 4, 6               the job ends: done, or an error that would only return
#   5                           the program saved and stopped: requeued
#   other, after the warning    the limit came before the program could save (one that is still
#                               loading has nothing to save, and ends at once, with 140): requeued,
#                               but not when the start before this one saved nothing either: then
#                               the limit is too short for loading and one step, and each start
#                               would be in vain
#   other                       a rank, a node or the network died: requeued if a checkpoint was
#                               saved since this start, so that a fault that strikes again at the
#                               same place ends the job
# At most MAX_REQUEUES times (the environment variable; 50), and never when you cancelled the job:
# scancel is the way to end it.
#
# Which signals, and why so. Job scripts ask for `--signal=B:USR1@300`: five minutes before the
# limit SLURM sends USR1 to the batch shell alone (a warning may come a minute early; its clock
# ticks every 30 s). The shell passes it on as USR2, "finish the step, save, exit 5".
#   - Not `--signal=USR2@300` straight to the tasks: under mpirun the tasks that SLURM knows are
#     MPI's daemons, which it would kill. srun and mpirun both hand a USR2 that they get to every
#     rank; one rank that gets it is enough.
#   - Not TERM: mpirun takes it for itself. And the limit itself is late to save: between SLURM's
#     TERM and its KILL a site may allow a few seconds only. The TERM that this shell then gets is
#     passed on to nobody. It must only not end the shell: with the shell the job would end.
set -uo pipefail

say() { echo "$(date +%T) run_and_requeue.sh: $*"; }

# The folder that the last output.dir=... of the command names.
find_output() {
  local argument output=output
  for argument in "$@"; do
    case $argument in output.dir=*) output=${argument#*=} ;; esac
  done
  echo "$output"
}

# Tells one checkpoint from the next; nothing where there is none.
identify_checkpoint() {
  local latest=$1/checkpoints/latest
  [ ! -e "$latest" ] || { readlink "$latest"; stat -L -c '%y %s' "$latest"; }
}

warn_program() {
  signalled=1 warned=1
  say "the time limit is near: the program shall save and stop"
  [ -z "$child" ] || kill -USR2 "$child"
}

note_end() {
  signalled=1 ending=1
  say "SLURM ends the job"
}

# Waits for the child and sets `code`. A trapped signal ends `wait` early, so it is asked again.
wait_for_child() {
  while :; do
    signalled=
    wait "$child"
    code=$?
    [ -n "$signalled" ] || return 0
  done
}

# May this job come back? `scontrol requeue` would also bring back one that was cancelled.
was_cancelled() {
  [ -n "$ending" ] && [ "$(squeue --noheader --jobs="$SLURM_JOB_ID" --format=%r 2>/dev/null)" != TimeLimit ]
}

# Notes that this start saved nothing; true when the one before it had not either.
second_in_vain() {
  local note=$output/.saved-nothing restarts=${SLURM_RESTART_COUNT:-0} before=
  [ ! -r "$note" ] || before=$(cat "$note")
  mkdir -p "$output" && echo "job $SLURM_JOB_ID, start $restarts" >"$note"
  [ "$before" = "job $SLURM_JOB_ID, start $((restarts - 1))" ]
}

# Says why the job should be requeued; false when it should end.
find_reason() {
  case $code in
    0 | 2 | 3 | 4 | 6) return 1 ;;
    5) echo "saved and stopped" ;;
    *)
      local saved=
      [ "$(identify_checkpoint "$output")" = "$checkpoint_at_start" ] || saved=1
      if [ -n "$warned" ] && [ -z "$saved" ] && second_in_vain; then
        say "the limit came before the program could save, for the second time in a row: not requeued." \
          "To continue: submit it again with a longer --time, or an earlier --signal, and output.dir=$output" >&2
        return 1
      elif [ -n "$warned" ]; then
        echo "the limit came before the program could save"
      elif [ -n "$saved" ]; then
        echo "the run died with exit code $code, having saved a checkpoint since it started"
      else
        say "the run died without having saved a checkpoint since it started: not requeued" >&2
        return 1
      fi
      ;;
  esac
}

requeue() { # requeue REASON
  local restarts=${SLURM_RESTART_COUNT:-0} limit=${MAX_REQUEUES:-50}
  if was_cancelled; then
    say "$1; cancelled, so not requeued. To continue: submit it again with output.dir=$output"
  elif [ "$restarts" -ge "$limit" ]; then
    say "$1; requeued $restarts times, which is the most (MAX_REQUEUES). To continue: submit it again with output.dir=$output"
  elif say "$1; requeueing, number $((restarts + 1))" && scontrol requeue "$SLURM_JOB_ID"; then
    return
  else
    say "SLURM did not requeue the job. To continue: submit it again with output.dir=$output"
  fi
}

main() {
  [ $# -ge 1 ] && [ -n "${SLURM_JOB_ID:-}" ] || { echo "usage, at the end of a job script: exec bash slurm/run_and_requeue.sh COMMAND..." >&2; exit 2; }
  child='' warned='' ending='' signalled='' code=1
  output=$(find_output "$@")
  checkpoint_at_start=$(identify_checkpoint "$output")

  # 1. Run. In the background: a shell takes signals only while it waits.
  # A requeued job goes on, also where the first start was told to begin anew or from a certain
  # checkpoint: the last key wins.
  [ "${SLURM_RESTART_COUNT:-0}" = 0 ] || set -- "$@" run.restart=auto
  trap warn_program USR1
  trap note_end TERM
  "$@" &
  child=$!
  wait_for_child

  # 2. Go on later, or end.
  local reason
  if reason=$(find_reason); then requeue "$reason"; fi
  say "exit code $code; output in $output"
  exit "$code"
}

main "$@"
