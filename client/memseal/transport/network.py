"""How this process reaches servers: through which proxy, and whose certificates it trusts."""

import base64
import os
import ssl
import threading
from os import PathLike
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from memseal.errors import RemoteUnknown

CA_FILE = "MEMSEAL_CA_FILE"
CERTIFICATE = (
    "the server's certificate is not trusted: if the server has a private authority, name its certificate in"
    f" {CA_FILE} (or --ca-file); otherwise something stands between, and nothing was sent to it"
)
_chosen: list[str] = []
_guard = threading.Lock()


def use_ca_file(path: str | PathLike[str] | None) -> None:
    """Trust, from the next connection of this process on, the authorities in a PEM file instead of the system's.

    None: again those that MEMSEAL_CA_FILE names, or else the system's (where SSL_CERT_FILE counts). A file that cannot
    be read is told when a connection is made.
    """
    with _guard:
        _chosen[:] = [] if path is None else [os.fspath(path)]


def trust() -> ssl.SSLContext:
    """Return what a connection checks certificates with; raises `RemoteUnknown` where the named file is no help."""
    with _guard:
        path = _chosen[0] if _chosen else os.environ.get(CA_FILE, "")
    if not path:
        return ssl.create_default_context()
    try:
        return ssl.create_default_context(cafile=path)
    except (OSError, ValueError):  # an SSLError is an OSError
        raise RemoteUnknown(f"the file of trusted authorities cannot be read, or is no PEM file: {path}") from None


class Proxy:
    """A proxy of the user's environment; its password is in no repr."""

    def __init__(self, address: str, name: str | None, password: str | None) -> None:
        """Take the address without name and password, and these."""
        self.address = address
        pair = base64.b64encode(f"{name}:{password or ''}".encode()).decode("ascii")
        self.headers = {} if name is None else {"Proxy-Authorization": f"Basic {pair}"}

    def __repr__(self) -> str:
        """Show where it is alone."""
        return f"<Proxy {self.address}>"


def proxy_for(identity: str) -> Proxy | None:
    """Return the proxy that HTTPS_PROXY, HTTP_PROXY and NO_PROXY, or the system, name for a server.

    Read here and not by the HTTP library, which would also send what ~/.netrc has for the server. Raises
    `RemoteUnknown` for a kind of proxy that cannot be used.
    """
    parts = urlsplit(identity)
    host = parts.netloc.rpartition("@")[2]
    proxies = getproxies()
    address = proxies.get(parts.scheme) or proxies.get("all")
    if not address or proxy_bypass(host) or (parts.hostname and proxy_bypass(parts.hostname)):
        return None
    unusable = RemoteUnknown("this proxy cannot be used: HTTPS_PROXY and HTTP_PROXY take http://host:port")
    try:
        proxy = urlsplit(address if "://" in address else f"http://{address}")
        port = proxy.port
    except ValueError:
        raise unusable from None
    if proxy.scheme not in ("http", "https") or not proxy.hostname:
        raise unusable
    shown = f"[{proxy.hostname}]" if ":" in proxy.hostname else proxy.hostname
    name, password = (None if each is None else unquote(each) for each in (proxy.username, proxy.password))
    return Proxy(f"{proxy.scheme}://{shown}" + ("" if port is None else f":{port}"), name, password)
