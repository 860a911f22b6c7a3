from dragoman.config import DecodingSettings
from dragoman.decoding.engine import length_limit, most_pieces


def test_the_longest_translation_is_the_same_for_groups_of_lengths_and_grows_with_them():
    settings = DecodingSettings(max_length_factor=1.5)
    assert [most_pieces(count, settings) for count in (1, 16, 17, 32)] == [34, 34, 58, 58]
    for count in range(1, 300):
        assert most_pieces(count, settings) >= 1.5 * count + 10


def test_a_long_prefix_leaves_room_behind_it():
    settings = DecodingSettings(max_length_factor=1.5)
    assert length_limit([[1] * 3, [1] * 16], [], settings) == 34
    assert length_limit([[1] * 3], [[1] * 40, []], settings) == most_pieces(40, settings)
