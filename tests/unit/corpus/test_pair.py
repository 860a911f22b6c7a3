from dragoman.corpus.pair import Pair


def test_the_source_comes_first_and_a_pair_is_the_tuple_that_files_and_hashes_see():
    source, target = Pair(target="Guten Tag", source="Good day")
    assert (source, target) == ("Good day", "Guten Tag")
    assert len({Pair("a", "b"), Pair("a", "b"), Pair("b", "a"), ("a", "b")}) == 2
