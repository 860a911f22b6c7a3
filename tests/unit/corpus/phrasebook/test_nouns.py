import pytest

from dragoman.corpus.phrasebook import nouns as n


def test_a_noun_is_found_by_its_english_singular() -> None:
    apple, book = n.pick("apple, book")
    assert (apple.german, book.german) == ("Apfel", "Buch")
    with pytest.raises(KeyError, match="unicorn"):
        n.pick("unicorn")


def test_half_of_the_professions_are_women_where_english_leaves_the_sex_open() -> None:
    women = sum(noun.gender == "f" for noun in n.PROFESSIONS)
    assert abs(2 * women - len(n.PROFESSIONS)) <= 1
    assert all(noun.is_person for noun in n.PERSONS)


def test_no_english_noun_has_two_german_ones() -> None:
    """A sentence with such a word would have two translations."""
    nouns = {*n.PERSONS, *n.FOODS, *n.DISHES, *n.FRUIT, *n.DRINKS, *n.CLOTHES, *n.READING}
    nouns |= {*n.VEHICLES, *n.ANIMALS, *n.PLANTS, *n.BUILDINGS, *n.DEVICES, *n.TABLEWARE}
    english = [noun.english for noun in nouns]
    assert len(set(english)) == len(english)


def test_a_place_has_a_preposition_for_being_there_and_one_for_going_there() -> None:
    station, cinema = n.pick_sites("station, cinema")
    assert (station.german_at, station.german_to, station.to_case) == ("an", "zu", "dative")
    assert (cinema.german_at, cinema.german_to, cinema.to_case) == ("in", "in", "accusative")
