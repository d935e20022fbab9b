"""Published accuracies on real graphs (make test-long): the network learns what it should, not only something.

Sources: Kipf and Welling 2017 (Cora 81.5, Citeseer 70.3); Velickovic et al. 2018 (GAT: 83.0 +- 0.7, 72.5 +- 0.7); Shchur et al. 2018 (Amazon Computers, GCN 82.6 +- 2.4, GraphSAGE-mean 82.4 +- 1.8).
Chen et al. 2018 and Zou et al. 2019 train on Cora's supervised split. Single seeds scatter, so means over seeds are judged.
"""

import statistics
import time
import unittest

from tests.app.program import LONG, ROOT, SHARED_DATA, ProgramTest


@unittest.skipUnless(LONG, "long: published accuracies")
@unittest.skipUnless(SHARED_DATA.exists(), f"the real graphs are not at {SHARED_DATA}")
class LongAccuracy(ProgramTest):
    def import_graph(self, name, split):
        path = self.folder / f"{name}_{split}.h5"
        self.succeed("-q", "import", "ogb", SHARED_DATA / name, "--split", split, "--symmetrize", "-o", path)
        return path

    def train(self, config, graph, *overrides, **options):
        self.succeed("-q", "train", ROOT / "inputs" / config, f"graph.file={graph}", f"output.dir={self.folder / 'out'}", *overrides,
                     timeout=900, **options)
        return self.report(self.folder / "out")["test"]["accuracy"]

    def expect_mean(self, name, accuracies, least):
        mean = statistics.mean(accuracies)
        print(f"\nnote: {name}: mean {mean:.4f} of {[round(a, 4) for a in accuracies]}")
        self.assertGreaterEqual(mean, least, name)

    def test_long_gcn_on_cora_and_citeseer(self):
        for name, least in (("cora", 0.810), ("citeseer", 0.700)):
            graph = self.import_graph(name, "public")
            self.expect_mean(name, [self.train("cora.toml", graph, f"train.seed={s}") for s in range(10)], least)

    def test_long_gat_on_cora_and_citeseer(self):
        for name, batch, least in (("cora", 140, 0.820), ("citeseer", 120, 0.710)):
            graph = self.import_graph(name, "public")
            self.expect_mean(f"gat {name}", [self.train("cora_gat.toml", graph, f"train.seed={s}", f"sampler.batch_size={batch}")
                                             for s in range(10)], least)

    def test_long_amazon_computers(self):
        graphs = [self.import_graph("amazon_computers", f"shchur_seed{s}") for s in range(5)]
        self.expect_mean("gcn", [self.train("amazon.toml", graph) for graph in graphs], 0.815)
        sage = ("model.kind=sage", "model.hidden=32", "model.dropout=0.4", "train.learning_rate=0.001", "train.weight_decay=0.1",
                "graph.feature_norm=none")
        self.expect_mean("sage", [self.train("amazon.toml", graph, *sage) for graph in graphs], 0.810)

    def test_long_every_sampler_on_cora_supervised(self):
        graph = self.import_graph("cora", "fastgcn_supervised")
        for kind, fanout, least in (("graphsage", "[15,10]", 0.860), ("ladies", "[512,512]", 0.855), ("fastgcn", "[400,400]", 0.840),
                                    ("labor", "[15,10]", 0.855)):
            job = (f"sampler.kind={kind}", f"sampler.fanout={fanout}")
            self.expect_mean(kind, [self.train("cora_supervised.toml", graph, *job, f"train.seed={s}") for s in range(5)], least)

    def test_long_uniform_subgraphs(self):
        subgraphs = ("sampler.kind=subgraph", "train.batches_per_step=1")
        graph = self.import_graph("amazon_computers", "shchur_seed0")
        job = ("model.kind=sage", "model.dropout=0.5", "sampler.batch_size=3000", "train.epochs=200", "train.early_stop=0")
        self.expect_mean("amazon, subgraphs", [self.train("amazon.toml", graph, *subgraphs, *job, f"train.seed={s}") for s in range(3)],
                         0.77)
        graph = self.import_graph("debian_bookworm", "random_seed0")
        job = ("sampler.batch_size=16000", "sampler.fanout=[-1,-1,-1]")
        self.expect_mean("debian, subgraphs", [self.train("debian.toml", graph, *subgraphs, *job, f"train.seed={s}") for s in range(2)],
                         0.60)

    def test_long_sage_on_debian_at_four_ranks(self):
        start = time.time()
        accuracy = self.train("debian.toml", self.import_graph("debian_bookworm", "random_seed0"), "grid.replication=2", ranks=4)
        print(f"\nnote: debian: {accuracy:.4f} in {time.time() - start:.0f} s at np 4")
        self.assertGreaterEqual(accuracy, 0.80)
