import sys
from pathlib import Path
from types import ModuleType

import pytest
from checked import checked

from dragoman.config import load_config
from dragoman.errors import UserError
from dragoman.plan.checking import check_hosts, ensure_fits

CONFIG = load_config("wmt16-en-de")
PATH = Path("check.json")


def fits(result, hosts=()):
    ensure_fits(PATH, result, CONFIG, 32_768, hosts)


def test_a_check_of_this_recipe_and_these_hosts_fits():
    fits(checked())
    fits(checked(), ["node1", "node2", "node3", "node4"])


@pytest.mark.parametrize(
    ("result", "hosts", "named"),
    [
        (checked().model_copy(update={"dragoman": "0.0.1"}), (), "0.0.1"),
        (checked(parameters=1_000), (), "1,000 parameters"),
        (checked().model_copy(update={"workload_hash": "other"}), (), "batches"),
        (checked(), ("a", "b"), "a, b"),
    ],
)
def test_a_check_of_another_version_model_or_cluster_is_refused(result, hosts, named):
    with pytest.raises(UserError, match=named):
        fits(result, hosts)


def test_hosts_are_measured_by_the_check(monkeypatch):
    asked = []
    check = ModuleType("dragoman.check.check")

    def check_cluster(cluster, config, _, tell):
        asked.append((cluster, config))
        return checked()

    check.check_cluster = check_cluster
    monkeypatch.setitem(sys.modules, "dragoman.check.check", check)

    assert check_hosts("a,b", CONFIG) == checked()
    assert [host.name for host in asked[0][0].hosts] == ["a", "b"]
    assert asked[0][1] is CONFIG
