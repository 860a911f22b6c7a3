import re
from dataclasses import replace

import pytest

from dragoman.batches.shapes import shapes_of
from dragoman.check.rehearsal import STEPS
from dragoman.check.result import Computing
from dragoman.cli.recipe_outlook import outlook_rows
from dragoman.config import load_config
from dragoman.errors import RunError, UserError
from dragoman.forecast.computing import micro_batches_of
from dragoman.plan import here
from dragoman.plan.here import data_here, outlook_of, scaled, smaller_shape
from dragoman.preparation import prepare
from dragoman.tokenizer import Tokenizer
from dragoman.training.batch_plan import plan_batches, usual_plan


def computing(rank: int, step_s: float = 0.5) -> Computing:
    return Computing(
        host="here",
        rank=rank,
        step_s=(step_s,) * 3,
        forward_s=0.2 * step_s,
        backward_s=0.6 * step_s,
        last_backward_s=0.6 * step_s,
        update_s=0.2 * step_s,
        micro_batches=1,
        peak_memory_bytes=10**9,
    )


@pytest.fixture
def rehearsed(monkeypatch):
    """Workers that take half a second for whatever they are given, which is kept."""
    orders = []

    def rehearse(config, workers, is_stopping, box_s, shapes, start_s):
        orders.append((config, shapes))
        return None, tuple(computing(rank) for rank in range(workers))

    monkeypatch.setattr(here, "rehearse_here", rehearse)
    monkeypatch.setattr(here, "product_flops_per_s", lambda: 1e11)
    return orders


@pytest.mark.parametrize("is_prepared", [True, False])
def test_real_workers_are_timed(digits, monkeypatch, is_prepared):
    # Nothing is replaced but how long workers may take to start on a busy machine.
    monkeypatch.setattr(here, "START_S", 100.0)
    config = load_config(digits)
    if is_prepared:
        prepare(config)
    told = []

    found = outlook_of(config, 1, tell=told.append)

    assert re.fullmatch(r"\d+ timed steps?", found.known_from), found.note
    assert (found.note, found.data.is_prepared) == ("", is_prepared)
    assert "timing a few steps of digits" in told[0]
    assert found.plan
    step = found.plan.own.step_s
    assert step.is_measured
    assert 0.0 < step.low <= step.value <= step.high
    assert found.plan.own.hours
    assert found.plan.own.steps == config.training.steps
    # Evaluations and saves take some time, too.
    assert 3600 * found.plan.own.hours.value > config.training.steps * step.value
    rows = dict(outlook_rows(config, found, "digits.toml"))
    assert rows["time"].startswith("about ")
    assert rows["a step"].endswith(found.known_from)
    assert ("known once the data is prepared" in rows["epochs"]) != is_prepared


def test_steps_of_the_prepared_data_are_timed(digits, rehearsed):
    config = load_config(digits)
    plan = plan_batches(prepare(config).shards("train"), config, 1)

    found = outlook_of(config, 1)

    assert rehearsed[0][1] == shapes_of(plan, STEPS)
    assert found.data.is_prepared
    assert found.data.micro_batches == plan.micro_batches_per_step
    assert found.plan
    assert found.plan.own.step_s.value == pytest.approx(0.5)
    assert found.plan.own.hours
    assert found.plan.own.hours.low < found.plan.own.hours.value < found.plan.own.hours.high
    assert found.known_from == "3 timed steps"


def test_without_data_usual_sentences_are_timed(digits, rehearsed):
    config = load_config(digits)
    found = outlook_of(config, 1)
    assert not found.data.is_prepared
    assert found.data.micro_batches == micro_batches_of(config, 1)
    assert rehearsed[0][1] == shapes_of(usual_plan(config), STEPS)


def test_smaller_batches_stand_for_those_that_take_long(rehearsed):
    config = load_config("wmt16-en-de", ["training.device=cpu", "data.prepared=none"])
    found = outlook_of(config, 1)

    ((_, shapes),) = rehearsed
    (shape,) = shapes[0]
    whole = shapes_of(usual_plan(config), STEPS)
    positions = shape.pairs * (shape.longest_source + shape.longest_target)
    of_step = sum(s.pairs * (s.longest_source + s.longest_target) for step in whole for s in step)
    times = of_step / len(whole) / positions
    assert times > 10
    # The update, a fifth of what was timed, is not longer in a larger step.
    assert found.plan
    assert found.plan.own.step_s.value == pytest.approx(0.5 * (0.8 * times + 0.2), rel=0.01)
    assert f"1/{times:,.0f}" in found.known_from
    step = found.plan.own.step_s
    assert step.high / step.value >= 1.3


def test_smaller_batches_have_pairs_as_long_as_the_others():
    whole = shapes_of(usual_plan(load_config("wmt16-en-de")), 2)
    longest = [shape.longest_target for step in whole for shape in step]
    shape = smaller_shape(whole, 600)
    assert min(longest) <= shape.longest_target <= max(longest)
    assert 0.8 * 600 < shape.pairs * (shape.longest_source + shape.longest_target) < 1.2 * 600
    assert smaller_shape(whole, 1).pairs == 1


def test_only_passes_are_longer_in_a_larger_step():
    larger = scaled(computing(0), 3.0, 2)
    assert larger.step_s == pytest.approx([0.5 + 2 * 0.4] * 3)
    assert larger.update_s == computing(0).update_s
    assert (larger.micro_batches, larger.last_backward_s) == (2, pytest.approx(0.45))


def test_every_worker_is_given_work(digits, rehearsed, monkeypatch):
    monkeypatch.setattr(here, "allowed_cores", lambda: 8)
    assert outlook_of(load_config(digits), 5).device == "5 workers on 8 processor cores"
    assert all(len(step) >= 5 for step in rehearsed[0][1])


def test_no_more_workers_are_timed_than_there_are_cores(digits, rehearsed, monkeypatch):
    monkeypatch.setattr(here, "allowed_cores", lambda: 1)
    found = outlook_of(load_config(digits), 3)
    assert (found.workers, found.device) == (1, "1 worker on 1 processor core")


def test_without_timing_the_speed_is_guessed_and_said_to_be(digits, rehearsed):
    found = outlook_of(load_config(digits), 1, is_timed=False)
    assert not rehearsed
    assert found.known_from.startswith("a guess: products of matrices run at 100 GFLOP/s")
    assert found.plan
    assert not found.plan.own.step_s.is_measured
    assert found.plan.own.step_s.high > 1.9 * found.plan.own.step_s.value
    assert not found.note


def test_what_cannot_be_timed_is_guessed_with_its_reason(digits, monkeypatch):
    def fail(*given, **more):
        raise RunError("it took too long")

    monkeypatch.setattr(here, "rehearse_here", fail)
    found = outlook_of(load_config(digits), 1)
    assert "it took too long" in found.note
    assert "a guess" in found.known_from


def test_a_huge_model_is_not_built(rehearsed):
    config = load_config("wmt16-en-de", ["model.preset=transformer-big", "data.prepared=none"])
    found = outlook_of(config, 1)
    assert not rehearsed
    assert "too large to be timed" in found.note


def test_a_huge_update_is_not_made_up(digits, rehearsed):
    found = outlook_of(load_config(digits, ["training.tokens_per_update=1000000000"]), 1)
    assert not rehearsed
    assert "tokens_per_update = 1000000000 is too large" in found.note
    assert found.data.micro_batches == 2**22


def test_a_cuda_device_that_is_not_timed_is_not_guessed(digits, monkeypatch):
    monkeypatch.setattr(here, "cuda_devices", lambda: 2)
    config = load_config(digits, ["training.device=auto"])
    found = outlook_of(config, 1, is_timed=False)
    assert found.plan is None
    assert "CUDA" in found.known_from


def test_pieces_are_those_of_the_given_model(digits, tmp_path):
    learned = prepare(load_config(digits)).tokenizer()
    model = tmp_path / "given.model"
    model.write_bytes(learned.model)
    changes = {"tokenizer.model": model, "data.prepared": tmp_path / "none"}
    config = load_config(digits, changes | {"tokenizer.vocabulary": 9})
    assert data_here(config, 1).vocabulary == Tokenizer.load(model).size == learned.size

    model.unlink()
    with pytest.raises(UserError, match=r"tokenizer\.model = .*given\.model.*no such file"):
        data_here(config, 1)
    model.write_bytes(b"no model")
    with pytest.raises(Exception, match="not a SentencePiece model"):
        data_here(config, 1)


def test_data_that_was_prepared_with_other_pieces_does_not_count(digits):
    config = load_config(digits)
    prepare(config)
    assert data_here(config, 1).is_prepared
    other = data_here(load_config(digits, ["tokenizer.vocabulary=50"]), 1)
    assert (other.is_prepared, other.vocabulary) == (False, 50)


def test_prepared_data_needs_its_tokenizer_file_no_more(digits, tmp_path):
    learned = prepare(load_config(digits)).tokenizer()
    model = tmp_path / "given.model"
    model.write_bytes(learned.model)
    config = load_config(digits, {"tokenizer.model": model})
    prepare(config)
    model.unlink()
    assert data_here(config, 1).is_prepared
    # Training refuses another one that is not there.
    with pytest.raises(UserError, match=r"other\.model.*no such file"):
        data_here(load_config(digits, {"tokenizer.model": tmp_path / "other.model"}), 1)


def test_prepared_data_needs_its_text_no_more_and_no_other_text_has_it(digits, tmp_path):
    config = load_config(digits)
    prepare(config)
    (digits.parent / "valid.en").unlink()
    assert data_here(config, 1).is_prepared
    other = {"data.folder": tmp_path / "other"}
    assert not data_here(load_config(digits, other), 1).is_prepared
    fetched = {**other, "data.prepared_from": "file:///elsewhere"}
    assert data_here(load_config(digits, fetched), 1).is_prepared


def test_batches_are_counted_as_training_counts_them(digits):
    config = load_config(digits, ["training.subword_dropout=0.3"])
    prepare(config)
    dropped = data_here(config, 1)
    assert dropped.batches
    plain = data_here(load_config(digits), 1)
    assert plain.batches
    assert dropped.batches.lengths.sum() > plain.batches.lengths.sum()
    assert replace(plain, batches=None).steps_per_epoch == plain.batches.steps_per_epoch


def test_products_have_a_speed():
    assert here.product_flops_per_s(width=64, seconds=0.0) > 0


def test_the_speed_of_products_is_that_of_the_quickest(monkeypatch):
    # Others have interrupted all but one.
    took_s = [0.4] * 9 + [0.1] + [0.6] * (here.FEWEST_PRODUCTS - 10)
    clock = iter(
        [time_s for number, each in enumerate(took_s) for time_s in (number, number + each)]
    )
    monkeypatch.setattr(here.time, "perf_counter", lambda: next(clock))
    assert here.product_flops_per_s(width=64) == pytest.approx(2 * 64**3 / 0.1)
