import json
from pathlib import Path

import pytest
from digits_language import write_digits, write_recipe
from processes import dragoman, sentence

from dragoman.cli.evaluate import evaluate
from dragoman.config import dump_config, load_config
from dragoman.errors import UserError

pytestmark = pytest.mark.timeout(180)


def test_the_scores_that_are_shown_are_those_in_the_file(trained):
    _, run = trained
    done = dragoman("evaluate", run, "--split", "validation", "--beam", 1)

    assert done.returncode == 0, done.stderr
    scored = json.loads((run / "evaluation-validation.json").read_text())
    head, bleu, chrf, ter = done.stdout.splitlines()[:4]
    assert (scored["steps"], scored["beam"]) == ([2], 1)
    assert f"validation, {scored['sentences']:,} sentences, beam 1" in head
    interval = f"({scored['bleu_low']:.1f} to {scored['bleu_high']:.1f})"
    assert bleu.split(maxsplit=1)[1].startswith(f"{scored['bleu']:.1f} {interval}")
    assert chrf.split()[1] == f"{scored['chrf']:.1f}"
    assert ter.split()[:2] == ["TER", f"{scored['metrics'][2]['score']:.1f}"]


def test_a_checkpoint_is_evaluated_in_its_run(trained):
    _, run = trained
    done = dragoman("evaluate", run / "checkpoints" / "best", "--split", "validation", "--beam", 1)
    assert done.returncode == 0, done.stderr
    assert json.loads((run / "evaluation-validation.json").read_text())["steps"] == [2]


def test_a_split_that_is_not_there_is_refused(trained):
    _, run = trained
    assert "nowhere" in sentence(dragoman("evaluate", run, "--split", "nowhere"), 2)
    assert not list(run.glob("evaluation-*.json"))


def test_a_test_set_has_scores_under_its_name_and_all_of_them_are_a_list_in_json(trained, tmp_path):
    _, run = trained
    recipe = write_recipe(tmp_path)
    write_digits(tmp_path, "news", 6, seed=4)
    sets = ",".join(f'{{kind="text",source="{s}.en",target="{s}.de"}}' for s in ("test", "news"))
    two_sets = load_config(recipe, [f"data.test=[{sets}]"])
    for path in (recipe, run / "config.toml"):
        path.write_text(dump_config(two_sets), encoding="utf-8")
    done = dragoman("prepare", recipe)
    assert done.returncode == 0, done.stderr
    assert "set news: 6 from news.en + news.de" in done.stdout

    done = dragoman("evaluate", run, "--beam", 1, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [
        json.loads((run / f"evaluation-{name}.json").read_text()) for name in ("test-1", "news")
    ]
    done = dragoman("evaluate", run, "--split", "news", "--beam", 1)
    assert done.stdout.startswith("news, 6 sentences")
    refused = sentence(dragoman("evaluate", run, "--split", "wmt14"), 2)
    assert "validation, test-1, news, test" in refused


def test_a_set_of_one_s_own_is_scored_against_a_file_and_printed_as_json(trained, tmp_path):
    _, run = trained
    source, reference = tmp_path / "mine.en", tmp_path / "mine.de"
    source.write_text("one two three\n", encoding="utf-8")
    reference.write_text("eins zwei drei\n", encoding="utf-8")
    files = ("--source", source, "--reference", reference)
    done = dragoman("evaluate", run, *files, "--against", reference, "--json")

    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert printed == json.loads((run / "evaluation-mine.json").read_text())
    assert printed["comparison"]["other"] == str(reference)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--source", "a.en"], "--reference"),
        (["--tsv", "a.tsv", "--sacrebleu", "wmt14"], "name one set"),
        (["--tsv", "a.tsv", "--columns", "one,2"], "--columns one,2"),
        (["--source", "missing.en", "--reference", "missing.de"], "missing.en"),
        (["--against", "missing.txt"], "missing.txt"),
        (["--comet", "nowhere"], "nowhere"),
    ],
)
def test_options_that_name_no_text_are_refused(trained, options, words):
    _, run = trained
    assert words in sentence(dragoman("evaluate", run, *options), 2)
    assert not list(run.glob("evaluation-*.json"))


@pytest.mark.parametrize(
    ("options", "fact"),
    [
        ({"tsv": "a.tsv", "columns": "0,1"}, "source_column = 0"),
        ({"tsv": "a.tsv", "columns": "1,10001"}, "target_column = 10001"),
        ({"tsv": "a.tsv", "columns": f"1,{'9' * 5000}"}, "--columns"),
        ({"tsv": "a.tsv", "columns": "1,2,3"}, "--columns 1,2,3"),
        ({"source": "a\tb.en", "reference": "a.de"}, "control characters"),
        ({"source": "", "tsv": "a.tsv"}, "name one set"),
        ({"columns": "2,3"}, "--tsv"),
        ({"name": "mine"}, "--name mine"),
        ({"tsv": "a.tsv", "split": "validation"}, "--split validation"),
        ({"comet_python": Path("python")}, "--comet-python"),
    ],
)
def test_options_that_would_be_of_no_effect_or_name_nothing_are_refused(trained, options, fact):
    _, run = trained
    with pytest.raises(UserError) as error:
        evaluate(run, **options)
    assert fact in str(error.value)
    assert not list(run.glob("evaluation-*.json"))


def test_control_characters_of_a_text_do_not_reach_the_terminal(trained, tmp_path):
    _, run = trained
    source, reference = tmp_path / "mine.en", tmp_path / "mine.de"
    source.write_text("one two\n", encoding="utf-8")
    reference.write_text("eins \x1b]0;title\x07 zwei\n", encoding="utf-8")
    done = dragoman("evaluate", run, "--source", source, "--reference", reference)
    assert done.returncode == 0, done.stderr
    assert "eins \\x1b]0;title\\x07 zwei" in done.stdout
