"""What a target writes side by side, beside a plain session of its own for each text."""

import pytest
import talking
import torch

from app.models.machine import on_device
from app.models.side_by_side import SideBySide
from app.training.prompts import Asked
from app.training.writing import Plan, Writer
from toys import tiny_llama


def asked(count):
    return [Asked("given", "ab cd ef gh "[: 1 + number % 11] * 2) for number in range(count)]


def model():
    return tiny_llama(vocabulary=256)


def alone(target, ids, count, ends):
    """A greedy text from one session: ids, logits and features of all that was fed."""
    session, ids, prompt = target.new_cache(512), list(ids), len(ids)
    features, fed = [], ids
    while True:
        logits, some = target.forward_with_features(
            on_device(fed, torch.long, target.device), session, 1
        )
        features.append(some)
        fed = [int(logits[-1].argmax())]
        ids += fed
        if len(ids) - prompt > count or fed[0] in ends:
            return ids[:-1], ids[prompt:], torch.cat(features)


def test_greedy_texts_are_those_of_a_session_alone():
    target, tokenizer = model(), talking._tokenizer()
    plan = Plan(seed=0, rows=5, new_tokens=24, longest=96, temperatures=(0.0,))
    ends = {7, 11}
    conversations = asked(17)
    found = list(Writer(target, tokenizer, tuple(ends), plan).answers(iter(conversations), int))
    assert sorted(one.asked.prompt for one in found) == sorted(one.prompt for one in conversations)
    for one in found:
        prompt = list(tokenizer.encode_prompt(one.asked.prompt))
        ids, best, features = alone(target, prompt, 24, ends)
        assert one.text.prompt == len(prompt)
        assert one.text.ids.tolist() == ids
        assert one.text.best.tolist() == [-1] * (len(prompt) - 1) + best
        assert (one.text.features - features).abs().max() < 1e-4
        assert one.text.written <= 24


def test_sampled_texts_keep_what_the_target_thought_likeliest():
    target, tokenizer = model(), talking._tokenizer()
    plan = Plan(seed=3, rows=4, new_tokens=16, longest=96, temperatures=(1.0,))

    def written():
        return list(Writer(target, tokenizer, (), plan).answers(iter(asked(9)), int))

    found, again = written(), written()
    assert [one.text.ids.tolist() for one in found] == [one.text.ids.tolist() for one in again]
    unlike = 0
    for one in found:
        text, ids = one.text, one.text.ids.long()
        logits = target.inner(input_ids=ids[None]).logits[0]
        best = logits.argmax(-1)[text.prompt - 1 :]
        assert text.best[text.prompt - 1 :].tolist() == best.tolist()
        unlike += int((ids[text.prompt :] != best[:-1]).sum())
    assert unlike > 20


def test_texts_that_only_repeat_themselves_end():
    target = model()
    with torch.no_grad():
        target.inner.lm_head.weight.zero_()  # every logit is 0: the likeliest token is the first
    plan = Plan(seed=0, rows=2, new_tokens=150, longest=200, temperatures=(0.0,))
    found = list(Writer(target, talking._tokenizer(), (), plan).answers(iter(asked(2)), int))
    assert [one.text.written for one in found] == [63, 63]


def test_prompts_that_leave_no_room_are_left_out():
    plan = Plan(seed=0, rows=2, new_tokens=16, longest=60, temperatures=(0.0,))
    long = [Asked("given", "x" * 40), *asked(2)]
    found = list(Writer(model(), talking._tokenizer(), (), plan).answers(iter(long), int))
    assert len(found) == 2


@pytest.mark.parametrize("shared", [1, 2, 4])
@torch.inference_mode()
def test_rows_side_by_side_answer_as_sequences_alone(shared):
    target = tiny_llama(num_attention_heads=4, num_key_value_heads=shared)
    numbers = torch.Generator().manual_seed(0)
    rows = SideBySide(target, 3, 40)
    lone = {}

    def begin(row, length):
        ids = torch.randint(64, (length,), generator=numbers)
        lone[row] = target.new_cache(64)
        due = target.forward_with_features(ids, lone[row], 1)
        for mine, theirs in zip(rows.begin(row, ids.tolist()), due, strict=True):
            assert (mine - theirs).abs().max() < 1e-5

    begin(0, 3)
    begin(2, 11)
    begin(1, 6)
    for step in range(20):
        if step == 7:
            begin(2, 2)  # a row begins anew while the others go on
        if step == 12:
            rows.rest(1)
            del lone[1]
        fed = torch.randint(64, (3,), generator=numbers)
        logits, features = rows.step(fed)
        for row, cache in lone.items():
            due = target.forward_with_features(fed[row : row + 1], cache, 1)
            assert (logits[row] - due[0][0]).abs().max() < 1e-5
            assert (features[row] - due[1][0]).abs().max() < 1e-5
