"""bench/cluster: the cases, the law they are held to, the table, and hosts that are gone when a run has ended, in whatever way.

Laws: cases that differ in what moves alone share a law, others don't, and a digest or a loss that breaks one is named; what a
link carried is counted from the end of the first epoch to that of the last but one; where there can be no hosts all is
skipped with exit code 0; where root may make them, links carry what report.json counts, and no more than their rate.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import unittest

from tests.app.program import PROGRAM, ROOT, FolderTest, run_python

CLUSTER = ROOT / "bench" / "cluster"
sys.path.insert(0, str(CLUSTER))
import cases  # noqa: E402
import figures  # noqa: E402
import hosts  # noqa: E402

MEASURE = CLUSTER / "measure.py"


def run_of(case, digests=("a", "b"), losses=(), hosts=4, gigabits=1.0, **more):
    return {"case": case, "hosts": hosts, "gigabits": gigabits, "groups": hosts, "digests": list(digests), "losses": list(losses),
            "total": 1.0, "seconds": {}, "bytes": {}, **more}


class Cases(unittest.TestCase):
    def test_baselines_are_cases_and_so_are_those_that_matter_most(self):
        for case in cases.CASES:
            self.assertIn(case.baseline, cases.BY_NAME)
            self.assertEqual(cases.BY_NAME[case.baseline].command, case.command)
        self.assertEqual([case.name for case in cases.chosen("most")], [name for name in cases.BY_NAME if name in cases.MOST])
        self.assertEqual([case.name for case in cases.chosen("push,staged")], ["staged", "push"])
        with self.assertRaisesRegex(ValueError, "pusch is no case; there are sample-staged"):
            cases.chosen("push,pusch")

    def test_what_moves_changes_no_law(self):
        def losses(*names):
            return len({cases.BY_NAME[name].losses_law() for name in names})

        def samples(*names):
            return len({cases.BY_NAME[name].samples_law() for name in names})
        self.assertEqual(losses("staged", "pull", "push", "push-c2", "replicated", "overlap", "overlap-2", "kept", "kept-belady"), 1)
        self.assertEqual(losses("local", "local-overlap", "local-belady", "local-belady-overlap"), 1)
        self.assertEqual(losses("push", "local", "float16", "codes-8", "history"), 5)
        self.assertEqual(samples("sample-staged", "push", "float16", "history"), 1)
        self.assertEqual(samples("sample-local", "local", "local-history"), 1)
        self.assertEqual(samples("push", "local"), 2)


class Law(unittest.TestCase):
    def broken(self, *runs):
        return figures.broken_laws(runs, cases.BY_NAME)

    def test_a_digest_that_depends_on_rate_hosts_or_schedule_is_named(self):
        kept = [run_of("push"), run_of("staged", gigabits=0.1), run_of("sample-pull", hosts=8), run_of("local", "xy")]
        self.assertEqual(self.broken(*kept), [])
        self.assertEqual(self.broken(*kept, run_of("push", "abc", hosts=2)), [], "those of epochs that both have")
        for other in (run_of("push", "ac", gigabits=0.1), run_of("staged", "bb"), run_of("sample-push", "ac", hosts=8)):
            (found,) = self.broken(*kept, other)
            self.assertIn(f"digests of {figures.name_of(other)} are not those of push on 4 hosts, 1 Gbit/s", found)

    def test_groups_are_part_of_the_law_of_local_batches(self):
        self.assertEqual(self.broken(run_of("local", "xy"), run_of("local", "zw", hosts=8)), [])
        self.assertEqual(len(self.broken(run_of("local", "xy"), {**run_of("local", "zw", hosts=8), "groups": 4})), 1)

    def test_losses_are_those_of_the_law_where_they_are_reproducible(self):
        one, other = run_of("push", losses=[1.0, 0.5]), run_of("overlap", losses=[1.0, 0.5000001])
        self.assertEqual(self.broken(one, other), [])
        self.assertEqual(len(self.broken({**one, "reproducible": True}, {**other, "reproducible": True})), 1)
        self.assertEqual(self.broken({**one, "reproducible": True}, {**run_of("float16", losses=[2.0]), "reproducible": True}), [])


class Figures(unittest.TestCase):
    def test_links_are_counted_behind_the_first_epoch_and_before_the_last(self):
        marks = [(10.0, [(100, 50), (0, 0)], 10.5), (11.0, [(500, 0), (0, 0)], 11.0), (11.5, [(900, 250), (0, 25_000_100)], 12.0),
                 (13.0, [(10**9, 0), (0, 0)], 13.0)]
        found = figures.of_links(marks, 4, 0.1)
        self.assertEqual(found["carried"], 400)
        self.assertEqual(found["fullest"], 12_500_050)
        self.assertAlmostEqual(found["busy"], 25_000_100 * 8 / 0.1e9 / 2)
        self.assertEqual(figures.of_links(marks, 5, 0.1), {}, "a line was missed")
        self.assertEqual(figures.of_links(marks[:2], 2, 0.1), {})
        self.assertNotIn("busy", figures.of_links(marks, 4, None))

    def test_a_report_gives_medians_behind_the_first_epoch_without_evaluations(self):
        def epoch(total, fetch, evaluate=None):
            return {"seconds": {"total": total, "fetch": fetch, **({"evaluate": evaluate} if evaluate else {})}, "loss": total,
                    "bytes": {"fetch": {"total": 10 * fetch}}, "sample_digest": str(total)}
        report = {"command": "train", "epochs": [epoch(9, 9), epoch(2, 1), epoch(8, 3, 5)], "test": {"accuracy": 0.5}}
        found = figures.from_report(report, [], 1)
        self.assertEqual((found["total"], found["seconds"], found["bytes"]), (2.5, {"fetch": 2}, {"fetch": 20}))
        self.assertEqual((found["digests"], found["losses"], found["test"]), (["9", "2", "8"], [9, 2, 8], 0.5))

    def test_rows_are_medians_over_repeats_and_x_is_over_the_baseline(self):
        runs = [run_of("push", total=total, seconds={"fetch": total / 2}, bytes={"fetch": 5e6, "reduce": 1e6}, carried=7e6, fullest=5e7)
                for total in (2.0, 8.0, 4.0)] + [run_of("overlap", total=2.0), run_of("overlap", total=1.0, gigabits=0.1)]
        push, overlap, slow = figures.rows_of(runs, {"push": "push", "overlap": "push"})
        self.assertEqual((push["s/epoch"], push["least"], push["most"], push["fetch"], push["x"]), (4.0, 2.0, 8.0, 2.0, 1.0))
        self.assertEqual((push["fetched"], push["reduced"], push["on links"], push["sample"]), (5.0, 1.0, 7.0, None))
        self.assertAlmostEqual(push["link s"], 0.4)
        self.assertEqual((overlap["x"], slow["x"]), (2.0, None))
        text = figures.table([push, overlap, slow])
        self.assertEqual(text.count("hosts, links of"), 2)
        self.assertEqual(text.splitlines()[1].split()[:4], ["case", "s/epoch", "least", "most"])
        self.assertEqual(text.splitlines()[2].split()[:4], ["push", "4.000", "2.000", "8.000"])


class CommandLine(FolderTest):
    def refused(self, *words):
        done = run_python(MEASURE, *words)
        self.assertEqual(done.returncode, 2, done.stderr)
        return done.stderr

    def test_what_is_no_case_rate_or_key_is_refused(self):
        self.assertIn("fast is no case", self.refused("--cases", "fast"))
        self.assertIn("numbers above 0", self.refused("--rates", "1,0"))
        self.assertIn("numbers above 0", self.refused("--hosts", "-4"))
        self.assertIn("faster is no section.key=value", self.refused("faster"))
        self.assertIn("3 at least", self.refused("--epochs", 2))

    def test_where_there_can_be_no_hosts_it_says_so_and_ends_with_0(self):
        done = run_python(MEASURE, env={**os.environ, "PATH": str(self.folder)})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"\Acluster: (not root|no `ip`); skipped\n\Z")

    def test_a_link_saves_up_no_less_than_the_largest_packet(self):
        words = hosts.bucket(0.1)
        self.assertEqual(words[:3], ["tbf", "rate", "100000kbit"])
        self.assertGreater(int(words[4]), 65536 + 45 * 66)
        self.assertEqual(hosts.bucket(1)[3:5], ["burst", "250000"])


REASON = hosts.reason_to_skip()


@unittest.skipIf(REASON, f"no hosts on this machine: {REASON}")
class OnHosts(FolderTest):
    # A link so slow that an epoch takes half a second: lines of faster ones come several at once, or all at the end.
    def setUp(self):
        super().setUp()
        self.graph = self.folder / "graph.h5"
        subprocess.run([PROGRAM, "-q", "generate", "planted", "--nodes", "4000", "--classes", "4", "--degree", "8", "--homophily", "0.8",
                        "--features", "32", "--seed", "1", "-o", self.graph], check=True)
        self.words = [sys.executable, MEASURE, "--program", PROGRAM, "--graph", self.graph, "--output", self.folder / "out", "--hosts", "2",
                      "--rates", "0.006", "--repeats", "1", "--epochs", "8", "sampler.batch_size=100", "model.hidden=32", "model.layers=2",
                      "sampler.fanout=[3,2]"]

    def left(self, process):
        """Namespaces and devices of a process."""
        return [name for name in [*hosts.host_names(), *os.listdir("/sys/class/net")] if name.startswith(f"esp{process.pid}")]

    def test_links_carry_what_is_counted_and_hosts_go(self):
        process = subprocess.Popen(list(map(str, [*self.words, "--cases", "push,local-overlap"])), stdout=subprocess.PIPE, text=True)
        said, _ = process.communicate(timeout=250)
        self.assertEqual(process.returncode, 0, said)
        self.assertIn("law: kept", said)
        self.assertEqual(self.left(process), [])
        rows = json.loads((self.folder / "out/summary.json").read_text())["rows"]
        self.assertEqual([row["case"] for row in rows], ["push", "local-overlap"])
        for row in rows:
            counted = row["MB sampled"] + row["fetched"] + row["reduced"]
            # Who looks at the ports may come late by an epoch of the ten; small messages have headers, and MPI's own words.
            self.assertGreater(row["on links"], 0.8 * counted, row)
            self.assertLess(row["on links"], 1.6 * counted, row)
            self.assertTrue(0 < row["busy"] < 1.1, row)

    def test_hosts_go_when_it_is_interrupted_and_the_next_run_removes_those_of_one_that_was_killed(self):
        for number, code in ((signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)):
            process = subprocess.Popen(list(map(str, [*self.words, "--cases", "push", "--no-law", "train.epochs=100000"])),
                                       stdout=subprocess.DEVNULL)
            end = time.monotonic() + 60
            while not (self.folder / "out/run").exists() and time.monotonic() < end:  # mpirun's ranks are there
                time.sleep(0.05)
            self.assertTrue(self.left(process))
            process.send_signal(number)
            self.assertEqual(process.wait(60), code)
            if number == signal.SIGINT:
                self.assertEqual(self.left(process), [])
            shutil.rmtree(self.folder / "out/run", ignore_errors=True)
        with hosts.Hosts(1):
            self.assertEqual(self.left(process), [])
        self.assertFalse([one for one in pathlib.Path("/proc").glob("[0-9]*/cmdline")
                          if str(self.folder).encode() in self.text_of(one)])

    @staticmethod
    def text_of(path):
        try:
            return path.read_bytes()
        except OSError:
            return b""
