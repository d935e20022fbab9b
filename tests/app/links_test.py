"""The task "links", from a graph file to ranks: one history on every grid, by every schedule, with what is drawn ahead; a
restart elsewhere; ranks against numpy's, of the rows that `infer` writes."""

import csv

import h5py
import numpy as np

import tests.python  # noqa: F401  # where the package is
from tests.app.program import LONG, ProgramTest, arrays_of, attributes_of, needs_emulation, on_gpus, read

import espalier

HITS = (1, 3, 10, 50, 100)
NODES = 300
PLANTED = ("planted", "--nodes", NODES, "--degree", 8, "--features", 8, "--classes", 5, "--homophily", 0.9)
OF_TYPES = ("--relations", "author.writes.paper=700,paper.cites.paper=1000", "--classes", 3)


def rank_scores(scores, truth, known=()):
    """The mean rank of candidate `truth` among scores, with the same ones half, without those known."""
    others = np.ones(len(scores), bool)
    others[[truth, *known]] = False
    return 1 + np.sum(scores[others] > scores[truth]) + np.sum(scores[others] == scores[truth]) / 2


def scores_of(ranks, prefix=""):
    ranks = np.array(ranks)
    return {f"{prefix}mrr": np.mean(1 / ranks), **{f"{prefix}hits_{k}": np.mean(ranks <= k) for k in HITS}}


class LinksTest(ProgramTest):
    JOB = ("sampler.fanout=[5, 4]", "sampler.batch_size=64", "model.layers=2", "model.hidden=16", "model.dropout=0.1",
           'train.task="links"', "train.epochs=2", "train.negatives=2", "train.batches_per_step=6", "train.reproducible=true",
           "train.learning_rate=0.01")

    def make(self, *generator, prepare=()):
        generate = ("generate", *(generator or PLANTED), "--seed", 3)
        self.make_once(self.folder / "whole.h5", generate)
        self.make_once(self.graph, generate, ("prepare", None, "--split-links", "0.8,0.1,0.1", *prepare))

    def every_grid(self):
        """Every number of ranks and copies, with schedules, overlap and an order in turn."""
        kinds = (("grid.schedule=push", "run.overlap=true"), ("grid.schedule=staged", self.order("streaming", 16)),
                 ("run.overlap=true", "run.prefetch_steps=2"), ("sampler.bulk=5", "run.threads=2"))
        grids = [(p, c) for p in range(1, 9) for c in range(1, p + 1) if p % c == 0]
        return [(p, (f"grid.replication={c}", *kinds[k % len(kinds)])) for k, (p, c) in enumerate(grids)]

    def test_one_history_on_every_grid(self):
        self.make()
        # Each of them for one of the jobs.
        for job, grids in (((), ((2, ("grid.schedule=push", "run.overlap=true")), (6, ("grid.replication=2", "sampler.bulk=7", "run.threads=2")))),
                           (("train.negatives_mode=in-batch", "train.score=mlp", "train.loss=softmax", "train.ranked_against=20"),
                            ((3, ("grid.schedule=staged",)),)),
                           (("train.negatives_mode=shared", "train.negatives_of=both", "sampler.kind=ladies", "sampler.fanout=[60,80]",
                             "model.kind=gcn", "train.score=rotate", "train.loss=self_adversarial"),
                            ((4, ("grid.replication=2", "run.overlap=true", "run.prefetch_steps=2")),))):
            self.one_history(job, ((ranks, *more) for ranks, more in (grids if not LONG else self.every_grid())))

    def test_an_order_moves_no_bit(self):
        self.make()
        self.one_history(("train.negatives_mode=degree", "train.negatives_filtered=true", "train.score=complex"),
                         ((3, self.order("streaming", 16)),))

    def test_local_batches(self):
        self.make()
        order = self.order()
        job = (order, "sampler.groups=8", "train.batches_per_step=8")
        expected = self.one_history(job, ((4, "grid.replication=2", "run.overlap=true"),))
        run, plan = self.train(*job, ranks=3), self.planned(*job, ranks=3)
        self.assertEqual(self.history(run), expected)
        self.assertEqual(plan["epochs"][0]["sample_digest"], run["epochs"][0]["sample_digest"])
        self.compare_bytes(run, plan, job, off=0.02, evaluate=0.1)
        # Negatives of the batch leave its seeds where its links are.
        near = (order, "train.batches_per_step=8", "train.negatives_mode=in-batch", "sampler.fanout=[3, 2]", "train.epochs=1")
        local, uniform = self.train(*near, "sampler.groups=8", ranks=3), self.train(*near, ranks=3)
        for stage in ("sample", "fetch"):
            self.assertLess(local["epochs"][0]["bytes"][stage]["total"], 0.5 * uniform["epochs"][0]["bytes"][stage]["total"], stage)
        self.stopped_run("-q", "train", self.config, "run.restart=never", *job, ranks=2)
        self.succeed("-q", "train", self.config, *job, overwrite=False)
        self.assertEqual(self.history(self.report(self.output)), expected)

    @needs_emulation
    def test_on_the_emulated_gpu(self):
        self.make()
        job = ("train.negatives_filtered=true", "train.score=distmult", "train.loss=self_adversarial", "train.epochs=1")
        cpu, gpu = self.train(*job), self.train(*job, "run.device=cuda", ranks=2, **on_gpus(2))
        self.compare_devices(gpu, cpu)
        self.assertAlmostEqual(gpu["test"]["auc"], cpu["test"]["auc"], delta=2e-3)
        self.assertEqual(self.history(self.train(*job, "run.device=cuda", "run.overlap=true", ranks=3, **on_gpus(3))), self.history(gpu))

    def test_what_helps_where_evaluation_is_the_largest(self):
        self.succeed("-q", "generate", "planted", "--nodes", 20000, *PLANTED[3:], "-o", self.folder / "whole.h5")
        self.succeed("-q", "prepare", self.folder / "whole.h5", "--split-links", "0.98,0.01,0.01", "-o", self.graph)
        job = ("plan", self.config, "--ranks", 1, "model.hidden=256", "sampler.fanout=[1,1]", "sampler.bulk=1", "--memory-per-rank", "60MiB")
        words = self.fail_with(4, ["evaluation ", "train.ranked_against = 100"], *job)
        self.assertNotIn("a smaller sampler.batch_size", words)
        self.assertNotIn("ranked_against", self.fail_with(4, ["does not fit"], *job, "train.ranked_against=100"))
        self.fail_with(4, ["a smaller sampler.batch_size", "train.ranked_against = 100"], *job, "sampler.batch_size=8000")

    def test_what_is_planned(self):
        self.make("planted", "--nodes", 600, *PLANTED[3:])
        for ranks, job in ((3, ("train.ranked_against=20",)), (4, ("grid.replication=2", "train.negatives_of=both", "sampler.bulk=3")),
                           (2, ("train.negatives_mode=degree", "train.negatives_filtered=true")),
                           (2, ("train.negatives_mode=in-batch", "train.score=distmult", "grid.schedule=staged"))):
            job = (*job, "train.epochs=1")
            run, plan = self.train(*job, ranks=ranks), self.planned(*job, ranks=ranks)
            with self.subTest(job=job, ranks=ranks):
                for field in ("sample_digest", "batches", "sampled_edges", "input_rows"):
                    self.assertEqual(plan["epochs"][0][field], run["epochs"][0][field], field)
                # Links lie in the order of their ends: of those that a rank judges more ends are its own than the plan expects.
                self.compare_bytes(run, plan, job, off=0.02, evaluate=0.1)

    def test_sample_and_train_draw_the_same(self):
        self.make()
        report = self.train()
        self.succeed("-q", "sample", self.config, "--epochs", 2, "run.restart=never", ranks=2)
        sampled = self.report(self.output)
        self.assertEqual([e["sample_digest"] for e in sampled["epochs"]], [e["sample_digest"] for e in report["epochs"]])
        self.assertEqual(sampled["epochs"][0]["batches"], report["epochs"][0]["batches"])

    def test_a_run_that_goes_on_elsewhere(self):
        self.make()
        job = ("train.score=rotate", "train.loss=margin", "train.ranked_against=30", "train.clip_norm=0.5", "train.average_weights=0.9")
        expected = self.history(self.train(*job))
        # Stopped within an epoch, after a whole one, and within another.
        self.stopped_run("-q", "train", self.config, "run.restart=never", *job, ranks=3)
        self.succeed("-q", "train", self.config, *job, "train.epochs=1", overwrite=False)
        self.stopped_run("-q", "train", self.config, *job, ranks=2, overwrite=False)
        self.succeed("-q", "train", self.config, *job, ranks=2, overwrite=False)
        self.assertEqual(self.history(self.report(self.output)), expected)
        angles = read(self.output / "weights.h5", "weights/task.relations")
        self.assertEqual(angles.shape, (1, 8))
        self.assertGreater(np.abs(angles).max(), 1, "they begin within pi, not about 0")

    def check_ranks(self, report, both):
        """Of a run with the score dot, against numpy's of the rows that infer writes."""
        arrays, about = self.inferred("--metrics", f"train.negatives_of={'both' if both else 'tail'}")
        self.assertEqual({name: about[f"test_{name}"] for name in report["test"]}, report["test"])
        h = arrays["embeddings"].astype(np.float64)
        scores = (h @ h.T).astype(np.float32)
        splits = {split: arrays_of(self.graph, f"links/{split}") for split in ("train", "valid", "test")}
        directed = attributes_of(self.graph, "links")["directed"]
        after, before = ([set() for _ in h] for _ in range(2))  # tails of a head, heads of a tail
        for links in splits.values():
            for u, v in zip(links["head"], links["tail"]):
                for u, v in ((u, v),) if directed else ((u, v), (v, u)):
                    after[u].add(v)
                    before[v].add(u)
        for split, found in (("valid", report["epochs"][report["best_epoch"] - 1]["valid"]), ("test", report["test"])):
            links = splits[split]
            raw, filtered, shares = [], [], []
            for k, (head, tail) in enumerate(zip(links["head"], links["tail"])):
                for fixed, truth, known, name in ((head, tail, after[head], "negative_tails"), (tail, head, before[tail], "negative_heads")):
                    given = {name for name in links if name.startswith("negative")}
                    of_truth = scores[fixed] if not name.endswith("heads") else scores[:, fixed]
                    if given:
                        if name in given:
                            some = of_truth[links[name][k]]
                            raw.append(1 + np.sum(some > of_truth[truth]) + np.sum(some == of_truth[truth]) / 2)
                            shares.append(1 - (raw[-1] - 1) / len(some))
                    elif both or name.endswith("tails"):
                        raw.append(rank_scores(of_truth, truth))
                        filtered.append(rank_scores(of_truth, truth, known))
                        shares.append(1 - (raw[-1] - 1) / (len(h) - 1))
            expected = {**scores_of(raw), "auc": np.mean(shares), **(scores_of(filtered, "filtered_") if filtered else {})}
            self.assertEqual(set(found), set(expected))
            for name, value in expected.items():
                self.assertAlmostEqual(found[name], value, delta=1e-9, msg=f"{split} {name}")

    def test_ranks_are_numpys(self):
        self.make()
        self.check_ranks(self.train("train.negatives_of=tail"), both=False)
        self.check_ranks(self.train("train.negatives_of=both", "grid.replication=2", ranks=2), both=True)
        # Candidates that the file gives for the links of one split.
        random = np.random.default_rng(5)
        count = len(read(self.graph, "links/test/head"))
        self.put({f"links/test/negative_{end}": random.integers(0, NODES, (count, width)) for end, width in (("tails", 40), ("heads", 7))})
        report = self.train(ranks=2)
        self.check_ranks(report, both=False)
        self.assertEqual(self.history(self.train()), self.history(report))

    def test_ranks_among_pairs_that_are_no_links(self):
        self.make()
        random = np.random.default_rng(5)
        pairs = {split: random.integers(0, NODES, (count, 2)) for split, count in (("valid", 301), ("test", 150))}
        test = np.stack(read(self.graph, "links/test/head", "links/test/tail"))
        pairs["test"][:20] = test[:, :20].T  # 20 scores are the same
        self.put({f"links/{split}/non_links": of for split, of in pairs.items()})
        job = ("model.hidden=4",)
        report = self.train(*job)
        h = self.inferred(*job)[0]["embeddings"].astype(np.float64)
        of_test = np.einsum("ij,ij->i", h[test[0]], h[test[1]]).astype(np.float32)
        others = np.einsum("ij,ij->i", h[pairs["test"][:, 0]], h[pairs["test"][:, 1]]).astype(np.float32)
        ranks = 1 + (others[None] > of_test[:, None]).sum(1) + (others[None] == of_test[:, None]).sum(1) / 2
        expected = {**scores_of(ranks), "auc": np.mean(1 - (ranks - 1) / len(others))}
        self.assertEqual(set(report["test"]), set(expected))
        for name, value in expected.items():
            self.assertAlmostEqual(report["test"][name], value, delta=1e-9, msg=name)
        # As OGB counts Hits@k: links whose score is above that of the k-th of the pairs.
        for k in (10, 50):
            self.assertAlmostEqual(report["test"][f"hits_{k}"], np.mean(of_test > np.sort(others)[-k]), delta=1e-9)
        for ranks, grid in ((2, ()), (4, ("grid.replication=2",))):
            run = self.train(*job, *grid, ranks=ranks)
            self.assertEqual(self.history(run), self.history(report))
            self.compare_bytes(run, self.planned(*job, *grid, ranks=ranks), grid, off=0.02, evaluate=0.1)
        self.fail_with(2, ["train.ranked_against", "gives the candidates"], "train", self.config, "run.restart=never", "train.ranked_against=9")

    def test_ranks_where_links_have_a_direction(self):
        self.make("rmat", "--scale", 8, "--edge-factor", 6, "--features", 8, "--classes", 3)
        self.check_ranks(self.train("train.negatives_of=both", ranks=3), both=True)

    def test_links_of_types(self):
        self.make("planted", "--types", "paper=200:8,author=100", *OF_TYPES, "--homophily", 0.95)
        job = ("model.kind=rgcn", "model.embedding=4", "model.bases=4", "train.score=distmult", "train.negatives_of=both")
        self.assertGreater(self.one_history(job, ((4, "grid.replication=2"),))[-1]["auc"], 0.6)

    def answers(self, lines, *options, **run):
        """The lines of --links, and of the CSV."""
        asked, found = self.folder / "asked.txt", self.folder / "answers.csv"
        asked.write_text(lines)
        self.succeed("-q", *self.infer_words("--links", asked, "--overwrite", rows=found), *options, **run)
        with open(found, newline="") as file:
            rows = list(csv.reader(file))
        self.assertEqual(rows[0], ["head", "relation", "tail", "score", "known"])
        return rows[1:]

    def test_links_that_somebody_asks_about(self):
        self.make()
        self.train()
        h = self.inferred()[0]["embeddings"].astype(np.float64)
        scores = h @ h.T
        with h5py.File(self.graph) as file:
            links = {(u, v) for split in file["links"].values() for u, v in zip(split["head"][:], split["tail"][:])}
        links |= {(v, u) for u, v in links}
        pairs = [*sorted(links)[:3], (3, 5), (17, 200), (NODES - 1, 0)]
        rows = self.answers("".join(f"{u}\t{v}\n" for u, v in pairs))
        self.assertEqual([(int(u), int(v)) for u, _, v, _, _ in rows], pairs)
        for (u, v), (_, relation, _, score, known) in zip(pairs, rows):
            self.assertEqual((relation, known), ("0", str(int((u, v) in links))))
            self.assertAlmostEqual(float(score), scores[u, v], delta=1e-6 * max(1, abs(scores[u, v])))
        self.assertEqual(self.answers("".join(f"{u},0,{v}\n" for u, v in pairs), ranks=3), rows)
        expected = []
        for u in (3, 17):
            best = sorted((v for v in range(NODES) if v != u), key=lambda v: (-np.float32(scores[u, v]), v))[:5]
            expected += [(str(u), str(v), str(int((u, v) in links))) for v in best]
        for run in ({}, {"ranks": 3}):
            self.assertEqual([(u, v, known) for u, _, v, _, known in self.answers("3\n17\n", "--top", 5, **run)], expected)
        everything = self.answers("3\n17\n", "--top", 10**9, ranks=2)
        self.assertEqual(len(everything), 2 * (NODES - 1))
        self.assertEqual([(u, v, known) for u, _, v, _, known in everything[:5]], expected[:5])
        # By a network.
        self.train("train.score=mlp")
        h = self.inferred("train.score=mlp")[0]["embeddings"].astype(np.float64)
        w = {name.removeprefix("task."): of for name, of in arrays_of(self.output / "weights.h5", "weights").items()}
        for (u, v), (*_, score, _) in zip(pairs, self.answers("".join(f"{u}\t{v}\n" for u, v in pairs), "train.score=mlp", ranks=2)):
            hidden = np.maximum(h[u] * w["relations"][0] * h[v] @ w["hidden"] + w["hidden_bias"][0], 0)
            self.assertAlmostEqual(float(score), (hidden @ w["output"] + w["output_bias"][0]).item(), delta=1e-5)
        self.train()
        # By names.
        self.put({"nodes/ids": np.array([f'p "{v}", x' for v in range(NODES)], "S")})
        named = self.answers('p "3", x\tp "5", x\n', ranks=2)
        self.assertEqual(named, [['p "3", x', "0", 'p "5", x', *rows[3][3:]]])
        # By ids that are numbers.
        self.put({"nodes/ids": NODES - np.arange(NODES)})
        head, tail = str(NODES - 3), str(NODES - 5)
        self.assertEqual(self.answers(f"{head}\t{tail}\n", "--named-by", "ids", ranks=2), [[head, "0", tail, *rows[3][3:]]])
        self.assertEqual(self.answers("3\t5\n", "--named-by", "numbers"), [["3", "0", "5", *rows[3][3:]]])
        self.fail_with(2, ["--links", "the ids of the graph are numbers, too", "--named-by"],
                       *self.infer_words("--links", self.folder / "asked.txt", rows="new.csv"))

    def test_a_graph_without_links_is_asked(self):
        """What relations are called, and join, the weights know."""
        self.make("planted", "--types", "paper=60:8,author=40", "--relations", "author.writes.paper=200,paper.cites.paper=300", "--classes", 3)
        job = ("model.kind=rgcn", "model.embedding=4", "model.bases=4", "train.score=distmult", "train.negatives_mode=degree")
        self.train(*job, "train.epochs=1")
        with h5py.File(self.graph) as file:
            names = file["links/relations"].asstr()[:]
        lines = "".join(f"{v},{name},{v + 1}\n" for v in (3, 17) for name in names)
        heads = "".join(f"3,{name}\n" for name in names)
        asked, best = (self.answers(text, *job, *top) for text, top in ((lines, ()), (heads, ("--top", 5))))
        whole = self.graph.read_bytes()
        self.put({"links": None})
        for expected, text, top in ((asked, lines, ()), (best, heads, ("--top", 5))):
            for ranks in (1, 3):
                self.assertEqual(self.answers(text, *job, *top, ranks=ranks), [[*row[:-1], "0"] for row in expected])
        self.fail_with(3, ["no links to learn"], *self.infer_words("--metrics", *job))
        # Links that have nothing to train on; and of which the relations have changed places.
        self.graph.write_bytes(whole)
        self.put({"links/train": None})
        self.assertEqual([row[:-1] for row in self.answers(lines, *job)], [row[:-1] for row in asked])
        self.put({"links/relations": lambda relations: relations[::-1]})
        self.fail_with(3, ["its relation 0 of links is", names[-1], "weights.h5 has learnt", names[0]],
                       *self.infer_words("--links", self.folder / "asked.txt", *job, rows="new.csv"), ranks=2)

    def make_triples(self):
        """450 entities of 30 groups on a circle; a relation leads from each to two of the group so many places on."""
        random = np.random.default_rng(2)
        files = {split: [] for split in ("train", "valid", "test")}
        for step in (1, 7, 12):
            for split, heads in zip(files, np.split(random.permutation(np.arange(900) % 450), [750, 825])):
                files[split] += [(h, step, (h // 15 + step) % 30 * 15 + random.integers(15)) for h in heads]
        self.import_triples({split: [(f"e{h:03}", f"by{step:02}", f"e{t:03}") for h, step, t in of] for split, of in files.items()})

    def import_triples(self, files):
        for split, triples in files.items():
            (self.folder / f"{split}.txt").write_text("".join(f"{head}\t{relation}\t{tail}\n" for head, relation, tail in triples))
        self.succeed("-q", "import", "triples", *(word for split in files for word in (f"--{split}", self.folder / f"{split}.txt")), "-o", self.graph)

    ROWS_ALONE = ("model.layers=0", "sampler.fanout=[]", "model.embedding=24", "model.dropout=0.5", "train.negatives_of=both", "train.negatives=4",
                  "sampler.batch_size=128")

    def test_rows_alone(self):
        self.make_triples()
        for more, grids in ((("train.score=rotate", "train.loss=self_adversarial"), ((4, ("grid.replication=2", "run.overlap=true")),)),
                            (("train.score=distmult", "model.input_dropout=0.2"), ((2, ("grid.schedule=staged", "run.threads=2")), (3, ())))):
            job = (*self.ROWS_ALONE, *more)
            report = self.train(*job)
            expected = self.history(report)
            if more[0] == "train.score=rotate":
                self.assertEqual(self.history(self.train(*job, "model.input_dropout=0")), expected, "rows are not dropped unless said")
            arrays, about = self.inferred("--metrics", *job)
            self.assertEqual(about["test_mrr"], report["test"]["mrr"])
            np.testing.assert_array_equal(arrays["types/entity/embeddings"], read(self.output / "embeddings.h5", "weights/embedding.entity"))
            for ranks, grid in grids:
                run = self.train(*job, *grid, ranks=ranks)
                self.assertEqual(self.history(run), expected)
                self.assertEqual([epoch["sampled_edges"] for epoch in run["epochs"]], [0, 0])
        plan = self.planned(*job, ranks=3)
        # Triples lie in the order of their ends: a third fewer are fetched to be judged than where they lie anyhow.
        self.compare_bytes(run, plan, job, off=0.02, evaluate=0.35)
        self.stopped_run("-q", "train", self.config, "run.restart=never", *job, ranks=3)
        self.succeed("-q", "train", self.config, *job, ranks=2, overwrite=False)
        self.assertEqual(self.history(self.report(self.output)), expected)
        # A ninth of all are as good as 50 drawn evenly.
        job = (*self.ROWS_ALONE, "train.score=rotate", "train.loss=self_adversarial", "train.learning_rate=0.05", "train.embedding_rate=0.05")
        self.assertGreater(self.train(*job, "train.epochs=20", "train.eval_every=20")["test"]["hits_50"], 0.8)

    def hinge_steps(self, batches, epochs, weights, negatives, rounded):
        """Losses of epochs by NumPy in float64: TransE of norm 1, rows by Adagrad at 0.05, relations by SGD at 0.01. `rounded`: gradients by scores
        are float32."""
        rows, relations = (array.astype(np.float64) for array in weights)
        squares, losses = np.zeros_like(rows), []
        to = np.float32 if rounded else np.float64
        for epoch in epochs:
            loss, count = 0, 0
            for batch in (batches[k] for k in epoch):
                links, seeds = batch.links, batch.seeds
                heads, tails = (np.concatenate([seeds[one][:, None], seeds[others]], 1)
                                for one, others in ((links.heads, links.negative_heads), (links.tails, links.negative_tails)))
                apart = rows[heads] + relations[links.relations][:, None] - rows[tails]
                scores = -np.abs(apart).sum(2)
                missing = 1 - scores[:, :1] + scores[:, 1:]
                loss, count = loss + np.maximum(missing, 0).sum() / negatives, count + len(seeds[links.heads])
                share = 1 / negatives / len(links.heads)
                by_scores = np.concatenate([-(missing > 0).sum(1, keepdims=True) * share, (missing > 0) * share], 1).astype(to)
                slopes = -by_scores[:, :, None].astype(np.float64) * np.sign(apart)
                of_rows, of_relations = np.zeros_like(rows), np.zeros_like(relations)
                np.add.at(of_rows, heads, slopes)
                np.add.at(of_rows, tails, -slopes)
                np.add.at(of_relations, links.relations, slopes.sum(1))
                squares += of_rows**2
                rows -= 0.05 * of_rows / (np.sqrt(squares) + 1e-10)
                relations -= 0.01 * of_relations
            losses.append(loss / count)
        return np.array(losses)

    def test_hinge_of_distances_beside_numpy(self):
        """The hinge's gradients by a link and its negatives add up to 0, but a third is no float: rounded, they leave 1e-8 of themselves, of which
        Adagrad's first step is a whole one. So float32 goes another way than float64, which would be the same with one, two or four negatives."""
        self.make_triples()
        job = (*self.ROWS_ALONE[:2], "model.embedding=16", "model.dropout=0.5", "sampler.batch_size=128", "train.score=transe", "train.norm=1",
               "train.loss=margin", "train.negatives_of=both", "train.embedding_optimizer=adagrad", "train.optimizer=sgd", "train.momentum=0",
               "train.batches_per_step=1")
        batches = self.folder / "batches"
        for negatives, apart in ((2, False), (3, True)):
            of = (*job, f"train.negatives={negatives}")
            self.succeed("-q", "sample", self.config, "--epochs", 2, "--write", batches, "--overwrite", *of, "model.layers=1", "sampler.fanout=[1]")
            self.train(*of, "train.epochs=1", "train.embedding_rate=1e-35", "train.learning_rate=1e-35")
            weights = read(self.output / "embeddings.h5", "weights/embedding.entity"), read(self.output / "weights.h5", "weights/task.relations")
            losses = [epoch["loss"] for epoch in self.train(*of, "train.embedding_rate=0.05", "train.learning_rate=0.01")["epochs"]]
            drawn = espalier.Minibatches(batches)
            expected, exact = (self.hinge_steps(drawn, [drawn.of_epoch(e) for e in (1, 2)], weights, negatives, rounded) for rounded in (True, False))
            np.testing.assert_allclose(losses, expected, rtol=1e-6)
            self.assertEqual(np.abs(losses - exact).max() > 1e-4, apart)

    def test_rows_alone_of_types(self):
        for ranks, learnt, types in ((3, 6, "paper=200:8,author=100"), (2, 0, "paper=200,author=100:8")):
            self.make("planted", "--types", types, *OF_TYPES)
            job = (*self.ROWS_ALONE, "train.score=distmult", f"model.embedding={learnt}")
            test = self.one_history(job, ((ranks,),))[-1]
            self.assertEqual(self.inferred("--metrics", *job)[1]["test_mrr"], test["mrr"])
            self.assertEqual(set(arrays_of(self.output / "weights.h5", "weights")), {
                "input.weight.author", "input.bias.author", "input.bias.paper", "task.relations", *(["input.weight.paper"] if learnt else [])})

    @needs_emulation
    def test_rows_alone_on_the_emulated_gpu(self):
        self.make_triples()
        job = (*self.ROWS_ALONE, "train.score=mlp", "train.epochs=1")
        cpu, gpu = self.train(*job), self.train(*job, "run.device=cuda", ranks=2, **on_gpus(2))
        self.compare_devices(gpu, cpu)

    def test_what_rows_alone_refuse(self):
        self.make_triples()
        train = ("train", self.config, "run.restart=never")
        job = (*self.ROWS_ALONE, "model.dropout=0.5")
        self.fail_with(2, ["model.layers = 0", 'train.task = "classes"'], *train, *self.ROWS_ALONE[:2], "train.task=classes", "train.negatives=1",
                       "model.hidden=256")
        for words, keys in ((["model.kind", "model.layers = 0"], ("model.kind=gcn",)),
                            (["model.residual", "model.layers = 0"], ("model.residual=true",)), (["sampler.kind", "model.layers = 0"], ("sampler.kind=labor",)), (["sampler.fanout", "2 entries"], ("sampler.fanout=[3,3]",)),
                            (["even", "25"], ("train.score=rotate", "model.embedding=25"))):
            self.fail_with(2, words, *train, *job, *keys)

        self.fail_with(3, ["no features", "model.embedding"], *train, *job, "model.embedding=0")

    def test_rows_alone_of_another_width(self):
        job = (*self.ROWS_ALONE, "model.embedding=0")
        self.make()
        self.train(*job)
        self.make("planted", "--nodes", NODES, "--degree", 8, "--features", 5, "--classes", 5)
        self.fail_with(3, [str(self.graph), "5 features", "weights.h5", "8 features"], *self.infer_words(*job), ranks=2)

    def test_what_is_odd_is_said(self):
        lines = {"train": [(a, "likes", b) for a in range(12) for b in range(12)], "valid": [(0, "knows", 1)], "test": [(2, "likes", 2), (3, "likes", 4)]}
        self.import_triples(lines)
        said = self.succeed("info", self.graph)
        of_itself, unlearnt = "12 of 144 links of train lead from a vertex to itself", "1 relation has no links to train on"
        for words in (of_itself, "1 of 2 links of test lead", unlearnt, "knows (1)"):
            self.assertIn(words, said)
        job = ("run.restart=never", "train.epochs=2", "model.embedding=8", "train.negatives_filtered=true", "train.ranked_against=5",
               "train.metric=filtered_mrr")
        said = self.succeed("train", self.config, *job, ranks=2)
        for words in (of_itself, unlearnt, "2 of 2 links of test are edges of the graph, too",
                      "at 2 of 3 ends of links fewer other vertices (0 at the least) make no link"):
            self.assertIn(words, said)
        self.assertEqual(said.count("train.negatives_filtered: some negatives are links after 16 draws"), 1, said)
        said = self.succeed("train", self.config, *job, *self.ROWS_ALONE[:2], "model.dropout=0.5", overwrite=True)
        self.assertNotIn("edges of the graph, too", said, "nobody reads them")
        # The links that were taken out of a graph, beside the graph with them.
        self.make()
        with h5py.File(self.graph) as file, h5py.File(self.folder / "whole.h5", "a") as whole:
            file.copy("links", whole)
        self.succeed("-q", "digest", self.folder / "whole.h5", "--write")
        self.assertNotIn("edges of the graph", self.succeed("train", self.config, "run.restart=never"))
        count = len(read(self.graph, "links/valid/head"))
        for kind, ranks in (("sage", 2), ("gcn", 1)):
            said = self.succeed("train", self.config, "run.restart=never", f"graph.file={self.folder / 'whole.h5'}", f"model.kind={kind}",
                                ranks=ranks)
            self.assertIn(f"{count} of {count} links of valid are edges of the graph, too", said)

    def test_what_tells_links_is_said(self):
        """Of an inverse that the file does not name, by prepare, info and train; and it is declared."""
        whole, prepare = self.folder / "whole.h5", ("prepare", self.folder / "whole.h5", "--split-links", "0.8,0.1,0.1", "--relations", "writes",
                                                    "-o", self.graph, "--overwrite")
        self.succeed("-q", "generate", "planted", "--types", "paper=200:8,author=100", *OF_TYPES, "--seed", 3, "-o", whole)
        self.put({"relations/inverse": lambda inverse: np.full_like(inverse, -1)}, whole)
        words = ("author.writes.paper: ", "(1.000) stand in paper.rev_writes.author, the other way round")
        remedy = "--inverse author.writes.paper=paper.rev_writes.author"
        train = ("train", self.config, "run.restart=never", "model.kind=rgcn", "model.embedding=4", "train.epochs=1")
        for said, is_warned in ((self.succeed(*prepare, ranks=2), True), (self.succeed("info", self.graph), False),
                                (self.succeed(*train, ranks=2), True)):
            self.assertEqual(said.count("the other way round"), 1, said)
            self.assertEqual(remedy in said, is_warned, said)
            for word in words:
                self.assertIn(word, said)
        left = self.succeed(*prepare, "--also", "rev_writes")
        self.assertIn("also       ", left)
        self.assertNotIn("the other way round", left + self.succeed("info", self.graph))
        self.assertNotIn("the other way round", self.succeed(*prepare, "--inverse", "writes=rev_writes", ranks=2) + self.succeed(*train))
        names, inverse = read(self.graph, "relations/name", "relations/inverse")
        self.assertEqual(names[inverse[names.tolist().index(b"writes")]], b"rev_writes")

    def test_what_is_learnt(self):
        self.make()
        report = self.train("train.epochs=15", "sampler.fanout=[10,10]")
        self.assertGreater(report["test"]["auc"], 0.75)
        self.assertLess(report["epochs"][-1]["loss"], report["epochs"][0]["loss"])

    def test_what_is_refused(self):
        self.make()
        train = ("train", self.config, "run.restart=never")
        self.fail_with(2, ["train.score", "cosine", "distmult"], *train, "train.score=cosine")
        self.fail_with(2, ["complex", "even", "model.hidden", "15"], *train, "train.score=complex", "model.hidden=15")
        self.fail_with(2, ["history.kind", "links"], *train, "history.kind=replace")
        self.fail_with(2, ["sampler.kind", "subgraph"], *train, "sampler.kind=subgraph")
        self.train()
        asked = self.folder / "asked.txt"
        infer = self.infer_words("--links", asked, rows="answers.csv")
        for lines, options, words in ((f"3,5\n3,{NODES}\n", (), ["asked.txt:2", f"{NODES}", f"0 to {NODES - 1}"]),
                                      ("3\n", (), ["asked.txt:1", "1 field", "tail"]),
                                      ("3,1,5\n", (), ["asked.txt:1", "'1' is no relation"]), ("", (), ["asked.txt", "no link"]),
                                      ("3,0,5\n", ("--top", 2), ["asked.txt:1", "3 fields"])):
            asked.write_text(lines)
            self.fail_with(3, words, *infer, *options)
        self.fail_with(2, ["--predictions", "links"], *self.infer_words("--predictions", rows="answers.csv"))
        self.assertFalse((self.folder / "answers.csv").exists())
        self.fail_with(2, ["train.norm", "train.score"], *train, "train.norm=2")
        for key in ("train.negatives", "train.ranked_against"):
            self.fail_with(2, [f"{key} = {NODES}", f"{NODES} vertices", f"give {NODES - 1} at most"], *train, f"{key}={NODES}")
        # Candidates for valid, no links in test.
        none_of = {split: {f"links/{split}/{name}": of[:0] for name, of in arrays_of(self.graph, f"links/{split}").items()}
                   for split in ("valid", "test")}
        self.put({"links/valid/negative_tails": np.zeros((len(read(self.graph, "links/valid/head")), 3), np.int64), **none_of["test"]})
        self.fail_with(2, ["train.ranked_against", "gives the candidates"], *train, "train.ranked_against=9")
        self.fail_with(2, ["train.metric", "filtered_mrr", "use mrr"], *train, "train.metric=filtered_mrr")
        # No links in valid either: nothing is ranked, and nothing said about it is wrong.
        self.put({"links/valid/negative_tails": None, **none_of["valid"]})
        self.assertNotIn("test", self.train("train.ranked_against=9"))
        self.fail_with(2, ["sampler.batch_size", "train.negatives"], *train, "sampler.batch_size=2000000000")
        self.fail_with(2, ["train.task", "links"], *train, "train.task=classes")
        self.fail_with(3, ["whole.h5", "no links", "prepare --split-links"], *train, f"graph.file={self.folder / 'whole.h5'}")
