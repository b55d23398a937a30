"""The ctypes declarations of libcountersign."""
from __future__ import annotations

import ctypes
import ctypes.util
import functools
import os
from typing import Any

RESULT = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(ctypes.c_char), ctypes.c_size_t)
PROVIDER = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_uint64, ctypes.POINTER(ctypes.c_char), ctypes.c_size_t)

OK, CLOSED, FORKED, INVALID = range(4)


@functools.lru_cache(maxsize=None)
def library() -> ctypes.CDLL:
    """Loads the library: the path in COUNTERSIGN_LIBRARY, else the library in this package, else the system's."""
    path = os.environ.get("COUNTERSIGN_LIBRARY")
    if not path:
        packaged = os.path.join(os.path.dirname(__file__), "libcountersign.so")
        path = packaged if os.path.exists(packaged) else ctypes.util.find_library("countersign")
    if not path:
        raise OSError("libcountersign was not found; install it (make install, then ldconfig), or set "
                      "COUNTERSIGN_LIBRARY to its path")
    found = ctypes.CDLL(path)
    text, size, handle = ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p
    error: list[Any] = [ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_size_t)]
    found.countersign_open_signed_user.argtypes = [text, size, PROVIDER, RESULT, handle, *error]
    found.countersign_open_access_token.argtypes = [text, size, RESULT, handle, *error]
    found.countersign_open_bloomreach.argtypes = [text, size, PROVIDER, RESULT, handle, *error]
    for name in ("signed_user", "access_token", "bloomreach"):
        getattr(found, f"countersign_open_{name}").restype = handle
    found.countersign_answer.argtypes = [handle, ctypes.c_uint64, text, size]
    found.countersign_call.argtypes = [handle, text, size, text, size, RESULT, handle]
    found.countersign_close.argtypes = [handle, RESULT, handle]
    for name in ("answer", "call", "close"):
        getattr(found, f"countersign_{name}").restype = ctypes.c_int32
    found.countersign_free.argtypes = [ctypes.c_void_p]
    found.countersign_free.restype = None
    found.countersign_version.argtypes = []
    found.countersign_version.restype = text
    return found


def version() -> str:
    """The version of libcountersign."""
    return str(library().countersign_version().decode())
