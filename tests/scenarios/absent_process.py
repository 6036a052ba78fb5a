"""Synchronises a vault with a clock that is wrong, and says how much memory that took and what it ended with.

Arguments: the vault's folder, the server's address, and by how many seconds the clock is off.
"""

import json
import sys
import time
from pathlib import Path

from memseal.vault.writes import writing
from tests.vault.small_vault import open_vault

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

true_time, true_now = time.time, writing.present


def peak_bytes() -> int:
    """Return the most memory that this process has had; 0 where the system does not tell."""
    if resource is None:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak << 10


def main() -> None:
    """Synchronise, once."""
    folder, server, off_seconds = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    setattr(time, "time", lambda: true_time() + off_seconds)  # noqa: B010
    setattr(writing, "present", lambda: true_now() + off_seconds * 1_000_000)  # noqa: B010
    with open_vault(folder) as vault:
        vault.remember(f"written {off_seconds} seconds off", source="test")
        before = peak_bytes()
        report = vault.sync(server)
        said = {
            "grown_bytes": peak_bytes() - before,
            "memories": vault.status().active,
            "findings": [finding.code for finding in report.findings],
            "digest": vault.state_digest().hex(),
        }
    sys.stdout.write(json.dumps(said))


if __name__ == "__main__":
    main()
