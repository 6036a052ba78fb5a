"""The zone of the machine, in summer and in winter."""

import subprocess
import sys
from datetime import UTC, datetime

import pytest

from memseal.vault.answers.zone import SystemZone

_PROGRAM = """
from datetime import datetime, UTC
from memseal.vault.answers.zone import SystemZone
zone = SystemZone()
for text in {moments!r}:
    moment = datetime.fromisoformat(text)
    local = moment.astimezone(zone)
    assert local.astimezone(UTC) == moment, text
    print(local.replace(tzinfo=None).isoformat(), local.fold, local.strftime("%z"))
for year in (1, 1969, 9999):
    datetime(year, 6, 1, tzinfo=zone).utcoffset()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no TZ of the usual form")
@pytest.mark.parametrize(
    ("zone", "moments", "expected"),
    [
        (
            "CET-1CEST,M3.5.0,M10.5.0/3",
            ["2024-01-15T12:00+00:00", "2024-07-15T12:00+00:00", "2024-03-31T00:59+00:00", "2024-03-31T01:00+00:00"],
            ["2024-01-15T13:00:00 0 +0100", "2024-07-15T14:00:00 0 +0200", "2024-03-31T01:59:00 0 +0100",
             "2024-03-31T03:00:00 0 +0200"],
        ),
        (
            "EST5EDT,M3.2.0,M11.1.0",
            ["2024-11-03T05:30+00:00", "2024-11-03T06:30+00:00"],
            ["2024-11-03T01:30:00 0 -0400", "2024-11-03T01:30:00 1 -0500"],
        ),
    ],
)  # fmt: skip
def test_local_time_follows_the_clock_of_the_machine_over_its_changes(
    zone: str, moments: list[str], expected: list[str]
) -> None:
    program = [sys.executable, "-c", _PROGRAM.format(moments=moments)]
    done = subprocess.run(program, env={"TZ": zone}, capture_output=True, check=True, text=True)
    assert done.stdout.splitlines() == expected


def test_present_is_the_same_moment_in_both() -> None:
    now = datetime.now(UTC)
    assert now.astimezone(SystemZone()) == now
    assert now.astimezone(SystemZone()).replace(tzinfo=None) == now.astimezone().replace(tzinfo=None)
