import json
from pathlib import Path

import jsonschema
import pytest
from unit.report.rendered import documents

from dragoman.report.content import report_schema

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("run", ["empty_run", "finished_run"])
def test_report_json_is_as_its_schema_says(run, request):
    _, _, content = documents(request.getfixturevalue(run))

    jsonschema.validate(content, report_schema())


def test_the_schema_refuses_what_is_no_report(finished_run):
    _, _, content = documents(finished_run)
    content["answers"].pop()

    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(content, report_schema())


def test_the_published_schema_is_that_of_the_code():
    published = ROOT / "docs" / "report.schema.json"

    assert json.loads(published.read_text(encoding="utf-8")) == report_schema()
