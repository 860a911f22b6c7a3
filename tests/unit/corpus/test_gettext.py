import gzip
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.corpus.gettext import find_catalogs, read_catalog
from dragoman.corpus.text import one_line
from dragoman.errors import UserError

LOCALES = Path("/usr/share/locale")

HEADER = r"""# Title
#, fuzzy
msgid ""
msgstr ""
"Language: de\n"
"Content-Type: text/plain; charset=UTF-8\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\n"

"""


def read(folder, content, header=HEADER):
    path = folder / "a.po"
    path.write_bytes(content if isinstance(content, bytes) else (header + content).encode())
    return list(read_catalog(path))


def message(source, target):
    return f'msgid "{source}"\nmsgstr "{target}"\n\n'


def compiled(messages, byte_order="<"):
    """A .mo file: ids and translations as bytes, in order."""
    tables, strings = b"", b""
    strings_at = 28 + 16 * len(messages)
    for column in (0, 1):
        for row in messages:
            tables += struct.pack(f"{byte_order}2I", len(row[column]), strings_at + len(strings))
            strings += row[column] + b"\0"
    counts = (0x950412DE, 0, len(messages), 28, 28 + 8 * len(messages), 0, 0)
    return struct.pack(f"{byte_order}7I", *counts) + tables + strings


def read_compiled(folder, *messages, byte_order="<", charset=b"UTF-8"):
    header = b"Content-Type: text/plain; charset=" + charset + b"\n"
    header += b"Plural-Forms: nplurals=2; plural=n != 1;\n"
    path = folder / "a.mo"
    path.write_bytes(compiled([(b"", header), *messages], byte_order))
    return list(read_catalog(path))


def test_messages_are_pairs_and_the_header_is_not(tmp_path):
    assert read(tmp_path, message("one", "eins") + message("two", "zwei")) == [
        ("one", "eins"),
        ("two", "zwei"),
    ]


def test_strings_over_several_lines_are_joined(tmp_path):
    content = 'msgid ""\n"one "\n"two"\nmsgstr "eins "\n  "zwei"\n'
    assert read(tmp_path, content) == [("one two", "eins zwei")]


def test_entries_need_no_empty_line_between_them(tmp_path):
    content = (
        'msgid "a"\nmsgstr "A"\nmsgid "b"\nmsgstr "B"\n# said\nmsgctxt "c"\nmsgid "c"\nmsgstr "C"'
    )
    assert read(tmp_path, content) == [("a", "A"), ("b", "B"), ("c", "C")]


def test_a_context_is_not_part_of_the_text(tmp_path):
    assert read(tmp_path, 'msgctxt "menu"\nmsgid "Open"\nmsgstr "Öffnen"\n') == [("Open", "Öffnen")]


def test_fuzzy_obsolete_and_untranslated_messages_are_left_out(tmp_path):
    content = (
        '#, c-format, fuzzy\n#| msgid "old"\nmsgid "guessed"\nmsgstr "geraten"\n\n'
        + message("untranslated", "")
        + '#, fuzzy\n#~ msgid "gone"\n#~ msgstr "weg"\n\n'
        + "#, c-format\n"
        + message("kept %s", "behalten %s")
    )
    assert read(tmp_path, content) == [("kept %s", "behalten %s")]


def test_plural_forms_give_a_pair_each_for_one_and_for_many(tmp_path):
    content = (
        'msgid "%d file"\nmsgid_plural "%d files"\nmsgstr[0] "%d Datei"\nmsgstr[1] "%d Dateien"\n'
    )
    assert read(tmp_path, content) == [("%d file", "%d Datei"), ("%d files", "%d Dateien")]


def test_a_plural_that_says_the_same_is_one_pair(tmp_path):
    content = 'msgid "sheep"\nmsgid_plural "sheep"\nmsgstr[0] "羊"\n'
    assert read(tmp_path, content) == [("sheep", "羊")]


@pytest.mark.parametrize(
    ("rule", "forms", "expected"),
    [
        ("nplurals=1; plural=0;", ["ファイル"], ["ファイル", "ファイル"]),
        (
            "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 "
            "&& (n%100<10 || n%100>=20) ? 1 : 2);",
            ["файл", "файла", "файлов"],
            ["файл", "файлов"],
        ),
        (
            "nplurals=4; plural=(n%100==1 ? 1 : n%100==2 ? 2 : n%100==3 || n%100==4 ? 3 : 0);",
            ["datotek", "datoteka", "datoteki", "datoteke"],
            ["datoteka", "datotek"],
        ),
        ("nplurals=2; plural=this is no rule;", ["Datei", "Dateien"], ["Datei", "Dateien"]),
        ("nplurals=2; plural=n/0;", ["Datei", "Dateien"], ["Datei", "Dateien"]),
        ("nplurals=9; plural=n+1;", ["Datei", "Dateien"], ["Dateien", "Dateien"]),
    ],
)
def test_the_rule_of_the_header_tells_which_form_is_which(tmp_path, rule, forms, expected):
    header = f'msgid ""\nmsgstr "Plural-Forms: {rule}\\n"\n\n'
    content = 'msgid "file"\nmsgid_plural "files"\n' + "".join(
        f'msgstr[{number}] "{form}"\n' for number, form in enumerate(forms)
    )
    assert read(tmp_path, content, header) == list(zip(["file", "files"], expected, strict=True))


@pytest.mark.parametrize("charset", ["ISO-8859-15", "koi8-r", "Shift_JIS", "UTF-8"])
def test_the_charset_of_the_header_counts_also_where_it_is_wrapped(tmp_path, charset):
    text = {"koi8-r": "файл", "Shift_JIS": "表示"}.get(charset, "fünf €")
    header = f'msgid ""\nmsgstr "Content-Type: text/plain; "\n"charset={charset}\\n"\n\n'
    content = (header + message("five", text)).encode(charset)
    assert read(tmp_path, content) == [("five", text)]


def test_a_template_and_a_file_without_header_are_utf8(tmp_path):
    template = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=CHARSET\\n"\n\n'
    assert read(tmp_path, message("five", "fünf"), template) == [("five", "fünf")]
    assert read(tmp_path, "\ufeff" + message("five", "fünf"), "") == [("five", "fünf")]


def test_a_charset_that_a_message_speaks_of_does_not_count(tmp_path):
    header = 'msgid ""\nmsgstr "Language: de\\n"\n\n'
    spoken = message("five; charset=koi8-r", "fünf")
    assert read(tmp_path, spoken, header) == [("five; charset=koi8-r", "fünf")]


@given(st.text(st.characters(exclude_characters="\0&_\r", exclude_categories=["Cs"]), min_size=1))
def test_escapes_are_undone(tmp_path_factory, text):
    escaped = text
    for plain, code in (("\\", "\\"), ('"', '"'), ("\n", "n"), ("\t", "t"), ("\v", "v")):
        escaped = escaped.replace(plain, "\\" + code)
    pairs = read(tmp_path_factory.mktemp("po"), message("x", escaped))
    assert pairs == ([("x", one_line(text))] if one_line(text) else [])


def test_numbers_of_characters_are_escapes_too(tmp_path):
    assert read(tmp_path, message(r"\x41\102c", "x")) == [("ABc", "x")]


@pytest.mark.parametrize(
    ("source", "target", "pair"),
    [
        ("_File", "_Datei", ("File", "Datei")),
        ("&File", "&Datei", ("File", "Datei")),
        ("Save _As...", "Speichern _unter …", ("Save As...", "Speichern unter …")),
        ("E_xit", "_Beenden", ("Exit", "Beenden")),
        ("_Open", "Ö_ffnen", ("Open", "Öffnen")),
        ("_Help", "Hilfe", ("Help", "Hilfe")),
        ("P_ause", "一時停止(_A)", ("Pause", "一時停止")),
        ("&Hue:", "色相 (&H):", ("Hue:", "色相:")),
        ("_About", "_À propos de l'_aide", ("About", "_À propos de l'_aide")),
        ("Set LC_ALL", "LC_ALL setzen", None),
        ("Invalid file_name", "file_name-Angabe ungültig", None),
        ("index_name", "nom_index", None),
        ("R&D", "F&E", None),
        ("AT&T", "AT&T", None),
        ("Tom &amp; Jerry", "Tom &amp; Jerry", None),
        ("Salt & pepper", "Salz & Pfeffer", None),
        ("%(user_name)s of %{_x}", "%(user_name)s von %{_x}", None),
        ("%s_old", "%s_alt", None),
        ("__init__", "__init__", None),
    ],
)
def test_keyboard_keys_go_and_names_stay(tmp_path, source, target, pair):
    assert read(tmp_path, message(source, target)) == [pair or (source, target)]


def test_white_space_and_line_breaks_are_made_single_spaces(tmp_path):
    content = message(r"  one\n  two\n", r"eins\n\tzwei \n")
    assert read(tmp_path, content) == [("one two", "eins zwei")]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (message("one", "eins") + "nonsense\n", 4),
        (message("one", "eins") + 'msgid "two\n', 4),
        (message("one", "eins") + 'msgid "two" "three"\n', 4),
        (message("one", "eins") + 'msgid "two"\nmsgid "three"\n', 5),
        (message("one", "eins") + 'msgid "two"\n', 5),
        (message("one", "eins") + 'msgstr "zwei"\n', 4),
        ('"one"\n', 1),
        ('msgid "one\0"\n', 1),
        (message("one", r"\q"), 2),
        (message("one", r"\xe4"), 2),
        (message("one", r"\0"), 2),
    ],
)
def test_what_is_no_catalog_is_refused_with_file_and_line(tmp_path, content, line):
    with pytest.raises(UserError, match=rf"a\.po, line {line}: "):
        read(tmp_path, content, header="")


def test_bytes_outside_the_charset_are_refused_with_file_and_line(tmp_path):
    content = (HEADER + message("five", "fünf")).encode("latin-1")
    with pytest.raises(UserError, match=r"a\.po, line 10: not UTF-8"):
        read(tmp_path, content)


def test_a_charset_nobody_knows_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"a\.po: the charset klingon"):
        read(tmp_path, HEADER.replace("UTF-8", "klingon").encode())


@pytest.mark.parametrize("byte_order", ["<", ">"])
def test_compiled_catalogs_are_read_in_both_byte_orders(tmp_path, byte_order):
    pairs = read_compiled(
        tmp_path,
        (b"%d file\0%d files", b"%d Datei\0%d Dateien"),
        (b"menu\4_Open", "Ö_ffnen".encode()),
        (b"untranslated", b""),
        byte_order=byte_order,
    )
    assert pairs == [("%d file", "%d Datei"), ("%d files", "%d Dateien"), ("Open", "Öffnen")]


def test_the_charset_of_a_compiled_catalog_counts(tmp_path):
    row = (b"five", "fünf €".encode("iso-8859-15"))
    assert read_compiled(tmp_path, row, charset=b"ISO-8859-15") == [("five", "fünf €")]


@pytest.mark.parametrize("charset", [b"UTF-8", b"klingon"])
def test_a_compiled_catalog_with_the_wrong_charset_is_refused(tmp_path, charset):
    with pytest.raises(UserError, match=r"a\.mo: not a complete catalog"):
        read_compiled(tmp_path, (b"five", b"f\xfcnf"), charset=charset)


def test_a_compiled_catalog_cut_anywhere_is_refused(tmp_path):
    whole = compiled([(b"", b"Language: de\n"), (b"one", b"eins")])
    path = tmp_path / "a.mo"
    for length in range(4, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(UserError, match=r"a\.mo: not a complete catalog"):
            list(read_catalog(path))


def test_compressed_catalogs_read_like_plain_ones(tmp_path):
    path = tmp_path / "de.po.gz"
    path.write_bytes(gzip.compress((HEADER + message("one", "eins")).encode()))
    assert list(read_catalog(path)) == [("one", "eins")]


def test_a_missing_catalog_is_named(tmp_path):
    with pytest.raises(UserError, match=r"de\.po: no such file"):
        list(read_catalog(tmp_path / "de.po"))


def test_catalogs_are_found_where_systems_and_source_trees_keep_them(tmp_path):
    wanted = [
        "locale/de/LC_MESSAGES/app.mo",
        "locale/de/LC_MESSAGES/lib.mo",
        "plugin/de/plugin.po",
        "po/de.po",
        "web/de/LC_MESSAGES/django.po",
    ]
    others = [
        "locale/de_AT/LC_MESSAGES/app.mo",
        "locale/fr/LC_MESSAGES/app.mo",
        "po/app.pot",
        "po/fr.po",
        "po/de.txt",
        "web/de/LC_MESSAGES/django.mo",
        "node/app.mo",
    ]
    for name in wanted + others:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert find_catalogs(tmp_path, "de") == [tmp_path / name for name in wanted]
    assert find_catalogs(tmp_path, "de-AT") == [tmp_path / others[0]]
    assert find_catalogs(tmp_path, "it") == []


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(UserError, match=r"nowhere: no such folder"):
        find_catalogs(tmp_path / "nowhere", "de")


@pytest.mark.skipif(not LOCALES.is_dir(), reason="no locale folder on this system")
def test_a_catalog_of_this_system_holds_clean_sentences():
    catalogs = find_catalogs(LOCALES, "de")
    if not catalogs:
        pytest.skip("no German catalog on this system")
    pairs = [pair for catalog in catalogs[:3] for pair in read_catalog(catalog)]
    assert pairs
    assert all(text and text == one_line(text) for pair in pairs for text in pair)
    assert not any("Project-Id-Version" in pair.target for pair in pairs)
