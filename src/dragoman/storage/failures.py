"""What went wrong at a store: obstore's exception comes in, one sentence with what to do goes out.

Of the text of the exception only status and code of the answer are used: the rest holds addresses
with their queries and the server's own words, among which there may be a key or a signature.
"""

import os
import re
from datetime import UTC, datetime
from urllib.parse import urlsplit

from dragoman.errors import RemoteError
from dragoman.storage.address import Address

_STATUS = re.compile(r"status code: (\d{3})")
_CODE = re.compile(r"<Code>(\w{1,60})</Code>")
_CLOCK_CODES = {"RequestTimeTooSkewed", "RequestExpired", "RequestInTheFuture"}
_CREDENTIAL_CODES = {
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "ExpiredToken",
    "InvalidToken",
    "TokenRefreshRequired",
    "AuthenticationFailed",
    "InvalidAuthenticationInfo",
    "InvalidSecurity",
}
_FULL_CODES = {
    "QuotaExceeded",
    "InsufficientStorage",
    "XMinioStorageFull",
    "XMinioAdminBucketQuotaExceeded",
    "StorageFull",
    "EntityTooLarge",
    "ServiceQuotaExceeded",
}
_BUCKET_CODES = {"NoSuchBucket", "ContainerNotFound", "ContainerBeingDeleted"}
_REGION_CODES = {"PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraint"}
_VARIABLES = {"s3": "AWS_*", "gs": "GOOGLE_*", "az": "AZURE_*"}
_ENDPOINTS = {
    "s3": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    "gs": ("GOOGLE_BASE_URL",),
    "az": ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
}
MISSING, TOO_LARGE = "missing", "too large"


def failure_of(address: Address, doing: str, error: Exception) -> RemoteError:
    """Returns the error to raise `from None`: the chain would show obstore's text."""
    kind, what, to_do = _explained(address, error)
    return RemoteError(f"{address}: {what} while {doing}; {to_do}", kind)


def _explained(address: Address, error: Exception) -> tuple[str, str, str]:
    """Returns the kind of the failure, what happened, and what to do."""
    text = str(error)
    status = _first(_STATUS, text)
    code = _first(_CODE, text)
    answer = " ".join(filter(None, (status, code)))
    variables = _VARIABLES.get(address.scheme, "the credentials")
    if code in _CLOCK_CODES:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        return (
            "clock",
            f"the store refuses the signature, since this machine's clock ({now}) is not its own",
            "set the clock, for example with: timedatectl set-ntp true",
        )
    if code in _FULL_CODES or status == "507" or _is_full(error):
        return (
            "full",
            f"the store is full or its quota is used up ({answer or 'no space left'})",
            "remove what is not needed there, or raise the quota",
        )
    if code in _BUCKET_CODES:
        return (
            "no bucket",
            f"there is no bucket {address.host!r}",
            "create it, or correct the address",
        )
    if status in ("401", "403") and address.scheme in ("http", "https"):
        return "permission", f"the server refuses it ({answer})", "check the address"
    if code in _CREDENTIAL_CODES or status == "401":
        return (
            "credentials",
            f"the store does not accept the credentials ({answer})",
            f"check {variables} in the environment, and this machine's clock",
        )
    if code in _REGION_CODES or "BareRedirect" in text:
        return (
            "region",
            "the bucket lies in another region",
            "set AWS_REGION to the region of the bucket",
        )
    if status == "403" or isinstance(error, PermissionError):
        return (
            "permission",
            f"these credentials may not do that ({answer or 'permission denied'})",
            "grant them listing, reading, writing and deleting there, or use others",
        )
    if isinstance(error, FileNotFoundError) or status == "404":
        return MISSING, "there is no such object", "check the address"
    if "BadScheme" in text:
        return (
            "insecure",
            "its server is reached without encryption",
            "give an https:// endpoint, or set AWS_ALLOW_HTTP=true if everybody on the way to it "
            "is trusted",
        )
    if "kind: Connect" in text or "dns error" in text:
        return (
            "unreachable",
            f"{_server_of(address)} cannot be reached",
            "check the network and the address of the server",
        )
    if re.search(r"kind: (Timeout|Interrupted|Request|Decode|Unknown)|timed out", text):
        return (
            "broken",
            "the connection broke or timed out",
            "check the network, then run the same command again",
        )
    if type(error).__name__ == "NotSupportedError" and address.scheme in ("http", "https"):
        return (
            "no ranges",
            "the server does not send parts of a file",
            "name one that answers range requests, as nginx and Apache do",
        )
    if status:
        return "refused", f"the store answers {answer}", "check the address and the store"
    return (
        "refused",
        f"the store or its settings do not work ({type(error).__name__})",
        f"check the address and {variables} in the environment",
    )


def _first(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return found[1] if found else ""


def _is_full(error: Exception) -> bool:
    return "No space left" in str(error) or "os error 28" in str(error)


def _server_of(address: Address) -> str:
    """Returns the server behind an address as the environment names it, without any login."""
    for name in _ENDPOINTS.get(address.scheme, ()):
        if endpoint := os.environ.get(name):
            try:
                parts = urlsplit(endpoint)
                where = f"{parts.hostname}:{parts.port}" if parts.port else parts.hostname
            except ValueError:
                where = None
            return f"its server {where} ({name})" if where else f"its server ({name})"
    return f"its server {address.host}" if address.scheme.startswith("http") else "its server"
