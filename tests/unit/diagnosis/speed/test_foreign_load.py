import math

import pytest
from unit.diagnosis.loaded_run import loaded_run
from unit.diagnosis.speed_run import new_run, read
from unit.report.fake_run import started

from dragoman.diagnosis.speed.foreign_load import (
    crowd_in_words,
    crowded_hosts,
    loads_of,
)


def foreign_load_of(facts):
    """Hosts whose other programs are not known are left out."""
    loads = loads_of(facts).values()
    return {load.host: load.foreign for load in loads if not math.isnan(load.foreign)}


def test_the_ranks_of_other_hosts_hide_no_foreign_load(tmp_path):
    """A host does not read them: they are missing in its values, and not zero."""
    facts = read(
        loaded_run(
            new_run(tmp_path),
            busy=lambda rank, _: 100.0 if rank == 1 else 60.0,
            own=lambda rank, _: 55.0 if rank == 1 else 59.0,
        )
    )
    loads = loads_of(facts)

    assert foreign_load_of(facts) == {
        "host-0": pytest.approx(0.01),
        "host-1": pytest.approx(0.45),
    }
    assert loads["host-1"].own == pytest.approx(0.55)
    assert list(crowded_hosts(facts)) == ["host-1"]
    assert loads["host-1"].full_share == 1.0


def test_foreign_load_beside_idle_cores_takes_nothing(tmp_path):
    facts = read(loaded_run(new_run(tmp_path), lambda *_: 80.0, lambda *_: 30.0))

    assert foreign_load_of(facts)["host-0"] == pytest.approx(0.5)
    assert crowded_hosts(facts) == {}


def test_foreign_load_now_and_then_has_its_share_of_the_time(tmp_path):
    def is_loaded(second):
        return second % 4 == 0

    facts = read(
        loaded_run(
            new_run(tmp_path),
            busy=lambda _, second: 100.0 if is_loaded(second) else 92.0,
            own=lambda _, second: 20.0 if is_loaded(second) else 92.0,
        )
    )
    load = loads_of(facts)["host-0"]

    assert load.full_share == pytest.approx(0.25, abs=0.02)
    assert load.taken == pytest.approx(0.25 * 0.8, abs=0.02)
    assert load.is_crowded
    assert crowd_in_words({load.host: load}).startswith(
        "other programs take 80 % of the processors of host-0 during 2"
    )


def test_what_other_machines_steal_is_not_a_program_of_this_host(tmp_path):
    facts = read(loaded_run(new_run(tmp_path), lambda *_: 100.0, lambda *_: 70.0, steal=30.0))
    load = loads_of(facts)["host-0"]

    assert (load.foreign, load.stolen) == (pytest.approx(0.0, abs=1e-9), pytest.approx(0.3))
    assert load.is_crowded
    assert crowd_in_words({load.host: load}).startswith("other machines on the same hardware take")


def test_hosts_that_are_one_machine_are_not_foreign_to_each_other(tmp_path):
    """Both read the same kernel: a load average that agrees to the digit gives it away."""
    facts = read(
        loaded_run(
            new_run(tmp_path),
            busy=lambda *_: 98.0,
            own=lambda rank, _: 48.0,
            load=lambda _, second: second // 5 / 100,
        )
    )

    assert foreign_load_of(facts) == {
        "host-0": pytest.approx(0.02),
        "host-1": pytest.approx(0.02),
    }


@pytest.mark.parametrize(("cores", "own"), [(None, 50.0), (4, 7000.0)])
def test_what_cannot_be_is_not_known_rather_than_nothing(tmp_path, cores, own):
    facts = read(loaded_run(new_run(tmp_path), lambda *_: 100.0, lambda *_: own, cores=cores))

    assert foreign_load_of(facts) == {}
    assert math.isnan(loads_of(facts)["host-0"].foreign)
    assert loads_of(facts)["host-0"].busy == 1.0
    assert crowded_hosts(facts) == {}


def test_a_run_without_sensors_has_no_loads(tmp_path):
    run = new_run(tmp_path)
    run.with_events([(0.0, started())])

    assert loads_of(read(run)) == {}


def test_hosts_that_others_slow_alike_are_named_together(tmp_path):
    facts = read(
        loaded_run(new_run(tmp_path), lambda *_: 100.0, lambda rank, _: 50.0 if rank else 40.0)
    )

    assert crowd_in_words(crowded_hosts(facts)) == (
        "other programs take 50 to 60 % of the processors of host-0 and host-1"
    )


def test_loads_that_touch_the_same_value_now_and_then_are_two_machines(tmp_path):
    facts = read(
        loaded_run(
            new_run(tmp_path),
            busy=lambda *_: 98.0,
            own=lambda rank, _: 48.0,
            load=lambda rank, second: 4.0 if second % 3 else second / 100 + rank,
        )
    )

    assert foreign_load_of(facts)["host-0"] == pytest.approx(0.5)
