"""A package that Argos Translate, and so LibreTranslate, installs and translates with, offline.

translate-<from>_<to>-1_0.argosmodel, a zip archive of one folder:
  metadata.json         languages and versions
  model/                for CTranslate2
  sentencepiece.model   tokenizer
  minisbd/              sentence splitter, see `sentence_boundaries`
  README.md             model card
"""

import os
import shutil
import zipfile
from pathlib import Path

from dragoman.checkpoints.folders import write_file
from dragoman.checkpoints.storage import to_json
from dragoman.decoding.ctranslate2_model import write_model
from dragoman.decoding.engine import Precision
from dragoman.export.content import Content
from dragoman.export.sentence_boundaries import boundary_model

LEAST_VERSION = "1.10"
"""Of Argos Translate, the first that splits sentences with MiniSBD."""

USAGE = """\
```python
from argostranslate import package, translate

package.install_from_path("{folder}/{package}")
print(translate.translate("{example}", "{source_language}", "{target_language}"))
```
"""

_NAMES = {
    "ar": "Arabic",
    "cs": "Czech",
    "da": "Danish",
    "de": "German",
    "el": "Greek",
    "en": "English",
    "es": "Spanish",
    "et": "Estonian",
    "fi": "Finnish",
    "fr": "French",
    "he": "Hebrew",
    "hi": "Hindi",
    "hu": "Hungarian",
    "it": "Italian",
    "ja": "Japanese",
    "ko": "Korean",
    "lt": "Lithuanian",
    "lv": "Latvian",
    "nl": "Dutch",
    "pl": "Polish",
    "pt": "Portuguese",
    "ro": "Romanian",
    "ru": "Russian",
    "sv": "Swedish",
    "tr": "Turkish",
    "uk": "Ukrainian",
    "zh": "Chinese",
}
"""What Argos Translate shows; other languages go by their codes."""


def package_name(content: Content) -> str:
    return f"translate-{content.source_language}_{content.target_language}-1_0"


def write_argos(folder: Path, content: Content, precision: Precision) -> None:
    root = folder / package_name(content)
    (root / "model").mkdir(parents=True)
    (root / "minisbd").mkdir()
    write_model(root / "model", content.model, content.weights, content.tokenizer, precision)
    source, target = content.source_language, content.target_language
    metadata = {
        "package_version": "1.0",
        "argos_version": LEAST_VERSION,
        "from_code": source,
        "from_name": _NAMES.get(source, source),
        "to_code": target,
        "to_name": _NAMES.get(target, target),
    }
    write_file(root / "metadata.json", [to_json(metadata)])
    write_file(root / "sentencepiece.model", [content.tokenizer.model])
    write_file(root / "minisbd" / f"{source}.onnx", [boundary_model(source)])
    write_file(root / "README.md", [content.card.encode()])

    archive = folder / f"{root.name}.argosmodel"
    # Weights hardly get smaller, and take long to compress.
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as packed:
        for path in sorted(root.rglob("*")):
            packed.write(path, path.relative_to(folder))
    with archive.open("rb") as file:
        os.fsync(file.fileno())
    shutil.rmtree(root)
