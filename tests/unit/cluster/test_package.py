import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata

import pytest
import tomli_w

from dragoman.cluster.package import (
    USUAL_EXTRAS,
    extras_for,
    packages_needed,
    pins,
    write_wheel,
)
from dragoman.config import load_config, parse_config
from dragoman.corpus.public import BUILT_IN
from dragoman.version import code_hash


def test_the_wheel_holds_this_very_code(tmp_path):
    wheel = write_wheel(tmp_path)
    with zipfile.ZipFile(wheel) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        archive.extractall(tmp_path / "there")
    assert "dragoman/shipped_recipes/demo.toml" in names
    assert not any("__pycache__" in name for name in names)
    said = subprocess.run(
        [sys.executable, "-c", "import dragoman.version as v; print(v.__file__, v.code_hash())"],
        env={"PYTHONPATH": str(tmp_path / "there")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.split() == [str(tmp_path / "there/dragoman/version.py"), code_hash()]


def test_hosts_get_the_versions_that_run_here():
    names = [pin.split("==")[0] for pin in pins()]
    assert {"torch", "numpy", "sentencepiece", "tomli-w", "ctranslate2"} <= set(names)
    assert not any("+" in pin for pin in pins())
    assert "tensorboard" not in names


def test_an_extra_is_pinned_where_it_is_installed_and_conditions_stay(monkeypatch):
    def requires(name):
        return [
            "numpy>=2.0",
            "tensorboard>=2.18; extra == 'board'",
            "backports-zstd>=1.0; (python_version < '3.14') and extra == 'zstd'",
            "no-such-package<6,>=5; extra == 'other'",
            "ruff; extra == 'dev'",
        ]

    versions = {"numpy": "2.1.0", "tensorboard": "2.20.0+cpu", "backports-zstd": "1.2.0"}

    def version(name):
        if name not in versions:
            raise metadata.PackageNotFoundError(name)
        return versions[name]

    monkeypatch.setattr(metadata, "requires", requires)
    monkeypatch.setattr(metadata, "version", version)
    assert pins(["board", "zstd", "other"]) == [
        "numpy==2.1.0",
        "tensorboard==2.20.0",
        "backports-zstd==1.2.0; (python_version < '3.14')",
        "no-such-package<6,>=5",
    ]


@pytest.mark.parametrize(
    ("settings", "extras"),
    [
        ([], ["tensorboard"]),
        (["telemetry.tensorboard=false"], []),
        (["telemetry.prometheus_port=9464"], ["prometheus", "tensorboard"]),
        (["telemetry.mlflow=file:mlruns"], ["mlflow", "tensorboard"]),
        (["telemetry.wandb=offline"], ["tensorboard", "wandb"]),
        (["cleaning.languages=true"], ["language", "tensorboard"]),
    ],
)
def test_a_recipe_s_settings_say_which_extras_it_needs(settings, extras):
    assert extras_for(load_config("demo", settings)) == extras


@pytest.mark.parametrize(
    ("source", "extra"),
    [
        ({"kind": "tsv", "file": "pairs.tsv.zst"}, ["zstd"]),
        ({"kind": "text", "source": "a.en", "target": "https://x.org/a.de.zst"}, ["zstd"]),
        ({"kind": "mtdata", "name": "Statmt-news_commentary-17-deu-eng"}, ["mtdata"]),
        ({"kind": "mtdata", "name": next(iter(BUILT_IN))}, []),
        ({"kind": "tsv", "file": "pairs.tsv.gz"}, []),
    ],
)
def test_so_do_its_sources(digits, source, extra):
    tree = tomllib.loads(digits.read_text())
    tree["data"]["train"] = [source]
    tree["telemetry"] = {"tensorboard": False}
    assert extras_for(parse_config(tomli_w.dumps(tree), "recipe")) == extra


def test_what_recipes_usually_need_is_what_the_demo_needs():
    assert tuple(extras_for(load_config("demo"))) == USUAL_EXTRAS


def test_packages_are_counted_with_all_that_they_need():
    assert packages_needed(["no-such-package"]) == 0
    assert packages_needed(["typing-extensions==4"]) == 1
    assert (
        packages_needed(["pydantic==2", "typing_extensions"]) == packages_needed(["pydantic"]) > 3
    )
