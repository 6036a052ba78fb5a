"""What was used last stays, within the bound."""

from memseal_server.recent import Recent


def test_least_recently_used_goes_first() -> None:
    recent: Recent[str, int] = Recent(2)
    recent.put("a", 1)
    recent.put("b", 2)
    assert recent.get("a") == 1
    recent.put("c", 3)
    assert [recent.get(key) for key in "abc"] == [1, None, 3]


def test_weights_count_and_not_entries() -> None:
    recent: Recent[str, int] = Recent(10)
    recent.put("a", 1, weight=4)
    recent.put("b", 2, weight=6)
    assert len(recent) == 2
    recent.put("c", 3, weight=7)
    assert [recent.get(key) for key in "abc"] == [None, None, 3]


def test_replaced_value_no_longer_weighs() -> None:
    recent: Recent[str, int] = Recent(10)
    for _ in range(5):
        recent.put("a", 1, weight=9)
    recent.put("b", 2)
    assert [recent.get(key) for key in "ab"] == [1, 2]


def test_value_heavier_than_the_bound_is_not_kept() -> None:
    recent: Recent[str, int] = Recent(10)
    recent.put("a", 1, weight=11)
    assert recent.get("a") is None
    recent.put("b", 2, weight=10)
    assert recent.get("b") == 2


def test_what_is_dropped_no_longer_weighs() -> None:
    recent: Recent[str, int] = Recent(10)
    for key in "abc":
        recent.put(key, 1, weight=3)
    recent.drop(lambda key: key in "ac")
    assert [recent.get(key) for key in "abc"] == [None, 1, None]
    recent.put("d", 2, weight=7)
    assert [recent.get(key) for key in "bd"] == [1, 2]
