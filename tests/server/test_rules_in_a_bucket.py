"""The rules for logs, versions and floors hold as well where the store is a bucket: their tests once more."""

import pytest

from tests.server.test_completing import (  # noqa: F401
    test_heads_say_whether_the_newest_version_is_whole,
    test_one_of_racing_completions_is_the_first,
    test_parts_are_stored_under_keys_of_their_own,
    test_sealed_part_of_a_version_that_lost_its_number_goes,
    test_sealed_part_without_its_open_part_is_no_version,
    test_stripped_version_is_completed_by_another_device,
    test_whole_version_that_races_its_stripped_form_is_there_in_the_end,
)
from tests.server.test_floors import (  # noqa: F401  collected here once more, over the fixture below
    log,
    test_floor_whose_manifest_is_not_here_is_unmet,
    test_floor_with_a_part_that_is_not_here_is_unmet,
    test_more_segments_than_are_deleted_at_once_are_deleted,
    test_next_floor_deletes_what_only_earlier_ones_name,
    test_part_can_come_back_in_a_later_floor,
    test_part_that_was_swept_and_put_again_is_swept_again,
    test_what_lies_below_is_deleted_and_what_lies_above_stays,
)


@pytest.fixture
def store_address(seaweed_bucket: str) -> str:
    return seaweed_bucket
