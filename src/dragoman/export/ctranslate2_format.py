"""A folder that the plain `ctranslate2` package loads, with the tokenizer beside the model."""

from pathlib import Path

from dragoman.checkpoints.folders import write_file
from dragoman.checkpoints.names import TOKENIZER
from dragoman.decoding.ctranslate2_model import write_model
from dragoman.decoding.engine import Precision
from dragoman.export.content import Content

USAGE = """\
```python
import ctranslate2, sentencepiece

pieces = sentencepiece.SentencePieceProcessor("{folder}/tokenizer.model")
translator = ctranslate2.Translator("{folder}")
options = dict(beam_size={beam}, length_penalty={length_penalty}, min_decoding_length=0)
options["return_end_token"] = True  # it counts as one of the length
results = translator.translate_batch(pieces.encode(["{example}"], out_type=str), **options)
print(pieces.decode(results[0].hypotheses[0]))
```
"""


def write_ctranslate2(folder: Path, content: Content, precision: Precision) -> None:
    write_model(folder, content.model, content.weights, content.tokenizer, precision)
    write_file(folder / TOKENIZER, [content.tokenizer.model])
