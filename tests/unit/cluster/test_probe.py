import socket

from digits_language import write_recipe

from dragoman.cluster.preflight import Facts
from dragoman.cluster.probe import data_hash, facts
from dragoman.config import load_config
from dragoman.cores import allowed_cores
from dragoman.preparation import prepare
from dragoman.version import code_hash


def test_a_host_says_what_it_is_and_has(tmp_path):
    folder = tmp_path / "deep" / "work"
    said = Facts.from_answer(facts({"folder": str(folder), "prepared": "prepared/x"}))
    assert folder.is_dir()
    assert (said.hostname, said.code) == (socket.gethostname(), code_hash())
    assert said.cores == allowed_cores()
    assert said.free_bytes > 0
    assert ("127.0.0.1", 8) in [(one.address, one.prefix) for one in said.interfaces]
    assert said.data is None


def test_prepared_data_is_known_by_its_hash_and_damage_is_told_of(tmp_path):
    data = prepare(load_config(write_recipe(tmp_path)))
    assert data_hash(data.folder) == {"data": data.passport.content_hash}
    shard = data.folder / data.passport.splits["train"].shards[0].name
    shard.write_bytes(shard.read_bytes()[:-1])
    found = data_hash(data.folder)
    assert found["data"] == "damaged"
    assert shard.name in found["data_error"]
