from processes import dragoman, sentence


def test_a_host_list_that_is_not_there_is_named(tmp_path):
    path = tmp_path / "hosts.toml"
    assert str(path) in sentence(dragoman("setup", "--hosts", path), 2)


def test_a_host_that_cannot_be_found_is_named(tmp_path):
    config = tmp_path / "ssh_config"
    config.write_text("")
    hosts = tmp_path / "hosts.toml"
    hosts.write_text(f'ssh_config = "{config}"\n[[hosts]]\nname = "no-such-host.invalid"\n')
    assert "no-such-host.invalid" in sentence(dragoman("setup", "--hosts", hosts), 2)
