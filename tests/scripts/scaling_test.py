"""scripts/scaling.py: studies of the real program on tiny graphs, of a program that fails when it is told to, and figures by hand.

Laws: what is complete is not run again, what failed is shown and only retried when asked, what was interrupted is simply not run yet;
medians, speed-up and efficiency are those computed by hand; runs whose samples differ are an error; a page refers to nothing outside
of its folder. Plots are drawn where there is a matplotlib.
"""

import contextlib
import csv
import importlib.util
import io
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest
import xml.etree.ElementTree
from unittest import mock

from scaling import launch, plots, study as studies
from tests.app.program import PROGRAM, ROOT, FolderTest, job_text, run_python

SCRIPT = ROOT / "scripts" / "scaling.py"
specification = importlib.util.spec_from_file_location("scaling_script", SCRIPT)
script = importlib.util.module_from_spec(specification)
specification.loader.exec_module(script)

PLOTS = importlib.util.find_spec("matplotlib") is not None
NO_PLOTS = "this python3 has no matplotlib"
# Without matplotlib everything else works, and the exit code says that the plots are missing.
GOOD = 0 if PLOTS else 1

JOB = ("sampler.fanout=[4, 3]", "sampler.batch_size=32", "model.hidden=8", "model.layers=2", "train.eval_every=2", "train.reproducible=true")

# Stands for espalier: writes the report of its case, or does what the file `behaviour` beside it says for that number of ranks.
FAKE = """\
#!{python}
import json, os, pathlib, sys, time
keys = dict(word.split("=", 1) for word in sys.argv if "=" in word)
ranks, folder = int(os.environ["RANKS"]), pathlib.Path(keys["output.dir"])
with open({log!r}, "a") as log:
    log.write(f"{{folder.name}} {{os.getpid()}} {{' '.join(sys.argv[1:])}}\\n")
behaviour = json.loads(pathlib.Path({behaviour!r}).read_text()).get(str(ranks), {{}})
if behaviour.get("sleep"):
    time.sleep(behaviour["sleep"])
if behaviour.get("exit") and "epochs" not in behaviour or behaviour.get("silent"):
    print("espalier: the <first> line\\n" + 20 * "farewell\\n" + "the reason & why")
    sys.exit(behaviour.get("exit"))
epochs = [{{"epoch": e, "loss": behaviour.get("loss", 1.0), "sample_digest": behaviour.get("digest", "00") + str(e), "batches": 8,
           "seconds": {{"total": 1.0 / ranks, "sample": 0.5 / ranks}}, "bytes": {{}}}} for e in range(1, 1 + behaviour.get("epochs", 3))]
report = {{"espalier": "0", "ranks": ranks, "replication": int(keys["grid.replication"]), "threads": 1, "device": "cpu",
          "config": {{"train": {{"reproducible": True, "batches_per_step": 1}}}}, "weights_digest": behaviour.get("weights", "w"),
          "graph": {{"nodes": 1, "edges": 1, "features": 1}}, "epochs": epochs}}
(folder / "report.json").write_text(json.dumps(report)[:behaviour.get("cut")])
sys.exit(behaviour.get("exit"))
"""


def scaling(*words, env=None):
    """(exit code, standard output, standard error) of the script, in this process and without its plots, which take most of its time."""
    on_signal = signal.getsignal(signal.SIGTERM)
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err, contextlib.chdir(ROOT), \
            mock.patch.dict(os.environ, env or {}), mock.patch.object(plots, "draw_all", lambda *_: []):
        try:
            code = script.main([str(word) for word in words])
        finally:
            signal.signal(signal.SIGTERM, on_signal)
    return code, out.getvalue(), err.getvalue()


def scaling_with_plots(*words, env=None):
    """The same in a process of its own."""
    done = run_python(SCRIPT, *words, env=dict(os.environ, **(env or {})), cwd=ROOT)
    return done.returncode, done.stdout, done.stderr


class Studies(FolderTest):
    def setUp(self):
        super().setUp()
        self.study = self.folder / "study"

    def config(self, graph=""):
        path = self.folder / "config.toml"
        path.write_text(job_text(graph, "out", *JOB))
        return path

    def rows(self, name):
        with open(self.study / name, newline="") as file:
            return list(csv.DictReader(file))

    def report(self, case):
        return json.loads((self.study / "cases" / case / "report.json").read_text())

    def page(self):
        return (self.study / "index.html").read_text()

    def refused(self, *words, env=None):
        """Exit code 2 and one line; returns it."""
        code, out, err = scaling(*words, env=env)
        self.assertEqual((code, err.count("\n")), (2, 1), out + err)
        self.assertTrue(err.startswith("scaling.py: "), err)
        return err


# ---- The program itself ----------------------------------------------------------------------------------------------


class RealProgram(Studies):
    def generated(self):
        graph = self.folder / "graph.h5"
        subprocess.run([PROGRAM, "generate", "planted", "--nodes", "600", "--classes", "4", "--features", "6", "--seed", "3", "-o", graph],
                       check=True, stdout=subprocess.DEVNULL, timeout=100)
        return graph

    def test_a_strong_study_runs_resumes_and_grows(self):
        words = ["run", self.config(self.generated()), "--ranks", "1,2", "--replication", "1,2", "--epochs", "3", "--output", self.study,
                 "--program", PROGRAM, "train.learning_rate=0.02"]
        code, out, err = scaling_with_plots(*words, "--repeats", "1")
        self.assertEqual(code, GOOD, out + err)
        self.assertIn("left out, as c does not divide p: p 1 c 2", out)
        self.assertIn("3 complete, 0 failed, 0 not run", out)
        cases = ["p1-c1-partitioned-run1", "p2-c1-partitioned-run1", "p2-c2-partitioned-run1"]
        self.assertEqual([row["state"] for row in self.rows("runs.csv")], ["complete"] * 3)
        reports = [self.report(case) for case in cases]
        # One trajectory: a step averages as many batches for every p, the largest p; losses and weights are equal.
        self.assertEqual({report["config"]["train"]["batches_per_step"] for report in reports}, {2})
        self.assertEqual({report["config"]["train"]["learning_rate"] for report in reports}, {0.02})
        self.assertEqual(len({report["weights_digest"] for report in reports}), 1)
        self.assertIn("so are losses and final weights", self.page())
        self.assertNotIn("error\">", self.page())
        bytes_fetched = {(row["ranks"], row["replication"]): int(row["bytes_fetch"]) for row in self.rows("points.csv")}
        self.assertEqual((bytes_fetched["1", "1"], bytes_fetched["2", "2"]), (0, 0))
        self.assertEqual(bytes_fetched["2", "1"],
                         round(sum(epoch["bytes"]["fetch"]["total"] for epoch in reports[1]["epochs"][1:]) / 2))

        times = {case: (self.study / "cases" / case / "report.json").stat().st_mtime_ns for case in cases}
        code, out, err = scaling(*words, "--repeats", "2")
        self.assertEqual(code, GOOD, out + err)
        self.assertIn("3 of 6 cases have been run already", out)
        self.assertIn("6 complete", out)
        self.assertEqual(times, {case: (self.study / "cases" / case / "report.json").stat().st_mtime_ns for case in cases})

    def test_in_a_weak_study_the_graph_grows_with_p(self):
        code, out, err = scaling("run", self.config(), "--study", "weak", "--ranks", "1,2", "--generate",
                                 "planted --nodes 300 --classes 4 --features 6", "--epochs", "2", "--repeats", "1", "--output", self.study,
                                 "--program", PROGRAM)
        self.assertEqual(code, GOOD, out + err)
        reports = [self.report(f"p{p}-c1-partitioned-run1") for p in (1, 2)]
        self.assertEqual([report["graph"]["nodes"] for report in reports], [300, 600])
        self.assertEqual([report["config"]["train"]["batches_per_step"] for report in reports], [1, 2])
        self.assertNotEqual(*[report["epochs"][0]["sample_digest"] for report in reports])  # and that is no error here
        # The time of a minibatch of a rank: seconds x p / batches of the second epoch.
        for report, row in zip(reports, self.rows("points.csv")):
            epoch = report["epochs"][1]
            expected = (epoch["seconds"]["total"] - epoch["seconds"]["evaluate"]) * report["ranks"] / epoch["batches"]
            self.assertAlmostEqual(float(row["seconds"]) / expected, 1, places=4)

    def test_an_rmat_graph_doubles_by_its_scale(self):
        for p, scale in ((1, "10"), (2, "11"), (8, "13")):
            case = studies.Case(p, 1, "partitioned", 1)
            study = studies.Study("weak", "train", "espalier", "mpirun -np {ranks}", 1, 2, [], "rmat --edge-factor 8 --scale 10", None,
                                  "", "", "/", [], "", "", [case], self.study)
            self.assertEqual(launch.generate_command(study, case, "g.h5"), [
                "mpirun", "-np", str(p), "espalier", "generate", "rmat", "--edge-factor", "8", "--scale", scale, "-o", "g.h5"])

    def test_sampling_alone(self):
        code, out, err = scaling("run", self.config(self.generated()), "--command", "sample", "--ranks", "1,2", "--epochs", "2",
                                 "--topology", "partitioned,replicated", "--repeats", "1", "--output", self.study, "--program", PROGRAM)
        self.assertEqual(code, GOOD, out + err)
        rows = {(row["ranks"], row["topology"]): row for row in self.rows("points.csv")}
        self.assertEqual(len(rows), 4)
        self.assertEqual(int(rows["2", "replicated"]["bytes_sample"]), 0)
        self.assertGreater(int(rows["2", "partitioned"]["bytes_sample"]), 0)
        self.assertEqual(len(self.report("p2-c1-replicated-run1")["epochs"]), 2)

    def test_loads_of_servers_with_and_without_a_cut(self):
        graph = self.generated()
        subprocess.run([PROGRAM, "-q", "partition", graph, "--edges", "--parts", "8", "-o", self.folder / "cut.h5"], check=True, timeout=100)
        code, out, err = scaling("run", self.config(graph), "--command", "sample", "--ranks", "1,2", "--epochs", "2", "--topology",
                                 "partitioned,vertex-cut", "--repeats", "1", "--output", self.study, "--program", PROGRAM,
                                 f"graph.cut={self.folder}/cut.h5", "grid.schedule=push")
        self.assertEqual(code, GOOD, out + err)
        rows = {(row["ranks"], row["topology"]): row for row in self.rows("points.csv")}
        for topology in ("partitioned", "vertex-cut"):
            served = self.report(f"p2-c1-{topology}-run1")["epochs"][1]["served"]
            self.assertAlmostEqual(float(rows["2", topology]["served_picks_max_over_mean"]), served["picks"]["max_over_mean"], 5)
            self.assertIn(f"<td>{served['entries']['max_over_mean']:.2f}, {served['entries']['max_over_min']:.2f}</td>", self.page())

    def test_a_key_that_the_program_refuses_fails_with_its_words(self):
        code, out, err = scaling("run", self.config(self.generated()), "--ranks", "1", "--repeats", "1", "--output", self.study, "--program",
                                 PROGRAM, "train.learning_rat=1")
        self.assertEqual(code, 1)
        self.assertIn("exit code 2", out)
        self.assertIn("learning_rate", out)  # the nearest known key
        self.assertIn("learning_rate", self.page())


# ---- A program that does as it is told -------------------------------------------------------------------------------


class FakeProgram(Studies):
    def setUp(self):
        super().setUp()
        self.log = self.folder / "log"
        self.program = self.script("program", FAKE.format(python=sys.executable, log=str(self.log), behaviour=str(self.folder / "behaviour")))
        self.behave()

    def behave(self, **of_ranks):
        """behave(p2={"exit": 3}): what the program does on two ranks."""
        (self.folder / "behaviour").write_text(json.dumps({name[1:]: what for name, what in of_ranks.items()}))

    def words(self, *more, action="run", ranks="1,2"):
        return [action, self.config("x.h5"), "--ranks", ranks, "--repeats", "1", "--epochs", "3", "--output", self.study, "--program",
                self.program, "--launcher", "env RANKS={ranks}", *more]

    def ran(self):
        """The cases that were started, in order; forgets them."""
        names = [line.split()[0] for line in self.log.read_text().splitlines()] if self.log.exists() else []
        self.log.write_text("")
        return names

    def test_a_failed_case_is_shown_and_only_retried_when_asked(self):
        self.behave(p2={"exit": 3})
        code, out, err = scaling(*self.words())
        self.assertEqual(code, 1, err)
        self.assertIn("1 complete, 1 failed, 0 not run", out)
        self.assertIn("the reason & why", out)
        self.assertIn("p2-c1-partitioned-run1 failed: exit code 3", self.page())
        # The end of its log, and the program's own words from before.
        self.assertRegex(self.page(), r"<pre>espalier: the &lt;first&gt; line\n\.\.\.\n(farewell\n){11}the reason &amp; why</pre>")
        self.assertEqual([(row["state"], row["exit_code"]) for row in self.rows("runs.csv")], [("complete", "0"), ("failed", "3")])
        self.assertEqual([row["ranks"] for row in self.rows("points.csv")], ["1"])
        self.assertEqual(self.ran(), ["p1-c1-partitioned-run1", "p2-c1-partitioned-run1"])
        self.behave()
        self.assertEqual(scaling(*self.words())[0], 1)
        self.assertEqual(self.ran(), [])
        code, out, err = scaling(*self.words("--retry"))
        self.assertEqual(code, GOOD, out + err)
        self.assertEqual(self.ran(), ["p2-c1-partitioned-run1"])
        self.assertNotIn("failed:", self.page())

    def test_a_damaged_report_is_a_failure_with_a_reason(self):
        words = self.words("--retry", ranks="1,2,4,8")
        self.behave(p2={"cut": 100}, p4={"cut": 0})
        code, out, _ = scaling(*words)
        self.assertEqual((code, "2 complete, 2 failed" in out), (1, True), out)
        for ranks in (2, 4):
            self.assertRegex(out, rf"p {ranks} .* FAILED: report.json is damaged")
            self.assertIn(f"p{ranks}-c1-partitioned-run1 failed: report.json is damaged", self.page())
        # The old report does not stand for a run that wrote none.
        self.behave(p2={"silent": True})
        self.assertRegex(scaling(*words)[1], "p 2 .* FAILED: no report.json was written")
        self.behave()
        self.assertEqual(scaling(*words)[0], GOOD)
        # Damaged later, or by a report of another grid, or emptied of epochs: seen as well, by `report` alone too.
        reasons = {1: "of 7 ranks", 2: "no epoch", 4: "lacks", 8: "lacks"}
        for ranks in reasons:
            path = self.study / "cases" / f"p{ranks}-c1-partitioned-run1" / "report.json"
            good = json.loads(path.read_text())
            path.write_text(json.dumps({1: {**good, "ranks": 7}, 2: {**good, "epochs": []}, 4: [],
                                        8: {key: good[key] for key in good if key != "epochs"}}[ranks]))
        code, out, _ = scaling("report", self.study)
        self.assertEqual((code, "4 failed" in out), (1, True), out)
        for ranks, reason in reasons.items():
            self.assertRegex(self.page(), f"p{ranks}-c1-partitioned-run1 failed: [^<]*{reason}")

    def test_an_interrupted_study_goes_on_where_it_stopped(self):
        self.behave(p2={"sleep": 60})
        for how in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(signal=how):
                shutil.rmtree(self.study, ignore_errors=True)
                self.ran()
                # Python would not make an interrupt of a SIGINT that it inherits as ignored.
                process = subprocess.Popen([sys.executable, SCRIPT, *map(str, self.words())], cwd=ROOT, stdout=subprocess.PIPE,
                                           stderr=subprocess.PIPE, text=True,
                                           preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
                deadline = time.time() + 60
                while "p2" not in self.log.read_text() and time.time() < deadline:
                    time.sleep(0.05)
                process.send_signal(how)
                _, err = process.communicate(timeout=60)
                self.assertEqual(process.returncode, 130, err)
                self.assertIn("the same command goes on", err)
                child = int(self.log.read_text().splitlines()[-1].split()[1])
                deadline = time.time() + 20  # whoever inherits it may be busy
                while pathlib.Path(f"/proc/{child}").exists() and time.time() < deadline:
                    time.sleep(0.05)
                self.assertRaises(ProcessLookupError, os.kill, child, 0)
                self.assertIn("1 complete, 0 failed, 1 not run", scaling("report", self.study)[1])
                self.assertIn("1 of 2 runs are not there yet", self.page())
        self.behave()
        self.ran()
        self.assertEqual(scaling(*self.words())[0], GOOD)
        self.assertEqual(self.ran(), ["p2-c1-partitioned-run1"])

    def test_a_program_that_saved_a_checkpoint_and_stopped_has_not_failed(self):
        self.behave(p1={"exit": 5, "epochs": 1})  # and has reported what it had done
        code, out, err = scaling(*self.words())
        self.assertEqual(code, 130, out + err)
        self.assertIn("0 complete, 0 failed, 2 not run", scaling("report", self.study)[1])
        self.behave()
        self.assertEqual(scaling(*self.words())[0], GOOD)

    def test_a_limit_ends_a_hanging_case(self):
        self.behave(p1={"sleep": 1000})
        code, out, _ = scaling(*self.words("--limit", "1"))
        self.assertEqual((code, "exit code 124" in out, "--limit" in out), (1, True, True), out)

    def test_different_samples_losses_or_weights_are_an_error(self):
        for what, words in (({"digest": "bad"}, "sample digests of epoch 1"), ({"loss": 1.0000000001}, "losses of epoch 1"),
                            ({"weights": "v"}, "final weights")):
            with self.subTest(what):
                shutil.rmtree(self.study, ignore_errors=True)
                self.behave(p2=what)
                code, _, err = scaling(*self.words())
                self.assertEqual((code, "correctness error" in err), (1, True), err)
                self.assertIn(words, err)
                self.assertRegex(self.page(), f'class="error">Correctness error: [^<]*{words}')
                self.assertNotIn('class="good"', self.page())

    def test_what_cannot_be_is_refused_in_one_line(self):
        self.assertEqual(scaling(*self.words())[0], GOOD)
        self.ran()
        self.assertIn("holds another study (--threads differ)", self.refused(*self.words("--threads", "2")))
        self.assertIn("holds another study (keys differ)", self.refused(*self.words("train.seed=1")))
        (self.folder / "mine").mkdir()
        (self.folder / "mine" / "file").touch()
        self.assertIn("is no study", self.refused(*self.words("--output", self.folder / "mine")))
        self.assertIn("holds no study", self.refused("report", self.folder / "mine"))
        new = ["--output", self.folder / "new"]
        self.assertIn("no program at", self.refused(*self.words(*new, "--program", self.folder / "absent")))
        self.assertIn("nowhere/mpirun is not found", self.refused(*self.words(*new, "--launcher", "nowhere/mpirun -np {ranks}")))
        self.assertIn("must divide", self.refused(*self.words(*new, "--replication", "3"))[-200:])
        self.assertIn("use --replication", self.refused(*self.words(*new, "grid.replication=2")))
        self.assertIn("--typo is no option", self.refused(*self.words(*new, "--typo")))
        self.assertIn("cannot read the config file", self.refused("run", self.folder / "none.toml", *self.words(*new)[2:]))
        self.assertIn("needs --generate", self.refused(*self.words(*new, "--study", "weak")))
        self.assertIn("power of two", self.refused(*self.words(*new, "--study", "weak", "--generate", "rmat --scale 9", ranks="1,3")))
        self.assertFalse((self.folder / "new").exists())
        self.assertEqual(self.ran(), [])

    def test_the_trajectory_stays_when_ranks_are_added(self):
        scaling(*self.words())
        scaling(*self.words(ranks="1,2,4"))
        started = [line.split() for line in self.log.read_text().splitlines()]
        self.assertEqual([words[0] for words in started], [f"p{p}-c1-partitioned-run1" for p in (1, 2, 4)])
        self.assertTrue(all("train.batches_per_step=2" in words for words in started))
        self.assertTrue(all({"run.restart=never", "train.early_stop=0"} <= set(words) for words in started))
        self.ran()
        shutil.rmtree(self.study)
        scaling(*self.words("train.batches_per_step=6"))
        self.assertEqual(re.findall(r"batches_per_step=\d+", self.log.read_text()), ["batches_per_step=6"] * 2)

    def test_submitting_makes_one_array_per_number_of_ranks_and_none_twice(self):
        code, out, err = scaling(*self.words("--replication", "1,2", "--ranks-per-node", "4", "--at-once", "2", "--sbatch", "--account=a b",
                                             "--dry-run", action="submit", ranks="2,4,6"))
        self.assertEqual(code, 0, err)
        lines = out.splitlines()
        self.assertEqual(len(lines), 3, out)
        for line, words in zip(lines, ("--nodes=1 --ntasks=2 --ntasks-per-node=2", "--nodes=1 --ntasks=4 --ntasks-per-node=4",
                                       "--nodes=2 --ntasks=6 --ntasks-per-node=4")):
            self.assertIn(words, line)
            self.assertIn("--account=a b ", line)
        self.assertIn("--array=0-1%2 ", lines[0])
        self.assertIn("--array=4-5%2 ", lines[2])

        for name, text in (("sbatch", f"echo \"$@\" >> {self.folder}/submitted; echo $((40 + $(wc -l < {self.folder}/submitted)));"),
                           ("squeue", "echo 41_0; echo 43_5;")):
            self.script(f"bin/{name}", f"#!/bin/sh\n{text}\n")
        env = {"PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}"}
        words = self.words("--replication", "1,2", action="submit", ranks="2,4,6")
        code, out, err = scaling(*words, env=env)
        self.assertEqual((code, "job 41: 2 cases of 2 ranks" in out), (0, True), out + err)
        self.assertEqual(json.loads((self.study / "jobs.json").read_text()), {"41": [0, 1], "42": [2, 3], "43": [4, 5]})
        scaling("case", self.study, "1")
        code, out, err = scaling(*words, env=env)  # 0 and 5 wait in the queue, 1 is complete
        self.assertIn("2 cases are in the queue already: jobs 41, 43", out + err)
        arrays = re.findall(r"--array=(\S+)", (self.folder / "submitted").read_text())
        self.assertEqual(arrays, ["0-1", "2-3", "4-5", "2-3", "4"])

    def test_a_task_of_the_array_runs_its_case_once(self):
        scaling(*self.words("--dry-run", action="submit"))
        self.behave(p2={"exit": 7})
        self.assertEqual([scaling("case", self.study, index)[0] for index in (0, 1, 0)], [0, 1, 0])
        self.assertEqual(self.ran(), ["p1-c1-partitioned-run1", "p2-c1-partitioned-run1"])
        self.assertIn("has cases 0 to 1", self.refused("case", self.study, "2"))
        # At the end of the job's time the batch system ends the program: that is no failure of the case.
        scaling("case", self.study, "1", env={"SLURM_JOB_END_TIME": str(int(time.time()) + 2)})
        self.assertIn("1 complete, 0 failed, 1 not run", scaling("report", self.study)[1])


# ---- Figures by hand -------------------------------------------------------------------------------------------------


def served(over_mean, over_least):
    return {what: {"total": 100, "max_over_mean": over_mean, "max_over_min": over_least} for what in ("rows", "entries", "picks")}


def epoch(number, total, sample, forward, evaluate=0.0, volume=None, batches=10):
    return {"epoch": number, "loss": 1.0, "sample_digest": f"d{number}", "batches": batches,
            "seconds": {"total": total + evaluate, "sample": sample, "forward": forward, "evaluate": evaluate},
            "bytes": {"sample": volume} if volume else {"sample": {"total": 0, "max_rank": 0, "messages": 0}}}


class FiguresByHand(Studies):
    """p = 2 as the base: its runs take 8 and 10 s per epoch (medians without the first epoch), p = 4 takes 6, p = 8 takes 1.5."""

    def write(self, kind="strong", topologies=("partitioned",)):
        volume = [{"total": total, "max_rank": 70, "messages": 4, "predicted": 100} for total in (1, 110, 120, 100)]
        runs = {(2, 1): [epoch(1, 99, 9, 9), epoch(2, 7, 3, 3), epoch(3, 8, 2, 5, evaluate=4), epoch(4, 12, 1, 9)],
                (2, 2): [epoch(1, 99, 9, 9), epoch(2, 10, 4, 6), epoch(3, 10, 4, 6, evaluate=6), epoch(4, 10, 4, 6)],
                (4, 1): [epoch(i + 1, 6, 2, 4, volume=v) for i, v in enumerate(volume)],
                (8, 1): [epoch(1, 9, 1, 1)] + [epoch(i, 1.5, 1, 1) for i in (2, 3, 4)]}
        for (p, _), epochs in runs.items():  # p = 2 says nothing; p = 4 has 1.2, 1.4 and 1.3 after its first epoch, p = 8 a rank with nothing
            for e in epochs:
                e.update({4: {"served": served((9, 1.2, 1.4, 1.3)[e["epoch"] - 1], 2)}, 8: {"served": served(8, 0)}}.get(p, {}))
        cases = [studies.Case(p, 1, topologies[0], repeat) for p, repeat in runs]
        study = studies.Study(kind, "train", "/bin/true", "env", 1, 4, [], None, None, "", "c.toml", "/", ["scaling.py"], "", "v1", cases,
                              self.study)
        studies.save(study)
        for case in cases:
            study.path(case).mkdir(parents=True)
            report = {"espalier": "0.1.0", "ranks": case.ranks, "replication": 1, "threads": 1, "device": "cpu",
                      "config": {"train": {"reproducible": False, "batches_per_step": 8}, "output": {"dir": "/secret"}},
                      "graph": {"nodes": 1, "edges": 1, "features": 1}, "epochs": runs[case.ranks, case.repeat],
                      "peak_memory_bytes": {"max": 1000 * case.ranks, "sum": 1}}
            (study.path(case) / "report.json").write_text(json.dumps(report))
            machine = {"cpu": "abacus", "cores": 4, "memory_gib": 1, "nodes": 1, "cluster": ""}
            (study.path(case) / "outcome.json").write_text(json.dumps({"exit_code": 0, "wall_seconds": 1, "machine": machine,
                                                                      "began": "2026-01-01T00:00:00"}))

    def column(self, name):
        return [float(row[name]) if row[name] else None for row in self.rows("points.csv")]

    def test_strong(self):
        self.write()
        code, _, err = scaling("report", self.study)
        self.assertEqual(code, GOOD, err)
        self.assertEqual(self.column("ranks"), [2, 4, 8])
        self.assertEqual(self.column("seconds"), [9, 6, 1.5])  # p = 2: the median of 8 and 10
        self.assertEqual((self.column("seconds_least")[0], self.column("seconds_greatest")[0]), (8, 10))
        self.assertEqual(self.column("speedup"), [1, 1.5, 6])
        self.assertEqual(self.column("efficiency"), [1, 0.75, 1.5])
        self.assertEqual(self.column("seconds_sample"), [3, 2, 1])  # medians 2 and 4
        self.assertEqual(self.column("seconds_forward"), [5.5, 4, 1])  # medians 5 and 6
        self.assertEqual(self.column("seconds_other"), [0.5, 0, 0])  # 8 - 2 - 5 and 0; 1.5 - 2 is none
        self.assertEqual(self.column("seconds_evaluate"), [5, None, None])  # 4 and 6
        self.assertEqual(self.column("bytes_sample"), [0, 110, 0])  # mean of 110, 120, 100
        self.assertEqual(self.column("predicted_sample"), [None, 100, None])
        self.assertEqual(self.column("peak_memory_bytes"), [2000, 4000, 8000])
        self.assertEqual(self.column("served_picks_max_over_mean"), [None, 1.3, 8])  # the mean of 1.2, 1.4, 1.3

    def test_weak(self):
        self.write("weak")
        self.assertEqual(scaling("report", self.study)[0], GOOD)
        # Seconds x p / 10 batches: 1.8, 2.4, 1.2. Work per second: (4 / 2) 1.8 / 2.4 = 1.5, (8 / 2) 1.8 / 1.2 = 6.
        self.assertEqual(self.column("seconds"), [1.8, 2.4, 1.2])
        self.assertEqual(self.column("speedup"), [1, 1.5, 6])
        self.assertEqual(self.column("efficiency"), [1, 0.75, 1.5])

    def test_the_page_shows_the_figures_and_what_to_make_of_them(self):
        self.write()
        scaling("report", self.study, "--machine", "a <very> old machine")
        page = self.page()
        self.assertIn("<td>1.50</td><td>75 %</td>", page)
        self.assertIn("<td>1.1000</td>", page)  # counted over predicted
        self.assertIn("<td>0.0001</td><td>1.30, 2.00</td>", page)
        self.assertIn("<td>0.0001</td><td>8.00, inf</td>", page)  # over one that served nothing
        self.assertIn("a &lt;very&gt; old machine; 4 cores, abacus, 1 GiB of memory", page)
        self.assertIn("p = 8: more ranks than the 4 that have cores of their own", page)
        self.assertIn("differ by up to 22 %", page)  # (10 - 8) / 9
        self.assertNotIn("secret", page)
        self.assertIn("Samples of all 4 runs are equal", page)
        self.assertNotIn("last bit", page)  # not reproducible: losses are not compared

    @unittest.skipUnless(PLOTS, NO_PLOTS)
    def test_page_and_plots_need_nothing_from_outside(self):
        self.write()
        target = self.folder / "elsewhere"
        self.assertEqual(scaling_with_plots("report", self.study, "--to", target)[0], 0)
        self.assertFalse((self.study / "index.html").exists())
        page = (target / "index.html").read_text()
        references = re.findall(r"(?:src|href|url)\s*[=(]\s*[\"']?([^\"'>)]*)", page)
        self.assertEqual(sorted(set(references)), sorted({path.name for path in target.iterdir()} - {"index.html"}))
        self.assertNotRegex(page, r"//|<script|<link|@import")
        for name in ("stages", "speedup", "volumes", "loads"):
            svg = xml.etree.ElementTree.parse(target / f"{name}.svg").getroot()
            self.assertTrue(svg.tag.endswith("svg"))
            outside = [value for item in svg.iter() for key, value in item.attrib.items() if key.endswith("href") and value[0] != "#"]
            self.assertEqual(outside, [])
        # Every element that is opened is closed, so nothing swallows what follows.
        for name in ("div", "table", "tr", "td", "th", "figure", "figcaption", "pre", "h2", "details"):
            self.assertEqual(len(re.findall(f"<{name}[ >]", page)), page.count(f"</{name}>"), name)

    @unittest.skipUnless(PLOTS, NO_PLOTS)
    def test_equal_reports_give_equal_plots(self):
        self.write()
        for name in ("a", "b"):
            scaling_with_plots("report", self.study, "--to", self.folder / name)
        for path in (self.folder / "a").iterdir():
            self.assertEqual(path.read_bytes(), (self.folder / "b" / path.name).read_bytes(), path.name)

    def test_without_matplotlib_there_are_tables(self):
        self.write()
        (self.folder / "matplotlib.py").write_text("raise ImportError('none here')")
        code, out, err = scaling_with_plots("report", self.study, env={"PYTHONPATH": str(self.folder)})
        self.assertEqual((code, "python3-matplotlib" in err), (1, True), out + err)
        self.assertIn("No plots", self.page())
        self.assertIn("<td>75 %</td>", self.page())
        self.assertFalse((self.study / "stages.svg").exists())
