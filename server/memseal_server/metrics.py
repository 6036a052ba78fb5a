"""Count what the server does, for Prometheus; nothing here names a vault, a key or a client."""

import platform

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from memseal_server import __version__
from memseal_server.blobs import Totals

CONTENT_TYPE = CONTENT_TYPE_LATEST

# From a cached answer to a body of 68 MiB over a slow line, in seconds; long polls last up to 60.
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_UNKNOWN = float("nan")


class Metrics:
    """One server's counters, in a registry of their own."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "memseal_requests", "Requests answered", ["method", "route", "status"], registry=self._registry
        )
        self._seconds = Histogram(
            "memseal_request_seconds",
            "Time from a request's head to its answer",
            ["method", "route"],
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._problems = Counter("memseal_problems", "Requests refused", ["code"], registry=self._registry)
        self._received = Counter("memseal_received_bytes", "Bytes of bodies received", registry=self._registry)
        self._sent = Counter("memseal_sent_bytes", "Bytes of bodies sent", registry=self._registry)
        self._store = Counter(
            "memseal_store_operations", "What the store was asked", ["operation", "outcome"], registry=self._registry
        )
        self._store_seconds = Histogram(
            "memseal_store_seconds",
            "Time that the store took",
            ["operation"],
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._connections = Gauge("memseal_connections", "Connections that are open", registry=self._registry)
        self._turned_away = Counter(
            "memseal_connections_refused", "Connections beyond the limit", registry=self._registry
        )
        build = Gauge("memseal_build_info", "What runs here", ["version", "python"], registry=self._registry)
        build.labels(__version__, platform.python_version()).set(1)
        ProcessCollector(registry=self._registry)
        self._vaults = Gauge("memseal_vaults", "Vaults in the store", registry=self._registry)
        self._objects = Gauge("memseal_objects", "Objects in the store", registry=self._registry)
        self._bytes = Gauge("memseal_stored_bytes", "Bytes of objects in the store", registry=self._registry)
        self._waiters = Gauge("memseal_waiters", "Requests waiting for a change", registry=self._registry)

    def count(self, method: str, route: str, status: int, seconds: float, code: str | None) -> None:
        """Count one answered request; `route` is the template, never the path; `code` the problem's, if it is one."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)
        if code is not None:
            self._problems.labels(code).inc()

    def count_bytes(self, received: int, sent: int) -> None:
        """Count the bytes of a request's body and of its answer's."""
        self._received.inc(received)
        self._sent.inc(sent)

    def count_store(self, operation: str, seconds: float, *, failed: bool) -> None:
        """Count one operation of the store."""
        self._store.labels(operation, "failed" if failed else "done").inc()
        self._store_seconds.labels(operation).observe(seconds)

    def connected(self, change: int) -> None:
        """Count a connection that came (1) or went (-1)."""
        self._connections.inc(change)

    def turned_away(self) -> None:
        """Count a connection that was refused."""
        self._turned_away.inc()

    def render(self, totals: Totals | None, waiters: int) -> bytes:
        """Return the Prometheus text, with what the store holds now, or NaN where it does not know."""
        self._vaults.set(_UNKNOWN if totals is None else totals.folders)
        self._objects.set(_UNKNOWN if totals is None else totals.objects)
        self._bytes.set(_UNKNOWN if totals is None else totals.bytes)
        self._waiters.set(waiters)
        return generate_latest(self._registry)
