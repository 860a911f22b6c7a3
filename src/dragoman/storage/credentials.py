"""Which credentials the environment holds for a store; where there are none, that is an error.

obstore would then ask the metadata service of a cloud (169.254.169.254) for those of the machine.
That address is never contacted: what answers there may be anybody on a network that is not a
cloud's, and whose rights a run has should be somebody's decision.
"""

from collections.abc import Mapping

from dragoman.errors import UserError
from dragoman.storage.address import Address

# For each scheme, sets of variables of which one is enough.
_ENOUGH = {
    "s3": (
        ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN"),
    ),
    "gs": (
        ("GOOGLE_APPLICATION_CREDENTIALS",),
        ("GOOGLE_SERVICE_ACCOUNT",),
        ("GOOGLE_SERVICE_ACCOUNT_PATH",),
        ("GOOGLE_SERVICE_ACCOUNT_KEY",),
        ("GOOGLE_BEARER_TOKEN",),
    ),
    "az": (
        ("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT_KEY"),
        ("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCESS_KEY"),
        ("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_SAS_KEY"),
        ("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_SAS_TOKEN"),
        ("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_TOKEN"),
        (
            "AZURE_STORAGE_ACCOUNT_NAME",
            "AZURE_STORAGE_CLIENT_ID",
            "AZURE_STORAGE_CLIENT_SECRET",
            "AZURE_STORAGE_TENANT_ID",
        ),
        ("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET", "AZURE_TENANT_ID"),
        (
            "AZURE_STORAGE_ACCOUNT_NAME",
            "AZURE_CLIENT_ID",
            "AZURE_TENANT_ID",
            "AZURE_FEDERATED_TOKEN_FILE",
        ),
    ),
}
_UNSIGNED = {
    "s3": "AWS_SKIP_SIGNATURE",
    "gs": "GOOGLE_SKIP_SIGNATURE",
    "az": "AZURE_SKIP_SIGNATURE",
}
_ALLOWS_HTTP = {"s3": "AWS_ALLOW_HTTP", "gs": "GOOGLE_ALLOW_HTTP", "az": "AZURE_ALLOW_HTTP"}
PREFIXES = ("AWS_", "GOOGLE_", "AZURE_")
"""Of the variables that obstore reads."""


def check_credentials(address: Address, variables: Mapping[str, str]) -> None:
    """Raises UserError unless the environment holds credentials, or says that none are needed."""
    if address.scheme not in _ENOUGH or is_unsigned(address, variables):
        return
    ways = _ENOUGH[address.scheme]
    if any(all(variables.get(name) for name in way) for way in ways):
        return
    first = ways[0]
    missing = [name for name in first if not variables.get(name)]
    raise UserError(
        f"{address}: there are no credentials for it; set {' and '.join(missing)} in the "
        f"environment, or {_UNSIGNED[address.scheme]}=true for what anybody may read"
    )


def is_unsigned(address: Address, variables: Mapping[str, str]) -> bool:
    return _is_on(variables.get(_UNSIGNED.get(address.scheme, ""), ""))


def allows_http(address: Address, variables: Mapping[str, str]) -> bool:
    """Returns whether the server may be reached without encryption."""
    if address.scheme in ("http", "https"):
        return address.scheme == "http"
    return _is_on(variables.get(_ALLOWS_HTTP.get(address.scheme, ""), ""))


def storage_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Returns those variables that say where stores are and who may use them."""
    return {name: value for name, value in variables.items() if name.startswith(PREFIXES)}


def _is_on(value: str) -> bool:
    return value.lower() in ("1", "true", "yes", "on")
