"""What the server answers: the schemas that `openapi` describes."""

from typing import Literal

from pydantic import BaseModel

from dragoman.serve.card import Card


class Error(BaseModel):
    error: str
    """One sentence."""


class DetectedLanguage(BaseModel):
    confidence: float
    """0 to 100."""
    language: str


class Language(BaseModel):
    code: str
    name: str
    targets: list[str]
    """Codes of the languages that it is translated to."""


class Translation(BaseModel):
    """For a list of texts, each key has a list."""

    translatedText: str | list[str]
    alternatives: list[str] | list[list[str]] | None = None
    """If they were asked for."""
    detectedLanguage: DetectedLanguage | list[DetectedLanguage] | None = None
    """If the source was auto."""


class NamedLanguage(BaseModel):
    code: str
    name: str


class DefaultLanguages(BaseModel):
    source: NamedLanguage
    target: NamedLanguage


class Settings(BaseModel):
    """What a page has to know, under the names that LibreTranslate has for it."""

    apiKeys: bool
    keyRequired: bool
    charLimit: int
    frontendTimeout: int
    """Milliseconds without a keystroke after which a page translates."""
    suggestions: bool
    filesTranslation: bool
    supportedFilesFormat: list[str]
    language: DefaultLanguages


class Health(BaseModel):
    status: Literal["ok", "loading"]


class ServedModel(Card):
    report: str | None
    """Address of the training report, relative to the server's; None: not served."""
