"""A small training on a planted graph, for tests that run it in many ways and compare all that must not change."""

import shutil

from tests.app.program import ProgramTest, espalier


class PlantedJobTest(ProgramTest):
    JOB = ("sampler.fanout=[5, 4, 3]", "sampler.batch_size=50", "model.layers=3", "model.hidden=16", "model.dropout=0.2", "train.epochs=2",
           "train.learning_rate=0.01", "train.batches_per_step=4", "train.reproducible=true", "run.threads=1", 'run.restart="never"')
    NODES = 1300  # of which an epoch is four steps

    def setUp(self):
        super().setUp()
        self.make(self.NODES)

    def make(self, nodes):
        self.make_once(self.graph, ("generate", "planted", "--nodes", nodes, "--degree", 8, "--features", 8, "--classes", 4))

    def make_typed(self, types="paper=750:12,author=450,field=5"):
        self.make_once(self.graph, ("generate", "planted", "--types", types, "--relations",
                                    "author.writes.paper=2000,paper.cites.paper=3000,paper.about.field=750", "--classes", 5))

    def cut_everywhere(self, *job, layouts):
        """The job, cut after each step and gone on with as the next of `layouts` says: (ranks, *keys). After each cut yields what it said;
        what the last one said is `said`."""
        shutil.rmtree(self.output, ignore_errors=True)
        for count in range(100):
            ranks, *layout = layouts[count % len(layouts)]
            code, output = espalier("train", self.config, *job, *layout, "run.restart=auto", "run.max_minutes=1e-9", ranks=ranks)
            if code != 5:
                break
            yield output
        self.said = output
        self.assertEqual(code, 0, output)

    def check_cuts(self, *job, layouts, most=5):
        """Cut everywhere, more than so many times, it ends as the job that is not."""
        expected = self.history(self.train(*job))
        self.assertGreater(len([*self.cut_everywhere(*job, layouts=layouts)]), most)
        self.assertEqual(self.history(self.report(self.output)), expected)
        return expected

    def fetched(self, report):
        """Bytes of each epoch, without gradients of embeddings."""
        return [epoch["bytes"]["fetch"]["total"] - self.moved(epoch, "fetch/update") for epoch in report["epochs"]]

    def moved(self, epoch, label):
        return sum(volume["total"] for step, volume in epoch.get("steps", {}).items() if f"{step}/".startswith(f"{label}/"))

    def check_saved(self, found, without, sources):
        """What was fetched and what was saved are what is fetched without history, to the byte; `sources` were at work."""
        for epoch, fetched, before in zip(found["epochs"], self.fetched(found), self.fetched(without), strict=True):
            saved = epoch["saved"]
            self.assertEqual(fetched + saved["pruned"] + saved["kept"] + saved["history"], before)
            self.assertEqual(saved["history"], -self.moved(epoch, "fetch/history"))
        for source, bytes_ in found["epochs"][-1]["saved"].items():
            self.assertEqual(bytes_ != 0, source in sources, source)
            self.assertEqual(bytes_ < 0, source in sources and source == "history", source)
