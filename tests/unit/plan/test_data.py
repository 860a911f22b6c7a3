from dragoman.batches.plan import BatchPlan
from dragoman.config import load_config
from dragoman.plan.data import data_of
from dragoman.preparation import prepare


def test_without_prepared_data_the_usual_is_assumed(tmp_path):
    config = load_config("wmt16-en-de", {"data.prepared": str(tmp_path / "none")})
    data = data_of(config, 4)

    assert (data.is_prepared, data.lengths.target, data.steps_per_epoch) == (False, 30.0, None)
    assert data.micro_batches == 4
    assert data.basis.startswith("assumed")


def test_what_the_recipe_says_is_not_guessed(tmp_path):
    data = data_of(load_config("demo", {"data.prepared": tmp_path / "none"}), 1)
    assert data.validation_pairs == 300
    assert data_of(load_config("wmt16-en-de"), 1).validation_pairs == 3000


def test_prepared_data_gives_lengths_and_steps(tmp_path):
    config = load_config("demo", {"data.prepared": str(tmp_path), "data.folder": str(tmp_path)})
    config = config.model_copy(
        update={
            "data": config.data.model_copy(
                update={"train": (config.data.train[0].model_copy(update={"pairs": 2000}),)}
            )
        }
    )
    lengths = prepare(config).shards("train").lengths()
    data = data_of(config, 2)
    plan = BatchPlan(lengths, config.training.tokens_per_update, 1024, 1)

    assert data.is_prepared
    assert data.lengths.target == lengths[:, 1].mean()
    assert data.micro_batches == plan.micro_batches_per_step
    assert data.steps_per_epoch == plan.steps_per_epoch
    assert data.validation_pairs == 300


def test_data_that_cannot_be_read_is_told_and_assumed(tmp_path, caplog):
    (tmp_path / "data.json").write_text("{")
    data = data_of(load_config("demo", {"data.prepared": str(tmp_path)}), 2)

    assert not data.is_prepared
    assert str(tmp_path) in caplog.text
