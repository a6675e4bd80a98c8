"""Ask a language model through an OpenAI-compatible endpoint, some requests at a time.

The protocol is a POST to ``URL/chat/completions``. The key is sent as a bearer token and appears in
no message.
"""

from __future__ import annotations

import json
import queue
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPMessage, HTTPResponse
from typing import IO, Any

from forewarn.errors import InputError

Messages = list[dict[str, str]]

LARGEST = 1_000_000
"""Characters of a response that are read."""
LONGEST_PAUSE = 300.0
_PIECE = 65_536
_TRANSIENT = frozenset({408, 409, 425, 429, 500, 502, 503, 504})


class AskingError(InputError):
    """An endpoint refuses every request: the key, the model or the address is wrong."""


class NoAnswerError(Exception):
    """One request had no answer; the text says why."""


@dataclass(frozen=True)
class Endpoint:
    """Where to ask: `url` is what ``/chat/completions`` is appended to.

    A request may take `timeout` seconds as a whole. One that timed out, was refused for load or
    broke off is repeated `retries` times, after `backoff` seconds, then twice as long each time.
    """

    url: str
    model: str
    key: str = field(default="", repr=False)
    timeout: float = 60.0
    retries: int = 3
    backoff: float = 1.0


@dataclass(frozen=True)
class Reply:
    """What a model answered, with the tokens that the endpoint counted."""

    text: str
    tokens: int | None
    calls: int


def check_endpoint(endpoint: Endpoint) -> None:
    """Refuse an address that is not valid; raises AskingError."""
    accepted = "http://HOST:PORT/v1 or https://HOST/v1, and a key in the environment"
    try:
        parts = urllib.parse.urlsplit(endpoint.url)
    except ValueError:
        raise AskingError("--url is no address", accepted=accepted) from None
    for secret, name in ((parts.username or parts.password, "password"), (parts.query, "query")):
        if secret:
            raise AskingError(f"--url holds a {name}", accepted=accepted)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise AskingError(f"--url {endpoint.url!r} is no address", accepted=accepted)
    if not endpoint.key.isascii() or not endpoint.key.isprintable():
        raise AskingError("the key has characters that no header may hold", accepted="ASCII text")


def ask_all(
    endpoint: Endpoint, chats: Sequence[tuple[str, Messages]], concurrency: int
) -> Iterator[tuple[int, Reply | NoAnswerError]]:
    """Yield the number of a chat and its reply, or why there is none, as replies come.

    Names of `chats` are for messages about what went wrong. At most `concurrency` requests are
    under way; where the endpoint says when to come again, all wait. Raises AskingError, and gives
    up what is under way, if the endpoint refuses the key, the model or the address.
    """
    asking = _Asking(endpoint, chats)
    # Daemons: the end of the process does not wait for answers.
    for _ in range(min(concurrency, len(chats))):
        threading.Thread(target=asking.work, daemon=True).start()
    try:
        for _ in chats:
            number, reply = asking.replies.get()
            if isinstance(reply, AskingError):
                raise reply.located(key=chats[number][0])
            if not isinstance(reply, (Reply, NoAnswerError)):
                raise reply
            yield number, reply
    finally:
        asking.over.set()


class _Asking:
    """What the workers share."""

    def __init__(self, endpoint: Endpoint, chats: Sequence[tuple[str, Messages]]) -> None:
        self.endpoint, self.chats = endpoint, chats
        self.replies: queue.SimpleQueue[tuple[int, Reply | Exception]] = queue.SimpleQueue()
        self.over = threading.Event()
        self._waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
        for number in range(len(chats)):
            self._waiting.put(number)
        self._not_before = 0.0

    def work(self) -> None:
        with suppress(queue.Empty):
            while not self.over.is_set():
                number = self._waiting.get_nowait()
                try:
                    reply: Reply | Exception = self._asked(self.chats[number][1])
                except Exception as error:  # whatever it is, the caller waits for it
                    reply = error
                    if not isinstance(error, NoAnswerError):
                        self.over.set()
                self.replies.put((number, reply))

    def _asked(self, messages: Messages) -> Reply:
        """Ask once, and again where that may help."""
        endpoint = self.endpoint
        body = {"model": endpoint.model, "messages": messages, "temperature": 0, "stream": False}
        backoff, call = endpoint.backoff, 0
        while True:
            call += 1
            if self.over.wait(self._not_before - time.monotonic()):
                raise NoAnswerError("given up")
            try:
                text, tokens = _answer(_posted(endpoint, body))
                return Reply(text, tokens, call)
            except _TransientError as error:
                if call > endpoint.retries:
                    raise NoAnswerError(f"{error}, {call} times") from None
                if error.after:
                    self._not_before = time.monotonic() + min(error.after, LONGEST_PAUSE)
                else:
                    self.over.wait(min(backoff, LONGEST_PAUSE))
                backoff *= 2


class _TransientError(Exception):
    """Another try may help; not before `after` seconds."""

    def __init__(self, text: str, after: float = 0.0) -> None:
        super().__init__(text)
        self.after = after


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the key to another address."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        return None


def _posted(endpoint: Endpoint, body: dict[str, Any]) -> str:
    headers = {"Content-Type": "application/json", "User-Agent": "forewarn"}
    if endpoint.key:
        headers["Authorization"] = f"Bearer {endpoint.key}"
    request = urllib.request.Request(
        endpoint.url.rstrip("/") + "/chat/completions", json.dumps(body).encode(), headers
    )
    opener = urllib.request.build_opener(_NoRedirect)
    until = time.monotonic() + endpoint.timeout
    try:
        with opener.open(request, timeout=endpoint.timeout) as response:
            return _read(response, until)
    except urllib.error.HTTPError as error:
        raise _refused(error, endpoint) from None
    except TimeoutError:
        raise _TransientError(f"no answer within {endpoint.timeout:g} s") from None
    except (urllib.error.URLError, HTTPException, OSError) as error:
        reason = getattr(error, "reason", None) or error
        if isinstance(reason, TimeoutError):
            raise _TransientError(f"no answer within {endpoint.timeout:g} s") from None
        raise _TransientError(f"no connection ({_shown(reason, endpoint)})") from None


def _read(response: HTTPResponse, until: float) -> str:
    """Read piece by piece: a server that sends a byte now and then must not hold us for ever."""
    pieces: list[bytes] = []
    size = 0
    while True:
        piece = response.read1(_PIECE)
        if not piece:
            return b"".join(pieces).decode("utf-8", errors="replace")
        pieces.append(piece)
        size += len(piece)
        if size > LARGEST:
            raise NoAnswerError(f"the response is longer than {LARGEST} bytes")
        if time.monotonic() > until:
            raise TimeoutError


def _refused(error: urllib.error.HTTPError, endpoint: Endpoint) -> Exception:
    with error:
        try:
            answer = error.read(500).decode("utf-8", errors="replace")
        except (OSError, HTTPException):
            answer = ""
    text = f"HTTP {error.code}"
    if answer.strip():
        text += f" ({_shown(answer, endpoint)})"
    if error.code in _TRANSIENT:
        return _TransientError(text, _seconds(error.headers.get("Retry-After")))
    if error.code in (400, 413, 422):  # about this request
        return NoAnswerError(text)
    accepted = "an address, a model and a key that belong together"
    return AskingError(f"{endpoint.url} refuses: {text}", accepted=accepted)


def _seconds(text: str | None) -> float:
    """Return the seconds that a Retry-After names, 0 if it names none."""
    with suppress(ValueError):
        return max(0.0, float(text or 0))
    return 0.0


def _shown(value: object, endpoint: Endpoint) -> str:
    text = str(value)
    if endpoint.key:
        text = text.replace(endpoint.key, "***")
    return "".join(c if c.isprintable() else " " for c in text)[:200]


def _answer(text: str) -> tuple[str, int | None]:
    """Return the answer in a response, and the tokens that it took."""
    try:
        document = json.loads(text)
        content = document["choices"][0]["message"]["content"]
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        raise NoAnswerError("the response is no chat completion") from None
    if not isinstance(content, str):
        raise NoAnswerError("the response holds no text")
    usage = document.get("usage")
    tokens = usage.get("total_tokens") if isinstance(usage, dict) else None
    return content, tokens if isinstance(tokens, int) else None
