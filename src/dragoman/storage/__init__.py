"""Object storage: addresses come in, bytes go out and in, through the package obstore.

Nothing here knows what the bytes are. Credentials come from the environment alone; they are never
asked of a cloud's metadata service, written to a file or repeated in a message.
"""

from dragoman.storage.address import Address, is_address, parse_address
from dragoman.storage.pace import Pace
from dragoman.storage.store import Entry, Patience, Store

__all__ = ["Address", "Entry", "Pace", "Patience", "Store", "is_address", "parse_address"]
