"""Jobs on graphs with types.

Laws: samples, losses and weights are the same to the bit on every grid, by every schedule, on a grid gone on from; a graph of one
type and one relation is a graph without types; plan foretells the bytes; the emulated GPU draws the same samples.
"""

import h5py
import numpy as np

from tests.app.program import LONG, ProgramTest, arrays_of, attributes_of, needs_emulation, on_gpus, read, set_at, write_file

JOB = ("sampler.fanout=[4, 3]", "sampler.batch_size=100", 'model.kind="rgcn"', "model.layers=2", "model.hidden=16", "model.bases=3",
       "model.dropout=0.2", "train.epochs=2", "train.learning_rate=0.01", "train.batches_per_step=4", "train.reproducible=true",
       "run.threads=1")
FEWER = ("--types", "paper=500:12,author=300,field=5",  # for GPUs that are emulated
         "--relations", "author.writes.paper=1300,paper.cites.paper=2000,paper.about.field=500", "--classes", 5)
# On eight ranks some own no field.
TYPES = ("--types", "paper=750:12,author=450,field=5",
         "--relations", "author.writes.paper=2000,paper.cites.paper=3000,paper.about.field=750", "--classes", 5)
SAMPLERS = [("sampler.kind=graphsage",), ("sampler.kind=labor",),
            ("sampler.kind=ladies", "sampler.fanout=[200,300]"), ("sampler.kind=fastgcn", "sampler.fanout=[300,300]")]
# Numbers of their own for some relations: of others 30 and 40, of one all of its columns.
OF_RELATIONS = ("sampler.fanout=[30,40]", 'sampler.relation_fanout=["writes=60,90", "cites=0", "rev_cites=80", "about=-1,2"]')
SAMPLERS += [("sampler.kind=ladies", *OF_RELATIONS), ("sampler.kind=fastgcn", *OF_RELATIONS)]
ATTENTION = [(f"model.kind={kind}", "model.bases=8", "model.heads=2", "model.output_heads=3") for kind in ("rgat", "hgt")]
GRIDS = ((1, 1), (2, 1), (3, 1), (4, 2), (4, 4), (6, 2), (8, 1))
OVERLAP = ("run.overlap=true",)


class TypedTest(ProgramTest):
    JOB = (*JOB, "sampler.batch_size=50")

    GENERATE = ("planted", *TYPES)

    def generate(self, *words):
        self.make_once(self.graph, ("generate", "planted", *words))

    def check_inferred(self, *options):
        """The same rows on any grid; their attributes."""
        logits = [self.inferred(*options, config=self.output / "config.toml", ranks=ranks) for ranks in (1, 2)]
        self.assertEqual(*(rows["logits"].tobytes() for rows, _ in logits))
        return logits[0][1]

    def cpu_and_gpu(self, *job, on_gpu=(), ranks, same):
        """Losses agree, and what must be the same."""
        cpu, gpu = (self.train(*job, *more, "train.epochs=1", "sampler.batch_size=33", ranks=ranks, **on_gpus(3))
                    for more in (("run.device=cpu",), ("run.device=cuda", *on_gpu)))
        self.compare_devices(gpu, cpu, off=1e-4, same=same)
        self.assertEqual(*([epoch["bytes"]["fetch"] for epoch in of["epochs"]] for of in (cpu, gpu)))

    def test_one_history_on_every_grid_by_every_schedule(self):
        schedules = ("auto", "push", "pull", "staged", "staged-oblivious")
        # A grid for each sampler; tests/sample takes each to all.
        for first, sampler in enumerate(SAMPLERS):
            self.one_history(sampler, [(ranks, f"grid.replication={copies}", f"grid.schedule={schedules[k % 5]}", *OVERLAP * (k % 2))
                                       for k, (ranks, copies) in enumerate(GRIDS[1:], 1)
                                       if (first == 0 or k % 3 == first % 3 if LONG else k == (first or 6))])

    def make_edge_features(self, *types):
        self.generate(*(types or TYPES), "--edge-features", 3, "--homophily", 0.4)

    def test_every_kind_that_sees_relations_with_features_of_edges_and_without(self):
        """Attention learns from them, samples are as without, one history wherever rows lie, and infer and plan know them."""
        self.make_edge_features()
        for kind, ranks, grids in zip(ATTENTION, (6, 2), (
                ((2, 1, ()), (3, 1, ("run.overlap=true", "run.prefetch_steps=3")), *LONG * ((4, 1, ("grid.topology=replicated",)),)),
                ((4, 2, ("run.threads=2",)), *LONG * ((2, 1, ()), (8, 1, ("grid.schedule=pull",)))))):
            with self.subTest(kind=kind[0]):
                without = self.one_history(kind, ((ranks, "grid.replication=2", "run.threads=2"),))
                job = (*kind, "model.edge_features=true")
                expected = self.history(self.train(*job))
                self.assertEqual(without[0][0], expected[0][0], "samples")
                self.assertNotEqual(without[-2], expected[-2], "weights")
                for ranks, copies, more in grids:
                    found = self.train(*job, f"grid.replication={copies}", *more, ranks=ranks)
                    self.assertEqual(self.history(found), expected, (ranks, copies, more))
                    if not more:
                        planned, moved = (of["epochs"][0]["bytes"]["fetch"]["total"] for of in (self.planned(*job, ranks=ranks), found))
                        self.assertAlmostEqual(planned / moved, 1, delta=0.01)
                about = self.check_inferred("--metrics", "grid.schedule=auto", "grid.replication=1")
                self.assertEqual(about["test_accuracy"], expected[-1]["accuracy"])
                self.goes_on(expected, *job, then=("grid.topology=replicated",) if kind == ATTENTION[0] else ())

    def test_features_of_edges_are_learnt_from(self):
        self.make_edge_features("--types", "paper=1500:12,author=900,field=5",
                                "--relations", "author.writes.paper=4000,paper.cites.paper=6000,paper.about.field=1500", "--classes", 5)
        job = (*ATTENTION[0], "train.epochs=30", "model.dropout=0")
        self.assertGreater(self.train(*job, "model.edge_features=true")["test"]["accuracy"],
                           self.train(*job)["test"]["accuracy"] + 0.05)

    def test_features_of_edges_of_a_plain_graph(self):
        self.make_edge_features("--nodes", 1500, "--degree", 6, "--features", 8, "--classes", 4)
        job = ("model.kind=gat", "model.bases=8", "model.heads=2", "model.edge_features=true")
        expected = self.one_history(job, ((2,), (4, "grid.replication=2", self.order())))
        self.assertNotEqual(expected[-2], self.train(*job[:-1])["weights_digest"])

    @needs_emulation
    def test_features_of_edges_on_the_emulated_gpu(self):
        self.make_edge_features(*FEWER)
        for ranks, kind, more in zip((3, 2), ATTENTION, ((), ("graph.features_on=host",))):
            self.cpu_and_gpu(*kind, "model.edge_features=true", on_gpu=more, ranks=ranks, same=())

    def test_embeddings_on_every_grid(self):
        """One history and one set of rows, fetched ahead or not, gone on from on another grid; infer reads what was written."""
        for optimizer in ("adam", "adagrad"):
            job = ("model.embedding=6", f"train.embedding_optimizer={optimizer}")
            grids = GRIDS[1:5] if LONG else GRIDS[1:3] if optimizer == "adam" else GRIDS[1:2]
            expected = self.one_history(job, [(ranks, f"grid.replication={copies}", *(*OVERLAP, f"run.prefetch_steps={k}") * (k % 2))
                                              for k, (ranks, copies) in enumerate(grids, 1)])
            ranks, copies = ((3, 4), (3, 2)) if optimizer == "adam" else ((2, 3), (2, 1))
            before, after = (f"grid.replication={c}" for c in copies)
            self.goes_on(expected, *job, before, then=(after,), ranks=ranks)
        self.assertNotEqual(expected[-2], self.train()["weights_digest"])

    def test_embeddings_in_the_middle_of_an_epoch(self):
        job = ("model.embedding=6", "train.epochs=2", "train.batches_per_step=2")
        expected = self.history(self.train(*job))
        self.stopped_run("-q", "train", self.config, *job, "run.restart=never", ranks=3)
        self.assertEqual(self.history(self.train(*job, "run.overlap=true", restart="auto", ranks=2)), expected)

    def test_features_of_several_widths_and_embeddings(self):
        self.generate("--types", "paper=500:12,author=250:5,field=40",
                      "--relations", "author.writes.paper=1500,paper.cites.paper=1000,paper.about.field=500", "--classes", 3)
        ways = ((3, "graph.features_on=node"), (4, "grid.replication=2", "run.overlap=true"))
        for k, job in enumerate(((), ("model.embedding=4",), ("model.kind=sage", "model.bases=8", "model.embedding=4"))):
            self.one_history(job, ways if LONG else ways[k % 2:][:1])
        self.succeed("-q", "generate", "planted", "--types", "paper=100:3,author=50:5", "--relations", "author.writes.paper=300",
                     "-o", self.folder / "all.h5")
        self.fail_with(2, ["model.embedding", "all.h5", "all have features"], "train", self.config, "model.embedding=4",
                       f"graph.file={self.folder / 'all.h5'}", "run.restart=never")

    def test_all_types_have_features_of_one_width(self):
        self.generate("--types", "paper=600:5,author=300:5", "--relations", "author.writes.paper=3000,paper.cites.paper=2000", "--classes", 3)
        features = read(self.graph, "nodes/paper/features", "nodes/author/features")
        self.assertEqual([x.shape for x in features], [(600, 5), (300, 5)])
        expected = self.one_history((), ((2,),))
        # The authors' rows are read as such: without them it is another training.
        set_at(self.graph, "nodes/author/features", ..., features[1][::-1])
        self.assertNotEqual(self.history(self.train("graph.verify=false")), expected)

    def test_a_graph_without_features_learns_rows(self):
        self.generate("--types", "paper=1000,author=500", "--relations", "author.writes.paper=6000,paper.cites.paper=8000", "--classes", 3)
        job = ("model.embedding=8", "model.dropout=0", "train.embedding_rate=0.05")
        self.one_history(job, ((2,),))
        found = self.train(*job, "train.epochs=12")
        self.assertGreater(found["test"]["accuracy"], 0.5, "a third is chance")
        as_they_began = self.train(*job[:2], "train.epochs=12", "train.embedding_rate=0")
        self.assertLess(found["epochs"][-1]["loss"], 0.8 * as_they_began["epochs"][-1]["loss"])
        self.generate("--nodes", 1000, "--degree", 8, "--features", 0, "--classes", 3)
        for kind, *grid in (("sage", 4, "grid.replication=2"), ("gcn", 3, "grid.topology=replicated", "run.overlap=true")):
            self.one_history((*job, f"model.kind={kind}", "model.bases=8"), (grid,))

    def test_models_that_ignore_types_too(self):
        for kind, ranks, copies in (("sage", 2, 2), ("gcn", 2, 1), ("gat", 3, 1)):
            self.one_history((f"model.kind={kind}", "train.epochs=1", "model.bases=8"), ((ranks, f"grid.replication={copies}"),))

    def test_it_learns_through_relations(self):
        alone = ('sampler.relation_fanout=["writes=0", "rev_writes=0", "cites=0", "rev_cites=0", "about=0", "rev_about=0"]',
                 "train.epochs=12")
        self.assertGreater(self.train("train.epochs=12")["test"]["accuracy"], self.train(*alone)["test"]["accuracy"] + 0.1)

    def test_an_order_balances_types_and_moves_no_bit(self):
        expected = self.history(self.train())
        order = self.folder / "graph.order.h5"
        output = self.succeed("partition", self.graph, "--clusters", 64, "-o", order, ranks=2)
        for name in ("paper", "author"):
            self.assertRegex(output, rf"\n{name} +1\.0")
        self.assertRegex(output, r"\nfield +1\.200")  # of five vertices
        with h5py.File(order) as file, h5py.File(self.graph) as graph:
            clusters, offsets = file["cluster"][:], graph["types/offset"][:]
            # Edges of several relations between two vertices are one.
            rows = np.repeat(np.arange(offsets[-1]), np.diff(graph["graph/indptr"][:]))
            merged = np.unique(rows * offsets[-1] + graph["graph/indices"][:]) // offsets[-1]
            entries, weights = np.bincount(merged, minlength=offsets[-1]), file["type_weights"][:]
            for kind in range(3):
                own = slice(offsets[kind], offsets[kind + 1])
                for column, amount in ((2 * kind, None), (2 * kind + 1, entries[own])):
                    counted = np.bincount(clusters[own], weights=amount, minlength=len(weights))
                    np.testing.assert_array_equal(weights[:, column], counted)
        self.assertIn("\nauthor ", self.succeed("info", order))
        self.one_history((), [(ranks, f"graph.order={order}", f"grid.replication={copies}") for ranks, copies in ((3, 1), *LONG * ((4, 2), (8, 1)))],
                         expected)

    def test_orders_that_balance_no_types(self):
        order = self.folder / "graph.order.h5"
        partition = ("partition", self.graph, "--clusters", 64, "-o", order, "--overwrite")
        for options in (("--ignore-types",), ("--method", "multilevel"), ("--method", "block")):
            with self.subTest(options=options):
                self.assertNotIn("author", self.succeed(*partition, *options))
                with h5py.File(order) as file:
                    self.assertEqual(sorted(file), ["cluster", "weights"])
        self.fail_with(2, ["--ignore-types", "block", "balances no types"], *partition, "--ignore-types", "--method", "block")
        self.generate("--nodes", 500)
        self.fail_with(2, ["--ignore-types", "no vertex types"], *partition, "--ignore-types")

    def test_only_another_type_has_features(self):
        types = ("--relations", "author.writes.paper=3000,paper.cites.paper=2000", "--classes", 3)
        self.generate("--types", "paper=1000,author=500:8", *types)
        self.one_history((), ((3, "grid.topology=replicated"),))
        self.inferred()
        standard = "graph.feature_norm=standard"
        self.goes_on(self.history(self.train(standard)), standard)
        self.generate("--types", "paper=1000,author=500", *types)
        self.fail_with(3, ["no vertex type has features"], "train", self.config, "run.restart=never")

    def test_plan_foretells_the_bytes(self):
        embeddings = [("model.embedding=32", f"grid.replication={c}", f"run.overlap={ahead}") for c, ahead in ((1, "true"), (2, "false"))]
        for ranks, sampler in ((3, embeddings[0]), (4, ('sampler.relation_fanout=["cites=0"]', *embeddings[1])), *zip((2, 3), SAMPLERS[4:])):
            report = self.train("train.epochs=1", *sampler, ranks=ranks)
            said, measured = (of["epochs"][0]["bytes"] for of in (self.planned(*sampler, ranks=ranks), report))
            for label in ("sample", "fetch", "evaluate"):
                with self.subTest(sampler=sampler, label=label):
                    # Points of FastGCN are taken to fall on ranks evenly; here, over six seeds, 0.7 to 1.1 % fewer travel.
                    delta = 0.015 if "sampler.kind=fastgcn" in sampler else 0.01
                    self.assertAlmostEqual(said[label]["total"] / measured[label]["total"], 1, delta=delta)

    def test_one_type_and_one_relation_is_a_graph_without_types(self):
        self.generate("--types", "vertex=1500:12", "--relations", "vertex.edge.vertex=6000", "--no-inverse", "--classes", 5)
        ranks_of = {"sage": 2, "rgcn": 1, "rgat": 2, "hgt": 1}
        typed = {kind: self.history(self.train(f"model.kind={kind}", "model.bases=8", ranks=ranks)) for kind, ranks in ranks_of.items()}
        plain = self.folder / "plain.h5"
        write_file(plain, {**attributes_of(self.graph), "version": 1, "digest": None},
                   {name.replace("vertex/", ""): of for name, of in arrays_of(self.graph).items()
                    if name.startswith(("graph/ind", "nodes/", "split/"))})
        for kind, expected in typed.items():
            found = self.train(f"graph.file={plain}", f"model.kind={kind}", "model.bases=8", ranks=ranks_of[kind])
            self.assertEqual(self.history(found), expected, kind)

    @needs_emulation
    def test_the_emulated_gpu_draws_the_same_samples(self):
        """As every sampler does: sample/every_sampler_test.cu."""
        self.generate(*FEWER)
        for k, sampler in enumerate(SAMPLERS[:3]):
            for ranks in (1, 3) if LONG else (2, 1, 3)[k:k + 1]:
                self.cpu_and_gpu(*sampler, *dict(zip(SAMPLERS[1:], ATTENTION)).get(sampler, ()), ranks=ranks,
                                 same=("sample_digest", "sampled_edges", "input_rows", "bytes"))

    def test_what_is_refused(self):
        def refuse(code, words, *overrides):
            self.fail_with(code, words, "train", self.config, *overrides)
        refuse(3, ["graph.target", "tree", "paper, author, field"], "graph.target=tree")
        refuse(3, ["graph.target", "author", "no labels"], "graph.target=author")
        refuse(2, ["sampler.relation_fanout", "reads", "author.writes.paper"], 'sampler.relation_fanout=["reads=3"]')
        refuse(2, ["twice", "author.writes.paper"], 'sampler.relation_fanout=["writes=3", "author.writes.paper=2"]')
        refuse(2, ["3 numbers", "2 layers"], 'sampler.relation_fanout=["writes=3,2,1"]')
        refuse(2, ["RELATION=N"], 'sampler.relation_fanout=["writes"]')
        refuse(2, ["left out of all layers"], 'sampler.relation_fanout=["writes=3,0"]')
        refuse(2, ["model.kind = sage"], "model.kind=sage", "model.bases=8", 'sampler.relation_fanout=["writes=3"]')
        refuse(2, ["model.bases", "rgcn"], "model.kind=sage")
        refuse(2, ["train.embedding_rate", "model.embedding", "above 0"], "train.embedding_rate=0.1")
        refuse(2, ["train.embedding_optimizer", "sgd", "adagrad"], "model.embedding=4", "train.embedding_optimizer=sgd")
        for kind in ("rgat", "hgt"):
            refuse(2, ["model.bases", "rgcn"], f"model.kind={kind}")
        refuse(2, ["model.edge_features", "gat or rgat or hgt"], "model.edge_features=true")
        ladies = ("sampler.kind=ladies", "sampler.fanout=[50, 50]")
        refuse(2, ["reference", "self loops"], *ladies, "sampler.mode=reference")
