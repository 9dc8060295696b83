"""What keeps the server safe: limits of bodies and rates, headers, and who may come in."""

from __future__ import annotations

import hmac
import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from hashlib import sha256
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LARGEST_BODY = 4096  # bytes; the largest that the page sends has a hundred
_MOST_KEYS = 50_000
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def invitation_of(token: str) -> str:
    """What invites to a study: it follows from the token, and the token does not follow from it."""
    return hmac.new(token.encode(), b"invitation", sha256).hexdigest()[:20]


def equal(given: str, wanted: str) -> bool:
    """Whether two secrets are the same, in a time that does not tell where they differ."""
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), wanted.encode())


class Buckets:
    """Limits how often somebody may do something.

    Args:
        rate: times per second, in the long run.
        burst: times at once.
        clock: seconds.
    """

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # times left, and when that was so
        self._lock = threading.Lock()

    def wait(self, key: str) -> float:
        """Seconds until `key` may do it once more; 0: it may now, and has."""
        with self._lock:
            now = self._clock()
            left, then = self._left.pop(key, (float(self._burst), now))
            left = min(self._burst, left + (now - then) * self._rate)
            allowed = left >= 1
            self._left[key] = (left - allowed, now)
            if len(self._left) > _MOST_KEYS:
                self._left.popitem(last=False)
            return 0.0 if allowed else (1 - left) / self._rate


class Guard:
    """Stands before the application: refuses what is too large, too fast or from elsewhere.

    Args:
        app: what is guarded.
        hosts: names by which the server may be called; None: any.
        rate: requests per second from one address.
    """

    def __init__(self, app: ASGIApp, hosts: Iterable[str] | None, rate: float) -> None:
        self._app, self._hosts = app, None if hosts is None else frozenset(hosts)
        self._buckets = Buckets(rate, int(2 * rate))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        guarded = _with_headers(send)
        problem = self._problem(scope, headers)
        if problem is not None:
            await _refuse(guarded, *problem)
            return
        body = await _body(receive)
        if body is None:
            await _refuse(guarded, 413, f"a body must have at most {LARGEST_BODY:,} bytes")
            return
        await self._app(scope, _once(body, receive), guarded)

    def _problem(self, scope: Scope, headers: dict[bytes, str]) -> tuple[int, str] | None:
        host = _name_of(headers.get(b"host", ""))
        if self._hosts is not None and host not in self._hosts:
            return 400, f"this server is not called {host!r}"
        origin = headers.get(b"origin")
        unsafe = scope["method"] not in ("GET", "HEAD", "OPTIONS")
        if origin is not None and unsafe and urlsplit(origin).netloc != headers.get(b"host"):
            return 403, "this request comes from a page of another site"
        client = scope.get("client")
        wait = self._buckets.wait(client[0] if client else "?")
        if wait > 0:
            return 429, f"too many requests: try again in {wait:.1f} seconds"
        length = headers.get(b"content-length", "0")
        if length.isdecimal() and int(length[:20]) > LARGEST_BODY:
            return 413, f"a body must have at most {LARGEST_BODY:,} bytes"
        return None


def _name_of(host: str) -> str:
    """A host's name without its port."""
    return host.partition("]")[0].lstrip("[") if host.startswith("[") else host.partition(":")[0]


async def _body(receive: Receive) -> bytes | None:
    """The whole body; None: it is too large, whatever its header says."""
    body: bytes = b""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return body
        body += message.get("body", b"")
        if len(body) > LARGEST_BODY:
            return None
        if not message.get("more_body", False):
            return body


def _once(body: bytes, receive: Receive) -> Receive:
    """Gives a body that was read already, and then what else comes."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            known = {name.lower() for name, _ in message["headers"]}
            message["headers"] = [
                *message["headers"],
                *(
                    (name.encode(), value.encode())
                    for name, value in HEADERS.items()
                    if name.encode() not in known
                ),
            ]
        await send(message)

    return sending


async def _refuse(send: Send, status: int, error: str) -> None:
    body = json.dumps({"error": error}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 429:
        headers.append((b"retry-after", b"1"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
