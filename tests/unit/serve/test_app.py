import json
import threading

import pytest
from unit.serve.served import serving

from dragoman.serve.limits import Limits


@pytest.fixture
def served(tmp_path):
    with serving(tmp_path) as running:
        yield running


def one_sentence(answer, status):
    """The sentence with which a request was refused."""
    assert answer.status_code == status, answer.text
    (sentence,) = answer.json().values()
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert "Traceback" not in sentence
    assert "/" not in sentence.replace("/spec", "")
    return sentence


def test_a_text_is_answered_with_a_text_and_a_list_with_a_list(served):
    assert served.translate(q="Hello. Bye.").json() == {"translatedText": "de:Hello. de:Bye."}
    assert served.translate(q=["One.", "", "Two."]).json() == {
        "translatedText": ["de:One.", "", "de:Two."]
    }
    assert served.translate(q=[]).json() == {"translatedText": []}


def test_json_and_both_kinds_of_forms_are_understood(served):
    fields = {"q": "Grüße & more.", "source": "en", "target": "de"}
    as_json = served.client.post("/translate", json=fields)
    as_form = served.client.post("/translate", data=fields)
    as_parts = served.client.post("/translate", files={k: (None, v) for k, v in fields.items()})
    assert as_json.json() == as_form.json() == as_parts.json()


def test_alternatives_are_other_texts_the_best_first(served):
    answer = served.translate(q="One. Two.", alternatives=2).json()
    assert answer["translatedText"] == "de:One. de:Two."
    assert len(answer["alternatives"]) == 2
    assert len({answer["translatedText"], *answer["alternatives"]}) == 3
    listed = served.translate(q=["One.", "Two."], alternatives=1).json()
    assert listed["alternatives"] == [["de1:One."], ["de1:Two."]]


def test_html_keeps_its_tags_and_nothing_translated_becomes_markup(served):
    answer = served.translate(q='<p id="a">Now &lt;b&gt; &amp; go.</p>', format="html").json()
    assert answer == {"translatedText": '<p id="a">de:Now &lt;b&gt; &amp; go.</p>'}


def test_auto_says_which_language_it_found(tmp_path):
    with serving(tmp_path, ("en", "de"), ("fr", "de")) as served:
        answer = served.translate(q=["This is the house.", "Je suis dans la rue."], source="auto")
        found = answer.json()["detectedLanguage"]
        assert [each["language"] for each in found] == ["en", "fr"]
        assert all(0 < each["confidence"] <= 100 for each in found)
        (detected, *_) = served.client.post("/detect", data={"q": "Où est la gare ?"}).json()
        assert detected["language"] == "fr"


def test_languages_and_settings_are_those_of_the_models(tmp_path):
    with serving(tmp_path, ("en", "de"), ("de", "en"), ("en", "fr")) as served:
        assert served.client.get("/languages").json() == [
            {"code": "en", "name": "English", "targets": ["de", "fr"]},
            {"code": "de", "name": "German", "targets": ["en"]},
            {"code": "fr", "name": "French", "targets": []},
        ]
        assert served.client.post("/languages").json() == served.client.get("/languages").json()
        settings = served.client.get("/frontend/settings").json()
        assert settings["charLimit"] == Limits().characters
        assert settings["keyRequired"] is False
        assert settings["language"]["target"] == {"code": "de", "name": "German"}
        assert [model["target"] for model in served.client.get("/models").json()] == [
            *("de", "en", "fr")
        ]


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({}, "q"),
        ({"q": 5}, "q"),
        ({"q": None}, "q"),
        ({"q": ["a", 5]}, "q"),
        ({"q": "a\0b"}, "q"),
        ({"q": "a", "target": "xx"}, "xx"),
        ({"q": [], "target": "xx"}, "xx"),
        ({"q": "a", "source": ["en"]}, "source"),
        ({"q": "a", "source": "auto", "target": "xx"}, "xx"),
        ({"q": "a", "format": "pdf"}, "format"),
        ({"q": "a", "alternatives": -1}, "alternatives"),
        ({"q": "a", "alternatives": 10**9}, "alternatives"),
        ({"q": "a", "alternatives": "many"}, "alternatives"),
        ({"q": "a", "api_key": 5}, "api_key"),
    ],
)
def test_wrong_fields_are_refused_by_their_name(served, fields, word):
    assert word in one_sentence(served.translate(**fields), 400)


def part(name, content):
    fields = {"q": "a", "source": "en", "target": "de", name: content}
    head = '--x\r\ncontent-disposition: form-data; name="{}"\r\n\r\n{}\r\n'
    return "".join(head.format(*field) for field in fields.items()).encode() + b"--x--\r\n"


@pytest.mark.parametrize(
    ("media", "body"),
    [
        ("application/json", b"{"),
        ("application/json", b'"a"'),
        ("application/json", b'{"q": "\xff"}'),
        ("application/json", b'{"q": "\\ud800", "source": "en", "target": "de"}'),
        ("application/json", b"[" * 100_000),
        ("application/x-www-form-urlencoded", b"q=%ff&source=en&target=de"),
        ("application/x-www-form-urlencoded", b"q=\xff"),
        ("application/x-www-form-urlencoded", b"&".join(b"a=1" for _ in range(2000))),
        ("multipart/form-data", b"x"),
        ("multipart/form-data; boundary=x", b"--x\r\n\xff"),
        *(
            (f"multipart/form-data; boundary=x; charset={charset}", part("source", "\\ud800"))
            for charset in ("unicode_escape", "punycode", "none", "")
        ),
    ],
)
def test_broken_bodies_are_refused(served, media, body):
    answer = served.client.post("/translate", content=body, headers={"content-type": media})
    one_sentence(answer, 400)


def test_other_media_are_refused(served):
    answer = served.client.post("/translate", content=b"x", headers={"content-type": "image/png"})
    one_sentence(answer, 415)


def test_characters_of_control_and_of_other_scripts_pass(served):
    text = "A\x07b \x1b[31m ☃ \ufeff 漢字 e\u0301 \u202e."
    assert served.translate(q=text).json() == {"translatedText": f"de:{text}"}


def test_what_is_too_long_is_refused_with_the_limit(tmp_path):
    with serving(tmp_path, limits=Limits(characters=10)) as served:
        assert served.translate(q="x" * 10).status_code == 200
        assert "10" in one_sentence(served.translate(q="x" * 11), 413)
        assert "10" in one_sentence(served.translate(q=[""] * 11), 413)
        one_sentence(served.translate(q="x" * 100_000), 413)


def test_a_key_is_needed_where_one_is_set(tmp_path):
    with serving(tmp_path, key="secret") as served:
        one_sentence(served.translate(q="a"), 403)
        one_sentence(served.translate(q="a", api_key="secre"), 403)
        one_sentence(served.translate(q="a", api_key="sécret"), 403)
        one_sentence(served.client.post("/detect", data={"q": "a"}), 403)
        one_sentence(served.client.post("/translate/stream", json=document("a")), 403)
        assert served.translate(q="a", api_key="secret").status_code == 200
        assert served.client.get("/frontend/settings").json()["keyRequired"] is True


def document(text):
    return {"q": text, "source": "en", "target": "de"}


def test_a_document_comes_line_by_line(served):
    lines = [f"Sentence {number}. And more." for number in range(30)] + ["", "  - End."]
    answer = served.client.post("/translate/stream", json=document("\n".join(lines)))
    assert answer.headers["content-type"] == "application/x-ndjson"
    found = [json.loads(line)["translatedText"] for line in answer.text.splitlines()]
    assert found[:2] == ["de:Sentence 0. de:And more.", "de:Sentence 1. de:And more."]
    assert found[-2:] == ["", "  - de:End."]
    assert len(found) == 32


def test_a_document_that_fails_ends_with_the_error(served):
    answer = served.client.post("/translate/stream", json=document("One.\npoison"))
    first, last = map(json.loads, answer.text.splitlines())
    assert first == {"translatedText": "de:One."}
    assert "path" not in last["error"]


def test_a_line_of_a_document_may_be_as_long_as_a_request(tmp_path):
    with serving(tmp_path, limits=Limits(characters=10)) as served:
        answer = served.client.post("/translate/stream", json=document("x" * 10 + "\n" + "y" * 10))
        assert answer.status_code == 200
        answer = served.client.post("/translate/stream", json=document("x\n" + "y" * 11))
        assert "11" in one_sentence(answer, 413)


def test_who_asks_for_too_much_at_once_is_told_when_to_return(tmp_path):
    limits = Limits(requests=2, client_requests=1)
    with serving(tmp_path, limits=limits) as served:
        translator = served.translator()
        translator.hold()
        answers = []
        waiting = threading.Thread(target=lambda: answers.append(served.translate(q="One.")))
        waiting.start()
        assert translator.entered.wait(30)
        refused = served.translate(q="Two.")
        translator.released.set()
        waiting.join()
        one_sentence(refused, 429)
        assert int(refused.headers["retry-after"]) >= 1
        assert answers[0].status_code == 200


def test_what_takes_too_long_is_given_up(tmp_path):
    with serving(tmp_path, limits=Limits(seconds=0.05)) as served:
        translator = served.translator()
        translator.hold()
        answer = served.translate(q="One.")
        translator.released.set()
        one_sentence(answer, 503)
        assert int(answer.headers["retry-after"]) >= 1
        assert served.translate(q="Two.").status_code == 200


def test_an_error_of_the_model_is_answered_in_one_sentence_and_fails_nobody_else(served):
    answer = served.translate(q="poison")
    assert "log" in one_sentence(answer, 500)
    assert served.translate(q="Good.").status_code == 200


def test_nothing_is_translated_before_the_model_is_loaded(tmp_path):
    with serving(tmp_path, is_loaded=False) as served:
        assert served.client.get("/health").status_code == 503
        refused = served.translate(q="a")
        one_sentence(refused, 503)
        assert int(refused.headers["retry-after"]) >= 1
        served.client.portal.call(served.models.load)
        assert served.client.get("/health").json() == {"status": "ok"}
        assert served.translate(q="a").status_code == 200


def test_unknown_addresses_and_methods_are_refused_in_the_same_form(served):
    one_sentence(served.client.get("/nothing"), 404)
    one_sentence(served.client.get("/translate"), 405)
    one_sentence(served.client.get("/report/en/de"), 404)
    one_sentence(served.client.get("/report/..%2f..%2fx/de"), 404)


def test_a_report_is_served_only_on_request(tmp_path):
    with serving(tmp_path, has_reports=True) as served:
        assert served.client.get("/models").json()[0]["report"] is None
        served.models.run_of(served.models.pairs[0]).report("html").write_text("<p>report")
        address = served.client.get("/models").json()[0]["report"]
        answer = served.client.get(address)
        assert answer.text == "<p>report"
        assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_a_report_that_stays_here_is_hidden_from_a_name_that_was_made_to_point_here(tmp_path):
    with serving(tmp_path, has_reports=True, reports_stay_here=True) as served:
        served.models.run_of(served.models.pairs[0]).report("html").write_text("<p>report")
        address = served.client.get("/models").json()[0]["report"]
        assert served.client.get(address).status_code == 200
        elsewhere = {"host": "evil.example:5000"}
        assert served.client.get("/models", headers=elsewhere).json()[0]["report"] is None
        one_sentence(served.client.get(address, headers=elsewhere), 404)


def test_the_page_may_load_nothing_from_elsewhere(served):
    for path in ("/", "/page.css", "/page.js", "/icon.svg"):
        answer = served.client.get(path)
        assert answer.status_code == 200
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_pages_of_other_sites_may_ask_only_if_they_are_allowed(tmp_path):
    origin = {"origin": "https://example.org"}
    with serving(tmp_path / "a") as served:
        assert (
            "access-control-allow-origin"
            not in served.client.get("/health", headers=origin).headers
        )
    with serving(tmp_path / "b", allowed_origins=["https://example.org"]) as served:
        answer = served.client.get("/health", headers=origin)
        assert answer.headers["access-control-allow-origin"] == "https://example.org"


def test_texts_are_logged_only_on_request(tmp_path, caplog):
    caplog.set_level("INFO", "dragoman.serve")
    with serving(tmp_path / "a", is_logged=True) as served:
        served.translate(q="Private words.")
    assert "/translate 200" in caplog.text
    assert "Private" not in caplog.text
    with serving(tmp_path / "b", texts_are_logged=True) as served:
        served.translate(q="Private words.")
    assert "Private" in caplog.text
