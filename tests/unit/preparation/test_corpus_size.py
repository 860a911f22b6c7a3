import gzip

import pytest

from dragoman.config import DataSettings
from dragoman.preparation.corpus_size import LINES_READ, expected_lines, expected_pairs

PHRASES = {"kind": "phrasebook", "pairs": 123}


def data(folder, *train):
    return DataSettings(
        source_language="en",
        target_language="de",
        folder=str(folder),
        train=list(train),
        validation=[PHRASES],
    )


def test_a_short_file_is_counted_and_a_long_one_is_judged_by_its_beginning(tmp_path):
    short, long, packed = (tmp_path / name for name in ("short", "long", "long.gz"))
    short.write_text("eins\nzwei\n", encoding="utf-8")
    line = "Straße Nummer zwölf\n"
    long.write_text(line * 10 * LINES_READ, encoding="utf-8")
    packed.write_bytes(gzip.compress(long.read_bytes()))
    assert expected_lines(short) == 2
    assert expected_lines(long) == 10 * LINES_READ
    assert expected_lines(packed) >= LINES_READ


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (PHRASES, 246),
        ({"kind": "text", "source": "a.en", "target": "a.de"}, 125),
        ({"kind": "tmx", "file": "a.tmx"}, None),
        ({"kind": "text", "source": "missing.en", "target": "a.de"}, None),
    ],
)
def test_sources_are_added_up_where_all_are_known(tmp_path, other, expected):
    (tmp_path / "a.en").write_text("one\ntwo\n", encoding="utf-8")
    assert expected_pairs(data(tmp_path, PHRASES, other)) == expected
