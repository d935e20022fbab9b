#!/usr/bin/python3
"""Turns the pickles of OGB's folders into files that `espalier import` reads.

    scripts/mag240m_pickles.py mag240m_kddcup2021      MAG240M: meta.pt and split_dict.pt
    scripts/mag240m_pickles.py dataset/ogbn_mine       a set that OGB's DatasetSaver wrote: split/NAME/split_dict.pt

Of MAG240M it makes FOLDER/num-node-dict.csv (vertex types, then their numbers of vertices) and FOLDER/split/train.npy,
valid.npy and test.npy (ids of papers); where split_dict.pt knows parts of the test set only (test-whole, or test-dev and
test-challenge), test is all of them. Of a DatasetSaver's folder with types it makes, in each split/NAME,
nodetype-has-split.csv and TYPE/train.csv, valid.csv and test.csv.

A pickle may run any program: only what dictionaries, arrays and tensors consist of is let in. PyTorch is not needed.
Files that stand there already are replaced, each whole.
Exit codes: 2 usage, 3 nothing to convert, a file that cannot be read or holds something else.
"""

import argparse
import io
import os
import pickle
import sys
import zipfile

import numpy as np

PARTS = ("train", "valid", "test")
TEST_PARTS = (("test",), ("test-whole",), ("test-dev", "test-challenge"))


class NotAsExpected(Exception):
    """What is wrong with which file."""


# ---- files of torch.save ---------------------------------------------------------------------------------------------

MAGIC, PROTOCOL = 0x1950A86A20F9469CFC6C, 1001
STORAGES = {"LongStorage": "<i8", "IntStorage": "<i4", "ShortStorage": "<i2", "CharStorage": "<i1", "ByteStorage": "<u1",
            "FloatStorage": "<f4", "DoubleStorage": "<f8"}
HARMLESS = {("collections", "OrderedDict"), ("numpy", "ndarray"), ("numpy", "dtype"), ("_codecs", "encode")}
OF_NUMPY = {"_reconstruct", "scalar"}


def tensor(storage, offset, size, stride, *_):
    """A tensor as an array over its storage."""
    reach = offset + sum((length - 1) * step for length, step in zip(size, stride)) + 1
    if min((offset, *size, *stride)) < 0 or (0 not in size and reach > len(storage)):
        raise pickle.UnpicklingError("a tensor reaches beyond its storage")
    steps = [step * storage.itemsize for step in stride]
    return np.lib.stride_tricks.as_strided(storage[offset:], size, steps)


class HarmlessUnpickler(pickle.Unpickler):
    """Tensors become arrays; `storage_of(key, dtype, count)` is asked for what they consist of."""

    def __init__(self, file, storage_of=None):
        super().__init__(file)
        self.storage_of = storage_of

    def find_class(self, module, name):
        if module == "torch" and name in STORAGES:
            return STORAGES[name]
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return tensor
        if module in ("numpy.core.multiarray", "numpy._core.multiarray") and name in OF_NUMPY:
            return getattr(np.core.multiarray, name)
        if (module, name) in HARMLESS:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"it names {module}.{name}, which no table of numbers needs")

    def persistent_load(self, pid):
        _, dtype, key, _, count, *_ = pid
        return self.storage_of(key, dtype, count)


def load_archive(file):
    """As torch.save writes since 1.6: a zip with the pickle and a member for each storage."""
    with zipfile.ZipFile(file) as archive:
        top = next(name for name in archive.namelist() if name.endswith("/data.pkl")).removesuffix("data.pkl")

        def storage_of(key, dtype, count):
            return np.frombuffer(archive.read(f"{top}data/{key}"), dtype=dtype, count=count)
        return HarmlessUnpickler(io.BytesIO(archive.read(top + "data.pkl")), storage_of).load()


def load_sequence(file):
    """As it did before: pickles one behind the other, then for each storage its length and entries."""
    if HarmlessUnpickler(file).load() != MAGIC or HarmlessUnpickler(file).load() != PROTOCOL:
        raise pickle.UnpicklingError("it is no file of torch.save")
    HarmlessUnpickler(file).load()  # about the machine it was written on
    storages = {}

    def storage_of(key, dtype, count):
        return storages.setdefault(key, np.empty(count, dtype=dtype))
    content = HarmlessUnpickler(file, storage_of).load()
    for key in HarmlessUnpickler(file).load():
        count = int(np.frombuffer(file.read(8), "<i8")[0])
        if count != len(storages[key]):
            raise pickle.UnpicklingError(f"a storage has {count} entries, not {len(storages[key])}")
        storages[key][:] = np.frombuffer(file.read(storages[key].nbytes), dtype=storages[key].dtype)
    return content


def load(path):
    """The dictionary in a file of torch.save."""
    try:
        with open(path, "rb") as file:
            read = load_archive if zipfile.is_zipfile(file) else load_sequence
            file.seek(0)
            content = read(file)
    except (OSError, ValueError, EOFError, LookupError, TypeError, AttributeError, StopIteration, pickle.UnpicklingError,
            zipfile.BadZipFile) as error:
        raise NotAsExpected(f"{path}: cannot be read: {error}") from None
    if not isinstance(content, dict):
        raise NotAsExpected(f"{path}: holds no dictionary")
    return content


# ---- what is in them -------------------------------------------------------------------------------------------------

def ids(path, name, values):
    """Vertices as int64 [m]."""
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise NotAsExpected(f"{path}: {name} is {array.dtype} {list(array.shape)}, no list of vertices")
    return array.astype(np.int64)


def write(path, fill):
    """The file appears whole, or not at all."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    temporary = f"{path}.partial-{os.getpid()}"
    try:
        with open(temporary, "wb") as file:
            fill(file)
        os.replace(temporary, path)
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)
    print(path)


def write_lines(path, lines):
    write(path, lambda file: file.write("".join(f"{line}\n" for line in lines).encode()))


def test_of(path, split):
    """All of the test set, whatever its parts are called."""
    for names in TEST_PARTS:
        if all(name in split for name in names):
            return np.sort(np.concatenate([ids(path, name, split[name]) for name in names]))
    raise NotAsExpected(f"{path}: has no test set, but {sorted(map(str, split))}")


def convert_mag240m(folder):
    path = os.path.join(folder, "meta.pt")
    sizes = {str(name): int(size) for name, size in load(path).items() if name != "num_classes"}
    if not sizes or min(sizes.values()) < 0:
        raise NotAsExpected(f"{path}: names no vertex types with their numbers of vertices")
    path = os.path.join(folder, "split_dict.pt")
    split = load(path)
    missing = [name for name in PARTS[:2] if name not in split]
    if missing:
        raise NotAsExpected(f"{path}: has no {missing[0]} set, but {sorted(map(str, split))}")
    parts = {name: ids(path, name, split[name]) for name in PARTS[:2]} | {"test": test_of(path, split)}
    write_lines(os.path.join(folder, "num-node-dict.csv"), [",".join(sizes), ",".join(map(str, sizes.values()))])
    for name, part in parts.items():
        write(os.path.join(folder, "split", name + ".npy"), lambda file, part=part: np.save(file, part))


def convert_split(folder, path):
    """split_dict.pt as OGB's DatasetSaver writes it: {part: {type: ids}}."""
    split = load(path)
    if not all(isinstance(split.get(name), dict) for name in PARTS):
        raise NotAsExpected(f"{path}: is not of a graph with types: train, valid and test by type")
    kinds = sorted(split["train"])
    if any(sorted(split[name]) != kinds for name in PARTS):
        raise NotAsExpected(f"{path}: train, valid and test are of different types")
    for kind in kinds:
        for name in PARTS:
            write_lines(os.path.join(folder, kind, name + ".csv"), ids(path, f"{name} of {kind}", split[name][kind]))
    write_lines(os.path.join(folder, "nodetype-has-split.csv"), [",".join(kinds), ",".join(["True"] * len(kinds))])


def convert(folder):
    if os.path.exists(os.path.join(folder, "meta.pt")):
        return convert_mag240m(folder)
    parent = os.path.join(folder, "split")
    names = sorted(os.listdir(parent)) if os.path.isdir(parent) else []
    found = [name for name in names if os.path.exists(os.path.join(parent, name, "split_dict.pt"))]
    if not found:
        raise NotAsExpected(f"{folder}: holds neither meta.pt nor split/NAME/split_dict.pt")
    for name in found:
        convert_split(os.path.join(parent, name), os.path.join(parent, name, "split_dict.pt"))


def main(arguments):
    parser = argparse.ArgumentParser(prog="mag240m_pickles.py", description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("folder", metavar="FOLDER", help="that holds meta.pt, or split/NAME/split_dict.pt")
    folder = parser.parse_args(arguments).folder
    try:
        convert(folder)
    except (NotAsExpected, OSError) as error:
        print(f"mag240m_pickles.py: {error}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
