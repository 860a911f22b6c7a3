"""Signed messages: without the secret of a start, nobody can forge or alter one. Without torch."""

import hashlib
import hmac
import json
from typing import Any

SIGNATURE_CHARACTERS = 2 * hashlib.sha256().digest_size


class Seal:
    """HMAC-SHA256 under the secret of one start.

    The key that a message is stored under is signed with it, so that a message of one rank cannot
    be put in the place of another's.
    """

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode()

    @property
    def prefix(self) -> str:
        """Returns a name for this start that reveals nothing of the secret."""
        return self._signature("start", b"")[:16]

    def seal(self, key: str, message: dict[str, Any]) -> str:
        body = json.dumps(message)
        return self._signature(key, body.encode()) + body

    def unseal(self, key: str, sealed: bytes) -> dict[str, Any] | None:
        """Returns the message; None if it was not signed with this secret for this key."""
        signature, body = sealed[:SIGNATURE_CHARACTERS], sealed[SIGNATURE_CHARACTERS:]
        if not hmac.compare_digest(signature, self._signature(key, body).encode()):
            return None
        message: dict[str, Any] = json.loads(body)
        return message

    def _signature(self, key: str, body: bytes) -> str:
        return hmac.digest(self._secret, key.encode() + b"\0" + body, "sha256").hex()
