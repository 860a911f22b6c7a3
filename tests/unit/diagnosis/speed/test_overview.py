import gc
import weakref

import numpy as np
import pytest
from unit.diagnosis.speed_run import new_run, read, with_parts, write_steps

from dragoman.diagnosis.speed.overview import speed_of


def test_all_figures_are_those_of_the_usual_steps(tmp_path):
    run = read(
        write_steps(
            new_run(tmp_path),
            lambda rank, number: with_parts(communication=30.0 if number == 1 else 1.0),
        )
    )
    speed = speed_of(run)

    assert run.step_parts.step[speed.rows].tolist() == list(range(2, 61))
    assert speed.split.network_s == pytest.approx(1.0)
    assert speed.bottleneck.verdict == "network-bound"
    assert speed.shares.network == pytest.approx(1.0 / speed.split.step_s)


def test_it_is_derived_once_and_goes_with_its_run(tmp_path):
    run = read(write_steps(new_run(tmp_path), lambda rank, number: with_parts()))
    assert speed_of(run) is speed_of(run)
    left = weakref.ref(run)
    del run
    gc.collect()
    assert left() is None


def test_what_was_not_recorded_gives_no_bottleneck(tmp_path):
    parts = {name: s for name, s in with_parts().items() if name != "communication"}
    speed = speed_of(read(write_steps(new_run(tmp_path), lambda rank, number: parts)))

    assert speed.bottleneck is None
    assert np.isnan(speed.split.network_s)


def test_a_run_without_steps_has_no_speed(tmp_path):
    assert speed_of(read(new_run(tmp_path))) is None
