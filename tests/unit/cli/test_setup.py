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


def test_a_recipe_is_read_before_any_host_is_reached(tmp_path):
    refused = dragoman("setup", tmp_path / "no.toml", "--hosts", "no-such-host.invalid")
    assert str(tmp_path / "no.toml") in sentence(refused, 2)


def test_settings_without_a_recipe_are_refused():
    refused = dragoman("setup", "--hosts", "a", "--set", "telemetry.wandb=offline")
    assert "--set" in sentence(refused, 2)
