from unit.config.refusal import refused

from dragoman.config import parse_config


def test_a_preset_gives_the_shape_and_keys_beside_it_change_it(text):
    model = parse_config(text.replace("width = 32\n", ""), "x.toml").model
    assert (model.encoder_layers, model.width, model.filter) == (1, 128, 64)
    base = parse_config(text, "x.toml", ["model.preset=transformer-base"]).model
    assert base.heads == 2


def test_heads_that_do_not_divide_the_width_are_refused(text):
    assert "does not divide" in refused(text.replace("heads = 2", "heads = 5"))
