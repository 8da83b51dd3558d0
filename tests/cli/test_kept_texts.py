"""`foretoken texts`: how much is kept, and letting it go."""

from app import files
from app.library.kept_texts import KeptTexts


def keep(target, tokens):
    KeptTexts(files.kept_texts_file()).add(target, prompt=[1], ids=range(tokens), most=9)


def test_what_is_kept_is_told_by_target_and_can_be_let_go(call):
    assert "No text of an earlier run is kept." in call("texts").out
    keep("a-model-1", 30)
    keep("a-model-1", 4)
    keep("other-2", 7)
    told = call("texts").out
    assert "a-model-1: 2 texts, 34 tokens" in told
    assert "other-2: 1 texts, 7 tokens" in told
    done = call("texts", "--clear", "--yes")
    assert (done.code, done.out) == (0, "No text is kept any more.\n")
    assert "No text of an earlier run is kept." in call("texts").out


def test_a_no_keeps_them(call, monkeypatch):
    keep("a-model-1", 30)
    monkeypatch.setattr("typer.confirm", lambda *_, **__: False)
    assert "Nothing was let go." in call("texts", "--clear").out
    assert "a-model-1" in call("texts").out


def test_a_damaged_file_says_what_to_do(call):
    path = files.kept_texts_file()
    path.parent.mkdir(parents=True)
    path.write_bytes(b"no database" * 500)
    done = call("texts")
    assert done.code == 1
    assert "foretoken texts --clear" in done.err
    assert call("texts", "--clear", "--yes").code == 0
    assert call("texts").code == 0


def test_where_they_lie_is_told(call):
    assert str(files.kept_texts_file()) in call("models", "path").out
