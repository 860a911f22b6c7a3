import pickle

import pytest

from dragoman.preparation.cleaned import clean_tasks
from dragoman.preparation.plan import make_plan


@pytest.mark.usefixtures("small_slices")
def test_a_task_that_travels_gives_the_same_bytes_where_no_file_is(recipe, digits):
    config = recipe()
    here = [task.do() for task in clean_tasks(make_plan(config))]
    travelling = [pickle.dumps(task.with_bytes()) for task in clean_tasks(make_plan(config))]
    for side in ("en", "de"):
        (digits.parent / f"train.{side}").unlink()
    assert [pickle.loads(task).do() for task in travelling] == here
    assert [result.pairs for result in here] == [100] * 8


@pytest.mark.usefixtures("small_slices")
def test_finished_and_unwanted_slices_have_no_task(recipe):
    plan = make_plan(recipe())
    for task in clean_tasks(plan, lambda number: number < 3):
        task.keep(task.do())
    assert [task.number for task in clean_tasks(plan)] == [3, 4, 5, 6, 7]
    assert [task.number for task in clean_tasks(plan, lambda n: n % 2 == 0)] == [4, 6]
