"""The PTX that nvcc put into an object.

Section .nv_fatbin holds containers: a header (magic, version, bytes of header, bytes that follow) and entries, each with a
header (kind, version, bytes of header, bytes of the payload with its padding, bytes of the payload where it is compressed,
..., compute capability, ..., flags, ..., bytes when decompressed). `cuobjdump -ptx` prints the same, where it is installed.
"""

import ctypes
import ctypes.util
import struct
import subprocess

MAGIC, CONTAINER, ENTRY = 0xBA55ED50, struct.Struct("<IHHQ"), struct.Struct("<HHIQIIHHIIIQQQ")
PTX, OF_LZ4, OF_ZSTD = 1, 0x2000, 0x8000


class Unreadable(Exception):
    pass


def section(path):
    done = subprocess.run(["objcopy", "-O", "binary", "--only-section=.nv_fatbin", str(path), "/dev/stdout"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        raise Unreadable(f"{path}: {done.stderr.decode().strip()}")
    return done.stdout


def library(name):
    found = ctypes.util.find_library(name)
    if not found:
        raise Unreadable(f"PTX is compressed, and lib{name} is not there: install lib{name}1, or give nvcc -no-compress")
    return ctypes.CDLL(found)


def decompressed(payload, flags, size):
    text = ctypes.create_string_buffer(size)
    if flags & OF_ZSTD:
        zstd = library("zstd")
        zstd.ZSTD_decompress.restype = ctypes.c_size_t
        zstd.ZSTD_decompress.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
        written = zstd.ZSTD_decompress(text, size, payload, len(payload))
    else:
        written = library("lz4").LZ4_decompress_safe(payload, text, len(payload), size)
    if written != size:
        raise Unreadable(f"compressed PTX of {len(payload)} bytes: {written} bytes out of it, not {size}")
    return text.raw


def entries(data):
    """(kind, compute capability, flags, payload, its size when decompressed) of each."""
    at = 0
    while at + CONTAINER.size <= len(data):
        magic, _, header, size = CONTAINER.unpack_from(data, at)
        if magic != MAGIC:
            at += 8  # padding between containers
            continue
        at, end = at + header, at + header + size
        while at < end:
            kind, _, header, padded, compressed, _, _, _, capability, _, _, flags, _, original = ENTRY.unpack_from(data, at)
            payload = data[at + header:at + header + (compressed or padded)]
            yield kind, capability, flags, payload, original
            at += header + padded
        at = end


def ptx_of(path):
    """The PTX of an object, a text for each unit that was compiled into it: of the newest capability that it has."""
    found = [entry for entry in entries(section(path)) if entry[0] == PTX]
    newest = max((capability for _, capability, *_ in found), default=0)
    return [(decompressed(payload, flags, original) if flags & (OF_ZSTD | OF_LZ4) else payload).rstrip(b"\0").decode()
            for _, capability, flags, payload, original in found if capability == newest]
