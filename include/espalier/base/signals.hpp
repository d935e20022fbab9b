// What the batch system asks of a running job, by signals to any of its ranks.
//
//     SIGUSR1                     save a checkpoint and go on
//     SIGUSR2, SIGTERM, SIGINT    finish the step, save a checkpoint, end
//     SIGTERM or SIGINT again     two seconds later or more: end at once, as the signal does by default. Sooner it is the same
//                                 one: at a time limit SLURM sends SIGTERM twice, from its daemon and through srun
//
// Handlers only take notes; whoever works in steps asks between two of them.
#pragma once

namespace espalier {

/// Takes notes from now on. `speaks`: say on stderr that a signal to stop has come.
void watch_signals(bool speaks);

/// Was a checkpoint asked for since the last call?
bool take_checkpoint_request();

/// The signal that asked to stop, the last of several, 0 while none did.
int stop_signal();

/// "SIGTERM".
const char* signal_name(int number);

}  // namespace espalier
