import json

import jsonschema
import pytest
from pydantic import ValidationError

from dragoman.config import load_config
from dragoman.forecast.quantity import assumed
from dragoman.plan.content import Figure, Plan, plan_schema
from dragoman.plan.plan import plan_from_assumption

PLAN = plan_from_assumption(load_config("demo"), "2 nodes, 1gbit, 100 GFLOP/s, cpu")


def test_a_plan_is_what_its_schema_says_and_comes_back_as_it_was():
    text = PLAN.model_dump_json()
    jsonschema.validate(json.loads(text), plan_schema())
    assert Plan.model_validate_json(text) == PLAN


def test_unknown_fields_are_refused():
    with pytest.raises(ValidationError, match="other"):
        Plan.model_validate(PLAN.model_dump() | {"other": 1})


def test_a_figure_keeps_what_it_is_known_from():
    figure = Figure.of(assumed(2.0, 1.0, "a guess"))
    assert (figure.value, figure.low, figure.high) == (2.0, 1.0, 4.0)
    assert (figure.is_measured, figure.basis) == (False, "a guess")
