import json
import zipfile

from dragoman.export.argos_format import package_name, write_argos


def test_the_package_is_one_archive_with_all_that_is_needed_offline(content, tmp_path):
    write_argos(tmp_path, content, "int8")
    (package,) = tmp_path.iterdir()
    assert package.name == "translate-en_de-1_0.argosmodel"
    root = package_name(content)
    with zipfile.ZipFile(package) as packed:
        assert packed.testzip() is None
        names = {name.removeprefix(f"{root}/") for name in packed.namelist()}
        metadata = json.loads(packed.read(f"{root}/metadata.json"))
        assert packed.read(f"{root}/sentencepiece.model") == content.tokenizer.model
    assert names >= {"model/model.bin", "minisbd/en.onnx", "README.md", "model/config.json"}
    assert (metadata["from_code"], metadata["to_name"]) == ("en", "German")
