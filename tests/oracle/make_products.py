#!/usr/bin/env python3
"""Writes products.json, what tests/product/scipy_test.cpp compares the distributed product with: make_products.py [FOLDER].

The oracle is SciPy's sparse product. Values of A are multiples of 1/8, so every sum is exact; with shift 6 a squared weight
is the integer (8 value)^2. Debian: apt-get install python3-scipy. The file is committed; run this again only to change a case.
The same versions give the same bytes.
"""

import json
import pathlib
import sys

import numpy as np
import scipy.sparse as sp


def random_matrix(rng, n, density):
    """n x n, values k/8 with k = 1 .. 31; the first row is full, the second empty."""
    present = rng.random((n, n)) < density
    present[0], present[1] = True, False
    return sp.csr_matrix(np.where(present, rng.integers(1, 32, (n, n)), 0) / 8.0)


def sparse_row(matrix, row):
    matrix.sort_indices()
    part = slice(matrix.indptr[row], matrix.indptr[row + 1])
    return {"columns": matrix.indices[part].tolist(), "sums": [int(x) for x in matrix.data[part]]}


def stacked(frontiers, n):
    """Q: one row per batch, a 1 for every vertex of its frontier."""
    rows = np.repeat(np.arange(len(frontiers)), [len(f) for f in frontiers])
    return sp.csr_matrix((np.ones(len(rows)), (rows, np.concatenate(frontiers))), shape=(len(frontiers), n))


def product_case(rng, n, density, sizes):
    a = random_matrix(rng, n, density)
    pattern, squares = a.copy(), a.copy()
    pattern.data[:] = 1
    squares.data = (8 * a.data) ** 2
    frontiers = [rng.permutation(n)[:size] for size in sizes]
    picks = [np.sort(rng.permutation(n)[:int(rng.integers(0, n + 1))]) for _ in sizes]
    q = stacked(frontiers, n)
    counts, weights = q @ pattern, q @ squares
    batches = []
    for b, (frontier, columns) in enumerate(zip(frontiers, picks)):
        met = a[frontier][:, columns].tocsr()
        met.sort_indices()
        batches.append({"frontier": frontier.tolist(), "picks": columns.tolist(), "counts": sparse_row(counts, b),
                        "squares": sparse_row(weights, b), "indptr": met.indptr.tolist(),
                        "indices": met.indices.tolist(), "values": met.data.tolist()})
    return {"a": {"rows": n, "columns": n, "indptr": a.indptr.tolist(), "indices": a.indices.tolist(),
                  "values": a.data.tolist()}, "batches": batches}


def products():
    rng = np.random.default_rng(2024)
    return [product_case(rng, 2, 0.5, [2, 1]),
            product_case(rng, 17, 0.3, [5, 0, 17, 1, 9]),
            product_case(rng, 60, 0.08, [60, 20, 0, 7, 33, 1, 12])]


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    (folder / "products.json").write_text(json.dumps(products(), separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
