"""The zone of this machine's clock, with its changes to summer time."""

from datetime import UTC, datetime, timedelta, tzinfo


class SystemZone(tzinfo):
    """What the system says: the standard library gives only the present offset, wrong for half of all dates."""

    def utcoffset(self, moment: datetime | None, /) -> timedelta:
        """Return the offset at a local time."""
        return _offset((moment or datetime.now(UTC)).replace(tzinfo=None))

    def dst(self, moment: datetime | None, /) -> None:
        """Return None: the system does not tell it apart."""

    def tzname(self, moment: datetime | None, /) -> str:
        """Return a name for people."""
        return "local"

    def fromutc(self, moment: datetime, /) -> datetime:
        """Return the local time of a UTC time that carries this zone."""
        offset = _offset(moment.replace(tzinfo=UTC))
        local = moment + offset
        # At the end of summer time an hour comes twice; `fold` says that it is the second one.
        return local if self.utcoffset(local) == offset else local.replace(fold=1)


def _offset(moment: datetime) -> timedelta:
    try:
        return moment.astimezone().utcoffset() or timedelta()
    except (OSError, OverflowError, ValueError):
        # Windows knows no local time before 1970, and no system one beyond its calendar.
        return datetime.now(UTC).astimezone().utcoffset() or timedelta()
