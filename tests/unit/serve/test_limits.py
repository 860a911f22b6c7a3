import json
from urllib.parse import quote

import pytest

from dragoman.serve.limits import Admission, Limits, RefusedError, seconds_until_free


@pytest.mark.parametrize("character", ["a", "ü", "漢", "😀", "\n"])
def test_a_body_of_the_allowed_characters_is_never_too_large(character):
    limits = Limits(characters=1000)
    text = character * 1000
    for body in (json.dumps({"q": text}), quote(text)):
        assert len(body.encode()) <= limits.body_bytes(limits.characters)


def test_places_are_counted_by_client_and_in_all_and_given_back():
    admission = Admission(Limits(requests=2, client_requests=1))
    with admission.admitted("a"):
        with pytest.raises(RefusedError) as refused, admission.admitted("a"):
            pass
        assert refused.value.status == 429
        with admission.admitted("b"):
            assert admission.running == 2
            with pytest.raises(RefusedError) as refused, admission.admitted("c"):
                pass
            assert refused.value.status == 503
    assert admission.running == 0
    with pytest.raises(ValueError, match="mine"), admission.admitted("a"):
        raise ValueError("mine")
    assert admission.running == 0


def test_the_time_to_return_follows_from_the_speed_and_is_bounded():
    assert seconds_until_free(1000, 100.0) == 10
    assert seconds_until_free(0, 100.0) == 1
    assert seconds_until_free(10**9, 1.0) == 60
    assert seconds_until_free(1000, 0.0) == 1
