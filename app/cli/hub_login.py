"""`models login` and `models logout`: the token of the Hub, into the keyring and out of it."""

from __future__ import annotations

import getpass
import sys
import warnings

from app.cli.screen import remarks, results, say
from app.library.hub_account import account_of
from app.library.hub_token import forget_token, is_in_environment, keep_token, other_token
from app.run.problems import Problem


def login() -> None:
    """Keep a token of the Hugging Face Hub in this machine's keyring, for gated models.

    It is asked for without an echo, or read from what is piped in; never given as an argument.
    """
    token = _asked()
    account = account_of(token)
    keep_token(token)
    checked = f"for the account {account}" if account else "unchecked: the Hub cannot be reached"
    say(results(), f"The token is in this machine's keyring now, {checked}.")
    if is_in_environment():
        say(remarks(), "HF_TOKEN is set too, and goes before it.")


def logout() -> None:
    """Take the token of the Hugging Face Hub out of this machine's keyring."""
    gone = forget_token()
    say(results(), "The token is gone." if gone else "There was no token in the keyring.")
    if other := other_token():
        say(remarks(), f"The token of {other} is still used.")


def _asked() -> str:
    """The token, as typed or piped in. Raises Problem where typing it would show it."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().strip()
    say(remarks(), "Make a token that may read at huggingface.co/settings/tokens.")
    with warnings.catch_warnings():
        warnings.simplefilter("error", getpass.GetPassWarning)
        try:
            return getpass.getpass("Token (it is not shown): ").strip()
        except getpass.GetPassWarning as error:
            raise Problem(
                "This terminal would show the token.",
                "Pipe it in instead: `foretoken models login < FILE`.",
            ) from error
        except EOFError as error:
            raise Problem("No token was typed.", "Run the command again.") from error
