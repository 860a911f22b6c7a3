import gzip
import tracemalloc

import pytest

from dragoman.corpus import tmx
from dragoman.corpus.tmx import read_tmx
from dragoman.errors import UserError

UNIT = '<tu><tuv xml:lang="en"><seg>one</seg></tuv><tuv xml:lang="de"><seg>eins</seg></tuv></tu>'


def memory(*units, prologue='<?xml version="1.0" encoding="UTF-8"?>\n'):
    header = '<tmx version="1.4">\n<header srclang="en"><note>Not a text</note></header>\n<body>\n'
    return prologue + header + "\n".join(units) + "\n</body>\n</tmx>\n"


def unit(english, german):
    return (
        f'<tu><tuv xml:lang="en"><seg>{english}</seg></tuv>'
        f'<tuv xml:lang="de"><seg>{german}</seg></tuv></tu>'
    )


def read(folder, content, source="en", target="de"):
    path = folder / "a.tmx"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return list(read_tmx(path, source, target))


def test_a_unit_gives_a_pair_in_either_direction(tmp_path):
    assert read(tmp_path, memory(UNIT)) == [("one", "eins")]
    assert read(tmp_path, memory(UNIT), "de", "en") == [("eins", "one")]


def test_what_stands_beside_the_segment_is_left_out(tmp_path):
    content = memory(
        '<tu tuid="1"><note>note</note><prop type="x">prop</prop>'
        '<tuv xml:lang="en"><prop type="x">prop</prop><seg>one</seg></tuv>'
        '<tuv xml:lang="de"><note>note</note><seg>eins</seg></tuv></tu>'
    )
    assert read(tmp_path, content) == [("one", "eins")]


def test_the_first_versions_name_the_language_without_a_prefix(tmp_path):
    assert read(tmp_path, memory(UNIT.replace("xml:lang", "lang"))) == [("one", "eins")]


@pytest.mark.parametrize("code", ["en-US", "EN-us", "en_GB", "EN"])
def test_a_language_matches_its_regions_in_any_spelling(tmp_path, code):
    assert read(tmp_path, memory(UNIT.replace('"en"', f'"{code}"'))) == [("one", "eins")]


@pytest.mark.parametrize("code", ["eng", "e", "pt", ""])
def test_other_languages_do_not_match(tmp_path, code):
    assert read(tmp_path, memory(UNIT.replace('"en"', f'"{code}"'))) == []


def test_a_region_asked_for_does_not_match_another_one(tmp_path):
    units = [UNIT.replace('"en"', f'"{code}"').replace("one", code) for code in ("en-GB", "en-US")]
    assert read(tmp_path, memory(*units), "en-US", "de") == [("en-US", "eins")]


def test_units_that_lack_a_language_give_nothing(tmp_path):
    alone = '<tu><tuv xml:lang="en"><seg>alone</seg></tuv></tu>'
    foreign = UNIT.replace('"de"', '"fr"')
    assert read(tmp_path, memory(alone, foreign, UNIT)) == [("one", "eins")]


def test_of_several_texts_in_a_language_the_first_counts(tmp_path):
    second = '<tuv xml:lang="de-AT"><seg>zweitens</seg></tuv></tu>'
    assert read(tmp_path, memory(UNIT.replace("</tu>", second))) == [("one", "eins")]


@pytest.mark.parametrize(
    ("segment", "text"),
    [
        ('press <bpt i="1">&lt;b&gt;</bpt>Enter<ept i="1">&lt;/b&gt;</ept> now', "press Enter now"),
        ('a <ph x="1">{0}</ph> b', "a b"),
        ('end<it pos="end">[/i]</it>.', "end."),
        ("old <ut>{\\cf7</ut>style", "old style"),
        ('<hi type="term">a <hi>marked</hi> word</hi> stays', "a marked word stays"),
        ("note<ph>\\footnote{<sub>a <hi>text</hi> of its own</sub>}</ph> here", "note here"),
        ("<hi>code <ph>x</ph>in words</hi>", "code in words"),
        ("5 &lt; 6 &amp; 7 &#x2014; <![CDATA[<8>]]>", "5 < 6 & 7 \u2014 <8>"),
        ("\n  broken\n  over lines\n", "broken over lines"),
        ("<!-- said aside -->said", "said"),
        ("", ""),
    ],
)
def test_inline_code_is_left_out_and_highlighted_words_are_kept(tmp_path, segment, text):
    assert read(tmp_path, memory(unit(segment, "x"))) == [(text, "x")]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "iso-8859-1", "windows-1252"])
def test_the_declared_encoding_counts(tmp_path, encoding):
    declared = encoding.removesuffix("-sig")
    content = memory(unit("five", "fünf"), prologue=f'<?xml version="1.0" encoding="{declared}"?>')
    assert read(tmp_path, content.encode(encoding)) == [("five", "fünf")]


def test_the_usual_document_type_is_accepted_and_not_fetched(tmp_path):
    content = memory(UNIT, prologue='<!DOCTYPE tmx SYSTEM "http://127.0.0.1:9/tmx14.dtd">')
    assert read(tmp_path, content) == [("one", "eins")]


@pytest.mark.parametrize(
    "declaration",
    [
        '<!ENTITY lol "lol"><!ENTITY lots "&lol;&lol;&lol;">',
        '<!ENTITY file SYSTEM "file:///etc/passwd">',
        '<!ENTITY % outside SYSTEM "http://127.0.0.1:9/">',
    ],
)
def test_a_document_type_with_entities_is_refused(tmp_path, declaration):
    content = memory(unit("one", "eins"), prologue=f"<!DOCTYPE tmx [\n{declaration}]>")
    with pytest.raises(UserError, match=r"a\.tmx, line 2, .* entity \w+"):
        read(tmp_path, content)


@pytest.mark.parametrize("prologue", ["", '<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n'])
def test_an_entity_that_is_not_declared_is_refused(tmp_path, prologue):
    with pytest.raises(
        UserError, match=r"a\.tmx, line \d, column \d+, after 0 .*(undefined|&nbsp;)"
    ):
        read(tmp_path, memory(unit("one&nbsp;", "eins"), prologue=prologue))


def test_what_is_not_well_formed_is_refused_with_line_column_and_what_was_read(tmp_path):
    broken = UNIT.replace("eins</seg>", "eins</sag>")
    column = broken.index("sag>") + 1
    with pytest.raises(
        UserError,
        match=rf"a\.tmx, line 7, column {column}, after 2 whole .* \(mismatched tag\)",
    ):
        read(tmp_path, memory(UNIT, UNIT, broken))


@pytest.mark.parametrize("cut", [0, 30, 120, 250])
def test_a_file_that_was_cut_off_is_refused(tmp_path, cut):
    with pytest.raises(UserError, match=r"a\.tmx, line \d"):
        read(tmp_path, memory(UNIT, UNIT)[:cut])


def test_pairs_come_before_the_file_is_read_to_its_end(tmp_path):
    path = tmp_path / "a.tmx"
    path.write_text(memory(*[UNIT] * 2000)[:-10])
    pairs = read_tmx(path, "en", "de")
    assert next(pairs) == ("one", "eins")
    with pytest.raises(UserError, match="after 2000 whole translation units"):
        list(pairs)


def test_another_kind_of_xml_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"a\.tmx, line 1.*<html>.*<tmx>"):
        read(tmp_path, "<html><body/></html>")


def test_an_encoding_nobody_knows_is_refused(tmp_path):
    for encoding in ("klingon", "big5"):
        prologue = f'<?xml version="1.0" encoding="{encoding}"?>'
        with pytest.raises(UserError, match=r"a\.tmx, line 1"):
            read(tmp_path, memory(UNIT, prologue=prologue))


def test_a_compressed_memory_reads_like_a_plain_one(tmp_path):
    path = tmp_path / "a.tmx.gz"
    path.write_bytes(gzip.compress(memory(UNIT).encode()))
    assert list(read_tmx(path, "en", "de")) == [("one", "eins")]


@pytest.mark.parametrize("filling", ["<seg>{}", "<seg a='{}'", "<!--{}"])
def test_a_unit_without_end_does_not_fill_memory(tmp_path, monkeypatch, filling):
    monkeypatch.setattr(tmx, "LONGEST_UNIT_BYTES", 200_000)
    endless = filling.format("a" * 1_000_000)
    with pytest.raises(UserError, match=r"a\.tmx, .*0\.2 MB without the end"):
        read(tmp_path, memory(f'<tu><tuv xml:lang="en">{endless}'))


def test_memory_does_not_grow_with_the_file(tmp_path):
    def peak_bytes(units):
        path = tmp_path / "a.tmx"
        path.write_text(memory(*[UNIT] * units))
        tracemalloc.start()
        try:
            assert sum(1 for _ in read_tmx(path, "en", "de")) == units
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak_bytes(6000) < 1.2 * peak_bytes(2000)
