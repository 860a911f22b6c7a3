"""Public corpora and test sets by name: a name comes in, two aligned text files go out.

Corpora go by the names of mtdata, test sets by those of sacreBLEU. Both packages are only asked
where the files are: they come through our own cache, so that they can be placed there by hand or
from a mirror, and are checked, resumed and kept the same way.
"""

import copy
import difflib
import importlib.metadata
import importlib.util
import json
import logging
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from dragoman.console import Progress
from dragoman.corpus.download import extract_all, extract_members, fetch, is_archive, locked
from dragoman.corpus.text import one_line, read_raw_lines
from dragoman.errors import RunError, UserError, storage_errors
from dragoman.installation import install_command
from dragoman.rundir import read_json, write_json

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class PublicCorpus:
    name: str
    languages: tuple[str, str]
    """ISO 639-3, in the order of the files, members or columns below."""
    urls: tuple[str, ...]
    """An archive or a table, or one text file per language."""
    members: tuple[str, ...] = ()
    """Files in the archive: one per language, or the table; may hold shell wildcards."""
    format: Literal["text", "table"] = "text"
    """text: one file per language, one sentence per line. table: one pair per line, with tabs."""
    columns: tuple[int, int] = (0, 1)
    sha256: str | None = None


# What WMT16 English-German is trained on. It is listed here, though mtdata knows three of the four,
# because the fourth, News Commentary 11, is not in its index (0.5.1; its name here follows mtdata's
# style), because the index keeps no hashes, and because building it takes most of a minute and
# 760 MB of memory. Hashes are those of TensorFlow Datasets' url_checksums/wmt16_translate.txt.
# The two releases of Europarl hold the same German-English text: de-en.tgz comes alone, the other
# with three more languages, and with a hash.
_DE_EN = ("deu", "eng")
BUILT_IN = {
    corpus.name: corpus
    for corpus in (
        PublicCorpus(
            name="Statmt-europarl-7-deu-eng",
            languages=_DE_EN,
            urls=("https://www.statmt.org/europarl/v7/de-en.tgz",),
            members=("europarl-v7.de-en.de", "europarl-v7.de-en.en"),
        ),
        PublicCorpus(
            name="Statmt-europarl_wmt13-7-deu-eng",
            languages=_DE_EN,
            urls=("https://www.statmt.org/wmt13/training-parallel-europarl-v7.tgz",),
            members=("training/europarl-v7.de-en.de", "training/europarl-v7.de-en.en"),
            sha256="0224c7c710c8a063dfd893b0cc0830202d61f4c75c17eb8e31836103d27d96e7",
        ),
        PublicCorpus(
            name="Statmt-commoncrawl_wmt13-1-deu-eng",
            languages=_DE_EN,
            urls=("https://www.statmt.org/wmt13/training-parallel-commoncrawl.tgz",),
            members=("commoncrawl.de-en.de", "commoncrawl.de-en.en"),
            sha256="c7a74e2ea01ac6c920123108627e35278d4ccb5701e15428ffa34de86fa3a9e5",
        ),
        PublicCorpus(
            name="Statmt-news_commentary_wmt16-11-deu-eng",
            languages=_DE_EN,
            urls=("https://data.statmt.org/wmt16/translation-task/training-parallel-nc-v11.tgz",),
            members=(
                "training-parallel-nc-v11/news-commentary-v11.de-en.de",
                "training-parallel-nc-v11/news-commentary-v11.de-en.en",
            ),
            sha256="cfe8ab047e05043476e498ee765c98e939c7b7d6d294e856344c84476b619d6a",
        ),
    )
}


def fetch_public(
    name: str, languages: tuple[str, str], cache: Path, mirror: str = ""
) -> tuple[Path, Path]:
    """Returns the two sides of a corpus, in the order of `languages` (ISO 639-1 or 639-3)."""
    folder = cache / "corpora" / name
    made = _made_before(folder)
    if made is None:
        corpus = resolve(name, cache)
        _is_swapped(corpus, languages)  # before anything large is fetched
        with locked(folder):
            made = _made_before(folder) or (corpus, _make(corpus, folder, cache, mirror))
    corpus, (first, second) = made
    return (second, first) if _is_swapped(corpus, languages) else (first, second)


def resolve(name: str, cache: Path) -> PublicCorpus:
    """Returns where a corpus is, from the table above or from mtdata's index."""
    return BUILT_IN.get(name) or _resolve_with_mtdata(name, cache)


def _is_swapped(corpus: PublicCorpus, languages: tuple[str, str]) -> bool:
    asked, held = (
        tuple(ISO_639_3.get(tag, tag) for tag in (re.split("[-_]", code)[0] for code in codes))
        for codes in (languages, corpus.languages)
    )
    if asked not in (held, held[::-1]):
        raise UserError(
            f"{corpus.name}: is in {' and '.join(corpus.languages)}, not in "
            f"{' and '.join(languages)}; name another corpus or set other languages"
        )
    return asked != held


def _made_before(folder: Path) -> tuple[PublicCorpus, list[Path]] | None:
    """Returns what an earlier call has unpacked, even if its archive or mtdata is gone since."""
    record_file = folder / "corpus.json"
    if not record_file.exists():
        return None
    record = read_json(record_file)
    files = {folder / name: size for name, size in record["files"].items()}
    if not all(path.exists() and path.stat().st_size == size for path, size in files.items()):
        return None
    first, second = record["languages"]
    return PublicCorpus(record["name"], (first, second), tuple(record["urls"])), list(files)


def _make(corpus: PublicCorpus, folder: Path, cache: Path, mirror: str) -> list[Path]:
    fetched = [fetch(url, cache, sha256=corpus.sha256, mirror=mirror) for url in corpus.urls]
    if len(fetched) > 1:  # text already, and in its place
        return fetched
    files = extract_members(fetched[0], corpus.members, folder) if corpus.members else fetched
    if corpus.format == "table":
        files = _split_table(files[0], corpus, folder)
    write_json(
        folder / "corpus.json",
        {
            "name": corpus.name,
            "languages": corpus.languages,
            "urls": corpus.urls,
            "files": {path.relative_to(folder).as_posix(): path.stat().st_size for path in files},
        },
    )
    return files


def _split_table(table: Path, corpus: PublicCorpus, folder: Path) -> list[Path]:
    """Writes two columns to two text files, without the lines that lack one of them, such as those
    between documents.
    """
    files = [folder / f"{corpus.name}.{language}" for language in corpus.languages]
    parts = [path.with_name(f"{path.name}.part") for path in files]
    kept = left_out = 0
    with storage_errors(folder, f"writing the columns of {table.name}"):
        folder.mkdir(parents=True, exist_ok=True)
        with (
            parts[0].open("w", encoding="utf-8", newline="\n") as first,
            parts[1].open("w", encoding="utf-8", newline="\n") as second,
            Progress(f"splitting {table.name}", "lines") as progress,
        ):
            for line in read_raw_lines(table):
                progress.advance()
                cells = [one_line(cell) for cell in line.split("\t")]
                pair = [cells[column] for column in corpus.columns if column < len(cells)]
                if len(pair) == 2 and all(pair):
                    first.write(f"{pair[0]}\n")
                    second.write(f"{pair[1]}\n")
                    kept += 1
                else:
                    left_out += 1
        for part, path in zip(parts, files, strict=True):
            part.replace(path)
    if not kept:
        raise UserError(f"{table}: none of its {left_out:,} lines holds a pair of sentences")
    if left_out:
        logger.warning(
            f"{corpus.name}: skipped {left_out:,} of {kept + left_out:,} lines without a pair"
        )
    return files


# mtdata


def _resolve_with_mtdata(name: str, cache: Path) -> PublicCorpus:
    if not importlib.util.find_spec("mtdata"):
        raise UserError(
            f"{name}: not one of the built-in corpora ({', '.join(BUILT_IN)}); for those of "
            f"mtdata: {install_command('mtdata')}"
        )
    needle = f'"{name}"'
    languages = sorted(name.split("-")[3:])
    same_languages = []
    with _mtdata_index(cache).open(encoding="utf-8") as lines:
        for line in lines:  # 290,000 of them: only lines that may matter are parsed
            if needle in line:
                entry = json.loads(line)
                if entry["did"] == name:
                    return corpus_from_entry(entry)
            elif len(languages) == 2 and all(language in line for language in languages):
                same_languages.append(json.loads(line)["did"])
    near = difflib.get_close_matches(name, [*BUILT_IN, *same_languages], n=5, cutoff=0.5)
    raise UserError(
        f"{name}: no corpus of that name in mtdata's index; "
        + (f"similar names: {', '.join(near)}" if near else "find its name with: mtdata list")
    )


def corpus_from_entry(entry: dict[str, Any]) -> PublicCorpus:
    """Returns the corpus of an index line, if it is text: 281,621 of 284,894 pairs in 0.5.1."""
    name = entry["did"]
    languages = name.split("-")[3:]
    urls = (entry["url"],) if isinstance(entry["url"], str) else tuple(entry["url"])
    members = tuple(entry.get("in_paths", ()))
    kind = entry.get("in_ext") or entry["ext"]
    sides = len(members) if entry.get("is_archive") else len(urls)
    is_table = kind.split(".")[0] == "tsv" and len(urls) == 1 and sides == 1
    is_text = kind.split(".")[0] in ("txt", "raw") and sides == 2
    if len(languages) != 2 or not (is_table or is_text):
        raise UserError(
            f"{name}: its format ({entry['ext']}, {kind}) is not read here, only pairs of text "
            f"files and tables are; get it with: mtdata get -l {'-'.join(languages)} -tr {name} "
            "-o data, and name the two files as a source of kind text"
        )
    first, second = entry.get("cols") or (0, 1)
    return PublicCorpus(
        name=name,
        languages=(languages[0], languages[1]),
        urls=urls,
        members=members,
        format="table" if is_table else "text",
        columns=(first, second),
    )


def _mtdata_index(cache: Path) -> Path:
    """Returns mtdata's index as lines of JSON, written by mtdata itself and kept in our cache.

    In a process of its own, because importing mtdata's index builds all of it (43 s, 760 MB on two
    busy cores), reads a pickle of it ever after (6 s, 480 MB), configures the root logger, and runs
    every mtdata*.py of the working folder. It asks no network. What it leaves besides the lines of
    JSON goes away with the temporary folder.
    """
    version = importlib.metadata.version("mtdata")
    index = cache / "mtdata" / f"index-{version}.jsonl"
    if index.exists():
        return index
    with locked(index):
        if index.exists():  # another process has built it while this one waited
            return index
        logger.info("building mtdata's index of public corpora, once; this takes about a minute")
        with tempfile.TemporaryDirectory(dir=index.parent) as work:
            environment = os.environ | {"MTDATA": work, "MTDATA_RECIPES": work}
            built = subprocess.run(
                [sys.executable, "-c", "import mtdata.index"],
                cwd=work,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            found = list(Path(work).glob("mtdata.index.*.jsonl"))
            if built.returncode or not found:
                message = (built.stderr.strip().splitlines() or ["no message"])[-1]
                raise RunError(
                    f"mtdata {version} could not build its index ({message}); "
                    f"a newer one may help: {install_command('mtdata')} --upgrade"
                )
            with storage_errors(index, "keeping mtdata's index"):
                found[0].replace(index)
    return index


# Test sets


def fetch_test_set(
    name: str, language_pair: str, cache: Path, mirror: str = ""
) -> tuple[Path, Path]:
    """Returns source and first reference of a test set, as sacreBLEU extracts them.

    `wmt14` is what was scored in 2014, 2,737 sentences of English-German; papers mostly mean
    `wmt14/full`, all 3,003 of newstest2014.
    """
    # Takes 0.2 s, and most commands need no test set.
    from sacrebleu.dataset import DATASETS  # noqa: PLC0415

    if name not in DATASETS:
        raise UserError(f"{name}: sacreBLEU knows no such test set; {_near(name, DATASETS)}")
    dataset: Any = copy.copy(DATASETS[name])
    if language_pair not in dataset.langpairs:
        raise UserError(
            f"{name}: sacreBLEU has no {language_pair} in it, only {', '.join(dataset.langpairs)}"
        )
    stem = f"{name.replace('/', '_')}.{language_pair}"
    source, reference = (cache / "sacrebleu" / f"{stem}.{side}" for side in ("src", "ref"))
    if source.exists():
        return source, reference
    with locked(source):
        hashes: Sequence[str | None] = dataset.md5 or [None] * len(dataset.data)
        archives = {
            url: fetch(url, cache, mirror=mirror, md5=md5)
            for url, md5 in zip(dataset.data, hashes, strict=True)
        }
        with (
            storage_errors(source, f"unpacking {name}"),
            tempfile.TemporaryDirectory(dir=source.parent) as work,
        ):
            # sacreBLEU reads $SACREBLEU when it is imported, which may long have happened. What
            # lies where it would put it, it neither downloads nor unpacks.
            raw = Path(work, "raw")
            dataset._outdir, dataset._rawdir = work, str(raw)
            for url, archive in archives.items():
                raw.mkdir(exist_ok=True)
                if is_archive(archive):
                    extract_all(archive, raw)
                (raw / dataset._get_tarball_filename(url)).symlink_to(archive.resolve())
            dataset.process_to_text(language_pair)
            # The source last: where it is, both are whole.
            Path(dataset.get_reference_files(language_pair)[0]).replace(reference)
            Path(dataset.get_source_file(language_pair)).replace(source)
    return source, reference


def _near(name: str, names: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(names), n=5, cutoff=0.5)
    return f"near it: {', '.join(near)}" if near else f"it knows {', '.join(sorted(names))}"


# Recipes say en, mtdata says eng.
_TWO_AND_THREE_LETTERS = """
aa:aar ab:abk ae:ave af:afr ak:aka am:amh an:arg ar:ara as:asm av:ava ay:aym az:aze ba:bak be:bel
bg:bul bi:bis bm:bam bn:ben bo:bod br:bre bs:bos ca:cat ce:che ch:cha co:cos cr:cre cs:ces cu:chu
cv:chv cy:cym da:dan de:deu dv:div dz:dzo ee:ewe el:ell en:eng eo:epo es:spa et:est eu:eus fa:fas
ff:ful fi:fin fj:fij fo:fao fr:fra fy:fry ga:gle gd:gla gl:glg gn:grn gu:guj gv:glv ha:hau he:heb
hi:hin ho:hmo hr:hrv ht:hat hu:hun hy:hye hz:her ia:ina id:ind ie:ile ig:ibo ii:iii ik:ipk io:ido
is:isl it:ita iu:iku ja:jpn jv:jav ka:kat kg:kon ki:kik kj:kua kk:kaz kl:kal km:khm kn:kan ko:kor
kr:kau ks:kas ku:kur kv:kom kw:cor ky:kir la:lat lb:ltz lg:lug li:lim ln:lin lo:lao lt:lit lu:lub
lv:lav mg:mlg mh:mah mi:mri mk:mkd ml:mal mn:mon mr:mar ms:msa mt:mlt my:mya na:nau nb:nob nd:nde
ne:nep ng:ndo nl:nld nn:nno no:nor nr:nbl nv:nav ny:nya oc:oci oj:oji om:orm or:ori os:oss pa:pan
pi:pli pl:pol ps:pus pt:por qu:que rm:roh rn:run ro:ron ru:rus rw:kin sa:san sc:srd sd:snd se:sme
sg:sag si:sin sk:slk sl:slv sm:smo sn:sna so:som sq:sqi sr:srp ss:ssw st:sot su:sun sv:swe sw:swa
ta:tam te:tel tg:tgk th:tha ti:tir tk:tuk tl:tgl tn:tsn to:ton tr:tur ts:tso tt:tat tw:twi ty:tah
ug:uig uk:ukr ur:urd uz:uzb ve:ven vi:vie vo:vol wa:wln wo:wol xh:xho yi:yid yo:yor za:zha zh:zho
zu:zul
"""
ISO_639_3 = dict(pair.split(":") for pair in _TWO_AND_THREE_LETTERS.split())
