"""What one would write without us: FastAPI and CTranslate2, one request after the other.

    python plain_server.py EXPORTED PORT BEAM LENGTH_PENALTY

Requests run in FastAPI's threads; each core has a replica, so that several are translated at the
same time, each alone.
"""

import os
import sys

import ctranslate2
import sentencepiece
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

folder, port, beam, length_penalty = sys.argv[1:]
pieces = sentencepiece.SentencePieceProcessor(f"{folder}/tokenizer.model")
translator = ctranslate2.Translator(
    folder, inter_threads=int(os.environ["OMP_NUM_THREADS"]), intra_threads=1
)
app = FastAPI()


class Question(BaseModel):
    q: str
    source: str
    target: str


@app.get("/health")
def health() -> dict[str, str]:
    return {"status": "ok"}


@app.post("/translate")
def translate(question: Question) -> dict[str, str]:
    (result,) = translator.translate_batch(
        [pieces.encode(question.q, out_type=str)],
        beam_size=int(beam),
        length_penalty=float(length_penalty),
    )
    return {"translatedText": pieces.decode(result.hypotheses[0])}


uvicorn.run(app, port=int(port), log_level="error")
