"""include/espalier.h for ctypes, made by scripts/declare_header.py: make it anew, do not change it."""

from __future__ import annotations

# fmt: off
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_uint64, c_void_p
from typing import Any

STOPPED = -2
END = -1
OK = 0
FAILED = 1
USAGE = 2
INPUT = 3
MEMORY = 4
DIVERGED = 6


class espalier_open_options(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("config_path", c_char_p),
        ("config_text", c_char_p),
        ("keys", POINTER(c_char_p)),
        ("key_count", c_int64),
        ("has_communicator", c_int32),
        ("communicator", c_int32),
        ("mpi_library", c_char_p),
    ]
espalier_allocate = CFUNCTYPE(c_void_p, c_void_p, c_size_t)
espalier_release = CFUNCTYPE(None, c_void_p, c_void_p)


class espalier_loader_options(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("split", c_char_p),
        ("vertices", c_void_p),
        ("vertex_count", c_int64),
        ("fanout", c_void_p),
        ("fanout_count", c_int64),
        ("batch_size", c_int64),
        ("epochs", c_int64),
        ("ahead", c_int64),
        ("on_host", c_int32),
        ("allocate", espalier_allocate),
        ("release", espalier_release),
        ("context", c_void_p),
    ]


class espalier_loader_facts(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("epochs", c_int64),
        ("batches", c_int64),
        ("steps", c_int64),
        ("batches_per_step", c_int64),
        ("items", c_int64),
    ]


class espalier_block(Structure):
    _fields_ = [
        ("rows", c_int64),
        ("columns", c_int64),
        ("entries", c_int64),
        ("indptr", c_void_p),
        ("indices", c_void_p),
        ("values", c_void_p),
        ("relations", c_void_p),
        ("edge_count", c_int64),
        ("edge_width", c_int64),
        ("edge_entries", c_void_p),
        ("edge_rows", c_void_p),
    ]


class espalier_rows(Structure):
    _fields_ = [
        ("rows", c_int64),
        ("columns", c_int64),
        ("data", c_void_p),
    ]


class espalier_batch_view(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("epoch", c_int64),
        ("step", c_int64),
        ("batch", c_int64),
        ("ends_step", c_int32),
        ("layers", c_int32),
        ("scale", c_double),
        ("seed_count", c_int64),
        ("vertex_count", c_int64),
        ("vertices", c_void_p),
        ("blocks", POINTER(espalier_block)),
        ("table_count", c_int64),
        ("tables", POINTER(espalier_rows)),
        ("classes", c_void_p),
        ("label_rows", c_void_p),
        ("label_columns", c_int64),
        ("link_count", c_int64),
        ("negatives", c_int64),
        ("heads", c_void_p),
        ("tails", c_void_p),
        ("link_relations", c_void_p),
        ("negative_heads", c_void_p),
        ("negative_tails", c_void_p),
        ("run_count", c_int64),
        ("run_begins", c_void_p),
        ("run_types", c_void_p),
        ("on_gpu", c_int32),
    ]


class espalier_epoch(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("epoch", c_int64),
        ("loss", c_double),
        ("train", c_double),
        ("valid", c_double),
        ("test", c_double),
        ("best_epoch", c_int64),
        ("digest", c_uint64),
    ]


class espalier_tensor(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("name", c_char_p),
        ("rows", c_int64),
        ("columns", c_int64),
    ]


STRUCTURES = (
    espalier_open_options,
    espalier_loader_options,
    espalier_loader_facts,
    espalier_block,
    espalier_rows,
    espalier_batch_view,
    espalier_epoch,
    espalier_tensor,
)
FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "espalier_version": (c_char_p, []),
    "espalier_error": (c_char_p, []),
    "espalier_world": (c_int, [c_void_p, c_void_p]),
    "espalier_is_launched": (c_int, []),
    "espalier_abort": (None, [c_int, c_char_p]),
    "espalier_open": (c_int, [POINTER(espalier_open_options), POINTER(c_void_p)]),
    "espalier_close": (c_int, [c_void_p]),
    "espalier_describe": (c_char_p, [c_void_p]),
    "espalier_sum": (c_int, [c_void_p, c_void_p, c_int64]),
    "espalier_loader_open": (c_int, [c_void_p, POINTER(espalier_loader_options), POINTER(c_void_p)]),
    "espalier_loader_close": (c_int, [c_void_p]),
    "espalier_loader_facts_of": (c_int, [c_void_p, POINTER(espalier_loader_facts)]),
    "espalier_loader_seek": (c_int, [c_void_p, c_int64, c_int64]),
    "espalier_loader_stop": (None, [c_void_p]),
    "espalier_loader_begin": (c_int, [c_void_p]),
    "espalier_loader_wait": (c_int, [c_void_p, c_double, c_void_p]),
    "espalier_loader_next": (c_int, [c_void_p, POINTER(c_void_p)]),
    "espalier_batch_look": (c_int, [c_void_p, POINTER(espalier_batch_view)]),
    "espalier_batch_digest": (c_uint64, [c_void_p]),
    "espalier_batch_wait": (c_int, [c_void_p, c_void_p]),
    "espalier_batch_free": (None, [c_void_p]),
    "espalier_train_step": (c_int, [c_void_p, c_void_p]),
    "espalier_train_epoch": (c_int, [c_void_p, POINTER(espalier_epoch)]),
    "espalier_train_end": (c_int, [c_void_p]),
    "espalier_evaluate": (c_int, [c_void_p, POINTER(espalier_epoch)]),
    "espalier_infer": (c_int, [c_void_p, c_void_p, c_int64, c_void_p]),
    "espalier_tensor_at": (c_int, [c_void_p, c_int64, POINTER(espalier_tensor)]),
    "espalier_tensor_read": (c_int, [c_void_p, c_int64, c_void_p]),
    "espalier_tensor_write": (c_int, [c_void_p, c_int64, c_void_p]),
}
