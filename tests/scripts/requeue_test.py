"""slurm/run_and_requeue.sh with stand-ins for SLURM's commands and for the program: which ends of a run
bring the job back.

Laws: exit code 5 does, 0, 2, 3, 4 and 6 do not; another code does where a checkpoint was saved since the
start, and after the warning of the time limit in any case, but not twice in a row without one; never
more than MAX_REQUEUES times, never after scancel; the exit code is the program's.
tests/slurm proves it on a SLURM; how the program itself takes the warning is in tests/app.
"""

import os
import signal
import subprocess
import time

from tests.app.program import ROOT, FolderTest

SCRIPT = ROOT / "slurm" / "run_and_requeue.sh"


class Requeue(FolderTest):
    def setUp(self):
        super().setUp()
        self.output = self.folder / "out"
        self.starts = 0
        # `scontrol requeue JOB` leaves a note, `squeue` tells the reason for which SLURM ends the job.
        self.stand_in("scontrol", 'echo "$@" >>requeued')
        self.stand_in("squeue", "cat reason")
        (self.folder / "reason").write_text("TimeLimit\n")

    def stand_in(self, name, body):
        return self.script(f"bin/{name}", f"#!/bin/bash\n{body}\n")

    def run_job(self, *command, signals=(), job=7, **environment):
        """One start of the job; (exit code, was it requeued?, what it said). The signals go to the batch
        shell when the program has begun."""
        for note in ("requeued", "begun", "told"):
            (self.folder / note).unlink(missing_ok=True)
        environment.update(PATH=f"{self.folder}/bin:{os.environ['PATH']}", SLURM_JOB_ID=str(job),
                           SLURM_RESTART_COUNT=str(self.starts))
        command = ["bash", str(SCRIPT), *map(str, command), f"output.dir={self.output}"]
        process = subprocess.Popen(command, cwd=self.folder, text=True, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, env=dict(os.environ, **environment))
        end = time.monotonic() + 60
        while signals and not (self.folder / "begun").exists() and time.monotonic() < end:
            time.sleep(0.01)
        for number in signals:
            process.send_signal(number)
            time.sleep(0.05)
        (self.folder / "told").touch()
        said = process.communicate(timeout=60)[0]
        self.starts += 1
        return process.returncode, (self.folder / "requeued").exists(), said

    def program(self, body):
        """`save NAME` leaves a checkpoint."""
        folder = f"{self.output}/checkpoints"
        save = f"save() {{ mkdir -p {folder}; echo $1 >{folder}/$1.h5; ln -sf $1.h5 {folder}/latest; }}"
        return self.stand_in("program", f"{save}\n{body}")

    def test_exit_codes(self):
        for code, back in ((0, False), (2, False), (3, False), (4, False), (5, True), (6, False)):
            self.assertEqual(self.run_job(self.program(f"save {code}; exit {code}"))[:2], (code, back))

    def test_a_death_brings_it_back_where_something_was_saved(self):
        code, back, said = self.run_job(self.program("exit 137"))
        self.assertEqual((code, back), (137, False), said)
        self.assertIn("without having saved a checkpoint", said)
        code, back, said = self.run_job(self.program("save a; exit 137"))
        self.assertEqual((code, back), (137, True), said)
        self.assertEqual(self.run_job(self.program("exit 137"))[:2], (137, False), "one of an earlier start does not count")

    def test_the_warning_is_passed_on_and_a_saved_run_comes_back(self):
        program = self.program("trap 'kill %1; save b; exit 5' USR2; sleep 100 & touch begun; wait")
        code, back, said = self.run_job(program, signals=[signal.SIGUSR1])
        self.assertEqual((code, back), (5, True), said)

    def warned_in_vain(self, **options):
        program = self.program("touch begun; exec sleep 100")
        return self.run_job(program, signals=[signal.SIGUSR1], **options)

    def test_a_limit_while_loading_gets_one_more_start_and_no_third(self):
        code, back, said = self.warned_in_vain()
        self.assertEqual((code, back), (128 + signal.SIGUSR2, True), said)
        self.assertIn("the limit came before the program could save", said)
        code, back, said = self.warned_in_vain()
        self.assertEqual((code, back), (128 + signal.SIGUSR2, False), said)
        self.assertIn("second time in a row", said)
        self.assertIn(f"output.dir={self.output}", said)

    def test_a_checkpoint_between_two_such_starts_counts(self):
        self.assertTrue(self.warned_in_vain()[1])
        program = self.program("save c; touch begun; exec sleep 100")
        self.assertTrue(self.run_job(program, signals=[signal.SIGUSR1])[1])
        self.assertTrue(self.warned_in_vain()[1])
        self.starts = 1
        self.assertTrue(self.warned_in_vain(job=8)[1], "of another job in the same folder")

    def test_bounds_and_cancelling(self):
        self.starts = 3
        code, back, said = self.run_job(self.program("exit 5"), MAX_REQUEUES="3")
        self.assertEqual((code, back), (5, False), said)
        (self.folder / "reason").write_text("None\n")
        program = self.program("touch begun; while [ ! -e told ]; do sleep 0.02; done; sleep 0.1; exit 5")
        code, back, said = self.run_job(program, signals=[signal.SIGTERM])
        self.assertEqual((code, back), (5, False), said)
        self.assertIn("cancelled", said)
