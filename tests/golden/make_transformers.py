#!/usr/bin/env python3
"""Writes transformers.safetensors: logits and gradients of small random models of Hugging Face's
transformers (GPT-2, Llama, Qwen, Gemma, Marian, BART, T5, BERT), which test_transformers.c compares with. The suite
does not run this script:

    environment/bin/pip install torch transformers safetensors
    environment/bin/python tests/golden/make_transformers.py

The file in the repository was made with PyTorch 2.15 and transformers 5.24 on an x86-64 CPU, in
float64. For each model it has, under softback's names,

    MODEL.NAME      the weights, drawn in float32
    MODEL.d.NAME    the gradients of the loss, the mean cross entropy of the targets
    MODEL.logits, MODEL.loss, and the inputs: MODEL.input and MODEL.targets (B, L) of a language model;
                    MODEL.source, .source_lengths, .target_in, .target_out of an encoder-decoder
    MODEL.ids, .segments, .lengths, .output and .dy of an encoder: gradients are those of sum(output dy)
"""
import pathlib

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from transformers import (BartConfig, BertConfig, BertModel, BartForConditionalGeneration, Gemma2Config,
                          Gemma2ForCausalLM, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, MarianConfig, MarianMTModel, Qwen2Config,
                          Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM, T5Config, T5ForConditionalGeneration)

V, C, H, D, F_, B, L = 11, 8, 2, 6, 12, 3, 5  # D: of models that set the head size apart


# ---- softback's names: each is a weight of theirs, and what is done to it ----

def linear(own, theirs, bias=True):
    yield own + ".weight", theirs + ".weight", lambda w: w
    if bias:
        yield own + ".bias", theirs + ".bias", lambda w: w


def gpt2(layers):
    """Conv1D has (in, out); queries, keys and values are one."""
    yield "decoder.embedding.weight", "transformer.wte.weight", lambda w: w
    yield "decoder.embedding.positions", "transformer.wpe.weight", lambda w: w
    for i in range(layers):
        own, theirs = f"decoder.layers.{i}", f"transformer.h.{i}"
        for part, name in enumerate(("query", "key", "value")):
            some = slice(part * C, (part + 1) * C)
            yield (f"{own}.self_attention.{name}.weight", f"{theirs}.attn.c_attn.weight",
                   lambda w, some=some: w.T[some])
            yield (f"{own}.self_attention.{name}.bias", f"{theirs}.attn.c_attn.bias",
                   lambda w, some=some: w[some])
        for name, layer in (("self_attention.output", "attn.c_proj"),
                            ("feed_forward.up", "mlp.c_fc"), ("feed_forward.down", "mlp.c_proj")):
            yield f"{own}.{name}.weight", f"{theirs}.{layer}.weight", lambda w: w.T
            yield f"{own}.{name}.bias", f"{theirs}.{layer}.bias", lambda w: w
        yield from linear(f"{own}.self_norm", f"{theirs}.ln_1")
        yield from linear(f"{own}.feed_norm", f"{theirs}.ln_2")
    yield from linear("decoder.norm", "transformer.ln_f")


def llama(layers, qkv=False, qk_norm=False, sandwich=False):
    yield "decoder.embedding.weight", "model.embed_tokens.weight", lambda w: w
    for i in range(layers):
        own, theirs = f"decoder.layers.{i}", f"model.layers.{i}"
        for name in "query", "key", "value":
            yield from linear(f"{own}.self_attention.{name}", f"{theirs}.self_attn.{name[0]}_proj",
                              qkv)
        yield from linear(f"{own}.self_attention.output", f"{theirs}.self_attn.o_proj", False)
        for name in "gate", "up", "down":
            yield from linear(f"{own}.feed_forward.{name}", f"{theirs}.mlp.{name}_proj", False)
        norms = {"self_norm": "input_layernorm", "feed_norm": "post_attention_layernorm"}
        if sandwich:
            norms |= {"self_branch_norm": "post_attention_layernorm",
                      "feed_norm": "pre_feedforward_layernorm",
                      "feed_branch_norm": "post_feedforward_layernorm"}
        if qk_norm:
            norms |= {"self_attention.query_norm": "self_attn.q_norm",
                      "self_attention.key_norm": "self_attn.k_norm"}
        for name, layer in norms.items():
            yield from linear(f"{own}.{name}", f"{theirs}.{layer}", False)
    yield from linear("decoder.norm", "model.norm", False)
    if not sandwich:  # Gemma's are tied
        yield from linear("output", "lm_head", False)


def bart(layers, learned, norm):
    """Also Marian's. The bias of the logits is no parameter of theirs."""
    yield "encoder.embedding.weight", "model.shared.weight", lambda w: w
    for stack in "encoder", "decoder":
        if learned:
            yield f"{stack}.embedding.positions", f"model.{stack}.embed_positions.weight", lambda w: w
        if norm:
            yield from linear(f"{stack}.embedding.norm", f"model.{stack}.layernorm_embedding")
        for i in range(layers):
            own = theirs = f"{stack}.layers.{i}"
            kinds = [("self", "self_attn")] + [("cross", "encoder_attn")] * (stack == "decoder")
            for kind, attention in kinds:
                for name in "query", "key", "value", "output":
                    letter = "out" if name == "output" else name[0]
                    yield from linear(f"{own}.{kind}_attention.{name}",
                                      f"model.{theirs}.{attention}.{letter}_proj")
                yield from linear(f"{own}.{kind}_norm", f"model.{theirs}.{attention}_layer_norm")
            yield from linear(f"{own}.feed_forward.up", f"model.{theirs}.fc1")
            yield from linear(f"{own}.feed_forward.down", f"model.{theirs}.fc2")
            yield from linear(f"{own}.feed_norm", f"model.{theirs}.final_layer_norm")


def t5(layers):
    """The output's weights are the embeddings, unscaled: transformers ties them in any case, and with
    tie_word_embeddings=True it divides the decoder's outputs by sqrt C, a part of the last norm."""
    yield "encoder.embedding.weight", "shared.weight", lambda w: w
    for stack in "encoder", "decoder":
        yield (f"{stack}.distance",
               f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
               lambda w: w.T)
        for i in range(layers):
            own, theirs = f"{stack}.layers.{i}", f"{stack}.block.{i}.layer"
            kinds = [("self", 0, "SelfAttention")]
            kinds += [("cross", 1, "EncDecAttention")] * (stack == "decoder")
            for kind, place, attention in kinds:
                for name in "query", "key", "value", "output":
                    yield from linear(f"{own}.{kind}_attention.{name}",
                                      f"{theirs}.{place}.{attention}.{name[0]}", False)
                yield from linear(f"{own}.{kind}_norm", f"{theirs}.{place}.layer_norm", False)
            last = len(kinds)
            for name, layer in ("gate", "wi_0"), ("up", "wi_1"), ("down", "wo"):
                yield from linear(f"{own}.feed_forward.{name}",
                                  f"{theirs}.{last}.DenseReluDense.{layer}", False)
            yield from linear(f"{own}.feed_norm", f"{theirs}.{last}.layer_norm", False)
        yield from linear(f"{stack}.norm", f"{stack}.final_layer_norm", False)


def bert(layers):
    yield "encoder.embedding.weight", "embeddings.word_embeddings.weight", lambda w: w
    yield "encoder.embedding.positions", "embeddings.position_embeddings.weight", lambda w: w
    yield "encoder.embedding.segments", "embeddings.token_type_embeddings.weight", lambda w: w
    yield from linear("encoder.embedding.norm", "embeddings.LayerNorm")
    for i in range(layers):
        own, theirs = f"encoder.layers.{i}", f"encoder.layer.{i}"
        for name in "query", "key", "value":
            yield from linear(f"{own}.self_attention.{name}", f"{theirs}.attention.self.{name}")
        for name, layer in (("self_attention.output", "attention.output.dense"),
                            ("self_norm", "attention.output.LayerNorm"),
                            ("feed_forward.up", "intermediate.dense"),
                            ("feed_forward.down", "output.dense"), ("feed_norm", "output.LayerNorm")):
            yield from linear(f"{own}.{name}", f"{theirs}.{layer}")


# ---- the models ----

def draw(model, random):
    """Weights of a useful size, none of them 0 or 1, that float32 represents."""
    model.double().eval()
    for name, p in model.named_parameters():
        if not p.requires_grad:  # Marian's table of positions
            continue
        gain = p.dim() == 1 and name.endswith("weight")
        deviation = p.shape[-1] ** -0.5 if p.dim() > 1 else 0.2
        drawn = torch.randn(p.shape, generator=random) * deviation + gain
        p.data = drawn.float().double()
    return model


def language_inputs(random):
    """Without padding, id 0, whose embeddings get no gradient there."""
    input = torch.randint(1, V, (B, L), generator=random)
    targets = torch.randint(V, (B, L), generator=random)
    targets[1, L - 1] = -1
    return {"input": input, "targets": targets}


def pair_inputs(random):
    lengths = torch.tensor([L, L - 2, 1])
    source, target = (torch.randint(1, V, (B, L), generator=random) for _ in range(2))
    targets = torch.randint(V, (B, L), generator=random)
    targets[2, L - 2:] = -1
    return {"source": source, "source_lengths": lengths, "target_in": target,
            "target_out": targets}


def logits_of(model, x):
    if "input" in x:
        return model(input_ids=x["input"]).logits
    seen = (torch.arange(L)[None] < x["source_lengths"][:, None]).long()
    return model(input_ids=x["source"], attention_mask=seen, decoder_input_ids=x["target_in"]).logits


def add_weights(tensors, name, model, names):
    weights = dict(model.named_parameters())
    for own, theirs, place in names:
        tensors[f"{name}.{own}"] = place(weights[theirs].data).float().contiguous()
        if name == "gemma2" and theirs.endswith("norm.weight"):  # its gains are 1 + weight
            tensors[f"{name}.{own}"] += 1
        tensors[f"{name}.d.{own}"] = place(weights[theirs].grad).float().contiguous()
        weights[theirs].named = True
    for theirs, weight in weights.items():
        assert hasattr(weight, "named") or not weight.requires_grad, f"{name}: {theirs}"


def add_encoder(tensors, name, model, names, random):
    """Positions beyond a length get no gradient, as what is there differs."""
    lengths = torch.tensor([L, L - 2, 1])
    seen = torch.arange(L)[None] < lengths[:, None]
    ids = torch.randint(1, V, (B, L), generator=random)
    segments = torch.randint(2, (B, L), generator=random)
    output = model(input_ids=ids, token_type_ids=segments,
                   attention_mask=seen.long()).last_hidden_state * seen[..., None]
    dy = (torch.randn(output.shape, generator=random) / 64).float().double() * seen[..., None]
    (output * dy).sum().backward()
    add_weights(tensors, name, model, names)
    tensors |= {f"{name}.ids": ids.int(), f"{name}.segments": segments.int(),
                f"{name}.lengths": lengths.int(), f"{name}.output": output.float().contiguous(),
                f"{name}.dy": dy.float()}
    print(f"{name}: {(output * dy).sum():.4f}")


def add(tensors, name, model, names, inputs, random):
    x = inputs(random)
    bias = getattr(model, "final_logits_bias", None)
    if bias is not None:
        bias.copy_(0.2 * torch.randn(bias.shape, generator=random))
        bias.requires_grad_()
    logits = logits_of(model, x)
    targets = x.get("targets", x.get("target_out"))
    loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1)
    loss.backward()
    add_weights(tensors, name, model, names)
    if bias is not None:
        tensors[f"{name}.output.bias"] = bias.detach()[0].float().contiguous()
        tensors[f"{name}.d.output.bias"] = bias.grad[0].float().contiguous()
    for key, t in x.items():
        tensors[f"{name}.{key}"] = t.int()
    tensors[f"{name}.logits"], tensors[f"{name}.loss"] = logits.float(), loss.float()
    print(f"{name}: loss {loss:.4f}")


def main():
    torch.set_num_threads(1)
    random, tensors = torch.Generator().manual_seed(23), {}
    eager = dict(attn_implementation="eager")
    of_llama = dict(vocab_size=V, hidden_size=C, intermediate_size=F_, num_hidden_layers=2,
                    num_attention_heads=4, num_key_value_heads=2, head_dim=D, rms_norm_eps=1e-4,
                    tie_word_embeddings=False, bos_token_id=1, eos_token_id=2, pad_token_id=0,
                    **eager)
    of_bart = dict(vocab_size=V, d_model=C, encoder_layers=2, decoder_layers=2,
                   encoder_attention_heads=H, decoder_attention_heads=H, encoder_ffn_dim=F_,
                   decoder_ffn_dim=F_, dropout=0.0, max_position_embeddings=9, scale_embedding=True,
                   pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1, **eager)
    models = {
        "gpt2": (GPT2LMHeadModel(GPT2Config(
            vocab_size=V, n_positions=9, n_embd=C, n_layer=2, n_head=H, n_inner=F_,
            resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, layer_norm_epsilon=1e-3,
            bos_token_id=1, eos_token_id=2, **eager)), gpt2(2), language_inputs),
        "llama": (LlamaForCausalLM(LlamaConfig(
            **of_llama, rope_parameters={"rope_type": "linear", "factor": 4.0,
                                         "rope_theta": 500.0})), llama(2), language_inputs),
        "qwen2": (Qwen2ForCausalLM(Qwen2Config(
            **{**of_llama, "num_hidden_layers": 1},
            rope_parameters={"rope_type": "default", "rope_theta": 10000.0})), llama(1, True),
                  language_inputs),
        "marian": (MarianMTModel(MarianConfig(**of_bart, activation_function="silu")),
                   bart(2, False, False), pair_inputs),
        "bart": (BartForConditionalGeneration(BartConfig(**of_bart, activation_function="gelu")),
                 bart(2, True, True), pair_inputs),
        "t5": (T5ForConditionalGeneration(T5Config(
            vocab_size=V, d_model=C, d_kv=D, d_ff=F_, num_layers=2, num_heads=H, dropout_rate=0.0,
            relative_attention_num_buckets=8, relative_attention_max_distance=6,
            feed_forward_proj="gated-gelu", layer_norm_epsilon=1e-5, tie_word_embeddings=False,
            pad_token_id=0, eos_token_id=2, decoder_start_token_id=0, **eager)), t5(2), pair_inputs),
        "llama3": (LlamaForCausalLM(LlamaConfig(
            **{**of_llama, "num_hidden_layers": 1},
            rope_parameters={"rope_type": "llama3", "factor": 8.0, "rope_theta": 10.0,
                             "low_freq_factor": 1.0, "high_freq_factor": 2.0,
                             "original_max_position_embeddings": 16})), llama(1), language_inputs),
        "qwen3": (Qwen3ForCausalLM(Qwen3Config(
            **of_llama, rope_parameters={"rope_type": "default", "rope_theta": 10000.0})),
                  llama(2, qk_norm=True), language_inputs),
        "gemma2": (Gemma2ForCausalLM(Gemma2Config(
            **{**of_llama, "tie_word_embeddings": True}, query_pre_attn_scalar=D,
            attn_logit_softcapping=None, final_logit_softcapping=None,
            layer_types=["full_attention"] * 2,
            rope_parameters={"rope_type": "default", "rope_theta": 10000.0})),
                   llama(2, sandwich=True), language_inputs),
    }
    for name, (model, names, inputs) in models.items():
        add(tensors, name, draw(model, random), names, inputs, random)
    model = BertModel(BertConfig(
        vocab_size=V, hidden_size=C, num_hidden_layers=2, num_attention_heads=H, intermediate_size=F_,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, max_position_embeddings=9,
        layer_norm_eps=1e-5, pad_token_id=0, **eager), add_pooling_layer=False)
    add_encoder(tensors, "bert", draw(model, random), bert(2), random)
    path = pathlib.Path(__file__).parent / "transformers.safetensors"
    save_file(tensors, path)
    print(f"{path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
