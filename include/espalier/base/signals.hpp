// What the batch system, or a user, asks of a running job, by signals to any of its ranks.
//
// While it works in steps (StepsUnderWay), handlers only take notes; whoever works asks between two
// steps:
//
//     SIGUSR1                     save a checkpoint and go on
//     SIGUSR2, SIGTERM, SIGINT    finish the step, save a checkpoint, end
//     SIGTERM or SIGINT again     two seconds later or more: end at once. Sooner it is the same
//                                 one: at a time limit SLURM sends SIGTERM twice, from its daemon
//                                 and through srun
//
// Before that, while it reads, imports, generates or plans, there is nothing to save: a signal to
// stop ends the process at once, and a SIGUSR1 is kept for the first step. On the way out, after an
// error or at the end, a first signal to stop is passed over: mpirun sends it to all when one has
// left. SIGHUP, SIGQUIT, SIGPIPE, SIGXCPU and SIGXFSZ end the process at once at any time.
//
// To end at once is: remove the temporary files (base/output_file.hpp), say in one line what
// ends the job (base/final_message.hpp), and take the signal's default action, so that shells and
// launchers see 128 + its number.
#pragma once

namespace espalier {

/// Handles signals from now on.
void watch_signals();

/// What it means when the job ends at once: "nothing was written". A literal; "" at first.
void note_consequence(const char* words);
const char* noted_consequence();

/// While one lives, stop signals are noted, not followed at once. Afterwards the process is on its
/// way out.
class StepsUnderWay {
 public:
  StepsUnderWay();
  ~StepsUnderWay();
  StepsUnderWay(const StepsUnderWay&) = delete;
  StepsUnderWay& operator=(const StepsUnderWay&) = delete;
};

/// The process is on its way out, and what there is to say is said or will be.
void note_leaving();

/// Was a checkpoint asked for since the last call?
bool take_checkpoint_request();

/// The signal that asked to stop, the last of several, 0 while none did.
int stop_signal();

/// "SIGTERM".
const char* signal_name(int number);

}  // namespace espalier
