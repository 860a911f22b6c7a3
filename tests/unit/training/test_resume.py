from dragoman.training.resume import Choice, Holding, choose


def test_nobody_has_anything():
    assert choose([None, None]) is None


def test_the_newest_step_wins_wherever_it_is():
    assert choose([Holding("a", 5, "x"), None, Holding("b", 9, "y")]) == Choice(2, 9, "y")


def test_of_equal_steps_the_lowest_rank_is_the_source():
    """Its content is the run's then, should the other one hold something else."""
    assert choose([None, Holding("a", 9, "x"), Holding("b", 9, "y")]) == Choice(1, 9, "x")
