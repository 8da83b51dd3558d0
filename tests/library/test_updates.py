"""A newer version is told of, over HTTPS alone, and an answer that makes no sense is said so."""

from __future__ import annotations

import io
import json
import urllib.error
import urllib.request
from email.message import Message

import pytest

from app import __version__
from app.library import updates
from app.library.updates import ADDRESS, OnlyHttps, Release, newer_release
from app.run.problems import Problem

PAGE = "https://example.org/foretoken/9.0"


@pytest.fixture
def answer(monkeypatch):
    """Lets the address answer with this, and tells what was asked for."""
    asked = []

    def answers(content: bytes | Exception) -> list[str]:
        def open_(self, request, timeout):
            asked.append(request.full_url)
            if isinstance(content, Exception):
                raise content
            return io.BytesIO(content)

        monkeypatch.setattr(urllib.request.OpenerDirector, "open", open_)
        return asked

    return answers


def release(version: str, page: str = PAGE) -> bytes:
    return json.dumps({"version": version, "page": page, "more": 1}).encode()


def test_a_newer_version_is_told_of_with_its_page(answer):
    asked = answer(release("9.0.0"))
    assert newer_release() == Release("9.0.0", PAGE)
    assert asked == [ADDRESS]


@pytest.mark.parametrize(
    "version", [__version__, "0.0.1", f"{__version__}.dev1", f"{__version__}rc1"]
)
def test_this_version_and_older_ones_are_not(answer, version):
    answer(release(version))
    assert newer_release() is None


def test_versions_are_compared_as_numbers(answer, monkeypatch):
    monkeypatch.setattr(updates, "__version__", "0.9.0")
    answer(release("0.10.0"))
    assert newer_release() is not None


@pytest.mark.parametrize(
    "content", [b"", b"<html>", b"[]", b'{"version": "9"}', release("newest"), b"\xff" * 20_000]
)
def test_an_answer_that_makes_no_sense_is_said_so(answer, content):
    answer(content)
    with pytest.raises(Problem, match="cannot be read"):
        newer_release()


@pytest.mark.parametrize(
    "error", [urllib.error.URLError("no route"), TimeoutError("timed out"), ConnectionResetError()]
)
def test_without_a_connection_it_says_what_to_do(answer, error):
    answer(error)
    with pytest.raises(Problem, match="could not be asked") as caught:
        newer_release()
    assert "connection" in caught.value.remedy


@pytest.mark.parametrize("page", ["http://example.org", "file:///etc/passwd", "javascript:x"])
def test_a_page_is_only_shown_if_it_is_one_of_https(answer, page):
    answer(release("9.0.0", page))
    with pytest.raises(Problem, match="not an address of HTTPS"):
        newer_release()


def test_the_address_itself_has_to_be_one(answer, monkeypatch):
    asked = answer(release("9.0.0"))
    monkeypatch.setattr(updates, "ADDRESS", "http://example.org/latest.json")
    with pytest.raises(Problem, match="not an address of HTTPS"):
        newer_release()
    assert asked == []


def test_no_redirection_leaves_https():
    asked = urllib.request.Request(ADDRESS)
    follow = OnlyHttps().redirect_request
    told = follow(asked, io.BytesIO(), 302, "Found", Message(), "https://example.org/latest.json")
    assert told is not None
    assert told.full_url == "https://example.org/latest.json"
    with pytest.raises(Problem, match="not an address of HTTPS"):
        follow(asked, io.BytesIO(), 302, "Found", Message(), "http://example.org/latest.json")
