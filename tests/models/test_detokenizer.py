"""Text from ids: append-only, complete, and equal to decoding all at once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from app.decoding.commit import Text
from app.models.detokenizer import Detokenizer


def byte_tokenizer() -> Tokenizer:
    """F5: byte-level without merges, so that every byte is a token."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def metaspace_tokenizer() -> Tokenizer:
    """F6: as Llama 2: metaspace, byte fallback, one leading space stripped from the text."""
    words = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256))]
    words += ["▁", "▁Hello", "▁world", "▁,", ".", "▁it", "'s", "x", "▁x", "\n", "▁▁▁▁", "def"]
    tokenizer = Tokenizer(
        models.BPE(
            vocab={w: i for i, w in enumerate(words)},
            merges=[],
            byte_fallback=True,
            unk_token="<unk>",
        )
    )
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    return tokenizer


BYTES, META = byte_tokenizer(), metaspace_tokenizer()


def decode_bytes(ids):
    return BYTES.decode(list(ids), skip_special_tokens=False)


def decode_meta(ids):
    return META.decode(list(ids), skip_special_tokens=False)


def ids_of(raw: bytes):
    """The tokens of these bytes."""
    byte_to_char = _bytes_to_unicode()
    vocabulary = BYTES.get_vocab()
    return [vocabulary[byte_to_char[byte]] for byte in raw]


def _bytes_to_unicode():
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table = {byte: chr(byte) for byte in kept}
    extra = 0
    for byte in range(256):
        if byte not in table:
            table[byte] = chr(256 + extra)
            extra += 1
    return table


def pieces(ids, decode=decode_bytes):
    detokenizer = Detokenizer(decode)
    return [detokenizer.add(token) for token in ids], detokenizer.flush()


def test_a_character_comes_with_the_token_that_completes_it():
    # B01: a family emoji, CJK, one token a byte.
    text = "a🚫b你好👨‍👩‍👧"
    ids = BYTES.encode(text).ids
    shown, tail = pieces(ids)
    assert "".join(shown) == text
    assert tail == ""
    assert shown[:6] == ["a", "", "", "", "🚫", "b"]
    assert not any("\ufffd" in piece for piece in shown)


def test_cjk_is_not_held_back():
    # B05.
    shown, _ = pieces(BYTES.encode("模型" * 15).ids)
    assert [i for i, piece in enumerate(shown) if piece] == list(range(2, 90, 3))


def test_what_is_cut_inside_a_character_is_shown_once():
    # B02.
    shown, tail = pieces(ids_of(b"\xf0\x9f\x9a"))
    assert (shown, tail) == (["", "", ""], "\ufffd")
    shown, tail = pieces(ids_of(b"\xe4\xbdA"))
    assert "".join(shown) == "\ufffdA"
    assert shown[-1].endswith("A")


@given(st.binary(max_size=40))
def test_any_bytes_decode_as_a_whole(raw):
    ids = ids_of(raw)
    shown, tail = pieces(ids)
    assert "".join(shown) + tail == decode_bytes(ids) == raw.decode("utf-8", errors="replace")


@given(st.text(max_size=30))
def test_any_text_decodes_as_a_whole(text):
    ids = BYTES.encode(text).ids
    shown, tail = pieces(ids)
    assert "".join(shown) == text
    assert tail == ""


def test_leading_spaces_stay():
    # B03.
    vocabulary = META.get_vocab()
    words = [
        "▁Hello",
        "▁world",
        "▁,",
        "▁it",
        "'s",
        "▁▁▁▁",
        ".",
        "▁",
        "▁x",
        "\n",
        "▁▁▁▁",
        "def",
        "▁x",
    ]
    ids = [vocabulary[word] for word in words]
    shown, tail = pieces(ids, decode_meta)
    assert "".join(shown) + tail == decode_meta(ids)
    assert shown[:4] == ["Hello", " world", " ,", " it"]


@given(st.lists(st.integers(257, META.get_vocab_size() - 1), max_size=30))
def test_metaspace_texts_decode_as_a_whole(ids):
    shown, tail = pieces(ids, decode_meta)
    assert "".join(shown) + tail == decode_meta(ids)


def test_byte_fallback_completes_characters():
    vocabulary = META.get_vocab()
    ids = [vocabulary["▁x"]] + [vocabulary[f"<0x{byte:02X}>"] for byte in "🚀".encode()]
    shown, tail = pieces(ids, decode_meta)
    assert (shown, tail) == (["x", "", "", "", "🚀"], "")


def test_decoding_looks_at_a_short_window_only():
    # B04: 8 000 tokens; the work grows with their number, not with its square.
    looked_at = 0

    def counted(ids):
        nonlocal looked_at
        looked_at += len(ids)
        return decode_bytes(ids)

    pieces(BYTES.encode("你好 ab " * 900).ids[:8000], counted)
    assert looked_at < 8000 * 10


def test_end_tokens_add_nothing_and_previews_keep_nothing():
    detokenizer = Detokenizer(decode_bytes, silent=[7])
    assert detokenizer.add(7) == ""
    token = BYTES.encode("a").ids[0]
    assert detokenizer.preview(token) == "a"
    assert detokenizer.add(token) == "a"


def text(stops, cap=99, end_ids=()):
    return Text([], Detokenizer(decode_words), cap, end_ids, stops)


WORDS = ["E", "ND!x", " any", "thing", "EN", "D", "END", "a"]


def decode_words(ids):
    return "".join(WORDS[token] for token in ids)


def test_a_stop_string_over_two_tokens():
    # B12: "END" from "E" + "ND!x", in one block of five.
    written = text(("END",))
    committed = written.commit([3, 0, 1, 3, 3])
    assert len(committed) == 3
    assert committed.finish == "stop string"
    assert committed.dropped == len("END!x")
    assert "".join(committed.pieces)[: -committed.dropped] == "thing"


def test_the_beginning_of_a_stop_string_is_held_back():
    written = text(("END",))
    assert written.commit([3, 4]).held_back == 2
    assert written.commit([7]).held_back == 0


@pytest.mark.parametrize("stops", [("ENDING", "END"), ("END", "ENDING")])
def test_the_first_of_several_stop_strings_wins(stops):
    assert text(stops).commit([3, 6, 3]).dropped == 3


def test_the_first_boundary_wins():
    # A03: stop before the cap, cap before the stop, both at the same token.
    assert text((), 5, {6}).commit([6, 0, 1, 2]).finish == "end of text"
    assert text((), 2, {6}).commit([0, 1, 6]).finish == "length"
    assert len(text((), 2, {6}).commit([0, 1, 6])) == 2
    assert text((), 2, {6}).commit([0, 6, 6]).finish == "end of text"
    assert text(("END",), 1).commit([6]).finish == "stop string"


def test_a_text_that_is_continued_completes_its_character_and_its_stop_string():
    flag = BYTES.encode("🚀").ids
    before = Text([*BYTES.encode("ab").ids, *flag[:2]], Detokenizer(decode_bytes), 9)
    before.resume()
    assert "".join(before.commit(flag[2:]).pieces) == "🚀"
    words = Text([3, 0], Detokenizer(decode_words), 9, (), ("END",))
    words.resume()
    assert words.commit([1]).finish == "stop string"
