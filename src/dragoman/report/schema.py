"""The JSON schema of report.json, made of the classes that it is written from."""

from typing import Any

from pydantic import TypeAdapter

from dragoman.report.content import Report


def report_schema() -> dict[str, Any]:
    schema = TypeAdapter(Report).json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "report.json"} | {
        name: part for name, part in schema.items() if name != "title"
    }
