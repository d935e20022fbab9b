"""espalier import triples: text files of (head, relation, tail) become a graph with types and its links.

Laws, with Python's sets as the oracle: vertices and relations are numbered in the order of their names, which the file keeps; the links of a
split are the distinct triples of its file; A has those of train and their inverses; neither the order of lines nor the number of ranks
says anything; what is wrong is one message with file and line.
"""

import gzip
import random
import unittest

from tests.app.prepare_test import entries_of, links_of
from tests.app.program import ProgramTest, arrays_of, attributes_of, contents, read

TRAIN = [("Oslo", "capital of", "Norway"), ("Bergen", "in", "Norway"), ("Norway", "next to", "Sweden"), ("Sweden", "next to", "Norway"),
         ("Oslo", "in", "Norway"), ("Ærø", "in", "Denmark"), ("Norway", "next to", "Norway")]
VALID = [("Stockholm", "in", "Sweden"), ("Oslo", "in", "Norway")]
TEST = [("Bergen", "capital of", "Sweden"), ("Stockholm", "in", "Sweden"), ("Malmö", "in", "Sweden")]


class Triples(ProgramTest):
    def setUp(self):
        super().setUp()
        self.output = self.folder / "graph.h5"

    def put(self, name, triples, between="\t"):
        path = self.folder / name
        text = triples if isinstance(triples, bytes) else "".join(between.join(of) + "\n" for of in triples).encode()
        path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
        return path

    def convert(self, train=TRAIN, valid=VALID, test=TEST, *options, between="\t", ending="txt", ranks=1):
        files = [argument for name, of in (("train", train), ("valid", valid), ("test", test)) if of is not None
                 for argument in (f"--{name}", self.put(f"{name}.{ending}", of, between))]
        return self.succeed("import", "triples", *files, "-o", self.output, "--overwrite", *options, ranks=ranks)

    def check(self, train=TRAIN, valid=VALID, test=TEST, inverses=True):
        entities = sorted({name.encode() for of in (train, valid, test) for h, _, t in of for name in (h, t)})
        relations = sorted({r.encode() for of in (train, valid, test) for _, r, _ in of})
        number = {name.decode(): v for v, name in enumerate(entities)}
        place = {name.decode(): r for r, name in enumerate(relations)}
        numbers = [sorted({(number[t], place[r], number[h]) for h, r, t in of}) for of in (train, valid, test)]
        self.assertEqual([of.tolist() for of in read(self.output, "types/entity/ids", "links/relations", "links/graph_relations")],
                         [entities, relations, list(range(len(relations)))])
        links = links_of(self.output)
        for split, of in zip(("train", "valid", "test"), numbers):
            self.assertEqual(links[split], [(h, r, t) for t, r, h in of])
        wanted = set(numbers[0]) | {(h, r + len(relations), t) for t, r, h in numbers[0] if inverses}
        self.assertEqual(set(entries_of(self.output)), wanted)


class Import(Triples):
    def test_what_is_in_the_file(self):
        self.same_on_ranks(self.convert, self.output, (1, 2, 3))
        self.check()
        found = arrays_of(self.output)
        self.assertEqual(found["relations/name"].tolist(), [b"capital_of", b"in", b"next_to", b"rev_capital_of", b"rev_in", b"rev_next_to"])
        self.assertEqual({name.split("/")[0] for name in found}, {"graph", "links", "relations", "types"})
        output = self.succeed("info", self.output, ranks=3)
        self.assertIn("links        train 7, valid 2, test 3, directed", output)
        self.assertIn("of relations 3: capital of, in, next to\n", output)

    def test_what_it_says(self):
        output = self.convert(TRAIN + TRAIN[:2], ranks=2)
        for words in ("triples    train 7, valid 2, test 3: 8 entities, 3 relations", "duplicates train: 2 lines repeat an earlier one",
                      "1 triple of valid is in train, too", "1 triple of test is in valid, too",
                      "entities   2 are in no triple of train: vertices without an edge", "edges      14 entries in 6 relations",
                      "relation   entity.in.entity: 3 triples, 3 entries", "links      7 links of train"):
            self.assertIn(words, output)
        self.assertNotIn("triple of test is in train", output)
        self.assertNotIn("repeat", self.convert("".join("\t".join(of) + "\n" for of in TRAIN).encode() + b"\n" * 1000000))
        self.assertNotIn("header", output)
        output = self.convert([("source", "type", "target"), *TRAIN])
        self.assertIn("train.txt:1: neither its relation nor its entities are in another line; if it is a header, leave it out", output)
        output = self.convert(TRAIN[:1], VALID, TEST)
        self.assertIn("1 relation is in no triple of train, so nothing is learnt of it", output)

    def test_the_order_of_lines_says_nothing(self):
        self.same_on_ranks(lambda ranks: self.convert(*(random.Random(ranks).sample(of, len(of)) for of in (TRAIN, VALID, TEST)), ranks=ranks),
                           self.output, (1, 2, 3))

    def test_other_spellings_of_the_same(self):
        self.convert()
        wanted = contents(self.output)
        for options in (dict(between=","), dict(between=" , "), dict(between="\t "), dict(ending="tsv.gz")):
            self.convert(**options)
            got = contents(self.output)
            self.assertEqual({name: got[name] for name in wanted if name != "attributes"}, {name: wanted[name] for name in wanted if name != "attributes"})
        self.convert(("\ufeff" + "\r\n".join("\t".join(of) for of in TRAIN)).encode())
        self.check()

    def test_commas_within_names(self):
        train = [("a, b", "r", "c"), ("c", "r", "a, b")]
        self.convert(train, None, None)
        self.assertEqual(read(self.output, "types/entity/ids").tolist(), [b"a, b", b"c"])
        self.assertEqual(sorted(arrays_of(self.output, "links")), ["graph_relations", "relations", "train/head", "train/tail"])  # of one relation

    def test_names_that_a_graph_cannot_have(self):
        relations = ["/a/b", "_a_b", "a", "rev_a", "é"]
        self.convert([("x", r, "y") for r in relations], None, None)
        of_links, names, inverse = (of.tolist() for of in read(self.output, "links/relations", "relations/name", "relations/inverse"))
        self.assertEqual([name.decode() for name in of_links], sorted(relations, key=str.encode))
        self.assertEqual(len(set(names)), 10)
        self.assertEqual((names[:5], names[7]), ([b"_a_b", b"_a_b_2", b"a", b"rev_a", b"__"], b"rev_a_2"))
        self.assertEqual(inverse, [5, 6, 7, 8, 9, 0, 1, 2, 3, 4])

    def test_it_is_called_as_the_folder(self):
        self.put("train.txt", TRAIN)
        for path in ("train.txt", "./train.txt", self.folder / "train.txt"):
            self.succeed("import", "triples", "--train", path, "-o", self.output, "--overwrite", cwd=self.folder)
            self.assertEqual(attributes_of(self.output)["name"], self.folder.name.encode())

    def test_no_inverse(self):
        self.convert(TRAIN, VALID, TEST, "--no-inverse")
        self.check(inverses=False)

    def test_many_relations(self):
        train = [(f"e{k % 7}", f"r{k:03}", f"e{k % 5}") for k in range(300)]
        files = ("import", "triples", "--train", self.put("train.txt", train), "-o", self.output)
        for options in ((), ("--no-inverse",)):
            self.fail_with(3, ["the triples are of 300 relations, but a graph has at most 256", "--ignore-relations"], *files, *options, ranks=2)
        self.convert(train[:128], None, None)
        self.convert(train[:256], None, None, "--no-inverse")
        output = self.convert(train, None, None, "--ignore-relations", ranks=2)
        self.assertIn("duplicates 265 pairs repeat an earlier one; no weights, so that each becomes one entry\n", output)
        self.assertNotIn("--", output, "options that triples do not have")
        self.assertTrue(attributes_of(self.output)["directed"])
        links = arrays_of(self.output, "links")
        self.assertEqual((len(links["relations"]), len(links["train/head"]), "graph_relations" in links), (300, 300, False))
        self.assertEqual(read(self.output, "nodes/ids").tolist(), [f"e{k}".encode() for k in range(7)])
        self.assertEqual(set(entries_of(self.output)), {(k % 5, 0, k % 7) for k in range(300)})
        self.assertIn("they are no relations of the graph", self.succeed("info", self.output))
        self.convert([("a", "r", "b"), ("b", "s", "a")], None, None, "--ignore-relations")
        self.assertTrue(attributes_of(self.output)["directed"], "though its matrix is symmetric")


class BadInput(Triples):
    def refuse(self, text, words, code=3, option="--train"):
        path = self.put("bad.txt", text)
        files = () if option == "--train" else ("--train", self.put("train.txt", TRAIN))
        for ranks in (1, 3):
            self.fail_with(code, [words], "import", "triples", *files, option, path, "-o", self.output, ranks=ranks)
        self.assertFalse(self.output.exists())

    def test_lines(self):
        for text, words in ((b"a\tr\tb\na\tr\n", "bad.txt:2: has 2 fields, expected three"), (b"a\tr\tb\tc\n", "bad.txt:1: has 4 fields"),
                            (b"a,r,b\nc\tr\td\n", "bad.txt:2: has 1 field, expected"), (b"a\t\tb\n", "bad.txt:1: the relation has no name"),
                            (b"\tr\tb\n", "bad.txt:1: the head has no name"), (b"a\tr\t \n", "bad.txt:1: the tail has no name"),
                            (b"a\tr\tb\n\n\nc\tr\td\n", "bad.txt:2: is empty"),
                            (b"head,relation,tail\na,r,b\n", "bad.txt:1: is a header"), (b"Subject\tPredicate\tObject\n", "bad.txt:1: is a header"),
                            (b"a\tr\tb\0c\n", "bad.txt:1: the name of the tail has a zero byte"),
                            (b"a\tr\t" + b"x" * 1025 + b"\n", "bad.txt:1: the name of the tail has 1025 letters, expected 1024 at most")):
            for option in ("--train", "--test"):
                self.refuse(text, words, option=option)
        self.refuse(b"", "bad.txt: has no triples")

    def test_files(self):
        train = self.put("train.txt", TRAIN)
        self.fail_with(3, ["nowhere.txt: cannot be read: No such file"], "import", "triples", "--train", self.folder / "nowhere.txt", "-o", self.output, ranks=2)
        self.fail_with(3, ["nowhere.txt: cannot be read: No such file"], "import", "triples", "--train", train, "--valid", self.folder / "nowhere.txt", "-o", self.output)
        self.fail_with(2, ["--ignore-relations", "--no-inverse"], "import", "triples", "--train", train, "-o", self.output, "--ignore-relations",
                       "--no-inverse")
        self.fail_with(2, ["--train is required"], "import", "triples", "-o", self.output)
        self.fail_with(2, ["is an input of this import"], "import", "triples", "--train", train, "-o", train, "--overwrite", ranks=2)
        self.output.write_text("somebody's")
        self.fail_with(2, ["exists"], "import", "triples", "--train", train, "-o", self.output, ranks=2)


if __name__ == "__main__":
    unittest.main()
