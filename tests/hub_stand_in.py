"""A small server on this machine that speaks the Hub's API, with the faults that a test asks for.

It serves what the Hub's own library asks for: the list of a repository's files, files by HEAD and
GET with Range, and who one is. Large files (LFS) are handed out by a second server at another
address, as the Hub does, and the token must not come along to it.
"""

from __future__ import annotations

import hashlib
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789" * 4
TOKEN = "hf_right_token"
LFS = (".safetensors", ".gguf", ".bin", ".model")
"""Ends of the names of files that are large to this hub, however small they are."""


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def git_sha1(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def digest(name: str, content: bytes) -> str:
    """By what the cache of the Hub names a file."""
    return sha256(content) if name.endswith(LFS) else git_sha1(content)


class Answer(SimpleNamespace):
    """An answer instead of the true one, by whichever of these is given."""

    status: int | None = None
    headers: dict[str, str] = {}  # noqa: RUF012 - nobody writes into it
    content: bytes | None = None
    """What the file holds, instead of what the list says."""
    whole = False
    """All of the file comes, whatever Range asks for."""
    cut: int | None = None
    """The connection breaks after so many bytes."""
    hold: threading.Event | None = None
    """After the bytes of `cut` nothing comes until this is set; then the connection breaks."""


class HubStandIn:
    """The server: what it holds, whom it lets in, what goes wrong, and what it was asked."""

    def __init__(self) -> None:
        self.repos: dict[str, dict[str, bytes]] = {}
        self.revisions = {"main": COMMIT}
        """Branches and tags, and their commits."""
        self.gated: set[str] = set()
        self.refused: set[str] = set()
        """Gated repositories that do not let the right token in either."""
        self.asked: list[SimpleNamespace] = []
        """Every request: which server, method, path, headers (lower case)."""
        self.page: bytes | None = None
        """A page that comes instead of every list, as in a network that asks for a login."""
        self._answers: dict[str, list[Answer]] = {}
        self._always: dict[str, Answer] = {}
        self.connections: list[socket.socket] = []
        self._servers = [_server(self, "hub"), _server(self, "storage")]
        self.endpoint, self.storage = (
            f"http://127.0.0.1:{server.server_address[1]}" for server in self._servers
        )

    def put(self, repo: str, files: dict[str, bytes]) -> None:
        """Puts a repository on the hub."""
        self.repos[repo] = files

    def next(self, what: str, **answer: object) -> None:
        """The next GET of this file, or of "list", is answered so; the ones after as asked next."""
        self._answers.setdefault(what, []).append(Answer(**answer))

    def always(self, what: str, **answer: object) -> None:
        """Every GET of this file, or of "list" or "whoami", is answered so."""
        self._always[what] = Answer(**answer)

    def mend(self) -> None:
        """From now on nothing goes wrong."""
        self._answers.clear()
        self._always.clear()

    def gets(self, name: str) -> list[SimpleNamespace]:
        """The GET requests for a file that were answered with its content, or with a fault."""
        return [
            one
            for one in self.asked
            if one.method == "GET" and one.path.endswith(f"/{name}") and not one.redirected
        ]

    def answer(self, what: str) -> Answer:
        """What to answer to a GET instead of the truth; an empty one for nothing else."""
        waiting = self._answers.get(what)
        if waiting:
            return waiting.pop(0)
        return self._always.get(what, Answer())

    def start(self) -> None:
        for server in self._servers:
            threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()
        for connection in self.connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


@contextmanager
def standing_in() -> Iterator[HubStandIn]:
    """A hub that is there while it is entered."""
    hub = HubStandIn()
    hub.start()
    try:
        yield hub
    finally:
        hub.stop()


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away is no news."""


def _server(hub: HubStandIn, role: str) -> ThreadingHTTPServer:
    handler = type("Handler", (_Handler,), {"hub": hub, "role": role})
    return _Quiet(("127.0.0.1", 0), handler)


class _Handler(BaseHTTPRequestHandler):
    hub: HubStandIn
    role: str
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        self.hub.connections.append(self.request)
        super().setup()

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""

    def do_HEAD(self) -> None:
        self._serve()

    def do_GET(self) -> None:
        self._serve()

    def _serve(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.seen = SimpleNamespace(
            server=self.role,
            method=self.command,
            path=path,
            headers={key.lower(): value for key, value in self.headers.items()},
            redirected=False,
        )
        self.hub.asked.append(self.seen)
        parts = path.strip("/").split("/")
        if path == "/api/whoami-v2":
            self._whoami()
        elif parts[:2] == ["api", "models"]:
            self._list("/".join(parts[2:4]), parts[4], "/".join(parts[5:]))
        else:
            place = parts.index("resolve")
            repo, revision = "/".join(parts[:place]), parts[place + 1]
            self._file(repo, revision, "/".join(parts[place + 2 :]))

    @property
    def _token(self) -> str | None:
        said = self.headers.get("Authorization")
        return said.removeprefix("Bearer ") if said else None

    def _whoami(self) -> None:
        if not self._is_faulty("whoami"):
            if self._token == TOKEN:
                self._json({"type": "user", "name": "someone", "auth": {}})
            else:
                self._refuse(401, "", "Invalid credentials in Authorization header")

    def _list(self, repo: str, what: str, revision: str) -> None:
        if self.hub.page is not None:
            self._send(200, self.hub.page, {"Content-Type": "text/html"})
        elif self._is_faulty("list") or not self._is_known(repo, revision):
            return
        elif what == "revision":
            files = [_sibling(name, content) for name, content in self.hub.repos[repo].items()]
            self._json({"id": repo, "sha": self._commit(revision), "siblings": files})
        else:
            self._json([_leaf(name, file) for name, file in self.hub.repos[repo].items()])

    def _file(self, repo: str, revision: str, name: str) -> None:
        if not self._is_known(repo, revision) or not self._is_let_in(repo):
            return
        content = self.hub.repos[repo].get(name)
        if content is None:
            self._refuse(404, "EntryNotFound", "Entry not found")
            return
        headers = {"X-Repo-Commit": str(self._commit(revision))}
        headers["ETag"] = f'"{digest(name, content)}"'
        if name.endswith(LFS) and self.role == "hub":
            headers["X-Linked-Etag"] = headers.pop("ETag")
            headers["X-Linked-Size"] = str(len(content))
            self.seen.redirected = True
            place = f"{self.hub.storage}{urlsplit(self.path).path}?key=secret-key"
            self._send(302, b"", {**headers, "Location": place})
        elif self.command == "HEAD":
            self._send(200, content, headers)
        elif not self._is_faulty(name, content):
            self._content(content, headers)

    def _content(self, content: bytes, headers: dict[str, str], cut: int | None = None) -> None:
        """The file, or the part of it that Range asks for."""
        asked = self.headers.get("Range")
        if asked is None:
            self._send(200, content, headers, cut)
            return
        begin, end = (int(place or 0) for place in asked.removeprefix("bytes=").split("-"))
        if begin >= len(content):
            self._send(416, b"", {"Content-Range": f"bytes */{len(content)}"})
            return
        end = end or len(content) - 1
        where = f"bytes {begin}-{end}/{len(content)}"
        self._send(206, content[begin : end + 1], {**headers, "Content-Range": where}, cut)

    def _is_faulty(self, what: str, content: bytes = b"") -> bool:
        """Whether something else than the truth was sent."""
        if self.role == "hub" and what.endswith(LFS):
            return False
        answer = self.hub.answer(what)
        if answer.status is not None:
            self._send(answer.status, b"", answer.headers)
        elif answer.cut is not None:
            self._content(content, {}, answer.cut)
            if answer.hold is not None:
                answer.hold.wait(30)
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
        elif answer.whole:
            self._send(200, content, {})
        elif answer.content is not None:
            self._content(answer.content, answer.headers)
        else:
            return False
        return True

    def _commit(self, revision: str) -> str | None:
        """The commit of a branch, a tag, or a commit."""
        known = self.hub.revisions
        return known.get(revision, revision if revision in known.values() else None)

    def _is_known(self, repo: str, revision: str) -> bool:
        """Whether the repository is there at the revision; if not, that was said."""
        if repo not in self.hub.repos:
            self._refuse(401, "RepoNotFound", "Repository not found")
        elif self._commit(revision) is None:
            self._refuse(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        else:
            return True
        return False

    def _is_let_in(self, repo: str) -> bool:
        """Whether one may have its files; if not, that was said."""
        if self.role == "storage" or repo not in self.hub.gated:
            return True
        if self._token is None:
            self._refuse(401, "GatedRepo", "Access to model is restricted.")
        elif self._token != TOKEN:
            self._refuse(401, "", "Invalid credentials in Authorization header")
        elif repo in self.hub.refused:
            self._refuse(403, "GatedRepo", "Access to model is restricted.")
        else:
            return True
        return False

    def _refuse(self, status: int, code: str, message: str) -> None:
        headers = {"X-Error-Message": message}
        self._send(status, b"", headers | ({"X-Error-Code": code} if code else {}))

    def _json(self, what: object) -> None:
        self._send(200, json.dumps(what).encode(), {"Content-Type": "application/json"})

    def _send(
        self, status: int, content: bytes, headers: dict[str, str], cut: int | None = None
    ) -> None:
        self.send_response(status)
        for key, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content[:cut])
            self.wfile.flush()


def _sibling(name: str, content: bytes) -> dict[str, object]:
    """A file as `/revision/` lists it with `blobs=true`."""
    told: dict[str, object] = {"rfilename": name, "size": len(content), "blobId": git_sha1(content)}
    if name.endswith(LFS):
        told["lfs"] = {"size": len(content), "sha256": sha256(content), "pointerSize": 130}
    return told


def _leaf(name: str, content: bytes) -> dict[str, object]:
    """A file as `/tree/` lists it."""
    told: dict[str, object] = {"type": "file", "path": name, "size": len(content)}
    told["oid"] = git_sha1(content)
    if name.endswith(LFS):
        told["lfs"] = {"size": len(content), "oid": sha256(content), "pointerSize": 130}
    return told
