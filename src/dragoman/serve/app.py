"""The routes of the server, and nothing but them: each reads a question and returns an answer."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import resources
from typing import Any

from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from dragoman.documents.candidates import json_line
from dragoman.report.webpage import POLICY as REPORT_POLICY
from dragoman.serve.answers import (
    DefaultLanguages,
    Health,
    NamedLanguage,
    Settings,
)
from dragoman.serve.batching import Batcher
from dragoman.serve.detection import Detected, detect
from dragoman.serve.exchange import Exchange, unless_gone
from dragoman.serve.languages import name_of
from dragoman.serve.limits import Admission, Limits, RefusedError
from dragoman.serve.metrics import CONTENT_TYPE, Metrics
from dragoman.serve.models import Model, Models, Pair
from dragoman.serve.openapi import description
from dragoman.serve.requests import (
    AUTO,
    DetectQuestion,
    DocumentQuestion,
    TranslateQuestion,
    read_question,
)
from dragoman.serve.security import check_key, is_from_here
from dragoman.serve.streaming import send_paragraphs
from dragoman.serve.translation import Translated, aside, translate_texts

logger = logging.getLogger(__name__)

PAGE_FILES = {
    "/": ("index.html", "text/html"),
    "/page.css": ("page.css", "text/css"),
    "/page.js": ("page.js", "text/javascript"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}
DEBOUNCE_MS = 300


@dataclass(frozen=True)
class Options:
    limits: Limits = field(default_factory=Limits)
    key: str = ""
    """Empty: nobody needs one."""
    has_reports: bool = False
    """Whether the training reports of the runs are served."""
    reports_stay_here: bool = False
    """Whether they are served to this machine alone."""
    allowed_origins: Sequence[str] = ()
    """Addresses of other sites whose pages may use the API."""
    is_logged: bool = False
    """Whether each request is logged, without its text."""
    texts_are_logged: bool = False


def create_app(models: Models, batcher: Batcher, metrics: Metrics, options: Options) -> ASGIApp:
    admission = Admission(options.limits)
    metrics.watch(models, batcher, admission)
    api = _Api(models, batcher, metrics, admission, options)
    routes = [
        Route("/translate", api.translate, methods=["POST"]),
        Route("/translate/stream", api.stream, methods=["POST"]),
        Route("/detect", api.detect, methods=["POST"]),
        # Argos Translate's client asks for them with POST.
        Route("/languages", api.languages, methods=["GET", "POST"]),
        Route("/frontend/settings", api.settings),
        Route("/models", api.cards),
        Route("/report/{source}/{target}", api.report),
        Route("/spec", api.spec),
        Route("/health", api.health),
        Route("/metrics", api.metrics),
        *(Route(path, partial(_page, name, media)) for path, (name, media) in PAGE_FILES.items()),
    ]
    cors = Middleware(
        CORSMiddleware, allow_origins=options.allowed_origins, allow_methods=["GET", "POST"]
    )
    app = Starlette(
        routes=routes,
        middleware=[cors] if options.allowed_origins else [],
        exception_handlers={
            RefusedError: _refused,
            HTTPException: _not_served,
            Exception: _failed,
        },
    )
    paths = {route.path for route in routes}
    return Exchange(app, paths, metrics, is_logged=options.is_logged)


class _Api:
    def __init__(
        self,
        models: Models,
        batcher: Batcher,
        metrics: Metrics,
        admission: Admission,
        options: Options,
    ) -> None:
        self._models, self._batcher, self._metrics = models, batcher, metrics
        self._admission, self._options, self._limits = admission, options, options.limits

    async def translate(self, request: Request) -> Response:
        limits = self._limits
        with self._admission.admitted(_client(request)):
            asked = await read_question(request, TranslateQuestion, limits, limits.characters)
            check_key(asked.api_key, self._options.key)
            if asked.alternatives > limits.alternatives:
                raise RefusedError(400, f"alternatives should be at most {limits.alternatives}.")
            texts = asked.texts
            detected = await aside(texts, self._detected, texts, asked.source, asked.target)
            try:
                async with asyncio.timeout(limits.seconds):
                    found = await unless_gone(request, self._translated(asked, detected))
            except TimeoutError:
                raise RefusedError(
                    503,
                    f"This took more than {limits.seconds:g} seconds; try later, or less text.",
                    self._batcher.retry_after_s(),
                ) from None
        answer: dict[str, Sequence[Any]] = {"translatedText": [each.text for each in found]}
        if asked.alternatives:
            answer["alternatives"] = [each.alternatives for each in found]
        if asked.source == AUTO:
            answer["detectedLanguage"] = [each._asdict() for each in detected]
        is_one = isinstance(asked.q, str)
        return JSONResponse({key: all_[0] if is_one else all_ for key, all_ in answer.items()})

    async def stream(self, request: Request) -> Callable[[Scope, Receive, Send], Awaitable[None]]:
        limits = self._limits
        client = _client(request)
        with self._admission.admitted(client):
            asked = await read_question(
                request, DocumentQuestion, limits, limits.document_characters
            )
            check_key(asked.api_key, self._options.key)
            # A line is one piece of work, which nobody can break off.
            if (longest := max(map(len, asked.q.split("\n")))) > limits.characters:
                raise RefusedError(
                    413,
                    f"A line has {longest:,} characters, and it may have {limits.characters:,}; "
                    "break it.",
                )
            (detected,) = self._detected([asked.q], asked.source, asked.target)
            model = self._models.find(detected.language, asked.target)

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            with self._admission.admitted(client):
                sending = send_paragraphs(self._batcher, model, asked.q, limits.seconds, send)
                await unless_gone(request, sending)
            self._record(model.pair, [asked.q])

        return answer

    async def detect(self, request: Request) -> Response:
        with self._admission.admitted(_client(request)):
            asked = await read_question(
                request, DetectQuestion, self._limits, self._limits.characters
            )
        check_key(asked.api_key, self._options.key)
        sources = list(dict.fromkeys(pair.source for pair in self._models.pairs))
        return JSONResponse([each._asdict() for each in detect(asked.q, sources)])

    async def languages(self, request: Request) -> Response:
        targets: dict[str, list[str]] = {}
        for source, target in self._models.pairs:
            targets.setdefault(source, []).append(target)
        for _, target in self._models.pairs:
            targets.setdefault(target, [])
        return JSONResponse(
            [
                {"code": code, "name": name_of(code), "targets": of_code}
                for code, of_code in targets.items()
            ]
        )

    async def settings(self, request: Request) -> Response:
        source, target = (
            NamedLanguage(code=code, name=name_of(code)) for code in self._models.pairs[0]
        )
        needs_key = bool(self._options.key)
        settings = Settings(
            apiKeys=needs_key,
            keyRequired=needs_key,
            charLimit=self._limits.characters,
            frontendTimeout=DEBOUNCE_MS,
            suggestions=False,
            filesTranslation=False,
            supportedFilesFormat=[],
            language=DefaultLanguages(source=source, target=target),
        )
        return _json(settings)

    async def cards(self, request: Request) -> Response:
        return JSONResponse(
            [
                {**model.card.model_dump(), "report": self._report_of(model.pair, request)}
                for model in self._models.loaded
            ]
        )

    async def report(self, request: Request) -> Response:
        pair = Pair(**request.path_params)
        if pair not in self._models.pairs or not self._report_of(pair, request):
            raise RefusedError(404, "There is no training report here.")
        path = self._models.run_of(pair).report("html")
        return FileResponse(path, headers={"content-security-policy": REPORT_POLICY})

    async def spec(self, request: Request) -> Response:
        return JSONResponse(description(self._limits))

    async def health(self, request: Request) -> Response:
        if self._models.is_ready:
            return _json(Health(status="ok"))
        return _json(Health(status="loading"), 503)

    async def metrics(self, request: Request) -> Response:
        return Response(self._metrics.text(), headers={"content-type": CONTENT_TYPE})

    def _report_of(self, pair: Pair, request: Request) -> str | None:
        """Returns where the report is served, relative to the page; None where it is not."""
        is_allowed = self._options.has_reports and (
            not self._options.reports_stay_here
            or is_from_here(_client(request), request.headers.get("host", ""))
        )
        if not is_allowed or not self._models.run_of(pair).report("html").is_file():
            return None
        return f"report/{pair.source}/{pair.target}"

    def _detected(self, texts: Sequence[str], source: str, target: str) -> list[Detected]:
        """Returns the language of each text: the one that was named, or what it seems to be."""
        if source != AUTO:
            self._models.find(source, target)
            return [Detected(source, 100.0)] * len(texts)
        sources = self._models.sources_of(target)
        return [detect(text, sources)[0] for text in texts]

    async def _translated(
        self, asked: TranslateQuestion, detected: Sequence[Detected]
    ) -> list[Translated]:
        """Translates each text from its language, those of one language together."""
        numbers_of: dict[Model, list[int]] = {}
        for number, each in enumerate(detected):
            model = self._models.find(each.language, asked.target)
            numbers_of.setdefault(model, []).append(number)
        found: dict[int, Translated] = {}
        for model, numbers in numbers_of.items():
            texts = [asked.texts[number] for number in numbers]
            translated = await translate_texts(
                self._batcher, model, texts, asked.format, asked.alternatives
            )
            found |= zip(numbers, translated, strict=True)
            self._record(model.pair, texts)
        return [found[number] for number in range(len(detected))]

    def _record(self, pair: Pair, texts: Sequence[str]) -> None:
        self._metrics.count_characters(pair, sum(map(len, texts)))
        if self._options.texts_are_logged:
            for text in texts:
                logger.info(f"{pair}: {json_line(text)}")


def _client(request: Request) -> str:
    return request.client.host if request.client else ""


def _json(answer: BaseModel, status: int = 200) -> Response:
    return JSONResponse(answer.model_dump(), status)


async def _page(name: str, media: str, request: Request) -> Response:
    content = resources.files("dragoman.serve").joinpath("page", name).read_bytes()
    return Response(content, media_type=media)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, RefusedError)
    headers = {}
    if error.retry_after_s is not None:
        headers["retry-after"] = str(error.retry_after_s)
    if error.status == 408:
        headers["connection"] = "close"
    return JSONResponse({"error": error.sentence}, error.status, headers)


async def _not_served(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    what = "There is nothing at this address" if error.status_code == 404 else error.detail
    sentence = f"{what}; /spec describes what there is."
    return JSONResponse({"error": sentence}, error.status_code, error.headers)


async def _failed(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": "The server failed at this request; its log says why."}, 500)
