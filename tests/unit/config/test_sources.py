from unit.config.refusal import refused

from dragoman.config import SOURCE_KINDS, source_keys


def test_a_password_in_the_address_of_a_source_is_refused(text):
    message = refused(text.replace('"train.en"', '"https://me:hunter2@host/train.en"'))
    assert "data.train.0.source: an address with a user name or password" in message
    assert "hunter2" not in message


def test_every_file_of_a_source_has_its_hash_or_none_has(text):
    source = f'{{kind="text",source="a.en",target="a.de",sha256=["{"a" * 64}"]}}'
    message = refused(text, overrides=[f"data.train=[{source}]"])
    assert "data.train.0.sha256: 1 hash for 2 files" in message


def test_each_kind_of_source_is_described_and_has_its_keys():
    described = {kind: (what, [key for key, _, _ in keys]) for kind, what, keys in source_keys()}
    assert described.keys() == SOURCE_KINDS.keys()
    for what, keys in described.values():
        assert what
        assert "weight" in keys
        assert "kind" not in keys
