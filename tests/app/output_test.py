"""What a run writes, where others write too, where nothing can be written, and under names of any bytes.

Laws: one job at a time writes to output.dir, the second one is told which the first is and harms nothing, and a dead one keeps nobody
out; a disk that is full ends no run, hides no result, and costs no line; a command whose result could not be written does not end with
0; any string of a user reaches config.toml, report.json, checkpoints and the terminal as something that can be read.
"""

import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import tomllib


from tests.app.program import PROGRAM, attributes_of, espalier, put, small_files
from tests.app.restart_test import RestartTest, damage_of

LOCK = "espalier.lock"


def report_in(output):
    return json.loads(output[output.index("{\n"):output.index("\n}\n") + 2])


class Lock(RestartTest):
    def test_the_second_job_is_told_of_the_first_and_harms_nothing(self):
        self.make_it_last(20)
        expected = self.uncut()
        for ranks in (1, 3):
            job = self.under_way("run.checkpoint_every=1", "run.restart=never", ranks=ranks)
            job.signal(signal.SIGSTOP, 0)  # it is slow
            words = ["output.dir", str(self.output), f"process {job.pid(0)} on {socket.gethostname()}", "since 2"]
            self.fail_with(2, words, "train", self.config, "run.restart=never", ranks=4 - ranks)
            if ranks == 1:
                self.fail_with(2, words, "sample", self.config)
                self.succeed("-q", "plan", self.config, "--ranks", 2)
            job.signal(signal.SIGCONT, 0)
            self.arrives(job, expected)
            self.assertEqual(sorted(path.name for path in self.output.iterdir()),
                             ["checkpoints", "config.toml", "metrics.csv", "plan.json", "report.json", "weights.h5"])

    def test_a_killed_job_keeps_nobody_out(self):
        self.make_it_last(30)
        expected = self.uncut()
        job = self.under_way("run.checkpoint_minutes=1e-9")
        text = (self.output / LOCK).read_text()
        job.signal(signal.SIGKILL, 0)
        job.end()
        self.assertEqual((self.output / LOCK).read_text(), text, "it is left")
        output = self.succeed("train", self.config, ranks=2)
        self.assertRegex(output, f"{LOCK} was left behind by process {job.pid(0)} on .*, which has ended")
        self.assertIn("restart ", output)
        self.assertEqual(self.outcome(), expected)
        self.assertFalse((self.output / LOCK).exists())

    def test_a_lock_of_another_host_that_is_dead(self):
        self.output.mkdir()
        (self.output / LOCK).write_text("espalier-lock 1\nhost node17\npid 12\njob 4711\nsince 2024-05-06 13:14:15 UTC\n")
        output = self.succeed("train", self.config)
        self.assertIn("left behind by process 12 on node17, SLURM job 4711, since 2024-05-06 13:14:15 UTC", output)

    def test_every_end_gives_it_back(self):
        self.stopped([], "run.max_minutes=1e-9", ranks=2)
        self.assertEqual(sorted(path.name for path in self.output.iterdir()), ["checkpoints", "config.toml"])
        nowhere = self.folder / "a" / "b"
        self.fail_with(3, ["graph file"], "train", self.config, "graph.file=none.h5", f"output.dir={nowhere}", ranks=2)
        self.assertFalse(nowhere.parent.exists(), "nothing was written there")


class FullDisk(RestartTest):
    def limit(self, job, size):
        resource.prlimit(job.pid(0), resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    def test_lines_wait_until_there_is_room(self):
        self.make_it_last(60)
        expected = self.uncut()
        job = self.under_way("run.checkpoint_every=1")
        job.signal(signal.SIGSTOP, 0)
        rows = self.metrics.read_text().count("\n")
        self.limit(job, self.metrics.stat().st_size + 30)  # within a line
        job.signal(signal.SIGCONT, 0)
        job.let_it_work(0.12)  # some epochs
        job.signal(signal.SIGSTOP, 0)
        self.assertEqual(self.metrics.read_text().count("\n"), rows)
        self.assertTrue(self.metrics.read_text().endswith("\n"), "no torn line")
        checkpoints = {path.name for path in self.files()}
        self.assertTrue(all(damage_of(path) is None for path in self.files()))
        self.limit(job, resource.RLIM_INFINITY)
        job.signal(signal.SIGCONT, 0)
        code, output = job.end()
        self.assertEqual(code, 0, output)
        self.assertEqual(len(re.findall("warning: cannot write .*metrics.csv: File too large; its lines are kept", output)), 1, output)
        self.assertEqual(len(re.findall("warning: .*metrics.csv is written again; no line is missing", output)), 1, output)
        self.assertRegex(output, "warning: cannot save the checkpoint .*: File too large; .*training goes on without it")
        self.assertEqual(self.outcome(), expected)
        self.assertEqual(self.metrics.read_text().count("\n"), 61)
        self.assertTrue(checkpoints.isdisjoint(path.name for path in self.files()), "newer ones are there")

    def test_metrics_that_can_never_be_written_are_in_the_report(self):
        expected = self.uncut()
        (self.metrics / "in the way").mkdir(parents=True)
        for ranks in (1, 3):
            output = self.succeed("train", self.config, ranks=ranks)
            self.assertEqual(output.count("cannot write"), 1, output)
            self.assertIn("metrics.csv lacks lines; report.json has all epochs", output)
            self.assertIn("test accuracy", output)
            self.assertEqual(self.report(self.output)["weights_digest"], expected["weights"])
            self.assertIn("lacks lines", self.succeed("sample", self.config, ranks=ranks))

    def holds(self, epoch):
        """The checkpoints whose best weights are of that epoch."""
        return [path for path in self.files() if attributes_of(path)["best_epoch"] == epoch]

    def in_the_way(self, *names):
        """In an output folder that has nothing else."""
        shutil.rmtree(self.output, ignore_errors=True)
        for name in names:
            (self.output / name / "in the way").mkdir(parents=True)

    def test_weights_that_cannot_be_written_are_missed(self):
        expected = self.uncut()
        missing = self.output / "weights.h5"
        for ranks in (1, 3):
            self.in_the_way("weights.h5")
            output = self.fail_with(2, [str(missing), "Is a directory", "the run is done", str(self.output / "report.json"),
                                        "no checkpoint holds the same weights", "run.checkpoint_every"],
                                    "train", self.config, "run.checkpoint_minutes=0", ranks=ranks)
            self.assertIn("test accuracy", output)
            self.assertEqual(self.outcome(), expected)
        self.in_the_way("weights.h5")
        words = [str(missing), "holds the same weights", "infer --checkpoint"]
        self.fail_with(2, words, "train", self.config, "run.checkpoint_every=2")
        holder, = re.findall(r"(\S+checkpoints/\S+h5) holds the same weights", self.fail_with(2, words, "train", self.config, ranks=2, overwrite=False))
        self.assertIn(holder, map(str, self.holds(expected["best"])), "nothing was left to train")

    def test_all_that_cannot_be_written_is_missed_in_one_error(self):
        learnt = ("model.embedding=4", 'graph.feature_norm="none"', "run.checkpoint_minutes=0")
        for names, words, job, ranks in ((("report.json", "weights.h5"), ["standard output"], (), 2),
                                         (("weights.h5", "embeddings.h5"), ["no checkpoint holds the same weights"], learnt, 2),
                                         (("embeddings.h5",), [], learnt, 1)):
            if job:
                put(self.graph, {"nodes/features": None})
            self.in_the_way(*names)
            self.fail_with(2, [*(str(self.output / name) for name in names), *words], "train", self.config, *job, ranks=ranks)

    def test_weights_that_do_not_fit_and_the_checkpoint_of_an_earlier_epoch(self):
        """Only a checkpoint with the best weights of the whole run is named."""
        limit, wide = small_files(2**13), ("run.checkpoint_every=1", "model.hidden=64")
        self.fail_with(2, ["weights.h5: File too large", "no checkpoint holds the same weights"], "train", self.config, "model.hidden=64",
                       "run.checkpoint_minutes=0", preexec_fn=limit)
        shutil.rmtree(self.output)
        self.succeed("-q", "train", self.config, *wide, "train.epochs=1")
        for epochs in (2, 3, 6, 9):
            output = self.fail_with(2, ["weights.h5: File too large"], "train", self.config, *wide, f"train.epochs={epochs}", preexec_fn=limit)
            told = re.findall(r"(\S+checkpoints/\S+h5) holds the same weights", output)
            report = self.report(self.output) if "standard output" not in output else report_in(output)
            self.assertEqual(told, [str(path) for path in self.holds(report["best_epoch"])], output)

    def test_a_report_that_cannot_be_written_goes_to_standard_output(self):
        expected = self.uncut()
        path = self.output / "report.json"
        (path / "in the way").mkdir(parents=True)
        for command, ranks in (("train", 1), ("train", 3), ("sample", 2)):
            for quiet in ((), ("-q",)) if command == "train" else ((),):
                output = self.fail_with(2, [str(path), "Is a directory", "the run is done", "standard output"], *quiet, command,
                                        self.config, ranks=ranks)
                report = report_in(output)
                if command == "train":
                    self.assertEqual(report["weights_digest"], expected["weights"])
                    self.assertEqual(report["test"], expected["test"])
                    self.assertEqual("test accuracy" in output, not quiet)
                self.assertFalse((self.output / LOCK).exists())

    def test_a_folder_that_goes_away_comes_back(self):
        self.make_it_last(30)
        expected = self.uncut()
        job = self.under_way()
        self.output.rename(self.folder / "moved")
        output = self.arrives(job, expected)
        self.assertIn(f"{LOCK} was removed or replaced", output)

    def test_a_config_that_cannot_be_written_is_an_error_before_any_work(self):
        self.succeed("-q", "train", self.config)
        report, rows = self.report(self.output), self.metrics.read_text()
        (self.output / "config.toml").unlink()
        (self.output / "config.toml").mkdir()
        self.fail_with(2, ["config.toml"], "train", self.config, ranks=2)
        self.assertEqual((self.report(self.output), self.metrics.read_text()), (report, rows), "of the run before")

    def test_on_a_small_disk(self):
        """A tmpfs of 64 kB: checkpoints do not fit, then nothing does."""
        self.output.mkdir()
        if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", self.output],
                                               stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("cannot mount a tmpfs here")
        self.addCleanup(subprocess.run, ["umount", "-l", self.output], check=True)
        wide = ("model.hidden=256", "run.checkpoint_every=1")
        expected = self.uncut(*wide)
        output = self.succeed("train", self.config, *wide, ranks=3)
        self.assertEqual(len(re.findall("cannot save the checkpoint .*: No space left on device", output)), 3, output)
        self.assertEqual(self.outcome(), expected)
        with self.assertRaises(OSError), open(self.output / "ballast", "wb") as file:
            while True:
                file.write(bytes(4096))
                file.flush()
        self.fail_with(2, ["cannot write to the folder output.dir", "No space left on device"], "train", self.config, *wide, ranks=3)
        self.assertEqual(self.outcome(), expected, "of the run before")


class StandardOutput(RestartTest):
    def run_into(self, target, *arguments):
        with open(target, "w") as sink:
            done = subprocess.run([PROGRAM, *map(str, arguments)], stdout=sink, stderr=subprocess.PIPE, text=True, timeout=60)
        return done.returncode, done.stderr

    def test_a_result_that_was_not_written_is_an_error(self):
        machine, full = self.folder / "machine.toml", self.folder / "full"
        full.symlink_to("/dev/full")  # a bug would replace the link, not the device
        for command in (("info", self.graph), ("version",), ("help",), ("help", "train"), ("-h",), ("train", "-h"),
                        ("sample", self.config), ("train", self.config, "--dry-run"),
                        ("plan", self.config, "--ranks", 2, "-o", self.folder / "plan.json")):
            code, errors = self.run_into("/dev/full", *command)
            self.assertEqual(code, 2, (command, errors))
            self.assertEqual(errors, "espalier: error: cannot write to standard output: No space left on device; "
                                     "what was printed is not complete\n", command)
        for command in (("plan", self.config, "--ranks", 2, "-o", full), ("calibrate", "-o", full)):
            self.fail_with(2, [str(full), "is a device, not a file"], *command)
            self.assertTrue(full.is_symlink() and full.is_char_device())
        self.assertFalse(machine.exists())

    def test_a_closed_one_is_an_error_too(self):
        close = "exec 0<&- 1>&-; exec \"$@\""
        before = self.graph.read_bytes()
        done = subprocess.run(["bash", "-c", close, "bash", PROGRAM, "info", str(self.graph)], stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, "^espalier: error: cannot write to standard output: Bad file descriptor; .*\n$")
        self.assertEqual(self.graph.read_bytes(), before)

    def test_a_training_has_done_its_work_without(self):
        expected = self.uncut()
        code, errors = self.run_into("/dev/full", "train", self.config)
        self.assertEqual(code, 0, errors)
        self.assertRegex(errors, "^espalier: warning: cannot write to standard output: No space left on device; .*\n$")
        self.assertEqual(self.outcome(), expected)
        (self.output / "report.json").unlink()
        (self.output / "report.json").mkdir()
        (self.output / "report.json" / "in the way").touch()
        code, errors = self.run_into("/dev/full", "train", self.config)
        self.assertEqual(code, 2, errors)
        self.assertIn("its report is on standard error", errors)
        self.assertEqual(report_in(errors)["test"], expected["test"])

    def test_who_reads_a_part_gets_it(self):
        done = subprocess.run(f"{PROGRAM} info {self.graph} | head -1", shell=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_DFL))
        self.assertEqual((done.stdout, done.stderr), (f"file         {self.graph}\n", ""))


class AnyBytes(RestartTest):
    NAME = "r1\tx a\nb quote \" and \\ \x1b[31mred\x07\x7f\x01\x1f caf\u00e9 \u20ac \U0001F333 \u0085"

    def test_a_folder_of_any_name_trains_restarts_and_reports(self):
        expected = self.uncut("train.epochs=2")
        folder = self.folder / self.NAME
        output = self.stopped_run("train", self.config, f"output.dir={folder}", "train.epochs=2", ranks=3)
        output += self.succeed("train", self.config, f"output.dir={folder}", "train.epochs=2", "run.checkpoint_every=2")
        self.assertEqual(self.outcome(folder), expected)
        report, config = self.report(folder), tomllib.loads((folder / "config.toml").read_text())
        self.assertEqual((report["config"]["output"]["dir"], config["output"]["dir"]), (str(folder), str(folder)))
        self.assertTrue(report["restart"]["checkpoint"].startswith(str(folder)))
        self.assertIsNone(re.search("[\x00-\x08\x0b-\x1f\x7f\x80-\x9f\ufffd]", output), repr(output))
        self.assertIn("nothing is left to train", self.succeed("train", folder / "config.toml", overwrite=False))
        plan = self.folder / (self.NAME + ".json")
        self.succeed("plan", folder / "config.toml", "--ranks", 2, "-o", plan)
        self.assertEqual(json.loads(plan.read_text())["config"]["output"]["dir"], str(folder))

    def test_a_name_that_is_not_utf8_is_refused(self):
        for key in ("output.dir", "graph.file", "run.restart"):
            self.fail_with(2, [key, "UTF-8", "\\xff"], "train", self.config, f"{key}={self.folder}/\udcff", ranks=2)
        self.config.write_bytes(self.config.read_bytes().replace(b"/out", b"/\xff"))
        self.fail_with(2, [str(self.config), "utf-8"], "train", self.config)
        self.config.write_text('[output]\ndir = "a\\u0000b"\n[graph]\nfile = "x"')
        self.fail_with(2, ["output.dir", "U+0000"], "train", self.config)

    def test_other_names_may_have_any_bytes(self):
        strange = self.folder / "g\udcff\x1b[2J\n.h5"
        strange.symlink_to(self.graph)
        output = self.succeed("info", strange)
        self.assertIn("g\\xff\\x1b[2J\\x0a.h5", output)
        self.assertIn("g\\xff\\x1b[2J\\x0b.toml", self.fail_with(2, [], "train", self.folder / "g\udcff\x1b[2J\x0b.toml"))
        plan = self.folder / "p\udcff\x1b.json"
        self.assertIn("p\\xff\\x1b.json", self.succeed("plan", self.config, "--ranks", 2, "-o", plan))
        json.loads(plan.read_text())
        machine = self.folder / "machine.toml"
        self.succeed("calibrate", "--name", "m\udcff\x1b\t", "-o", machine)
        self.assertEqual(tomllib.loads(machine.read_text())["name"], "m\ufffd\x1b\t")

    def test_messages_are_one_line_without_control_characters_and_bounded(self):
        for arguments in (("\x1b[2J",), ("train", "\x1b[2J\nespalier: error: forged"), ("train", self.config, "a\x1b=1"),
                          ("train", self.config, "model.kind=\x1b\n"), ("info", "\x1b" * 3000), ("train", self.config, "x" * 100000),
                          ("info", "--" + "x" * 100000), ("train", self.config, "model.kind=" + "\x01" * 100000)):
            code, output = espalier(*arguments)
            self.assertIn(code, (2, 3), output)
            self.assertEqual(output.count("\n"), 1, output)
            self.assertNotRegex(output, "[\x00-\x09\x0b-\x1f\x7f]")
            self.assertLess(len(output), 10000)
