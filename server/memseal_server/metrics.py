"""Count what the server does, for Prometheus; nothing here names a vault, a key or a client."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

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
        self._vaults = Gauge("memseal_vaults", "Vaults in the store", registry=self._registry)
        self._objects = Gauge("memseal_objects", "Objects in the store", registry=self._registry)
        self._bytes = Gauge("memseal_stored_bytes", "Bytes of objects in the store", registry=self._registry)
        self._waiters = Gauge("memseal_waiters", "Requests waiting for a change", registry=self._registry)

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one answered request; `route` is the template, never the path."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)

    def render(self, totals: Totals | None, waiters: int) -> bytes:
        """Return the Prometheus text, with what the store holds now, or NaN where it does not know."""
        self._vaults.set(_UNKNOWN if totals is None else totals.folders)
        self._objects.set(_UNKNOWN if totals is None else totals.objects)
        self._bytes.set(_UNKNOWN if totals is None else totals.bytes)
        self._waiters.set(waiters)
        return generate_latest(self._registry)
