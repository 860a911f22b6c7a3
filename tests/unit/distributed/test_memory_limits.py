import psutil
import pytest

from dragoman.distributed.memory_limits import free_bytes

MB = 1 << 20


@pytest.fixture
def limits(tmp_path, monkeypatch):
    """Writes files of control groups; returns what is free with them, of 1,000 MB."""
    available = type("Memory", (), {"available": 1000 * MB})
    monkeypatch.setattr(psutil, "virtual_memory", lambda: available)

    def written(membership, groups):
        (tmp_path / "membership").write_text(membership)
        for folder, files in groups.items():
            for name, content in files.items():
                path = tmp_path / "mounted" / folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(str(content))
        return free_bytes(tmp_path / "membership", tmp_path / "mounted") / MB

    return written


def version_2(limit, used, cached=0):
    stat = f"anon 1\ninactive_file {cached}\n"
    return {"memory.max": limit, "memory.current": used, "memory.stat": stat}


def version_1(limit, used, cached=0):
    stat = f"cache 1\ntotal_inactive_file {cached}\n"
    return {
        "memory.limit_in_bytes": limit,
        "memory.usage_in_bytes": used,
        "memory.stat": stat,
    }


def test_without_groups_it_is_what_is_available(tmp_path, limits):
    assert limits("0::/\n", {}) == 1000
    assert free_bytes(tmp_path / "nothing", tmp_path) == 1000 * MB


def test_the_limit_of_a_group_counts_without_what_the_kernel_gives_back(limits):
    assert limits("0::/job\n", {"job": version_2(300 * MB, 200 * MB, 50 * MB)}) == 150


def test_the_tightest_of_the_groups_around_counts(limits):
    groups = {
        "a": version_2(500 * MB, 400 * MB),
        "a/b": version_2("max", 400 * MB),
        "a/b/c": version_2(600 * MB, 100 * MB),
    }
    assert limits("0::/a/b/c\n", groups) == 100


def test_version_1_has_a_folder_of_its_own(limits):
    membership = "5:cpu,cpuacct:/x\n4:memory:/slurm/job_7\n0::/\n"
    groups = {
        "memory/slurm/job_7": version_1(700 * MB, 50 * MB),
        "memory": version_1(9223372036854771712, 900 * MB),
    }
    assert limits(membership, groups) == 650


def test_in_a_container_the_mounted_folder_is_the_group(limits):
    assert limits("0::/docker/0123abc\n", {".": version_2(200 * MB, 20 * MB)}) == 180


def test_a_group_that_is_full_leaves_nothing(limits):
    assert limits("0::/job\n", {"job": version_2(100 * MB, 120 * MB)}) == 0


def test_the_machine_of_this_test_has_some():
    assert free_bytes() > 0
