import json

import pytest

from dragoman.check.rehearsal import _explanation, _Heard, _Limits, shapes_here
from dragoman.cluster.hosts import Host
from dragoman.cluster.ssh import MARK
from dragoman.cluster.supervise import Outcome
from dragoman.errors import RunError, UserError
from dragoman.preparation import prepare

NODE = Host(name="node2")
COMPUTING = {
    "host": "node2",
    "rank": 1,
    "step_s": [1.0],
    "forward_s": 0.3,
    "backward_s": 0.6,
    "last_backward_s": 0.3,
    "update_s": 0.1,
    "micro_batches": 2,
    "peak_memory_bytes": 7,
}


@pytest.fixture
def heard():
    return _Heard({0: "node1", 1: "node2"})


def said(heard, rank, **message):
    line = MARK + json.dumps(message | {"rank": rank})
    heard.receive(NODE, {"rank": rank, "line": line})


def never():
    return _Limits(lambda: False, 1000.0)


def test_figures_are_taken_from_lines_among_others(heard):
    heard.receive(NODE, {"rank": 1, "line": "a warning of some library"})
    said(heard, 1, computing=COMPUTING)
    assert heard.computing[1].backward_s == 0.6
    assert not heard.is_whole


def test_who_is_furthest_behind_is_named(heard):
    said(heard, 0, phase="computing")
    said(heard, 1, phase="started")
    assert "node2" in heard.hindmost()
    assert "node1" not in heard.hindmost()


def test_a_worker_that_refuses_gives_its_own_sentence_and_code(heard):
    heard.receive(NODE, {"rank": 1, "line": "error: rank 1 on node2: too little memory"})
    error = _explanation(heard, Outcome(UserError.exit_code), never())
    assert isinstance(error, UserError)
    assert str(error) == "rank 1 on node2: too little memory"


def test_a_worker_that_is_killed_is_named_by_its_agent(heard):
    heard.receive(NODE, {"killed": 1, "line": "rank 1 on node2 was ended by SIGKILL"})
    error = _explanation(heard, Outcome(1), never())
    assert isinstance(error, RunError)
    assert "node2" in str(error)


def test_a_host_that_is_lost_is_named(heard):
    assert "node2" in str(_explanation(heard, Outcome(1, frozenset({"node2"})), never()))


def test_workers_are_killed_once_when_their_time_is_over(heard):
    limits = _Limits(lambda: False, -1.0)
    assert [*limits.new(), *limits.new()] == ["kill"]
    said(heard, 0, phase="started")
    assert "node2 is still starting" in str(_explanation(heard, Outcome(1), limits))


def test_workers_are_killed_when_the_user_asks_to_stop(heard):
    limits = _Limits(lambda: True, 1000.0)
    assert [*limits.new()] == ["kill"]
    assert "stopped" in str(_explanation(heard, Outcome(1), limits))


def test_shapes_are_those_of_prepared_data_where_there_is_some(digits_config):
    assert shapes_here(digits_config, ranks=2) == ([], None)
    prepare(digits_config)
    shapes, vocabulary = shapes_here(digits_config, ranks=2)
    assert vocabulary == digits_config.tokenizer.vocabulary
    assert {len(step) for step in shapes} == {2}
    tokens = sum(shape.target_tokens for step in shapes for shape in step) / len(shapes)
    assert tokens == pytest.approx(digits_config.training.tokens_per_update, rel=0.2)
    with pytest.raises(UserError, match="3 workers"):
        shapes_here(digits_config, ranks=3)
