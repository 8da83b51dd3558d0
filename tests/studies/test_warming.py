"""The passes before anything is timed: what they ask of a model, and of which models."""

import pytest
import torch

from app.run.preparation import preparation
from app.studies.warming import warm_up, warm_up_lanes
from app.studies.workbench import _lane_maker
from toys import wrapped


def absolute(positions):
    """A random model with a table of positions: one position too many is an error."""
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=64, n_embd=16, n_layer=1, n_head=2, n_positions=positions)
    return wrapped(GPT2LMHeadModel(config).eval())


def recurrent():
    """F4: a random model whose state cannot be taken back."""
    from transformers import MambaConfig, MambaForCausalLM

    torch.manual_seed(0)
    config = MambaConfig(vocab_size=64, hidden_size=32, num_hidden_layers=1)
    return wrapped(MambaForCausalLM(config).eval())


def widths(model, monkeypatch):
    """The widths of the passes that the model is asked for, and the length they add up to."""
    seen = []
    forward = model.forward
    monkeypatch.setattr(
        model,
        "forward",
        lambda ids, cache, rows, tree: (seen.append(len(ids)), forward(ids, cache, rows, tree))[1],
    )
    return seen


def test_both_widths_are_run_behind_the_start_of_a_prompt(monkeypatch):
    model = absolute(64)
    seen = widths(model, monkeypatch)
    warm_up(model, range(20), width=5)
    assert seen == [8, 1, 5]


@pytest.mark.parametrize(
    ("positions", "prompt", "width"), [(32, 20, 65), (32, 1, 65), (12, 8, 5), (3, 2, 9), (2, 1, 5)]
)
def test_no_position_behind_the_models_last_is_read(monkeypatch, positions, prompt, width):
    model = absolute(positions)
    seen = widths(model, monkeypatch)
    warm_up(model, range(prompt), width=width)
    assert sum(seen) <= positions


def test_a_state_that_cannot_be_taken_back_is_left_alone(monkeypatch):
    model = recurrent()
    seen = widths(model, monkeypatch)
    warm_up(model, [1, 2, 3], width=1)
    assert seen == [3, 1, 1]


@pytest.mark.parametrize(("method", "width"), [("draft-model", 1), ("cascade", 5)])
def test_a_draft_model_reads_as_many_tokens_as_its_method_may_ask_for(
    tiny_bench, tiny, monkeypatch, method, width
):
    settings = tiny(method=method, draft_length=4)
    pair = tiny_bench.loaded(preparation(settings), report=lambda _: None, pause=lambda: None)
    seen = widths(pair.draft.model, monkeypatch)
    warm_up_lanes(_lane_maker(pair, settings), report=lambda _: None, pause=lambda: None)
    assert seen[-1] == width
