"""The Hub's token lives in the keyring; where there is none, the other ways are named."""

from __future__ import annotations

import pytest
from keyring.backend import KeyringBackend
from keyring.backends import fail, null
from keyring.errors import KeyringLocked

from app.library.hub_access import HubAccess, hub_access
from app.library.hub_account import account_of
from app.library.hub_token import forget_token, hub_token, keep_token, other_token
from app.run.problems import Problem
from hub_stand_in import TOKEN, HubStandIn
from own_keyring import MemoryKeyring, using

pytestmark = pytest.mark.usefixtures("hub")


def test_a_token_is_kept_found_and_forgotten() -> None:
    assert hub_token() is None
    assert not forget_token()
    keep_token(TOKEN)
    assert hub_token() == hub_access().token == TOKEN
    keep_token("hf_another_one")
    assert hub_token() == "hf_another_one"
    assert forget_token()
    assert hub_token() is None


@pytest.mark.parametrize("backend", [fail.Keyring(), null.Keyring()])
def test_without_a_keyring_the_other_ways_are_named(
    backend: KeyringBackend,
) -> None:
    with using(backend):
        with pytest.raises(Problem, match="no keyring") as caught:
            keep_token(TOKEN)
        assert "HF_TOKEN" in caught.value.remedy
        assert "hf auth login" in caught.value.remedy
        assert hub_token() is None
        assert not forget_token()


class Failing(MemoryKeyring):
    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    def _fail(self, *_: str) -> None:
        raise self._error

    get_password = set_password = delete_password = _fail  # type: ignore[assignment]


@pytest.mark.parametrize("kind", [KeyringLocked, LookupError])
def test_a_keyring_that_fails_is_no_end(kind: type[Exception]) -> None:
    with using(Failing(kind("the person said no"))):
        assert hub_token() is None
        for change in (lambda: keep_token(TOKEN), forget_token):
            with pytest.raises(Problem, match="the person said no"):
                change()


@pytest.mark.parametrize("odd", ["", "hf_a b", "hf_a\nX-Other: 1", "hf_é23456789", "x" * 501])
def test_what_cannot_be_a_token_is_neither_sent_nor_kept(hub: HubStandIn, odd: str) -> None:
    for use in (keep_token, account_of):
        with pytest.raises(Problem, match="no token"):
            use(odd)
    assert hub.asked == []
    assert hub_token() is None


def test_the_hub_tells_whose_it_is_if_it_can(hub: HubStandIn) -> None:
    assert account_of(TOKEN) == "someone"
    with pytest.raises(Problem, match="does not accept this token"):
        account_of("hf_wrong_token")
    hub.always("whoami", status=503)
    assert account_of(TOKEN) is None
    hub.always("whoami", status=200)  # and no JSON
    assert account_of(TOKEN) is None
    hub.stop()
    assert account_of(TOKEN) is None


def test_where_else_a_token_comes_from(monkeypatch: pytest.MonkeyPatch) -> None:
    assert other_token() == ""
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", __file__)
    assert "hf auth login" in other_token()
    monkeypatch.setenv("HF_TOKEN", "x")
    assert other_token() == "HF_TOKEN"


def test_it_does_not_show() -> None:
    keep_token(TOKEN)
    access = hub_access()
    assert isinstance(access, HubAccess)
    for shown in (repr(access), str(access), f"{[access]}"):
        assert TOKEN not in shown
