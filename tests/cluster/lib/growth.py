"""What a controller that runs for long holds, sampled: memory, descriptors, its store, its metrics."""

import ctypes
import os
import statistics
import threading
import time

SAMPLE_S = 10.0
HISTORIES = ("ledger", "journal")   # which grow by design, up to bounds of their own
_MDB_RDONLY = 0x20000


class _Stat(ctypes.Structure):
    _fields_ = [("page_bytes", ctypes.c_uint), ("depth", ctypes.c_uint),
                ("branch_pages", ctypes.c_size_t), ("leaf_pages", ctypes.c_size_t),
                ("overflow_pages", ctypes.c_size_t), ("entries", ctypes.c_size_t)]


def store_sizes(directory):
    """{database: (bytes, records)} of the LMDB file that a controller may have open."""
    lmdb = ctypes.CDLL("liblmdb.so.0")
    env, txn, sizes = ctypes.c_void_p(), ctypes.c_void_p(), {}

    def call(name, *arguments):
        error = getattr(lmdb, name)(*arguments)
        assert error == 0, f"{name}: {error}"

    call("mdb_env_create", ctypes.byref(env))
    try:
        call("mdb_env_set_maxdbs", env, 8)
        call("mdb_env_open", env, os.fsencode(directory), _MDB_RDONLY, 0o600)
        call("mdb_txn_begin", env, None, _MDB_RDONLY, ctypes.byref(txn))
        for name in ("meta", "gangs", *HISTORIES):
            database, stat = ctypes.c_uint(), _Stat()
            call("mdb_dbi_open", txn, name.encode(), 0, ctypes.byref(database))
            call("mdb_stat", txn, database, ctypes.byref(stat))
            pages = stat.branch_pages + stat.leaf_pages + stat.overflow_pages
            sizes[name] = (pages * stat.page_bytes, stat.entries)
        lmdb.mdb_txn_abort(txn)
    finally:
        lmdb.mdb_env_close(env)
    return sizes


class Growth(threading.Thread):
    """Samples one life of a controller every SAMPLE_S, until `stop`."""

    def __init__(self, controller):
        super().__init__(name="growth", daemon=True)
        self.controller, self.samples, self.error = controller, [], None
        self._stopping = threading.Event()

    def run(self):
        began = time.monotonic()
        try:
            while not self._stopping.wait(SAMPLE_S):
                self.samples.append({"at_s": time.monotonic() - began, **self._sample()})
        except Exception as error:   # handed on to whoever judges
            self.error = error

    def stop(self):
        self._stopping.set()
        self.join()
        if self.error:
            raise self.error

    def _sample(self):
        pid = self.controller.process.pid
        sizes = store_sizes(self.controller.store)
        file_bytes = (self.controller.store / "data.mdb").stat().st_size
        histories = sum(sizes[name][0] for name in HISTORIES)
        # Its own pages; those of the store's file, which it maps, are the system's cache.
        return {"memory": self.controller.memory_bytes("RssAnon"),
                "resident": self.controller.memory_bytes(),
                "descriptors": len(os.listdir(f"/proc/{pid}/fd")),
                "threads": len(os.listdir(f"/proc/{pid}/task")),
                "series": len(self.controller.metrics()),
                "store": file_bytes, "histories": histories,
                "remembered": sizes["gangs"][0], "rest": file_bytes - histories}

    def between(self, name, from_s, to_s):
        """(median, most) of that figure in that time."""
        values = [sample[name] for sample in self.samples if from_s <= sample["at_s"] <= to_s]
        assert values, f"no sample between {from_s:.0f} and {to_s:.0f} s"
        return statistics.median(values), max(values)
