#!/usr/bin/env python3
"""Makes the folders of test_pretrained.py: small random models of Hugging Face's transformers, as save_pretrained
writes them, and what transformers computes with them. The suite does not run this script:

    environment/bin/pip install torch transformers safetensors tokenizers sentencepiece
    environment/bin/python python/tests/pretrained/make.py [NAME...]  writes the folders, or those of these names
    environment/bin/python python/tests/pretrained/make.py --check A B    whether the models of two folders of folders
                                                                      have equal logits

Those that the documentation shows are beside it, the others are in folders.zip. They were made with PyTorch 2.15
and transformers 5.24 on an x86-64 CPU. expected.safetensors has, for each folder,

    FOLDER.ids, .lengths, .target    what the model reads; .target of encoder-decoders, .segments of BERT
    FOLDER.logits                    of float64 weights; of models without a head the last layer's outputs; 0 at padding
    FOLDER.pooled                    BERT's pooler_output
    FOLDER.gradient                  of a loss: the logits times a cosine of their number, summed, and the sum of .pooled; for
                                     all tensors of the folder, in the order of their names, one after the other
    FOLDER.greedy, .beam             what generate returns, without the prompt, -1 at the end
"""
import json
import shutil
import sys
import zipfile
from pathlib import Path

import sentencepiece
import tokenizers
import torch
from safetensors.torch import load_file, save_file
import transformers as t

HERE = Path(__file__).parent
SHOWN = ("gpt2", "bert_model", "bert_tokens")  # by the documentation
V, C, L, B = 18, 8, 6, 2
TIED = dict(tie_word_embeddings=True)
LLAMA = dict(vocab_size=V, hidden_size=C, intermediate_size=12, num_hidden_layers=1, num_attention_heads=4,
             num_key_value_heads=2, head_dim=6, rms_norm_eps=1e-4, max_position_embeddings=64, bos_token_id=1,
             eos_token_id=2, pad_token_id=None)
BART = dict(vocab_size=V, d_model=C, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
            decoder_attention_heads=2, encoder_ffn_dim=12, decoder_ffn_dim=12, max_position_embeddings=14, dropout=0.1)
T5 = dict(vocab_size=V, d_model=C, d_kv=6, d_ff=12, num_layers=2, num_decoder_layers=1, num_heads=2,
          relative_attention_num_buckets=8, relative_attention_max_distance=6, layer_norm_epsilon=1e-5,
          pad_token_id=0, eos_token_id=1, decoder_start_token_id=0)
BERT = dict(vocab_size=V, hidden_size=C, num_hidden_layers=1, num_attention_heads=2, intermediate_size=12,
            max_position_embeddings=12)
DISTILBERT = dict(vocab_size=V, dim=C, n_layers=1, n_heads=2, hidden_dim=12, max_position_embeddings=16)
LABELS = dict(id2label={0: "bad", 1: "good", 2: "neutral"}, label2id={"bad": 0, "good": 1, "neutral": 2})
ENCODERS = ("bert", "distilbert", "roberta", "xlm-roberta", "camembert", "electra")
ROPE3 = dict(rope_type="llama3", rope_theta=500.0, factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0,
             original_max_position_embeddings=8)

# name: class, configuration, dtype of the file
MODELS = {
    "gpt2": (t.GPT2LMHeadModel, t.GPT2Config(
        vocab_size=V, n_positions=16, n_embd=C, n_layer=2, n_head=2, bos_token_id=1, eos_token_id=2), "float32"),
    "gpt2_unusual": (t.GPT2LMHeadModel, t.GPT2Config(
        vocab_size=V, n_positions=16, n_embd=C, n_layer=1, n_head=4, n_inner=12, activation_function="relu",
        layer_norm_epsilon=1e-3, scale_attn_weights=False, tie_word_embeddings=False, bos_token_id=2,
        eos_token_id=2), "bfloat16"),
    "llama": (t.LlamaForCausalLM, t.LlamaConfig(
        **LLAMA | dict(num_hidden_layers=2), rope_parameters=ROPE3, tie_word_embeddings=False), "float32"),
    "llama_unusual": (t.LlamaForCausalLM, t.LlamaConfig(
        **LLAMA | dict(num_key_value_heads=4, hidden_act="gelu"), attention_bias=True,
        mlp_bias=True, rope_parameters=dict(rope_type="linear", factor=2.0, rope_theta=100.0), **TIED), "float16"),
    "mistral": (t.MistralForCausalLM, t.MistralConfig(**LLAMA, sliding_window=None),
                "float32"),
    "qwen2": (t.Qwen2ForCausalLM, t.Qwen2Config(**LLAMA | dict(bos_token_id=None), **TIED), "float32"),
    "qwen3": (t.Qwen3ForCausalLM, t.Qwen3Config(**LLAMA, attention_bias=False), "float32"),
    "marian": (t.MarianMTModel, t.MarianConfig(
        **BART, activation_function="swish", scale_embedding=True, pad_token_id=V - 1, eos_token_id=0,
        decoder_start_token_id=V - 1, forced_eos_token_id=0), "float32"),
    "marian_unusual": (t.MarianMTModel, t.MarianConfig(
        **BART, activation_function="relu", scale_embedding=False, decoder_vocab_size=V - 4, pad_token_id=V - 5,
        eos_token_id=0, decoder_start_token_id=V - 5, forced_eos_token_id=None,
        share_encoder_decoder_embeddings=False, tie_word_embeddings=False), "float32"),
    "bart": (t.BartForConditionalGeneration, t.BartConfig(**BART, forced_eos_token_id=2), "float32"),
    "bart_unusual": (t.BartForConditionalGeneration, t.BartConfig(
        **BART, scale_embedding=True, activation_function="relu",
        forced_eos_token_id=None), "bfloat16"),
    "t5": (t.T5ForConditionalGeneration, t.T5Config(**T5), "float32"),
    "t5_v1_1": (t.T5ForConditionalGeneration, t.T5Config(
        **T5 | dict(num_layers=1), feed_forward_proj="gated-gelu", tie_word_embeddings=False), "float32"),
    "bert": (t.BertForSequenceClassification, t.BertConfig(**BERT, **LABELS), "float32"),
    "bert_unusual": (t.BertForSequenceClassification, t.BertConfig(
        **BERT | dict(num_attention_heads=4), hidden_act="gelu_new", type_vocab_size=3,
        layer_norm_eps=1e-3, num_labels=2), "float16"),
    "distilbert": (t.DistilBertForSequenceClassification, t.DistilBertConfig(**DISTILBERT, **LABELS), "float32"),
    "distilbert_unusual": (t.DistilBertForSequenceClassification, t.DistilBertConfig(
        **DISTILBERT | dict(n_heads=4), activation="relu", num_labels=2), "bfloat16"),
    "bert_model": (t.BertModel, t.BertConfig(**BERT), "float32"),
    "bert_masked": (t.BertForMaskedLM, t.BertConfig(**BERT), "float32"),
    "bert_tokens": (t.BertForTokenClassification, t.BertConfig(**BERT, **LABELS), "float32"),
    "bert_number": (t.BertForSequenceClassification, t.BertConfig(**BERT, num_labels=1), "float32"),
    "bert_numbers": (t.BertForSequenceClassification, t.BertConfig(
        **BERT, num_labels=2, problem_type="regression"), "float32"),
    "distilbert_model": (t.DistilBertModel, t.DistilBertConfig(**DISTILBERT), "float32"),
    "distilbert_masked": (t.DistilBertForMaskedLM, t.DistilBertConfig(**DISTILBERT, activation="relu"), "float32"),
    "distilbert_tokens": (t.DistilBertForTokenClassification, t.DistilBertConfig(**DISTILBERT, **LABELS), "float32"),
    "roberta_model": (t.RobertaModel, t.RobertaConfig(**BERT), "float32"),
    "roberta_masked": (t.RobertaForMaskedLM, t.RobertaConfig(**BERT, hidden_act="relu"), "float32"),
    "roberta_tokens": (t.RobertaForTokenClassification, t.RobertaConfig(**BERT, **LABELS), "float32"),
    "roberta_number": (t.RobertaForSequenceClassification, t.RobertaConfig(**BERT, num_labels=1), "float32"),
    "xlm-roberta": (t.XLMRobertaForSequenceClassification, t.XLMRobertaConfig(**BERT, **LABELS), "float32"),
    "xlm-roberta_model": (t.XLMRobertaModel, t.XLMRobertaConfig(**BERT), "float32"),
    "camembert": (t.CamembertForTokenClassification, t.CamembertConfig(**BERT, **LABELS), "float32"),
    "camembert_masked": (t.CamembertForMaskedLM, t.CamembertConfig(**BERT), "float32"),
    "electra": (t.ElectraForSequenceClassification, t.ElectraConfig(**BERT, embedding_size=C, **LABELS), "float32"),
    "electra_model": (t.ElectraModel, t.ElectraConfig(**BERT, embedding_size=C), "float32"),
    "electra_masked": (t.ElectraForMaskedLM, t.ElectraConfig(**BERT, embedding_size=C), "float32"),
    "electra_tokens": (t.ElectraForTokenClassification, t.ElectraConfig(**BERT, embedding_size=C, **LABELS), "float32"),
    "mbart": (t.MBartForConditionalGeneration, t.MBartConfig(
        **BART, scale_embedding=True, forced_eos_token_id=2, decoder_start_token_id=2), "float32"),
    "mt5": (t.MT5ForConditionalGeneration, t.MT5Config(**T5), "float32"),
    "opt": (t.OPTForCausalLM, t.OPTConfig(
        vocab_size=V, hidden_size=C, num_hidden_layers=1, ffn_dim=12, max_position_embeddings=14, num_attention_heads=2,
        word_embed_proj_dim=C), "float32"),
    "phi3": (t.Phi3ForCausalLM, t.Phi3Config(**{k: x for k, x in LLAMA.items() if k != "head_dim"}), "float32"),
    "smollm3": (t.SmolLM3ForCausalLM, t.SmolLM3Config(**{k: x for k, x in LLAMA.items() if k != "head_dim"} | dict(num_hidden_layers=3),
        no_rope_layer_interval=2, rope_parameters=dict(rope_type="default", rope_theta=100.0)), "float32"),
    "gptneox": (t.GPTNeoXForCausalLM, t.GPTNeoXConfig(
        vocab_size=V, hidden_size=C, num_hidden_layers=1, num_attention_heads=2, intermediate_size=12,
        max_position_embeddings=16, rope_parameters=dict(rope_type="default", rope_theta=500.0, partial_rotary_factor=1.0),
        use_parallel_residual=False, bos_token_id=1, eos_token_id=2), "float32"),
    "roberta": (t.RobertaForSequenceClassification, t.RobertaConfig(**BERT, type_vocab_size=1, **LABELS), "float32"),
    "roberta_unusual": (t.RobertaForSequenceClassification, t.RobertaConfig(
        **BERT | dict(max_position_embeddings=14), type_vocab_size=2, pad_token_id=3,
        hidden_act="relu", num_labels=2), "float32"),
}


def draw(model, dtype, random):
    """Weights of a useful size, none of them 0 or 1, that the file's dtype represents."""
    named = dict(model.named_parameters())
    if hasattr(model, "final_logits_bias"):
        named["final_logits_bias"] = model.final_logits_bias
    for name, p in named.items():
        if not p.requires_grad and name != "final_logits_bias":  # Marian's table of positions
            continue
        gain = p.dim() == 1 and name.endswith("weight")
        drawn = torch.randn(p.shape, generator=random) * (p.shape[-1] ** -0.5 if p.dim() == 2 else 0.2) + gain
        p.data = drawn.to(getattr(torch, dtype)).float()


def inputs(model, random):
    first = 4  # no symbol with a meaning
    c = model.config
    x = {"ids": torch.randint(first, V - 6, (B, L), generator=random)}
    if c.is_encoder_decoder or c.model_type in ENCODERS:
        x["lengths"] = torch.tensor([L, L - 2])
        x["ids"][1, L - 2:] = c.pad_token_id
    if c.is_encoder_decoder:
        x["target"] = torch.randint(first, V - 6, (B, L - 1), generator=random)
    if c.model_type in ("bert", "electra"):
        x["segments"] = torch.tensor([[0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 0, 0]])
    return x


def run(model, x):
    given = {"input_ids": x["ids"]}
    if "lengths" in x:
        given["attention_mask"] = (torch.arange(L)[None] < x["lengths"][:, None]).long()
    if "target" in x:
        given["decoder_input_ids"] = x["target"]
    if "segments" in x:
        given["token_type_ids"] = x["segments"]
    made = model(**given)
    y = made.last_hidden_state if hasattr(made, "last_hidden_state") else made.logits
    if "lengths" in x and "target" not in x and y.dim() == 3:  # what stands at padding means nothing
        y = y * given["attention_mask"][:, :, None]
    return (y, made.pooler_output) if getattr(made, "pooler_output", None) is not None else (y, None)


def gradients(model, logits, pooled):
    """By the names of the file."""
    model.zero_grad()
    loss = (logits * torch.cos(torch.arange(logits.numel(), dtype=logits.dtype)).reshape(logits.shape)).sum()
    (loss if pooled is None else loss + pooled.sum()).backward()
    made = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    for tied, name in (model._tied_weights_keys or {}).items():  # the same tensor, unless config.json says otherwise
        made.setdefault(name, made.get(tied))
    made["embed_out.weight"] = made.get("lm_head.weight")  # GPT-NeoX's name in files
    if getattr(model, "final_logits_bias", None) is not None:
        made["final_logits_bias"] = model.final_logits_bias.grad
    return {name: g for name, g in made.items() if g is not None}


def tokenizer(folder):
    """Words for GPT-2 and BERT, pieces for T5 and Marian."""
    words = "the a cat dog sees small big tree river runs sleeps and".split()
    if folder.name in ("gpt2", "bert"):
        special = ["[PAD]", "<s>", "</s>", "[UNK]"] if folder.name == "gpt2" else ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]
        made = tokenizers.Tokenizer(tokenizers.models.WordLevel({w: i for i, w in enumerate(special + words)}, "[UNK]"))
        made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
        if folder.name == "bert":
            made.post_processor = tokenizers.processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
        made.add_special_tokens(special)
        made.save(str(folder / "tokenizer.json"), pretty=False)
    if folder.name in ("t5", "marian"):
        path = folder / ("spiece.model" if folder.name == "t5" else "source.spm")
        with open(path, "wb") as file:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(["abc bca cab"] * 50), model_writer=file, vocab_size=9, character_coverage=1.0,
                normalization_rule_name="identity", pad_id=0, eos_id=1, unk_id=2, bos_id=-1, minloglevel=2)
    if folder.name == "marian":
        (folder / "target.spm").write_bytes(path.read_bytes())
        pieces = sentencepiece.SentencePieceProcessor(model_file=str(path))
        names = {pieces.id_to_piece(i): i + 1 for i in range(2, pieces.get_piece_size())}
        (folder / "vocab.json").write_text(json.dumps({"</s>": 0, **names, "<pad>": V - 1}))


def generated(model, x, **options):
    """A text alone, and without a prompt."""
    rows = []
    for i in range(B):
        ids = x["ids"][i: i + 1, : int(x["lengths"][i]) if "lengths" in x else 3]
        with torch.no_grad():
            y = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=9, **options)[0]
        y = y[1 if model.config.is_encoder_decoder else ids.shape[1]:].tolist()
        rows.append(y + [-1] * (9 - len(y)))
    return torch.tensor(rows)


def make(name, kind, config, dtype, expected):
    random = torch.Generator().manual_seed(sum(map(ord, name)))
    model = kind._from_config(config, attn_implementation="eager").eval()
    if name == "t5_v1_1":  # transformers ties them, but reads those that are not tied
        model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone())
    draw(model, dtype, random)
    x = inputs(model, random)
    model.config.dtype = dtype
    state = {key: value.to(getattr(torch, dtype)) for key, value in model.state_dict().items()}
    if model.config.tie_word_embeddings and name != "t5_v1_1":
        for key in ("lm_head.weight", *(model._tied_weights_keys or ())):
            state.pop(key, None)
    state = {key: value for key, value in state.items() if "embed_positions" not in key or "marian" not in name}
    for key in ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight"):
        state.pop(key, None)
        if "model.shared.weight" in state and name != "marian_unusual":
            state.pop("model." + key, None)
    model.save_pretrained(HERE / name, state_dict=state, max_shard_size="4KB" if name == "gpt2" else "1GB")
    if name in ("mistral", "qwen3", "gpt2_unusual"):  # older folders have none
        (HERE / name / "generation_config.json").unlink()
    tokenizer(HERE / name)
    model.double()
    if hasattr(model, "final_logits_bias"):
        model.final_logits_bias.requires_grad_()
    logits, pooled = run(model, x)
    made = gradients(model, logits, pooled)
    files = {n for path in (HERE / name).glob("*.safetensors") for n in load_file(path)}
    print(f"{name}: {len(files)} tensors; without a gradient: {sorted(files - set(made))}; "
          f"{sum(p.stat().st_size for p in (HERE / name).iterdir()):,} bytes")
    expected |= {f"{name}.{key}": value.int() for key, value in x.items()}
    expected[f"{name}.logits"] = logits.detach().float()
    expected[f"{name}.gradient"] = torch.cat([made[n].flatten() for n in sorted(files & set(made))]).float()
    if pooled is not None:
        expected[f"{name}.pooled"] = pooled.detach().float()
    if model.config.model_type not in ENCODERS:
        if hasattr(model, "final_logits_bias"):
            model.final_logits_bias.requires_grad_(False)
        expected[f"{name}.greedy"] = generated(model, x, num_beams=1).int()
        expected[f"{name}.beam"] = generated(model, x, num_beams=3).int()
        expected[f"{name}.early"] = generated(model, x, num_beams=3, early_stopping=True, length_penalty=0.5).int()
        if name == "marian":  # as generation_config.json of the public ones
            expected["marian.public"] = generated(model, x, num_beams=3, bad_words_ids=[[V - 1]], renormalize_logits=True).int()


def check(a, b):
    for path in sorted(Path(a).iterdir()):
        if path.name in MODELS:
            kind = MODELS[path.name][0]
            x = inputs(kind.from_pretrained(path), torch.Generator().manual_seed(1))
            one, two = (run(kind.from_pretrained(Path(folder) / path.name, dtype=torch.float32).eval(), x)[0] for folder in (a, b))
            print(f"{path.name}: the logits differ by {(one - two).abs().max():g}")


def pack():
    """The same bytes for the same files."""
    with zipfile.ZipFile(HERE / "folders.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sorted(HERE.glob("*/*")):
            if path.parent.name not in SHOWN:
                packed.writestr(zipfile.ZipInfo(str(path.relative_to(HERE))), path.read_bytes(), zipfile.ZIP_DEFLATED)
    for name in set(MODELS) - set(SHOWN):
        shutil.rmtree(HERE / name)


def main():
    torch.set_num_threads(1)
    names = sys.argv[1:] or list(MODELS)
    expected = load_file(HERE / "expected.safetensors") if sys.argv[1:] else {}
    shutil.unpack_archive(HERE / "folders.zip", HERE)
    for name in names:
        make(name, *MODELS[name], expected)
    save_file(expected, HERE / "expected.safetensors")
    pack()
    print(f"{sum(p.stat().st_size for p in HERE.rglob('*') if p.is_file()):,} bytes")


if __name__ == "__main__":
    check(*sys.argv[2:]) if sys.argv[1:2] == ["--check"] else main()
