"""Texts and targets for tests of teaching."""

import torch

from app.training.texts import Text
from toys import tiny_llama


def target(seed=0, **changes):
    """A random Llama, two of whose heads share keys."""
    return tiny_llama(seed, num_attention_heads=4, **changes)


@torch.no_grad()
def text(model, ids, *, prompt):
    """A text as the target reads it, with its likeliest token behind all but the prompt."""
    ids = torch.tensor(ids)
    features = model.inner.model(input_ids=ids[None]).last_hidden_state[0]
    best = model.inner.lm_head(features).argmax(dim=-1).to(torch.int32)
    best[: prompt - 1] = -1
    return Text(ids.to(torch.int32), best, features, prompt)


@torch.no_grad()
def written(model, ids, *, tokens):
    """A text that the target goes on with greedily, pass by pass over all of it."""
    prompt, ids = len(ids), list(ids)
    for _ in range(tokens):
        logits = model.inner(input_ids=torch.tensor([ids])).logits[0, -1]
        ids.append(int(logits.argmax()))
    return text(model, ids, prompt=prompt)


def random_texts(model, count, *, seed=0, longest=30, tokens=None):
    """Texts with random prompts; half of each is written greedily, or so many tokens."""
    numbers = torch.Generator().manual_seed(seed)
    found = []
    for _ in range(count):
        length = int(torch.randint(4, longest // 2, (), generator=numbers))
        prompt = torch.randint(model.rows, (length,), generator=numbers).tolist()
        found.append(written(model, prompt, tokens=length if tokens is None else tokens))
    return found


def turned(vectors, position, inner):
    """[heads, size] turned by a position, as transformers does it."""
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

    cosines, sines = inner.model.rotary_emb(vectors[None], torch.tensor([[position]]))
    one = vectors[None, :, None]
    return apply_rotary_pos_emb(one, one, cosines, sines)[0][0, :, 0]


def drafted(head, inner, embeddings, features, start, *, depth):
    """The features that a draft from one place predicts: a loop with an explicit list of keys."""
    keys, values, found = [], [], []
    group = head.shape.heads // head.shape.shared_heads

    def feed(feature, embedding, position):
        x = head.fc(torch.cat([embedding, feature]))
        query, key, value = head.vectors(x)
        keys.append(turned(key, position, inner))
        values.append(value)
        query = turned(query, position, inner)
        gathered = []
        for number in range(head.shape.heads):
            mine = number // group
            scores = torch.stack([key[mine] @ query[number] for key in keys])
            weights = (scores / head.shape.head_size**0.5).softmax(0)
            gathered.append(sum(w * value[mine] for w, value in zip(weights, values, strict=True)))
        return head.feature(x, torch.cat(gathered))

    for place in range(start + 1):
        feature = feed(features[place], embeddings[place + 1], place)
    found.append(feature)
    for step in range(1, depth):
        feature = feed(feature, embeddings[start + step + 1], start + step)
        found.append(feature)
    return found
