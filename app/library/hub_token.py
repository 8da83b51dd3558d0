"""The token of the Hugging Face Hub, kept in the system's keyring; never printed or logged."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import keyring
from huggingface_hub import constants
from keyring.errors import KeyringError, NoKeyringError, PasswordDeleteError

from app.run.problems import Problem

_SERVICE = "foretoken"
_USER = "huggingface-hub"
_VARIABLES = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")
_TOKEN = re.compile(r"[!-~]{8,500}")
"""One word of visible ASCII: anything else cannot stand in a header."""
_OTHER_WAYS = "Set HF_TOKEN instead, or run `hf auth login`: a token there is used too."


def hub_token() -> str | None:
    """The token to use: that of the environment, else that of the keyring.

    None leaves the choice to the Hub's own library: the environment, else `hf auth login`.
    """
    if is_in_environment():
        return None
    try:
        return _asked(keyring.get_password)
    except KeyringError:  # no keyring on this machine, or it stays locked
        return None


def other_token() -> str:
    """Where a token comes from that is used without the keyring's; "" if there is none."""
    if is_in_environment():
        return "HF_TOKEN"
    return "`hf auth login`" if Path(constants.HF_TOKEN_PATH).is_file() else ""


def is_in_environment() -> bool:
    """Whether the environment names a token, which goes before every other."""
    return any(os.environ.get(name) for name in _VARIABLES)


def refuse_odd(token: str) -> None:
    """Raises Problem for what cannot be a token."""
    if not _TOKEN.fullmatch(token):
        raise Problem(
            "That is no token of the Hub: a token is one word, such as hf_….",
            "Copy it from huggingface.co/settings/tokens.",
        )


def keep_token(token: str) -> None:
    """Puts a token into the keyring. Raises Problem for what is none, or without a keyring."""
    refuse_odd(token)
    try:
        _asked(keyring.set_password, token)
        kept = _asked(keyring.get_password) == token
    except NoKeyringError as error:
        raise _no_keyring() from error
    except KeyringError as error:
        raise Problem(f"The keyring of this machine refused the token: {error}", _OTHER_WAYS) from (
            error
        )
    if not kept:
        raise _no_keyring()


def forget_token() -> bool:
    """Takes the token out of the keyring; False if there was none. Raises Problem if it cannot."""
    try:
        if _asked(keyring.get_password) is None:
            return False
        _asked(keyring.delete_password)
    except NoKeyringError:
        return False
    except PasswordDeleteError as error:
        said = "The keyring of this machine does not give the token away."
        raise Problem(said, "Remove `foretoken` in the keyring's own program.") from error
    except KeyringError as error:
        said = f"The keyring of this machine cannot be read: {error}"
        raise Problem(said, "Unlock it and try again.") from error
    return True


def _asked(ask: Callable[..., str | None], *arguments: str) -> str | None:
    """What the keyring answers. Raises KeyringError, whatever its backend has raised."""
    try:
        return ask(_SERVICE, _USER, *arguments)
    except KeyringError:
        raise
    except Exception as error:  # a backend has errors of its own, those of D-Bus for one
        raise KeyringError(str(error) or type(error).__name__) from error


def _no_keyring() -> Problem:
    return Problem("This machine has no keyring that could hold the token.", _OTHER_WAYS)
