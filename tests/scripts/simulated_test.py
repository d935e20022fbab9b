"""bench/simulated: the platform, and the checks of the driver that runs points.

Laws: every GPU is a host, of four to a node, with one card and a link to each other GPU of its node; scaling divides
bandwidths and nothing else; cyclic placement has process columns inside of nodes; a run that prints no "done" (smpirun exits 0 after a deadlock), a wrong value or another
digest is an error; docs/scaling.md shows what bench/simulated/points.csv has; the real code on simulated ranks draws the samples of mpirun (where `make simulate` built it), an
order changes none of them, and local batches have a digest of their own, the same on every grid.
"""

import csv
import os
import re
import shutil
import sys
import unittest
import xml.etree.ElementTree as xml

from tests.app.program import ROOT, FolderTest, run_python

sys.path.insert(0, str(ROOT / "bench" / "simulated"))
import perlmutter  # noqa: E402
import run as study  # noqa: E402


def links(text):
    return {link.get("id"): (float(link.get("bandwidth")[:-3]), float(link.get("latency")[:-1]))
            for link in xml.fromstring(text).iter("link")}


class Platform(unittest.TestCase):
    def test_a_card_per_gpu_and_a_link_per_pair_of_a_node(self):
        text, hosts = perlmutter.platform(10)
        self.assertEqual(len(hosts.split()), 10)
        self.assertEqual([host.get("id") for host in xml.fromstring(text).iter("host")], hosts.split())
        found = links(text)
        self.assertEqual(sum(name.startswith("card") for name in found), 10)
        self.assertEqual(sum(name.startswith("nvlink") for name in found), 6 + 6 + 1)
        self.assertEqual(len(list(xml.fromstring(text).iter("zoneRoute"))), 3)

    def test_cyclic_placement_has_the_columns_of_a_grid_inside_of_nodes(self):
        """Rank i c + j is P(i, j); with as many copies as nodes a process column is four GPUs of one node."""
        hosts = perlmutter.platform(32, placement="cyclic")[1].split()
        self.assertEqual(sorted(hosts), sorted(perlmutter.platform(32)[1].split()))
        for column in range(8):
            self.assertEqual({host.split(".")[0] for host in hosts[column::8]}, {f"gpu{column}"})
        self.assertEqual([host.split(".")[0] for host in perlmutter.platform(6, placement="cyclic")[1].split()],
                         ["gpu0", "gpu1", "gpu0", "gpu1", "gpu0", "gpu0"])

    def test_scaling_divides_bandwidths_and_leaves_latencies(self):
        plain, scaled = links(perlmutter.platform(8)[0]), links(perlmutter.platform(8, scale=128)[0])
        for name, (bandwidth, latency) in plain.items():
            self.assertAlmostEqual(scaled[name][0] * 128 / bandwidth, 1, places=6)
            self.assertEqual(scaled[name][1], latency)
        slower = links(perlmutter.platform(8, latency=2)[0])
        self.assertTrue(all(slower[name] == (bandwidth, 2 * latency) for name, (bandwidth, latency) in plain.items()))


class Checks(FolderTest):
    def setUp(self):
        super().setUp()
        self.addCleanup(setattr, study, "SIMULATED", study.SIMULATED)
        os.environ["PATH"] = str(self.folder) + os.pathsep + os.environ["PATH"]
        self.addCleanup(os.environ.__setitem__, "PATH", os.environ["PATH"].split(os.pathsep, 1)[1])

    def prints(self, *lines, code=0):
        """A smpirun that prints these lines, whatever it is asked to run."""
        self.script("smpirun", "#!/bin/sh\n" + "".join(f"echo '{line}'\n" for line in lines) + f"exit {code}\n")
        return study.run(study.point("small", 4), 10)

    def test_a_run_counts_only_when_it_says_done(self):
        self.assertEqual(self.prints('{"digest": "1", "wrong": 0}', "done")["digest"], "1")
        for lines, code in ((['{"digest": "1"}'], 0), ([], 0), (["done"], 0), (['{"digest": "1"}', "done"], 3)):
            with self.subTest(lines=lines, code=code), self.assertRaises(RuntimeError):
                self.prints(*lines, code=code)

    def test_wrong_values_and_another_digest_of_the_same_graph_are_errors(self):
        row = {**study.point("small", 4), "wrong": 0, "digest": "a"}
        self.assertIsNone(study.check(row, [{**row, "p": 16}]))
        self.assertIn("3 fetched values", study.check({**row, "wrong": 3}, []))
        self.assertIn("its sample digest is a", study.check(row, [{**row, "digest": "b"}]))
        self.assertIsNone(study.check(row, [{**row, "scale": 64, "digest": "b"}]), "another graph")
        self.assertIsNone(study.check(row, [{**row, "groups": 64, "digest": "b"}]), "other batches")
        self.assertIn("its sample digest is a", study.check(row, [{**row, "order": "planted", "digest": "b"}]))

    def test_a_file_of_before_there_were_orders_is_gone_on_with(self):
        path = self.folder / "points.csv"
        known = study.point("small", 4)
        values = {**dict.fromkeys(study.FIELDS, "0"), **known, "digest": "a"}
        old = [name for name in study.FIELDS if name not in study.WITHOUT_ORDER]
        path.write_text(",".join(old) + "\n" + ",".join(str(values[name]) for name in old) + "\n")
        self.assertEqual([study.key_of(row) for row in study.read(path)], [study.key_of(known)])
        self.assertEqual(study.run_points([known], str(path), 1), 0)
        self.assertEqual(path.read_text().splitlines()[0], ",".join(study.FIELDS))

    def test_work_and_rates_are_divided_alike(self):
        def of(scale):
            arguments = study.program_arguments(study.point("protein", 4, scale=scale))
            return dict(zip(arguments[::2], map(str, arguments[1::2])))
        full, small = of(64), of(128)
        for name in ("--nodes", "--batch", "--bytes-per-second", "--gathers-per-second"):
            self.assertAlmostEqual(float(full[name]) / float(small[name]), 2, places=3, msg=name)
        for name in ("--batches", "--degree", "--seconds-per-launch"):
            self.assertEqual(full[name], small[name], name)


class Page(unittest.TestCase):
    POINTS = ROOT / "bench" / "simulated" / "points.csv"

    def test_the_tables_of_the_page_are_those_of_the_points(self):
        tables = run_python(ROOT / "bench/simulated/plot.py", self.POINTS, "--tables", check=True).stdout
        printed = [line for line in tables.splitlines() if line.startswith("|")]
        self.assertGreater(len(printed), 60)
        page = (ROOT / "docs" / "scaling.md").read_text()
        shown = [table.split("\n") for table in re.findall(r"(?:^\|.*\n)+", page, re.M)]
        shown = [table[2:-1] for table in shown if table[0] in printed]
        self.assertGreaterEqual(len(shown), 2)
        self.assertEqual([line for table in shown for line in table if line not in printed], [])

    def test_points_are_those_of_the_study_and_each_graph_has_one_digest(self):
        with self.POINTS.open(newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(sorted(map(study.key_of, rows)), sorted(map(study.key_of, study.all_points())))
        for row in rows:
            self.assertIsNone(study.check(row, rows))


@unittest.skipUnless(study.SIMULATED.exists() and shutil.which("smpirun"), "no build/simulated: make simulate")
class Simulation(unittest.TestCase):
    def test_simulated_ranks_draw_one_sample_and_the_clock_is_the_simulators(self):
        push = study.run(study.point("small", 4), 120)
        again = study.run(study.point("small", 4), 120)
        staged = study.run(study.point("small", 8, 2, "staged", features=1), 120)
        self.assertEqual(push["digest"], staged["digest"])
        self.assertEqual(staged["wrong"], 0)
        self.assertEqual(push["sample"], again["sample"], "simulated time is not the machine's")
        slow = study.run(study.point("small", 4, speed=0.001), 120)
        self.assertGreater(slow["sample_charged"], 100 * push["sample_charged"])
        self.assertLess(push["sample_charged"], push["sample"])
        # Each rank is charged its own work: none has a time of messages and waiting alone.
        self.assertLess(push["sample_charged"] + push["sample_communication_max"], 1.05 * push["sample"])

    def test_an_order_changes_no_sample_and_local_batches_have_one_of_their_own(self):
        def of(p, c, order, groups, **more):
            return study.run(study.point("small-planted", p, c, features=1, order=order, groups=groups, **more), 120)
        none, planted = of(4, 1, "none", 0), of(16, 2, "planted", 0)
        local = [of(4, 1, "planted", 64), of(16, 2, "planted", 64, schedule="staged"), of(16, 4, "planted", 64, topology="replicated")]
        self.assertEqual(none["digest"], planted["digest"])
        self.assertEqual({row["digest"] for row in local}, {local[0]["digest"]})
        self.assertNotEqual(local[0]["digest"], none["digest"])
        self.assertEqual([row["wrong"] for row in [none, planted, *local]], [0] * 5)
        self.assertLess(planted["cut"], 0.4, "communities are found; without an order the cut of 8 parts is 7/8")
        self.assertGreater(local[1]["local_rows"] / local[1]["input_rows"], 2 * planted["local_rows"] / planted["input_rows"])
