import jsonschema
import pytest
from unit.serve.served import serving

from dragoman.serve.app import PAGE_FILES
from dragoman.serve.limits import Limits
from dragoman.serve.openapi import description


@pytest.fixture
def served(tmp_path):
    with serving(tmp_path) as running:
        yield running


def test_every_route_is_described_but_the_page_and_the_reports(served):
    described = set(served.client.get("/spec").json()["paths"])
    routes = {route.path for route in served.client.app._app.routes} - PAGE_FILES.keys()
    assert routes - described == {"/report/{source}/{target}"}


def test_every_reference_leads_somewhere():
    spec = description(Limits())

    def references(value):
        if isinstance(value, dict):
            yield from ([value["$ref"]] if "$ref" in value else [])
            for each in value.values():
                yield from references(each)
        elif isinstance(value, list):
            for each in value:
                yield from references(each)

    names = {reference.removeprefix("#/components/schemas/") for reference in references(spec)}
    assert names <= spec["components"]["schemas"].keys()


@pytest.mark.parametrize("path", ["/languages", "/frontend/settings", "/models", "/health"])
def test_answers_are_as_described(served, path):
    spec = served.client.get("/spec").json()
    content = spec["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]
    schema = {**content["schema"], "components": spec["components"]}
    jsonschema.validate(served.client.get(path).json(), schema)


def test_limits_are_those_of_the_server():
    spec = description(Limits(alternatives=3, characters=12_345))
    question = spec["components"]["schemas"]["TranslateQuestion"]
    assert question["properties"]["alternatives"]["maximum"] == 3
    assert "12,345" in spec["info"]["description"]
