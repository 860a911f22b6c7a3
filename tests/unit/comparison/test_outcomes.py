import pytest
from unit.comparison.invented_runs import REFERENCES, rows, run, translated, worse
from unit.report.fake_run import CONFIG

from dragoman.comparison.compare import compare
from dragoman.config import dump_config, parse_config
from dragoman.rundir import write_sentences


def test_speed_is_told_part_by_part_with_ratios(tmp_path):
    parts = {"forward": 0.5, "communication": 0.5}
    first = run(tmp_path / "a", 1.0, parts_s=parts)
    second = run(tmp_path / "b", 2.0, parts_s=parts | {"communication": 1.5})
    speed = compare(first.directory, second.directory).speed

    assert rows(speed)["mean step"].ratio == 2.0
    assert rows(speed)["forward"].ratio == 1.0
    assert rows(speed)["communication"].ratio == 3.0
    assert rows(speed)["tokens a second"].ratio == 0.5
    assert "50 % fewer tokens a second" in speed.sentences[0]
    assert "communication: 1 s longer" in speed.sentences[0]


def test_a_clear_difference_in_quality_is_significant(tmp_path):
    first, second = run(tmp_path / "a"), run(tmp_path / "b")
    translated(first, worse(3))
    translated(second, worse(50))
    quality = compare(first.directory, second.directory).quality

    assert rows(quality)["test set: BLEU"].b > rows(quality)["test set: BLEU"].a
    assert "test set: the second is better by" in quality.sentences[0]


def test_every_test_set_is_compared_on_its_own(tmp_path):
    first, second = run(tmp_path / "a"), run(tmp_path / "b")
    sets = [{"kind": "sacrebleu", "name": name} for name in ("wmt13", "wmt14")]
    for made, share in ((first, 3), (second, 50)):
        config = parse_config(CONFIG, "x", {"data.test": sets})
        made.directory.config.write_text(dump_config(config), encoding="utf-8")
        translated(made, worse(share), name="wmt13")
    quality = compare(first.directory, second.directory).quality

    assert "wmt13 set: the second is better by" in quality.sentences[0]
    assert "wmt14 set: not compared" in quality.sentences[1]
    assert "--split wmt14" in quality.sentences[1]


def test_a_tiny_difference_in_quality_is_not(tmp_path):
    first, second = run(tmp_path / "a"), run(tmp_path / "b")
    almost = [*REFERENCES[:-1], REFERENCES[-1].replace("Satz", "Spruch")]
    translated(first, worse(5))
    translated(
        second, [a if a.startswith("Nichts") else b for a, b in zip(worse(5), almost, strict=True)]
    )
    quality = compare(first.directory, second.directory).quality

    assert "test set: no difference can be told from 200 sentences" in quality.sentences[0]


def test_the_best_evaluations_of_training_are_compared_too(tmp_path):
    first, second = run(tmp_path / "a"), run(tmp_path / "b")
    for made, share in ((first, 3), (second, 50)):
        write_sentences(made.directory.references, REFERENCES)
        write_sentences(made.directory.translations(2), worse(share))
    quality = compare(first.directory, second.directory).quality

    assert "best evaluation during training: the second is better" in quality.sentences[-1]


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda a, b: None, "has no translations of it: dragoman evaluate"),
        (lambda a, b: translated(b, REFERENCES, REFERENCES[::-1]), "reference translations differ"),
        (lambda a, b: translated(b, REFERENCES, REFERENCES[:9]), "do not belong together"),
    ],
)
def test_what_cannot_be_compared_is_said(tmp_path, spoil, why):
    first, second = run(tmp_path / "a"), run(tmp_path / "b")
    translated(first, REFERENCES)
    spoil(first, second)

    assert why in compare(first.directory, second.directory).quality.sentences[0]


def test_costs_need_prices(tmp_path):
    priced = CONFIG + "\n[cost]\nhost_per_hour = 3.0\n"
    first, second = run(tmp_path / "a", config=priced), run(tmp_path / "b", config=priced)
    unpriced = run(tmp_path / "c")
    cost = compare(first.directory, second.directory).cost

    assert rows(cost)["host hours"].a == 4.0  # two hours on two hosts
    assert (rows(cost)["cost"].a, rows(cost)["cost"].unit) == (12.0, "USD")
    assert "cost.host_per_hour" in compare(first.directory, unpriced.directory).cost.sentences[0]
