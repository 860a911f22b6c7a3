from hypothesis import given
from hypothesis import strategies as st

from dragoman.distributed.seal import SIGNATURE_CHARACTERS, Seal

SEAL = Seal("secret")
MESSAGE = {"count": 3, "stack": ["a.py:1"], "ended": None}


def test_what_was_sealed_comes_out_again():
    assert SEAL.unseal("pulse/1", SEAL.seal("pulse/1", MESSAGE).encode()) == MESSAGE


def test_another_secret_or_another_key_says_nothing():
    sealed = SEAL.seal("pulse/1", MESSAGE).encode()
    assert Seal("another").unseal("pulse/1", sealed) is None
    assert SEAL.unseal("pulse/2", sealed) is None


@given(st.binary(max_size=300))
def test_garbage_says_nothing(garbage):
    assert SEAL.unseal("pulse/1", garbage) is None


@given(st.integers(min_value=0), st.integers(min_value=1, max_value=255))
def test_no_byte_can_be_changed(place, change):
    sealed = bytearray(SEAL.seal("pulse/1", MESSAGE).encode())
    sealed[place % len(sealed)] ^= change
    assert SEAL.unseal("pulse/1", bytes(sealed)) is None


def test_the_name_of_a_start_tells_nothing_of_its_secret():
    assert SEAL.prefix != Seal("another").prefix
    assert "secret" not in SEAL.prefix
    assert len(SEAL.prefix) < SIGNATURE_CHARACTERS
