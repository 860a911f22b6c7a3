"""Two invented runs, told apart; and what cannot be compared is refused or said."""

import json
from pathlib import Path

import pytest
from processes import dragoman
from unit.report.fake_run import CONFIG, MANIFEST, FakeRun, evaluated, started, step

from dragoman.comparison.compare import compare
from dragoman.comparison.rows import Group, Row
from dragoman.errors import UserError
from dragoman.rundir import write_json, write_sentences
from dragoman.telemetry.events import AttemptEnded

REFERENCES = [f"Das ist der Satz mit der Nummer {number} ." for number in range(200)]


def run(root: Path, step_s: float = 1.0, config: str = CONFIG, **changes: object) -> FakeRun:
    made = FakeRun(root).with_manifest()
    made.directory.config.write_text(config)
    return made.with_events(
        [
            (0.0, started()),
            (2.0, step(1, step_s, **changes)),
            (4.0, step(2, step_s, **changes)),
            (5.0, evaluated(2)),
            (7200.0, AttemptEnded(2, "finished", "done")),
        ]
    )


def rows(group: Group) -> dict[str, Row]:
    return {row.what.strip(): row for row in group.rows}


def translated(made: FakeRun, translations: list[str], references: list[str] = REFERENCES) -> None:
    directory = made.directory
    write_sentences(directory.evaluation_text("test", "translations"), translations)
    write_sentences(directory.evaluation_text("test", "references"), references)


def worse(share: int) -> list[str]:
    """Every so many translations is broken."""
    return [
        "Nichts davon ." if number % share == 0 else reference
        for number, reference in enumerate(REFERENCES)
    ]


def test_only_settings_that_differ_are_told_by_their_dotted_keys(tmp_path):
    first = run(tmp_path / "a")
    second = run(tmp_path / "b", config=CONFIG + "\n[optimizer]\nbeta2 = 0.98\n")
    found = compare(first.directory, second.directory)

    assert [(row.what, row.a, row.b) for row in found.settings.rows] == [
        ("optimizer.beta2", 0.997, 0.98)
    ]


def test_the_same_settings_data_and_machines_are_said_to_be_the_same(tmp_path):
    first, second = run(tmp_path / "a"), run(tmp_path / "b")
    found = compare(first.directory, second.directory)

    assert found.settings.sentences == ["All settings are the same."]
    assert "Both learned from the same data" in found.data.sentences[0]
    assert "are the same" in found.machines.sentences[0]


def test_other_data_is_told_with_hashes_and_sizes(tmp_path):
    first, second = run(tmp_path / "a"), run(tmp_path / "b")
    manifest = json.loads(json.dumps(MANIFEST))
    manifest["data"]["tokenizer_sha256"] = "f" * 64
    manifest["data"]["splits"]["train"]["pairs_kept"] = 495
    write_json(second.directory.manifest, manifest)
    data = compare(first.directory, second.directory).data

    assert rows(data)["tokenizer hash"].b == "f" * 12
    assert rows(data)["train: pairs"].ratio == 0.5
    assert "losses per token are not comparable" in data.sentences[0]


def test_speed_is_told_part_by_part_with_ratios(tmp_path):
    parts = {"forward": 0.5, "communication": 0.5}
    first = run(tmp_path / "a", 1.0, parts_s=parts)
    second = run(tmp_path / "b", 2.0, parts_s=parts | {"communication": 1.5})
    speed = compare(first.directory, second.directory).speed

    assert rows(speed)["step"].ratio == 2.0
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


def test_runs_without_steps_or_manifest_are_compared_as_far_as_it_goes(tmp_path):
    first, second = run(tmp_path / "a"), FakeRun(tmp_path / "b")
    found = compare(first.directory, second.directory)

    assert "has recorded no step" in found.speed.sentences[0]
    assert "has no manifest" in found.data.sentences[0]


def test_the_same_run_twice_is_refused(tmp_path):
    first = run(tmp_path / "a")
    (tmp_path / "link").symlink_to(tmp_path / "a")

    with pytest.raises(UserError, match="is the same run as"):
        compare(first.directory, type(first.directory)(tmp_path / "link"))


def test_other_languages_are_refused(tmp_path):
    first = run(tmp_path / "a")
    second = run(tmp_path / "b", config=CONFIG.replace('"de"', '"fr"'))

    with pytest.raises(UserError, match=r"translates en to de and .* en to fr"):
        compare(first.directory, second.directory)


def test_the_command_prints_a_table_or_json_and_refuses_in_one_sentence(tmp_path):
    run(tmp_path / "a"), run(tmp_path / "b", 2.0)
    shown = dragoman("compare", tmp_path / "a", tmp_path / "b")
    told = dragoman("compare", tmp_path / "a", tmp_path / "b", "--json")
    refused = dragoman("compare", tmp_path / "a", tmp_path)

    assert shown.returncode == told.returncode == 0, (shown.stderr, told.stderr)
    assert "x 2.00" in shown.stdout
    assert json.loads(told.stdout)["speed"]["rows"][0]["ratio"] == 2.0
    assert refused.returncode == 2
    assert refused.stderr.startswith("error: ")
    assert "is not a run directory" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
