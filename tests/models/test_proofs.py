"""Tiny random networks: rewinding past windows, states that cannot be rewound, row proofs."""

import pytest
import torch

from app.models.block import Block
from app.models.proofs import prove_rewinding, prove_rows_independent
from app.run.identities import violations
from toys import Guesses, make_lane, run, sessions, tiny_llama, wrapped

SMALL = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
}


def sliding(kind: str, attention: str = "sdpa"):
    """F3: a random model with a window of eight tokens."""
    from transformers import Gemma3ForCausalLM, Gemma3TextConfig, MistralConfig, MistralForCausalLM

    torch.manual_seed(0)
    if kind == "mistral":
        config = MistralConfig(**SMALL, sliding_window=8, attn_implementation=attention)
        return wrapped(MistralForCausalLM(config).eval())
    config = Gemma3TextConfig(
        **SMALL,
        head_dim=16,
        sliding_window=8,
        attn_implementation=attention,
        layer_types=["sliding_attention", "full_attention"],
    )
    return wrapped(Gemma3ForCausalLM(config).eval())


def mamba():
    """F4: a random model whose state is recurrent."""
    from transformers import MambaConfig, MambaForCausalLM

    torch.manual_seed(0)
    return wrapped(
        MambaForCausalLM(MambaConfig(vocab_size=64, hidden_size=32, num_hidden_layers=2)).eval()
    )


def test_a_llama_passes_both_proofs():
    model = tiny_llama(0)
    assert prove_rewinding(model).holds
    assert prove_rows_independent(model).holds


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("kind", ["mistral", "gemma3"])
def test_sliding_windows_rewind_past_their_end(kind, attention):
    # A14, with both kinds of attention: the proof, then whole texts from short and long prompts.
    model = sliding(kind, attention)
    proof = prove_rewinding(model)
    assert proof.holds
    assert "window of 8" in proof.note
    for prompt in ([1, 2, 3, 4, 5], list(range(20))):
        plain = run(make_lane(prompt, max_new_tokens=40), sessions(model))
        mixed = Guesses(
            lambda t, r, p=plain, n=prompt: [
                *p.token_ids[len(t) - len(n) : len(t) - len(n) + r % 4],
                63,
                62,
            ]
        )
        fast = run(
            make_lane(prompt, proposer=mixed, draft_length=5, max_new_tokens=40), sessions(model)
        )
        assert fast.token_ids == plain.token_ids
        assert violations(fast) == []
        oracle = model.inner.generate(
            torch.tensor([prompt]),
            max_new_tokens=40,
            do_sample=False,
            eos_token_id=None,
            pad_token_id=0,
        )[0, len(prompt) :].tolist()
        assert plain.token_ids == oracle


def test_a_recurrent_state_is_refused_with_a_reason_and_still_decodes_plainly():
    # A15.
    model = mamba()
    proof = prove_rewinding(model)
    assert not proof.holds
    assert "rewound" in proof.note or "rewinding" in proof.note
    plain = run(make_lane([1, 2, 3], max_new_tokens=12), sessions(model))
    oracle = model.inner.generate(
        torch.tensor([[1, 2, 3]]),
        max_new_tokens=12,
        do_sample=False,
        eos_token_id=None,
        pad_token_id=0,
    )[0, 3:].tolist()
    assert plain.token_ids == oracle


def test_rows_that_know_each_other_are_seen():
    # One activation scale over the whole tensor, as per-tensor int8 has it.
    model = tiny_llama(0)
    layer = model.inner.model.layers[0].mlp

    def coupled(module, inputs, output):
        scale = output.abs().amax() / 7
        return torch.round(output / scale) * scale

    layer.register_forward_hook(coupled)
    proof = prove_rows_independent(model)
    assert not proof.holds
    assert "guesses after it" in proof.note


def test_a_mixture_of_experts_may_round_by_its_companions_but_no_more():
    # Tokens of one expert are multiplied together, so a row's last bits depend on the others.
    from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM

    torch.manual_seed(0)
    sizes = {"moe_intermediate_size": 32, "num_experts": 4, "num_experts_per_tok": 2}
    inner = Qwen3MoeForCausalLM(Qwen3MoeConfig(**SMALL, **sizes, initializer_range=0.2)).eval()
    model = wrapped(inner)
    assert model.mixes_experts
    assert not tiny_llama(0).mixes_experts
    assert prove_rows_independent(model).holds

    def apart(share):
        def moved(module, inputs, output):
            return output + share * output.abs().amax()  # of the whole tensor: rows know each other

        hook = inner.model.norm.register_forward_hook(moved)
        proof = prove_rows_independent(model)
        hook.remove()
        return proof

    assert not apart(0.1).holds


def test_numbers_that_are_none_are_left_for_the_run_to_tell_of():
    # A29: "answers differently" would be the wrong thing to say of not-a-number.
    model = tiny_llama(0)
    with torch.no_grad():
        model.inner.lm_head.weight[7] = float("nan")
    assert prove_rewinding(model).holds
    assert prove_rows_independent(model).holds


def test_a_cache_that_forgets_nothing_is_seen():
    from app.models.cache import SequenceCache

    class Sticky(SequenceCache):
        def crop(self, length):
            self._length = length

    model = tiny_llama(0)
    plain_cache = model.new_cache
    model.new_cache = lambda capacity: Sticky(plain_cache(capacity).inner, fixed=True)
    assert not prove_rewinding(model).holds


def test_logits_from_the_cache_are_those_of_a_fresh_pass():
    # O3 on a network: whatever was tried and taken back in between.
    model = tiny_llama(4)
    session = model.open(64)
    text = [5, 6, 7]
    for guesses, kept in (([1, 2, 3], 2), ([4], 0), ([9, 9, 9, 9], 4), ([], 0), ([2], 1)):
        block = Block(guesses)
        session.read(text, block, rows=len(guesses) + 1)
        text = [*text, *guesses[:kept], 11]
    mine = session.read(text, rows=1).logits
    fresh = model.inner(torch.tensor([text])).logits[0, -1:]
    assert torch.allclose(mine, fresh, atol=1e-4)
    assert session.held == len(text)
