"""Files from public servers: an address comes in, a whole file in the cache goes out.

The cache mirrors the servers, `<cache>/<host>/<path>`, so a cache that someone copies or serves is
a mirror, and a file placed by hand has one obvious place. Next to each file: `.json`, what was
fetched from where; while it arrives, `.part` and `.part.json`; `.lock`, for those who fetch at the
same time.
"""

from dragoman.corpus.download.archives import (
    extract_all,
    extract_member,
    extract_members,
    is_archive,
)
from dragoman.corpus.download.cache import cached_path, fetch
from dragoman.corpus.download.disk import locked

__all__ = [
    "cached_path",
    "extract_all",
    "extract_member",
    "extract_members",
    "fetch",
    "is_archive",
    "locked",
]
