import pytest
from checked import checked

from dragoman.check.result import Finding
from dragoman.config import load_config
from dragoman.errors import UserError
from dragoman.plan.source import plan_for

CONFIG = load_config("wmt16-en-de")
WORDS = "2 nodes, 1gbit, 1 TFLOP/s"


def test_words_and_files_give_plans(tmp_path):
    path = tmp_path / "check.json"
    path.write_text(checked().model_dump_json())

    assert plan_for(CONFIG, assume=WORDS).hosts == 2
    assert plan_for(CONFIG, check=path).is_measured


def test_a_check_of_other_hosts_than_those_named_is_refused(tmp_path):
    path = tmp_path / "check.json"
    path.write_text(checked().model_dump_json())
    with pytest.raises(UserError, match="a, b"):
        plan_for(CONFIG, check=path, hosts="a,b")


def test_no_source_and_two_sources_are_refused(tmp_path):
    with pytest.raises(UserError, match="--assume"):
        plan_for(CONFIG)
    with pytest.raises(UserError, match="--assume"):
        plan_for(CONFIG, assume=WORDS, hosts="a,b")


def test_what_a_check_found_unfit_is_told_beside_the_plan(tmp_path, caplog):
    path = tmp_path / "check.json"
    finding = Finding(subject="port", verdict="unfit", sentence="node3: is slow.", hosts=("node3",))
    known = checked()
    path.write_text(known.model_copy(update={"findings": (finding,)}).model_dump_json())
    with caplog.at_level("WARNING"):
        plan_for(CONFIG, check=path)
    assert "node3: is slow." in caplog.text
