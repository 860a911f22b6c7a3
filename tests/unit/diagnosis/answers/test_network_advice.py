import pytest
from unit.diagnosis.speed_run import new_run, read, with_parts, write_steps
from unit.diagnosis.traffic_run import WIRE_BYTES, figure, traffic_of

from dragoman.diagnosis.answers import network


def test_a_link_that_has_recovered_is_told_to_be_over(tmp_path):
    def parts(rank, number):
        return with_parts(communication=2.0 if number <= 30 else 0.02)

    found = network.answer(read(write_steps(new_run(tmp_path), parts, more=traffic_of())))

    assert found.verdict == "network-bound"
    assert figure(found, "until step") == 30
    assert found.advice.startswith("It has been over since step 31;")


@pytest.mark.parametrize(
    ("sent", "offers_halving", "tells_of_others"),
    [(WIRE_BYTES, True, False), (WIRE_BYTES / 2, False, False), (2 * WIRE_BYTES, True, True)],
)
def test_what_would_help_depends_on_the_bytes_that_pass(
    tmp_path, sent, offers_halving, tells_of_others
):
    run = write_steps(
        new_run(tmp_path), lambda *_: with_parts(communication=2.0), more=traffic_of(sent=sent)
    )
    advice = network.answer(read(run)).advice

    assert ("bf16 on the wire" in advice) == offers_halving
    assert ("see the answer about the traffic first" in advice) == tells_of_others


def test_saving_that_holds_up_the_steps_is_told_with_what_would_help(tmp_path):
    run = write_steps(new_run(tmp_path), lambda *_: with_parts(checkpoint=1.0))

    assert "save less often" in network.answer(read(run)).advice
