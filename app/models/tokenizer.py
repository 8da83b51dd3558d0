"""Ids from text and text from ids, with the target's own tokenizer and chat template."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from app.models.detokenizer import Detokenizer
from app.models.hugging_face import FROM_FOLDERS_ONLY, transformers
from app.run.problems import Problem, empty_prompt
from app.run.settings import Message

_LETTER = "a"
"""Stands for any text."""


class Tokenizer:
    """A tokenizer as it lies in a model's folder."""

    def __init__(self, folder: Path) -> None:
        try:
            self._inner: Any = transformers.AutoTokenizer.from_pretrained(
                folder, **FROM_FOLDERS_ONLY
            )
        except Exception as error:  # the libraries raise anything for a file that is not whole
            raise Problem(
                f"The tokenizer in {folder} cannot be read: {_first_line(error)}",
                "Fetch the model again, with its tokenizer.json.",
            ) from None

    def __len__(self) -> int:
        """Ids that stand for a token."""
        return len(self._inner)

    @property
    def has_chat_template(self) -> bool:
        """Whether the folder says how a conversation is written."""
        return bool(self._inner.chat_template)

    def encode_prompt(
        self,
        prompt: str,
        *,
        system: str = "",
        earlier: Sequence[Message] = (),
        raw: bool = False,
    ) -> list[int]:
        """The ids of a prompt and of what was said before it, within the chat template.

        If `raw`, or without a template, all that was said stands with blank lines between. A raw
        prompt of nothing is the token that begins a text, if there is one. Raises Problem for a
        prompt without a token.
        """
        if raw or not self.has_chat_template:
            before = [system] if system else []
            text = "\n\n".join([*before, *(message.text for message in earlier), prompt])
            special = True
        else:
            text, special = self._rendered(prompt, system, earlier), False
        ids = self._encoded(text, special=special)
        if raw and not text and self._inner.bos_token_id is not None:
            return ids or [int(self._inner.bos_token_id)]
        if not ids or not (raw or prompt.strip()):
            raise empty_prompt()
        return ids

    def detokenizer(self, *, silent: Collection[int]) -> Detokenizer:
        """A fresh detokenizer; `silent` ids add no text."""
        return Detokenizer(self.decode, silent=silent)

    def decode(self, ids: Sequence[int]) -> str:
        """The exact text of ids: special tokens shown, no spaces cleaned up."""
        return str(self._inner._tokenizer.decode(list(ids), skip_special_tokens=False))

    def encode(self, text: str) -> list[int]:
        """The ids of a text, with nothing put around it."""
        return list(self._inner._tokenizer.encode(text, add_special_tokens=False).ids)

    def opening(self) -> list[int]:
        """The ids that it puts before every text, if any."""
        plain, whole = self.encode(_LETTER), self._encoded(_LETTER, special=True)
        places = range(len(whole) - len(plain) + 1)
        found = (place for place in places if whole[place : place + len(plain)] == plain)
        return whole[: next(found, 0)]

    def _encoded(self, text: str, *, special: bool) -> list[int]:
        """The ids of a text, with the tokens that surround every text if they are wanted."""
        try:
            return list(self._inner(text, add_special_tokens=special)["input_ids"])
        except Exception as error:  # as when its file is read: the libraries raise anything
            raise Problem(
                f"The model's tokenizer cannot read this text: {_first_line(error)}",
                "Fetch the model again, with its tokenizer.json.",
            ) from None

    def _rendered(self, prompt: str, system: str, earlier: Sequence[Message]) -> str:
        conversation = [{"role": "system", "content": system}] if system else []
        conversation += [{"role": one.role, "content": one.text} for one in earlier]
        conversation.append({"role": "user", "content": prompt})
        try:
            return str(
                self._inner.apply_chat_template(
                    conversation, tokenize=False, add_generation_prompt=True
                )
            )
        except Exception as error:  # a template is a program: any error may come
            raise Problem(
                f"The model's chat template refuses this conversation: {_first_line(error)}",
                "Leave the system message empty, or give the prompt raw.",
            ) from None


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
