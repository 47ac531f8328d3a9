"""One HTTP session for index pages and files, retries included; ``file://`` works like ``http://``."""

from __future__ import annotations

import email.utils
import io
import mimetypes
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

import requests
from requests.adapters import BaseAdapter
from requests.structures import CaseInsensitiveDict
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential

from .pip_configuration import Configuration

ATTEMPTS = 4
CONNECT_SECONDS = 10.0
_PASSING = (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError)
_PASSING_STATUS = {408, 425, 429, 500, 502, 503, 504}
Result = TypeVar("Result")


class FileAdapter(BaseAdapter):
    """Serves ``file://`` URLs of a local index; a folder answers with its ``index.html``."""

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        verify: bool | str = True,
        cert: Any = None,
        proxies: Mapping[str, str] | None = None,
    ) -> requests.Response:
        """The file as a response: 200, 206 for a byte range, 404 where there is none."""
        url = str(request.url)
        path = Path(unquote(urlsplit(url).path))
        if path.is_dir():
            path = path / "index.html"
        response = requests.Response()
        response.url, response.request, response.status_code = url, request, 200
        response.headers = CaseInsensitiveDict()
        try:
            size = path.stat().st_size
            file = path.open("rb")
        except OSError:
            response.status_code, response.raw = 404, io.BytesIO()
            return response
        start, end = 0, size
        wanted = re.fullmatch(r"bytes=(\d*)-(\d*)", str(request.headers.get("Range", "")))
        if wanted:
            if wanted[1]:
                start, end = int(wanted[1]), min(size, int(wanted[2] or size - 1) + 1)
            else:
                start = max(0, size - int(wanted[2]))
            response.status_code = 206
            response.headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
        response.headers["Content-Length"] = str(end - start)
        response.headers["Content-Type"] = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        response.headers["Last-Modified"] = email.utils.formatdate(path.stat().st_mtime, usegmt=True)
        file.seek(start)
        response.raw = io.BytesIO(file.read(end - start)) if wanted else file
        return response

    def close(self) -> None:
        """Nothing is kept open between requests."""


class _Session(requests.Session):
    """A session that leaves certificates of pip's trusted hosts unchecked."""

    trusted: frozenset[str] = frozenset()

    def request(self, method: Any, url: Any, *arguments: Any, **named: Any) -> requests.Response:
        parts = urlsplit(str(url))
        if self.trusted & {parts.hostname, parts.netloc.rpartition("@")[2]}:
            named["verify"] = False
        return super().request(method, url, *arguments, **named)


def session(configuration: Configuration) -> requests.Session:
    """A session as pip is configured: certificates, proxy, trusted hosts."""
    made = _Session()
    made.trusted = configuration.trusted
    if configuration.certificate:
        made.verify = configuration.certificate
    if configuration.client_certificate:
        made.cert = configuration.client_certificate
    if configuration.proxy:
        made.proxies = {"http": configuration.proxy, "https": configuration.proxy}
    # Bytes are checked and placed by offset, so they must come as they are stored.
    made.headers["Accept-Encoding"] = "identity"
    made.mount("file://", FileAdapter())
    return made


def patiently(action: Callable[[], Result]) -> Result:
    """Run ``action``, again after a failure that may pass (connection, time-out, busy server); raise the last one."""
    for attempt in Retrying(
        retry=retry_if_exception(_may_pass),
        stop=stop_after_attempt(ATTEMPTS),
        wait=wait_exponential(multiplier=0.2, max=4),
        reraise=True,
    ):
        with attempt:
            return action()
    raise AssertionError("a retry ends with a result or an error")


def _may_pass(error: BaseException) -> bool:
    if isinstance(error, requests.HTTPError):
        return error.response is not None and error.response.status_code in _PASSING_STATUS
    return isinstance(error, _PASSING) and not isinstance(error, requests.exceptions.SSLError)


def reason(error: Exception) -> str:
    """Why a request failed, in a few words and without the URL's secrets."""
    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"the server answered {error.response.status_code} {error.response.reason or ''}".strip()
    if isinstance(error, requests.Timeout):
        return "no answer in time"
    if isinstance(error, requests.exceptions.SSLError):
        return "its certificate can't be verified"
    if isinstance(error, requests.exceptions.ProxyError):
        return "the proxy can't be reached"
    if isinstance(error, requests.ConnectionError):
        return "no connection"
    if isinstance(error, ValueError):  # requests' errors for URLs are such
        return "that is no usable URL or answer"
    return type(error).__name__
