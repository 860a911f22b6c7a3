"""This machine is checked; several hosts are in tests/hosts/test_check.py."""

import psutil
import pytest

from dragoman.check.check import check_cluster
from dragoman.check.result import CheckResult
from dragoman.cluster.hosts import load_cluster
from dragoman.errors import UserError


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("here"))
        return check_cluster(None, None)


def test_this_machine_describes_and_times_itself(here):
    (host,) = here.hosts
    assert host.gemm_flops_per_s
    assert host.disk_bytes_per_s
    assert host.device_memory_bytes == psutil.virtual_memory().total
    assert here.transfers == ()
    assert here.recipe is None


def test_there_is_a_line_for_each_subject(here):
    subjects = {finding.subject for finding in here.findings}
    assert {"versions", "device", "load", "disk"} <= subjects


def test_the_result_survives_its_file(here):
    assert CheckResult.model_validate_json(here.model_dump_json()) == here


def test_no_process_is_left(here):
    words = [" ".join(p.cmdline()) for p in psutil.Process().children(recursive=True)]
    assert not any("dragoman.check" in line for line in words)


def test_a_recipe_adds_what_it_needs(digits_config, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    told = []
    result = check_cluster(None, digits_config, short=True, tell=told.append)
    assert result.recipe == digits_config.name
    assert result.parameters
    assert result.workload_hash
    assert result.computing == ()
    assert told


def test_public_addresses_are_refused_before_anything_is_connected(tmp_path):
    path = tmp_path / "hosts.toml"
    path.write_text('[[hosts]]\nname = "a"\naddress = "8.8.8.8"\n')
    with pytest.raises(UserError, match=r"8\.8\.8\.8"):
        check_cluster(load_cluster(str(path)), None)


def test_hosts_that_nobody_knows_are_named_in_one_error():
    with pytest.raises(UserError, match=r"(?s)nobody1\.invalid.*nobody2\.invalid"):
        check_cluster(load_cluster("nobody1.invalid,nobody2.invalid"), None)
