"""Our own weights, settings and tokenizer in one folder, for programs that build the model anew.

model.safetensors   float32; docs/export.md lists the names
config.json         shape of the model, special pieces, settings for decoding
tokenizer.model     SentencePiece
"""

from pathlib import Path

from dragoman.checkpoints.folders import write_file
from dragoman.checkpoints.names import FORMAT, MODEL, TOKENIZER
from dragoman.checkpoints.storage import to_json
from dragoman.checkpoints.tensorfile import TensorImage, Tensors
from dragoman.export.content import Content

USAGE = """\
```python
from safetensors.numpy import load_file

weights = load_file("{folder}/model.safetensors")
```
"""


def write_safetensors(folder: Path, content: Content) -> None:
    write_tensors(folder / MODEL, content.weights)
    write_file(folder / TOKENIZER, [content.tokenizer.model])
    tokenizer, shape = content.tokenizer, content.model
    config = {
        "format": FORMAT,
        "name": content.name,
        "source_language": content.source_language,
        "target_language": content.target_language,
        "vocabulary": tokenizer.size,
        "encoder_layers": shape.encoder_layers,
        "decoder_layers": shape.decoder_layers,
        "width": shape.width,
        "heads": shape.heads,
        "filter": shape.filter,
        "padding_id": tokenizer.padding,
        "unknown_id": tokenizer.unknown,
        "start_id": tokenizer.start,
        "end_id": tokenizer.end,
        "decoding": content.decoding.model_dump(),
    }
    write_file(folder / "config.json", [to_json(config)])


def write_tensors(path: Path, tensors: Tensors) -> None:
    image = TensorImage()
    image.take(tensors)
    write_file(path, image.chunks())
