"""Features that stay on disk (graph.features_on = "disk").

Rows of hidden layers, too (run.spill), by themselves where memory ends.

Laws: histories, weights and rows of infer are those with features in memory, bit for bit, on every grid, with orders, types, halves,
fewer bits, norms, rows sent ahead and rows kept; a rank plans for less memory; what cannot stay on disk is refused in one message, and a file that
changes while the job runs ends it, naming the place.
"""

import os
import pathlib
import re

import h5py
import numpy as np

from tests.app.program import LONG, ROOT, ProgramTest, needs_emulation, on_gpus, put, read, small_files
from tests.app.running import Running

DISK = "graph.features_on=disk"


def open_in(folder, size):
    """The file of this size in the folder that some process has open, if without a name. While it evaluates it has others there."""
    for link in pathlib.Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if os.readlink(link).startswith(f"{folder}/") and os.stat(link).st_size == size:
                return link
        except OSError:
            pass  # closed while we looked, or another user's
    raise AssertionError(f"no file of {size} bytes in {folder}")


# Of hidden layers.
class Spilled(ProgramTest):
    JOB = ("sampler.fanout=[5, 3, 3]", "sampler.batch_size=64", "model.hidden=16", "model.layers=3", "train.epochs=1", "train.reproducible=true",
           "train.batches_per_step=4", "train.learning_rate=0.01", "run.threads=1", 'model.normalize="batch"')

    GENERATE = ("planted", "--nodes", 700, "--degree", 8, "--classes", 5, "--features", 24, "--seed", 3)

    def setUp(self):
        super().setUp()
        self.there = self.folder / "spilled"
        self.there.mkdir()
        self.spill = f"run.spill={self.there}"

    def test_the_bits_of_memory(self):
        for job, grids in ((("model.jumping=max",), ((2, "grid.replication=2"),)),
                           ((), ((1, DISK, "run.cache_memory=40KiB"), *LONG * [(3, "grid.topology=replicated")],
                                (4, "grid.replication=2", "run.overlap=true", "run.cache_memory=20KiB")))):
            self.one_history((*job, self.spill), grids, self.history(self.train(*job)))
            self.assertEqual(list(self.there.iterdir()), [])
        rows = self.inferred()
        for ranks in (1, 3) if LONG else (3,):
            found = self.inferred(self.spill, "run.cache_memory=20KiB", ranks=ranks)[0]["logits"]
            np.testing.assert_array_equal(found, rows[0]["logits"])

    def test_less_memory_is_planned(self):
        self.make_once(self.graph, ("generate", "planted", "--nodes", 200000, "--degree", 2, "--classes", 5, "--features", 4))
        job = ("model.hidden=256", "run.memory_limit=300MB", "--ranks", 1)
        self.assertIn("files in output.dir", self.succeed("plan", self.config, *job))
        self.assertNotIn("files in output.dir", self.succeed("plan", self.config, *job, self.spill))

    def test_rows_spill_by_themselves_where_memory_ends(self):
        self.make_once(self.graph, ("generate", "planted", "--nodes", 60000, "--degree", 2, "--classes", 5, "--features", 4))
        job = ("model.hidden=128", "sampler.fanout=[2,2,2]", "sampler.batch_size=512")
        expected = self.history(self.train(*job))
        error = self.fail_with(4, ["does not fit"], "plan", self.config, "--ranks", 1, "--memory-per-rank", "4MiB", *job)
        limit = round(1.1 * float(re.search("a rank needs ([0-9.]+) MiB", error).group(1)) * 2**20)
        output = self.succeed("train", self.config, *job, f"run.memory_limit={limit}")
        self.assertRegex(output, f"rows of hidden layers do not fit in memory .* files in output.dir = {self.output}")
        report = self.report(self.output)
        self.assertEqual(self.history(report), expected)
        self.assertLess(report["peak_memory_bytes"]["max"], limit)

    def test_a_folder_that_cannot_be_written(self):
        for folder, reason in ((self.folder / "none", "No such file"), (self.graph, "Not a directory")):
            for ranks in (1, 3) if LONG else (1 if folder == self.graph else 3,):
                self.fail_with(2, [f"run.spill = {folder}", reason, "another folder"], "train", self.config, f"run.spill={folder}", ranks=ranks)

    def test_a_full_disk(self):
        words = [self.spill.replace("=", " = "), "File too large"]
        self.fail_with(2, words, "train", self.config, self.spill, preexec_fn=small_files(2**14))
        output = self.fail_with(2, words, "train", self.config, DISK, "graph.feature_bits=16", self.spill, preexec_fn=small_files(2**14))
        self.assertNotIn("\nepoch ", output)


class DiskFeatures(ProgramTest):
    JOB = ("sampler.fanout=[5, 3]", "sampler.batch_size=64", "model.hidden=16", "model.layers=2", "train.epochs=2", "train.reproducible=true",
           "train.batches_per_step=4", "train.learning_rate=0.01", "run.threads=1")

    def make(self, *more):
        self.make_once(self.graph, ("generate", "planted", *(more or ("--nodes", 1500, "--degree", 8, "--classes", 5, "--features", 24)),
                                    "--seed", 3))

    def test_the_bits_of_memory(self):
        self.make()
        order = self.order("streaming", 16)
        for job, grids in ((('graph.feature_norm="standard"',), ((1, "run.threads=2"), *LONG * [(3, order)], (4, "grid.replication=2", "run.overlap=true"))),
                           (('graph.feature_norm="row"', "sampler.kind=ladies", "sampler.fanout=[60,80]"), ((2, "grid.replication=2"),)),
                           (("run.cache_memory=64KiB", "run.overlap=true", "run.prefetch_steps=2"), ((3, order),))):
            self.one_history((*job, DISK), grids, self.history(self.train(*job)))
        rows = self.inferred()
        for ranks in (1, 3) if LONG else (3,):
            np.testing.assert_array_equal(self.inferred(DISK, ranks=ranks)[0]["logits"], rows[0]["logits"])

    def test_copies_in_memory_change_no_bit(self):
        self.make()
        job = ("train.epochs=3", "run.cache_memory=48KiB")
        expected = self.history(self.train(*job))
        rows, kept = {}, {}
        for policy, ranks, *more in (("degree", 1), ("lru", 1), ("belady", 1), ("belady", 2), *LONG * [("lru", 2, "run.overlap=true")],
                                     ("belady", 4, "grid.replication=2", "sampler.bulk=5"), ("belady", 3, "run.overlap=true", "run.prefetch_steps=2"),
                                     ("belady", 2, "history.kind=replace", "history.t_stale=3"), *LONG * [("belady", 2, "run.cache_memory=200KiB")]):
            of_history = "history.kind=replace" in more
            found = self.history(self.train(*job, DISK, f"run.cache_policy={policy}", *more, ranks=ranks))
            self.assertEqual(found, self.history(self.train(*job, *more)) if of_history else expected, (policy, ranks, more))
            epochs = [epoch["disk"] for epoch in self.report(self.output)["epochs"]] if not of_history else []
            for epoch in epochs:
                self.assertGreater(epoch["kept"], 0)
                self.assertLess(epoch["kept"], epoch["rows"])
                self.assertGreater(epoch["bytes"], 0)
            if not more and epochs:
                rows[policy, ranks], kept[policy, ranks] = (sum(epoch[name] for epoch in epochs) for name in ("rows", "kept"))
        self.assertEqual(len(set(rows.values())), 1, "what minibatches read is wanted of some disk, whoever has it")
        self.assertGreater(kept["belady", 1], kept["lru", 1])
        self.assertGreater(kept["belady", 2], 1.2 * kept["belady", 1], "each rank keeps as much")

    def test_plan_foresees_what_is_read(self):
        self.make()
        machine = self.folder / "machine.toml"
        machine.write_text((ROOT / "inputs/machines/perlmutter.toml").read_text().replace('"cuda"', '"cpu"') + "disk_gbs = 0.125\n")
        for policy, ranks, *more in (("degree", 2), ("lru", 1), *LONG * [("belady", 1, "sampler.bulk=3")], ("belady", 4, "grid.replication=2", "sampler.bulk=5"),
                                     ("belady", 3, "train.batches_per_step=5", "sampler.bulk=7"), ("belady", 2, "run.cache_memory=0")):
            job = (DISK, "train.epochs=1", "run.cache_memory=32KiB", *(() if "run.cache_memory=0" in more else (f"run.cache_policy={policy}",)), *more)
            plan = self.planned(*job, "--machine", machine, ranks=ranks)["epochs"][0]
            run = self.train(*job, ranks=ranks)["epochs"][0]
            planned, read = plan["disk"], run["disk"]
            self.assertAlmostEqual(planned.pop("seconds") * 0.125e9 * ranks, planned["bytes"], delta=1)
            self.assertLessEqual(0, read["waited"])
            self.assertLessEqual(read.pop("waited"), read.pop("seconds") + 0.1)
            self.assertEqual(read, planned, (policy, ranks, more))
            self.assertEqual(planned["kept"] == 0, "run.cache_memory=0" in more)
            self.compare_fetched(run, plan, (policy, ranks, more))
            self.assertEqual("fetch/foreseen" in run.get("steps", {}), policy == "belady" and ranks > 1 and planned["kept"] > 0)
        self.assertRegex(self.succeed("train", self.config, DISK, "train.epochs=1", "run.cache_memory=32KiB"),
                         r"\nrows on disk: \d+ wanted, [1-9][\d.]* % of them kept in memory, \d+\.\d+ MB read in \d+\.\d\d s, of which steps waited ")
        self.assertRegex(self.succeed("plan", self.config, DISK, "--ranks", 1, "--machine", machine), r"\nrows on disk, .* MB read in [\d.e-]+ s\n")

    def compare_fetched(self, run, plan, what):
        """What ranks tell each other ahead, too, to the byte."""
        told = [of.get("steps", {}).get("fetch/foreseen") for of in (run, plan)]
        self.assertEqual(told[0] is None, told[1] is None, what)
        for counted, said in ((run["bytes"]["fetch"], plan["bytes"]["fetch"]), *(() if told[0] is None else (told,))):
            self.assertEqual([said[name] for name in ("total", "rounds")], [counted[name] for name in ("total", "rounds")], what)

    def test_how_disks_are_read(self):
        self.make()
        job, line = ("train.epochs=1", 'model.normalize="batch"'), r"\ndisk    rows are read (by io_uring|one after another), "
        self.assertNotIn("\ndisk ", self.succeed("train", self.config, *job))
        seen = [self.report(self.output)["weights_digest"]]
        for without in ("1", "0"):
            for keys in ((DISK,), (f"run.spill={self.folder}",)):
                output = self.succeed("train", self.config, *job, *keys, ranks=2, env=dict(os.environ, ESPALIER_NO_IO_URING=without))
                self.assertEqual(len(re.findall(line, output)), 1, output)
                self.assertEqual("ahead: ESPALIER_NO_IO_URING is set" in output, without == "1")
                seen.append(self.report(self.output)["weights_digest"])
        self.assertEqual(seen, seen[:1] * 5)

    def test_types_of_several_widths(self):
        self.make("--types", "paper=400:8,author=300:8,field=50:3,venue=20", "--relations", "author.writes.paper=1500,paper.about.field=900,"
                  "paper.at.venue=400", "--classes", 3)
        self.put({"nodes/author/features": lambda features: features.astype(np.float16)})  # a table of halves and floats
        job = ("model.kind=rgcn", "model.bases=2", "model.embedding=4")
        self.one_history((*job, DISK), ((1,), (4, "grid.replication=2"), (3, "run.cache_memory=6KiB", "run.cache_policy=belady")),
                         self.history(self.train(*job)))
        for bits, ranks, *grid in ((2, 3, "run.cache_memory=1KiB", "run.cache_policy=belady"), *LONG * [(16, 4, "grid.replication=2")]):
            fewer = (*job, f"graph.feature_bits={bits}", *grid)
            expected = self.history(self.train(*fewer, ranks=ranks))
            self.assertEqual(self.history(self.train(*fewer, DISK, f"run.spill={self.folder}", ranks=ranks)), expected, fewer)

    def test_fewer_bits(self):
        """In a file of each rank; `plan` foresees what is read of those. Of halves 16 bits are the file's, which stay there."""
        self.make()
        spill, order = f"run.spill={self.folder}", self.order("streaming", 16)
        few = ("train.epochs=1", "run.cache_memory=12KiB")
        for job, ranks, *more in (*LONG * [(("graph.feature_bits=1", "graph.feature_norm=row"), 3, "run.overlap=true", "run.prefetch_steps=2"),
                                           (("graph.feature_bits=4", "history.kind=replace", "history.t_stale=3", "run.cache_memory=0"), 2)],
                                  (("graph.feature_bits=8", "graph.feature_norm=standard"), 4, order, "grid.replication=2", "run.cache_policy=belady"),
                                  (("graph.feature_bits=bf16", "graph.feature_norm=row"), 3, "run.cache_policy=lru"),
                                  (("graph.feature_bits=16",), 1, "run.threads=2")):
            expected = self.history(self.train(*few, *job, *more, ranks=ranks))
            self.assertEqual(self.history(self.train(*few, *job, *more, DISK, spill, ranks=ranks)), expected, (job, ranks, more))
            if "history.kind=replace" in job or "run.overlap=true" in more:
                continue
            run, plan = self.report(self.output)["epochs"][0], self.planned(*few, *job, *more, DISK, spill, ranks=ranks)["epochs"][0]
            self.assertEqual([run["disk"][name] for name in ("rows", "kept", "bytes")], [plan["disk"][name] for name in ("rows", "kept", "bytes")])
            self.assertGreater(run["disk"]["kept"], 0)
            self.compare_fetched(run, plan, job)
        rows = self.inferred("graph.feature_bits=16")[0]["logits"]
        np.testing.assert_array_equal(self.inferred("graph.feature_bits=16", DISK, spill, ranks=3)[0]["logits"], rows)
        put(self.graph, {"nodes/features": lambda features: features.astype(np.float16)})
        self.assertNotIn("are written", self.succeed("train", self.config, *few, DISK, "graph.feature_bits=16", "graph.verify=false"))

    def test_less_memory_is_planned(self):
        self.make("--nodes", 20000, "--degree", 4, "--classes", 5, "--features", 500)
        kept = [self.planned(*more, ranks=2)["plan"]["memory"]["step"]["features"] for more in ((), (DISK,))]
        self.assertEqual(kept[0], 20000 * 500 * 4 / 2)
        self.assertLess(kept[1], kept[0] / 50)
        bits = self.planned(DISK, "graph.feature_bits=2", f"run.spill={self.folder}", ranks=2)["plan"]["memory"]["step"]["features"]
        self.assertEqual(bits, 8 * 10000 / (4096 // 126), "a digest for each page of 32 rows that a rank has")

    def test_what_cannot_stay_there(self):
        self.make()
        features = read(self.graph, "nodes/features")
        for stored in ({"compression": "gzip"}, {"chunks": (10, 24)}, {"dtype": ">f4"}, {"dtype": "f8"}):
            with h5py.File(self.graph, "a") as file:
                del file["nodes/features"]
                file.create_dataset("nodes/features", data=features, **stored)
            self.fail_with(3, ["cannot stay on disk", "graph.features_on"], "train", self.config, DISK, "graph.verify=false")
            if LONG or "compression" in stored:
                self.fail_with(3, ["cannot stay on disk", "graph.features_on"], "plan", self.config, "--ranks", 2, DISK, "graph.verify=false")
                self.fail_with(3, ["cannot stay on disk"], "train", self.config, DISK, "graph.verify=false", ranks=3)

    @needs_emulation
    def test_gpus(self):
        self.make()
        for key, words in ((DISK, "graph.features_on = disk is for CPUs"), ("run.spill=/tmp", "run.spill = /tmp is for CPUs")):
            self.fail_with(2, [words], "train", self.config, key, "run.device=cuda", **on_gpus(1))

    def test_a_file_that_changes(self):
        self.make()
        with h5py.File(self.graph) as file:
            offset = file["nodes/features"].id.get_offset()
        output = self.changed_while_it_runs(lambda: self.graph, offset + 700 * 24 * 4, 200 * 24 * 4, DISK)
        self.assertRegex(output, "/nodes/features does not hold what it held before in rows [67]")

    def test_a_file_of_fewer_bits_that_changes(self):
        """It has no name: it is found where the process has it open."""
        self.make()
        there = self.folder / "spilled"
        there.mkdir()
        output = self.changed_while_it_runs(lambda: open_in(there, 1500 * 24), 300 * 24, 20 * 24, DISK, "graph.feature_bits=8", f"run.spill={there}", ranks=1)
        self.assertIn(f"disk    rows of features are written in 8 bits to run.spill = {there}: 35.2 KiB of rank 0\n", output)
        self.assertRegex(output, "run.spill = .*/spilled: a table of features does not hold what it held before in rows 170 to 339;")

    def changed_while_it_runs(self, find, begin, count, *keys, ranks=2):
        """What a run says that ends because these bytes of a file change."""
        run = Running("train", self.config, *keys, "train.epochs=100000", ranks=ranks)
        self.addCleanup(run.process.kill)
        run.wait_for(lambda: run.says("epoch    2"), "epoch")
        with open(find(), "r+b") as file:
            file.seek(begin)
            file.write(b"\x11" * count)
        code, output = run.end()
        self.assertEqual(code, 3, output)
        return output
