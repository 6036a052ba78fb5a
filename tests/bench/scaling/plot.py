"""Draw how the figures grow with the number of memories."""

import importlib
from pathlib import Path
from typing import Any

from tests.bench.scaling.cases import Figures

_PANELS = (
    ("search by vector, processor p50 ms", "search by vector\nprocessor ms, p50"),
    ("hybrid search, processor p50 ms", "hybrid search\nprocessor ms, p50"),
    ("open after key derivation, s", "open after key derivation\ns"),
    ("peak memory, MB", "peak memory\nMB"),
    ("bytes a memory on disk", "bytes a memory on disk"),
    ("durable single add, processor p50 ms", "durable single add\nprocessor ms, p50"),
)
# One colour for each in every panel, whoever else is in it.
_SHAPES = {"memseal": "C0o-", "plain FAISS": "C1s--", "vaultmem": "C2^", "compartment": "C3v"}


def draw(results: dict[str, dict[int, Figures]], file: Path) -> None:
    """Write a PNG: one panel a figure, one line for each of those measured, both axes logarithmic."""
    # Only the extra of the benchmarks brings it.
    matplotlib: Any = importlib.import_module("matplotlib")
    matplotlib.use("Agg")
    pyplot: Any = importlib.import_module("matplotlib.pyplot")
    figure, axes = pyplot.subplots(2, 3, figsize=(12, 7), layout="constrained")
    for (name, title), axis in zip(_PANELS, axes.flat, strict=True):
        for who, by_size in results.items():
            points = [(count, figures[name]) for count, figures in sorted(by_size.items()) if name in figures]
            if points:
                axis.loglog(*zip(*points, strict=True), _SHAPES[who], label=who)
        axis.set_title(title)
        axis.set_xlabel("memories")
        axis.grid(visible=True, which="both", alpha=0.3)
        # From a round number, or noise of a tenth looks like a cliff.
        low, high = axis.get_ylim()
        axis.set_ylim(low / 2, high * 2)
    handles: dict[str, Any] = {}
    for axis in axes.flat:
        handles.update(zip(axis.get_legend_handles_labels()[1], axis.get_legend_handles_labels()[0], strict=True))
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=len(handles))
    figure.savefig(file, dpi=110)
