import gzip
import io
import lzma
import random
import shutil
import tarfile
import zipfile

import pytest

from dragoman.corpus.download import (
    archives,
    disk,
    extract_all,
    extract_member,
    extract_members,
)
from dragoman.errors import StorageError, UserError

FILES = {"training/corpus.de-en.de": b"eins\nzwei\n", "training/corpus.de-en.en": b"one\ntwo\n"}


def write_archive(path, files=FILES):
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in files.items():
                archive.writestr(name, content)
    else:
        with tarfile.open(path, "w:xz" if path.suffix == ".xz" else "w:gz") as archive:
            for name, content in files.items():
                info = tarfile.TarInfo(name)
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
    return path


@pytest.fixture(params=["a.tgz", "a.tar.gz", "a.tar.xz", "a.zip"])
def archive(request, tmp_path):
    return write_archive(tmp_path / request.param)


def test_members_come_out_of_every_kind_of_archive_in_the_order_asked_for(archive, tmp_path):
    names = list(reversed(FILES))
    found = extract_members(archive, names, tmp_path / "out")
    assert [path.relative_to(tmp_path / "out").as_posix() for path in found] == names
    assert [path.read_bytes() for path in found] == [FILES[name] for name in names]
    assert not list(tmp_path.rglob("*.part"))


def test_a_member_may_be_named_by_a_pattern(archive, tmp_path):
    assert extract_member(archive, "*.en", tmp_path / "out").read_bytes() == b"one\ntwo\n"


def test_a_pattern_that_fits_two_members_is_refused_with_both(archive, tmp_path):
    with pytest.raises(UserError, match=r"corpus\.de-en\.de and .*corpus\.de-en\.en"):
        extract_member(archive, "training/*", tmp_path / "out")


def test_a_member_that_is_not_there_gives_the_near_names(archive, tmp_path):
    with pytest.raises(UserError, match=r"holds no corpus\.de-en\.de.*training/corpus\.de-en\.de"):
        extract_member(archive, "corpus.de-en.de", tmp_path / "out")


def test_what_is_there_and_whole_is_not_written_again(archive, tmp_path):
    member = next(iter(FILES))
    first = extract_member(archive, member, tmp_path / "out")
    inode = first.stat().st_ino
    assert extract_member(archive, member, tmp_path / "out").stat().st_ino == inode
    first.write_bytes(b"cut")
    assert extract_member(archive, member, tmp_path / "out").read_bytes() == FILES[member]


def test_an_empty_member_is_a_file_too(tmp_path):
    archive = write_archive(tmp_path / "a.tgz", {"empty": b""})
    assert extract_member(archive, "empty", tmp_path / "out").read_bytes() == b""


@pytest.mark.parametrize("name", ["a.tgz", "a.zip"])
@pytest.mark.parametrize("member", ["../out.txt", "/tmp/out.txt", "a/../../out.txt"])
def test_a_member_that_leads_out_of_its_folder_is_refused(tmp_path, name, member):
    archive = write_archive(tmp_path / name, {member: b"evil"})
    with pytest.raises(UserError, match="points outside"):
        extract_member(archive, member, tmp_path / "deep" / "out")
    assert not (tmp_path / "deep" / "out.txt").exists()


def test_a_link_in_an_archive_is_not_a_member(tmp_path):
    with tarfile.open(tmp_path / "a.tgz", "w:gz") as archive:
        info = tarfile.TarInfo("corpus.de")
        info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(info)
    with pytest.raises(UserError, match=r"holds no corpus\.de"):
        extract_member(tmp_path / "a.tgz", "corpus.de", tmp_path / "out")


@pytest.mark.parametrize("name", ["a.tgz", "a.tar.xz", "a.zip"])
def test_a_cut_archive_is_named_and_leaves_nothing_behind(tmp_path, name):
    archive = write_archive(tmp_path / name, {"corpus.de": random.Random(1).randbytes(200_000)})
    archive.write_bytes(archive.read_bytes()[:100_000])
    with pytest.raises(UserError, match=rf"{name}: cannot be unpacked .*remove it"):
        extract_member(archive, "corpus.de", tmp_path / "out")
    assert not (tmp_path / "out" / "corpus.de").exists()


def test_a_page_in_place_of_an_archive_is_named(tmp_path):
    (tmp_path / "a.tgz").write_text("<html>please log in</html>")
    with pytest.raises(UserError, match="cannot be unpacked"):
        extract_member(tmp_path / "a.tgz", "corpus.de", tmp_path / "out")


def test_a_plain_file_is_its_own_member(tmp_path):
    plain = tmp_path / "corpus.de.xz"
    plain.write_bytes(lzma.compress(b"eins\n"))
    assert extract_member(plain, "corpus.de.xz", tmp_path / "out") == plain
    with pytest.raises(UserError, match="not an archive"):
        extract_member(plain, "corpus.en", tmp_path / "out")


@pytest.mark.parametrize("name", ["a.tgz", "a.tar.xz", "a.zip"])
def test_an_archive_that_expands_as_no_text_does_is_not_unpacked(tmp_path, name, monkeypatch):
    monkeypatch.setattr(archives, "FREELY_EXPANDED_BYTES", 100_000)
    archive = write_archive(tmp_path / name, {"corpus.de": b"a" * 10_000_000})
    with pytest.raises(
        UserError, match=rf"{name}: .* expand to 10,000,000 or more with corpus\.de"
    ):
        extract_member(archive, "corpus.de", tmp_path / "out")
    assert not (tmp_path / "out" / "corpus.de").exists()


@pytest.mark.parametrize("name", ["a.tgz", "a.zip"])
def test_a_member_that_does_not_fit_on_the_disk_is_not_unpacked(tmp_path, name, monkeypatch):
    archive = write_archive(tmp_path / name)
    monkeypatch.setattr(disk, "KEEP_FREE_BYTES", shutil.disk_usage(tmp_path).total)
    with pytest.raises(StorageError, match=r"corpus\.de-en\.de: .* do not fit into"):
        extract_member(archive, "*.de", tmp_path / "out")


def test_an_encrypted_archive_is_named(tmp_path):
    archive = write_archive(tmp_path / "a.zip", {"corpus.de": b"eins"})
    content = bytearray(archive.read_bytes())
    for header, flags in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        content[content.index(header) + flags] |= 1
    archive.write_bytes(content)
    with pytest.raises(UserError, match=r"a\.zip: corpus\.de is encrypted; unpack it by hand"):
        extract_member(archive, "corpus.de", tmp_path / "out")


def test_an_archive_with_too_many_members_is_not_read_to_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "MOST_MEMBERS", 10)
    archive = write_archive(tmp_path / "a.tgz", {f"{n}/corpus.de": b"" for n in range(11)})
    with pytest.raises(UserError, match=r"a\.tgz: has more than 10 members"):
        extract_member(archive, "corpus.de", tmp_path / "out")


def test_a_tar_header_made_to_fill_memory_is_not_read(tmp_path):
    header = tarfile.TarInfo("name")
    header.type, header.size = tarfile.XHDTYPE, 1 << 32
    archive = tmp_path / "a.tgz"
    archive.write_bytes(gzip.compress(header.tobuf() + b"x" * 100_000))
    with pytest.raises(UserError, match=r"a\.tgz: cannot be unpacked \(a header of 4,294,967,296"):
        extract_member(archive, "corpus.de", tmp_path / "out")


@pytest.mark.parametrize("name", ["a.tgz", "a.zip"])
def test_a_whole_archive_is_unpacked_below_its_folder(tmp_path, name):
    extract_all(write_archive(tmp_path / name), tmp_path / "out")
    found = {file: (tmp_path / "out" / file).read_bytes() for file in FILES}
    assert found == FILES
    with pytest.raises(UserError, match=rf"{name}: \.\./out\.txt points outside"):
        extract_all(write_archive(tmp_path / name, {"../out.txt": b""}), tmp_path / "out")
