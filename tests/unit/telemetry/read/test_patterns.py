import numpy as np

from dragoman.telemetry.read.patterns import Lines, NumberIndex, pattern_of, read_alike

LINE = b'{"kind":"step","step":7,"at":{"a:b":0.5},"ok":true}'


def test_a_pattern_has_the_numbers_behind_colons_and_the_texts_between_them():
    pattern = pattern_of(LINE)
    assert pattern.content == {"kind": "step", "step": 0, "at": {"a:b": 1}, "ok": True}
    assert isinstance(pattern.content["step"], NumberIndex)
    assert pattern.texts == [b'{"kind":"step","step":', b',"at":{"a:b":', b'},"ok":true}\n']


def test_torn_lines_and_lines_without_numbers_have_no_pattern():
    assert pattern_of(LINE[:-3]) is None
    assert pattern_of(b'{"kind":"step"}') is None


def test_lines_that_differ_in_numbers_alone_are_read_and_all_others_left():
    others = [
        LINE.replace(b"7", b"8").replace(b"0.5", b"-1e-3"),
        LINE.replace(b"true", b"false"),
        LINE[:20],
        LINE.replace(b"7", b"null"),
        LINE.replace(b"0.5", b"Infinity"),
    ]
    lines = Lines.of(b"\n".join([LINE, *others]))
    alike = read_alike(pattern_of(LINE), {0}, lines, np.arange(6))
    assert alike.lines.tolist() == [0, 1, 5]
    assert [numbers.tolist() for numbers in alike.numbers] == [[7, 8, 7], [0.5, -1e-3, np.inf]]
    assert alike.numbers[0].dtype == np.int64


def test_a_line_with_another_number_where_an_integer_must_be_is_not_read_with_the_others():
    lines = Lines.of(LINE + b"\n" + LINE.replace(b"7", b"7.5"))
    assert read_alike(pattern_of(LINE), {0}, lines, np.arange(2)) is None
