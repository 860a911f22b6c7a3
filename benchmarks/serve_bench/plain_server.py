"""What one would write without us: FastAPI and CTranslate2, one request after the other.

    python plain_server.py EXPORTED PORT BEAM LENGTH_PENALTY REPLICAS

Requests run in FastAPI's threads. With one replica, CTranslate2's default, they are translated one
after the other, each on all cores; with several at the same time, each on its own core.
"""

import sys

import ctranslate2
import sentencepiece
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

folder, port, beam, length_penalty, replicas = sys.argv[1:]
pieces = sentencepiece.SentencePieceProcessor(f"{folder}/tokenizer.model")
how = {} if replicas == "1" else {"inter_threads": int(replicas), "intra_threads": 1}
translator = ctranslate2.Translator(folder, **how)
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
