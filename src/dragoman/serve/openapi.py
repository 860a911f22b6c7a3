"""The description of the API in the format OpenAPI 3.1, made of the schemas that check it."""

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from dragoman import __version__
from dragoman.serve.answers import (
    DetectedLanguage,
    Error,
    Health,
    Language,
    ServedModel,
    Settings,
    Translation,
)
from dragoman.serve.limits import Limits
from dragoman.serve.requests import DetectQuestion, DocumentQuestion, Question, TranslateQuestion
from dragoman.serve.streaming import CONTENT_TYPE as STREAM

JSON = "application/json"
_FORMS = (JSON, "application/x-www-form-urlencoded", "multipart/form-data")
_REFUSALS = {
    400: "The request is broken, or asks for languages or a format that are not served.",
    403: "The API key is missing or wrong.",
    408: "The request did not arrive in time.",
    413: "The text is too long.",
    415: "The request is neither JSON nor a form.",
    429: "Too many requests of this client are being worked on; Retry-After says when to return.",
    503: "Too much waits, or a model is being loaded; Retry-After says when to return.",
}
_SCHEMAS = (
    *(TranslateQuestion, DocumentQuestion, DetectQuestion),
    *(Translation, DetectedLanguage, Language, Settings, ServedModel, Health, Error),
)

Schema = dict[str, Any]


def description(limits: Limits) -> Schema:
    _, schemas = models_json_schema(
        [(each, "validation") for each in _SCHEMAS], ref_template="#/components/schemas/{model}"
    )
    schemas["$defs"]["TranslateQuestion"]["properties"]["alternatives"]["maximum"] = (
        limits.alternatives
    )
    text = {"type": "string"}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Dragoman",
            "version": __version__,
            "description": "Translation by models that Dragoman has trained. The interface is that "
            "of LibreTranslate; /translate/stream, /models, /health and /metrics are our own. A "
            f"request has at most {limits.characters:,} characters, a document that is streamed "
            f"{limits.document_characters:,}.",
        },
        "paths": {
            "/translate": _post(
                "Translate a text or a list of texts", TranslateQuestion, _one(Translation)
            ),
            "/translate/stream": _post(
                "Translate a document: a line of JSON for each of its lines, as it is translated",
                DocumentQuestion,
                text,
                STREAM,
            ),
            "/detect": _post(
                "Tell which of the served languages a text is in",
                DetectQuestion,
                _list(DetectedLanguage),
            ),
            "/languages": _get("List the languages that are served", _list(Language)),
            "/frontend/settings": _get("Return what a page has to know", _one(Settings)),
            "/models": _get("List the models that are loaded", _list(ServedModel)),
            "/health": _get(
                "Tell whether all models are loaded",
                _one(Health),
                others={"503": _answer("They are being loaded.", _one(Health))},
            ),
            "/metrics": _get("Return metrics for Prometheus", text, "text/plain"),
            "/spec": _get("Return this description", {"type": "object"}),
        },
        "components": {"schemas": schemas["$defs"]},
    }


def _post(summary: str, question: type[Question], answer: Schema, media: str = JSON) -> Schema:
    body = {"required": True, "content": {form: {"schema": _one(question)} for form in _FORMS}}
    refusals = {str(code): _answer(text, _one(Error)) for code, text in _REFUSALS.items()}
    responses = {"200": _answer("Done.", answer, media), **refusals}
    return {"post": {"summary": summary, "requestBody": body, "responses": responses}}


def _get(summary: str, answer: Schema, media: str = JSON, others: Schema | None = None) -> Schema:
    responses = {"200": _answer("Done.", answer, media), **(others or {})}
    return {"get": {"summary": summary, "responses": responses}}


def _answer(text: str, schema: Schema, media: str = JSON) -> Schema:
    return {"description": text, "content": {media: {"schema": schema}}}


def _one(kind: type[BaseModel]) -> Schema:
    return {"$ref": f"#/components/schemas/{kind.__name__}"}


def _list(kind: type[BaseModel]) -> Schema:
    return {"type": "array", "items": _one(kind)}
