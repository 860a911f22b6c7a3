from processes import dragoman


def test_an_export_says_where_it_is_and_which_step_it_is_of(trained, tmp_path):
    _, run = trained
    folder = tmp_path / "exported"
    done = dragoman("export", run, folder, "--to", "safetensors")
    assert done.returncode == 0, done.stderr
    assert str(folder) in done.stdout
    assert "step 2" in done.stdout
    assert {path.name for path in folder.iterdir()} == {
        *("README.md", "config.json", "model.safetensors", "tokenizer.model")
    }
