"""What to do about damage in a vault that lives on no server: nothing there can be got again."""

from dataclasses import replace

from memseal.errors import Finding

_SYNC = ": sync"
_REPAIR = ": `memseal repair --to COPY` saves all that can be read"


def advised(detail: str) -> str:
    """Return a message that tells to sync with the step that helps without a server."""
    said, sync, _ = detail.partition(_SYNC)
    return said + _REPAIR if sync else detail


def advised_finding(finding: Finding) -> Finding:
    """Return a finding with the step that helps without a server."""
    return replace(finding, detail=advised(finding.detail))
