import math
from typing import Annotated, get_args

import pytest
from pydantic import TypeAdapter, ValidationError
from unit.config.refusal import refused

from dragoman.config import SOURCE_KINDS, Config, Section


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("schedule.peak=inf", "schedule.peak = inf should be above 0 and at most 100"),
        ("schedule.peak=1e30", "schedule.peak = 1e+30 should be above 0 and at most 100"),
        ("schedule.peak=nan", "schedule.peak = nan should be above 0 and at most 100"),
        ("schedule.scale=inf", "schedule.scale = inf should be above 0"),
        ("optimizer.epsilon=inf", "optimizer.epsilon = inf should be above 0 and at most 1"),
        ("optimizer.weight_decay=inf", "optimizer.weight_decay = inf should be from 0 to 100"),
        ("optimizer.clip_norm=inf", "optimizer.clip_norm = inf should be from 0 to 1,000,000"),
        ("decoding.max_length_factor=inf", "should be above 0 and at most 100"),
        ("training.hours=inf", "training.hours = inf should be above 0 and at most 1,000,000"),
        ("training.seed=0x10000000000000000", "should be from 0 to 2^63 - 1"),
        ("training.steps=100000000000000000000", "should be from 1 to 1,000,000,000,000"),
        ("training.steps=0x1" + "0" * 5000, "training.steps = a huge int should be from 1"),
        ("model.width=1000000000", "model.width = 1000000000 should be from 2 to 65,536"),
        ("evaluation.beam=100000", "evaluation.beam = 100000 should be from 1 to 100"),
        ("decoding.beam=1000000", "decoding.beam = 1000000 should be from 1 to 100"),
        ("telemetry.sensors_every_s=inf", "should be from 0 to 86,400"),
        ("telemetry.log_every_s=inf", "should be above 0 and at most 86,400"),
        ("preemption.poll_every_s=inf", "should be above 0 and at most 86,400"),
        ("cleaning.max_ratio=inf", "should be above 1 and at most 1,000,000"),
        ('data.folder="a\\u0000b"', "data.folder = 'a\\x00b' should be text without control"),
        (
            'data.train=[{kind="phrasebook",pairs=9,weight=inf}]',
            "weight = inf should be from 0.0001",
        ),
        ('data.train=[{kind="phrasebook",pairs=9,weight=1e300}]', "should be from 0.0001 to"),
        ('data.train=[{kind="phrasebook",pairs=9,weight=1e-9}]', "should be from 0.0001 to 1,000"),
        ("tokenizer.vocabulary=3", "tokenizer.vocabulary = 3 should be from 5 to 1,000,000"),
        ("tokenizer.character_coverage=0.95", "should be from 0.98 to 1"),
        ("model.dropout=0.99999", "model.dropout = 0.99999 should be from 0 to 0.9"),
        ("model.attention_dropout=0.95", "model.attention_dropout = 0.95 should be from 0 to 0.9"),
        ("model.activation_dropout=nan", "model.activation_dropout = nan should be from 0 to 0.9"),
    ],
)
def test_a_number_out_of_its_bounds_is_refused_with_them(text, override, sentence):
    assert sentence in refused(text, overrides=[override])


def test_every_number_of_a_recipe_is_bounded_on_both_sides():
    """Whatever is added later, too: each key is tried with values that no bound can allow."""
    keys = {
        f"{prefix}{name}": field
        for prefix, section in [("", Config), *_sections(Config)]
        for name, field in section.model_fields.items()
    }
    tried = 0
    for key, field in keys.items():
        if not {int, float} & set(_kinds(field.annotation)):
            continue
        adapter = TypeAdapter(Annotated[field.annotation, *field.metadata, key])
        for value in (math.inf, -math.inf, math.nan, 2**64, -(2**64), 10**400):
            with pytest.raises(ValidationError):
                adapter.validate_python(value)
        tried += 1
    assert tried > 45


def _sections(section):
    for name, field in section.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, Section):
            yield f"{name}.", field.annotation
    yield from (("data.train.", kind) for kind in SOURCE_KINDS.values())


def _kinds(annotation):
    arguments = get_args(annotation)
    return [kind for part in arguments for kind in _kinds(part)] if arguments else [annotation]
