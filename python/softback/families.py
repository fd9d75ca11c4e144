"""Models of Hugging Face's transformers: for each family a table, from its config's fields to our options, and from
our names of weights to its own."""
from types import SimpleNamespace

from .library import Error

ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh",
               "gelu_fast": "gelu_tanh", "silu": "silu", "swish": "silu", "tanh": "tanh", "sigmoid": "sigmoid"}
# Fields that change no number of a model without dropout; those of special symbols and of generation are read elsewhere.
IGNORED = set("""
    tie_weights_ _name_or_path architectures model_type transformers_version torch_dtype dtype use_cache initializer_range init_std initializer_factor
    output_attentions output_hidden_states output_past return_dict is_encoder_decoder is_decoder id2label label2id _num_labels num_labels problem_type
    task_specific_params gradient_checkpointing use_return_dict summary_activation summary_first_dropout summary_proj_to_labels summary_type
    summary_use_proj bos_token_id eos_token_id pad_token_id decoder_start_token_id sep_token_id cls_token_id unk_token_id tokenizer_class prefix
    finetuning_task pruned_heads n_ctx classif_dropout _attn_implementation_autoset torchscript num_beams max_length min_length length_penalty
    early_stopping no_repeat_ngram_size forced_bos_token_id forced_eos_token_id bad_words_ids do_sample temperature top_k top_p num_return_sequences
    repetition_penalty force_bos_token_to_be_generated extra_pos_embeddings max_window_layers sinusoidal_pos_embds dense_act_fn is_gated_act
    static_position_embeddings _commit_hash auto_map directionality pooler_fc_size pooler_num_attention_heads pooler_num_fc_layers
    pooler_size_per_head pooler_type
    """.split())


class Only:
    """The values of a field with which softback computes what transformers does."""

    def __init__(self, *values):
        self.values = values

    def __call__(self, value, field):
        if value not in self.values or isinstance(value, bool) != isinstance(self.values[0], bool) and value is not None:
            raise Error(f"it has {field} {value!r}, which softback does not compute; it computes "
                        f"{' and '.join(map(repr, self.values))}")
        return {}


def is_one(allowed, kind, value, field, what):
    if not (kind and isinstance(value, kind) and not isinstance(value, bool) and allowed(value)):
        raise Error(f"{field} is {str(value)[:60]!r}, not {what}")
    return value


def size(value, field):
    return is_one(lambda n: 1 <= n <= 1 << 24, int, value, field, "a whole number in 1..16777216")


def number(value, field):
    return is_one(lambda x: 0 < x < 1e12, (int, float), value, field, "a positive number")


def truth(value, field):
    if not isinstance(value, bool):
        raise Error(f"{field} is {str(value)[:60]!r}, neither true nor false")
    return value


def activation(value, field):
    if not isinstance(value, str) or value not in ACTIVATIONS:
        raise Error(f"{field} is {str(value)[:60]!r}, none of {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[value]


def option(name, read=size, but_null=False):
    """A field that is this option of ours."""
    return lambda value, field: {} if value is None and but_null else {name: read(value, field)}


def rope(value, field):
    """rope_parameters, or rope_scaling of older files."""
    given = value or {}
    if not isinstance(given, dict):
        raise Error(f"{field} is {str(value)[:60]!r}, not an object")
    kind = given.get("rope_type", given.get("type", "default"))
    known = {"default": {}, "linear": {"factor": "rotary_scaling"}, "llama3": {
        "factor": "rotary_scaling", "low_freq_factor": "rotary_low_factor", "high_freq_factor": "rotary_high_factor",
        "original_max_position_embeddings": "rotary_original"}}
    if not isinstance(kind, str) or kind not in known:
        raise Error(f"{field} has the rope_type {str(kind)[:60]!r}, which softback does not compute; it computes "
                    f"{', '.join(known)}")
    names = known[kind] | {"rope_theta": "rotary_base", "partial_rotary_factor": "rotary_part"}
    for name in set(given) - set(names) - {"type", "rope_type"}:
        raise Error(f"{field} has {name!r}, which softback does not know")
    for name in set(known[kind]) - set(given):
        raise Error(f"{field} of type {kind} lacks {name!r}")
    read = {"rotary_original": size}
    return {names[n]: read.get(names[n], number)(x, f"{field}.{n}") for n, x in given.items() if n in names}


def projection(value, field):
    """T5's feed-forward network: "relu", "gated-gelu", whose gelu is the one with tanh, ..."""
    gated, _, name = str(value).rpartition("-")
    if gated not in ("", "gated"):
        raise Error(f"{field} is {value!r}; an activation or gated-ACTIVATION is expected")
    return {"activation": activation("gelu_new" if value == "gated-gelu" else name, field), "gated": gated == "gated"}


def without_positions(value, field):
    """SmolLM3's list of 1 for the layers that have rotary positions: all but those at one interval."""
    every = value.index(0) + 1 if isinstance(value, list) and 0 in value else 0
    if value is not None and value != [int(not every or (i + 1) % every != 0) for i in range(len(value) if isinstance(value, list) else 0)]:
        raise Error(f"{field} is {str(value)[:60]}, which softback does not compute; its layers without positions are at one interval")
    return {} if value is None else {"rotary_interval": every}


QKV = "query q_proj, key k_proj, value v_proj"
VOCABULARY, WIDTH, TIED = option("vocabulary"), option("width"), option("tie_embeddings", truth)
HEADS, FEED, ACTIVATION, EPSILON = option("heads"), option("feed_forward"), option("activation", activation), option("norm_epsilon", number)
LONGEST = option("positions_longest")

# fields: (transformers' default, how it is read).  names: ours, in which * is a number, are theirs, one after the other where
# several are one of theirs; |T transposed, |row of shape (1, n), |heads see laid_out, A or B the one that the file has.
def under(ours, theirs, pairs):
    """Names that begin alike, "OURS THEIRS, ..."."""
    return {ours + a: theirs + b for a, b in (pair.split() for pair in pairs.split(","))}


GPT2 = SimpleNamespace(
    kind="language_model", architecture="GPT2LMHeadModel", prefix="transformer.", buffers=r"\.attn\.(masked_)?bias$",
    fixed=dict(positions="learned", embedding_scale=1, position_scale=1, no_output_bias=True),
    fields={
        "vocab_size": (50257, VOCABULARY), "n_embd": (768, WIDTH), "n_layer": (12, option("decoder_layers")), "n_head": (12, HEADS),
        "n_positions": (1024, LONGEST), "n_inner": (None, option("feed_forward", but_null=True)), "activation_function": ("gelu_new", ACTIVATION),
        "layer_norm_epsilon": (1e-5, EPSILON), "scale_attn_weights": (True, lambda x, f: {} if truth(x, f) else {"score_scale": 1}),
        "scale_attn_by_inverse_layer_idx": (False, Only(False)), "reorder_and_upcast_attn": (False, Only(False, True)),
        "add_cross_attention": (False, Only(False)), "tie_word_embeddings": (True, TIED)},
    names={
        "decoder.embedding": "transformer.wte", "decoder.embedding.positions": "transformer.wpe.weight", "decoder.norm": "transformer.ln_f", "output": "lm_head",
        **under("decoder.layers.*.self_attention.", "transformer.h.*.attn.", "query c_attn|T, key c_attn|T, value c_attn|T, output c_proj|T"),
        **under("decoder.layers.*.", "transformer.h.*.", "self_norm ln_1, feed_norm ln_2, feed_forward.up mlp.c_fc|T, feed_forward.down mlp.c_proj|T")},
    tied={"lm_head.weight": "decoder.embedding.weight"})


def llama(kind, architecture, more, **fixed):
    """Llama, and what is shaped like it."""
    return SimpleNamespace(
        kind="language_model", architecture=architecture, prefix="model.", buffers=r"rotary_emb\.inv_freq$",
        fixed=dict(positions="rotary", embedding_scale=1, norm_kind="rms", gated=True, no_output_bias=True) | fixed,
        fields={
            "vocab_size": (32000, VOCABULARY), "hidden_size": (4096, WIDTH), "intermediate_size": (11008, FEED),
            "num_hidden_layers": (32, option("decoder_layers")), "num_attention_heads": (32, HEADS),
            "num_key_value_heads": (None, option("key_heads", but_null=True)), "head_dim": (None, option("head_size", but_null=True)),
            "hidden_act": ("silu", ACTIVATION), "rms_norm_eps": (1e-6, EPSILON), "max_position_embeddings": (2048, option("context_")),
            "rope_theta": (10000.0, option("rotary_base", number)), "rope_scaling": (None, rope), "rope_parameters": (None, rope),
            "tie_word_embeddings": (False, TIED)} | more,
        names={
            "decoder.embedding": "model.embed_tokens", "decoder.norm": "model.norm", "output": "lm_head",
            **under("decoder.layers.*.self_attention.", "model.layers.*.self_attn.", f"{QKV}, output o_proj, query_norm q_norm, key_norm k_norm"),
            **under("decoder.layers.*.feed_forward.", "model.layers.*.mlp.", "gate gate_proj, up up_proj, down down_proj"),
            **under("decoder.layers.*.", "model.layers.*.", "self_norm input_layernorm, feed_norm post_attention_layernorm")},
        tied={"lm_head.weight": "decoder.embedding.weight"})


NO_WINDOW = {"use_sliding_window": (False, Only(False)), "sliding_window": (None, lambda x, f: {}),
             "layer_types": (None, lambda x, f: {} if x is None else Only("full_attention")(*set(map(str, x)) or {""}, f) if isinstance(x, list) and len(set(map(str, x))) < 2 else Only(None)(x, f))}
BIASES = {"attention_bias": (False, option("attention_bias", truth)), "mlp_bias": (False, option("mlp_bias", truth)), "pretraining_tp": (1, lambda x, f: {})}
LLAMA = llama("llama", "LlamaForCausalLM", BIASES)
MISTRAL = llama("mistral", "MistralForCausalLM", {
    "sliding_window": (4096, option("sliding_window", but_null=True)), "num_key_value_heads": (8, option("key_heads"))}, biases="none")
QWEN2 = llama("qwen2", "Qwen2ForCausalLM", NO_WINDOW | {"num_key_value_heads": (32, option("key_heads"))}, biases="qkv")
QWEN3 = llama("qwen3", "Qwen3ForCausalLM", NO_WINDOW | {
    "num_key_value_heads": (32, option("key_heads")), "head_dim": (128, option("head_size")), "attention_bias": (False, Only(False))}, biases="none", qk_norm=True)


SMOLLM3 = llama("smollm3", "SmolLM3ForCausalLM", BIASES | NO_WINDOW | {
    "num_key_value_heads": (4, option("key_heads")), "rope_theta": (2e6, option("rotary_base", number)), "tie_word_embeddings": (True, TIED),
    "no_rope_layer_interval": (4, option("rotary_interval")), "no_rope_layers": (None, without_positions)})
PHI3 = llama("phi3", "Phi3ForCausalLM", {
    "sliding_window": (None, option("sliding_window", but_null=True)), "partial_rotary_factor": (None, option("rotary_part", number)), "attention_bias": (False, Only(False)),
    "original_max_position_embeddings": (4096, lambda x, f: {})}, biases="none")
PHI3.names |= under("decoder.layers.*.self_attention.", "model.layers.*.self_attn.", "query qkv_proj, key qkv_proj, value qkv_proj") | under(
    "decoder.layers.*.feed_forward.", "model.layers.*.mlp.", "gate gate_up_proj, up gate_up_proj")
NEOX = SimpleNamespace(
    kind="language_model", architecture="GPTNeoXForCausalLM", prefix="gpt_neox.", buffers=r"\.attention\.(masked_)?bias$|rotary_emb\.inv_freq$",
    fixed=dict(positions="rotary", embedding_scale=1, no_output_bias=True),
    fields={
        "vocab_size": (50432, VOCABULARY), "hidden_size": (6144, WIDTH), "num_hidden_layers": (44, option("decoder_layers")), "num_attention_heads": (64, HEADS),
        "intermediate_size": (24576, FEED), "hidden_act": ("gelu", ACTIVATION), "layer_norm_eps": (1e-5, EPSILON), "max_position_embeddings": (2048, option("context_")),
        "rotary_emb_base": (10000, option("rotary_base", number)), "rotary_pct": (0.25, option("rotary_part", number)), "rope_scaling": (None, rope), "rope_parameters": (None, rope),
        "use_parallel_residual": (True, Only(False)), "attention_bias": (True, Only(True)), "tie_word_embeddings": (False, TIED)},
    names={
        "decoder.embedding": "gpt_neox.embed_in", "decoder.norm": "gpt_neox.final_layer_norm", "output": "embed_out",
        **{f"decoder.layers.*.self_attention.{name}": "gpt_neox.layers.*.attention.query_key_value|heads" for name in ("query", "key", "value")},
        **under("decoder.layers.*.", "gpt_neox.layers.*.", "self_attention.output attention.dense, self_norm input_layernorm, feed_norm post_attention_layernorm, "
                "feed_forward.up mlp.dense_h_to_4h, feed_forward.down mlp.dense_4h_to_h")},
    tied={"embed_out.weight": "decoder.embedding.weight"})
OPT = SimpleNamespace(
    kind="language_model", architecture="OPTForCausalLM", prefix="model.", buffers="^$",
    fixed=dict(positions="learned", embedding_scale=1, position_scale=1, position_offset=2, no_output_bias=True),
    fields={
        "vocab_size": (50272, VOCABULARY), "hidden_size": (768, WIDTH), "num_hidden_layers": (12, option("decoder_layers")), "num_attention_heads": (12, HEADS),
        "ffn_dim": (3072, FEED), "activation_function": ("relu", ACTIVATION), "max_position_embeddings": (2048, LONGEST), "do_layer_norm_before": (True, Only(True)),
        "_remove_final_layer_norm": (False, Only(False)), "word_embed_proj_dim": (None, option("embedding_size", but_null=True)), "enable_bias": (True, Only(True)),
        "layer_norm_elementwise_affine": (True, Only(True)), "tie_word_embeddings": (True, TIED)},
    names={
        **under("decoder.", "model.decoder.", "embedding embed_tokens, embedding.positions embed_positions.weight, norm final_layer_norm"), "output": "lm_head",
        **under("decoder.layers.*.self_attention.", "model.decoder.layers.*.self_attn.", f"{QKV}, output out_proj"),
        **under("decoder.layers.*.", "model.decoder.layers.*.", "self_norm self_attn_layer_norm, feed_norm final_layer_norm, feed_forward.up fc1, feed_forward.down fc2")},
    tied={"lm_head.weight": "decoder.embedding.weight"})


def bart(architecture, more, layer_norm, before=False, **fixed):
    """BART, Marian and mBART, whose norms stand before."""
    return SimpleNamespace(
        kind="seq2seq", architecture=architecture, prefix="model.", fixed=dict(norm_place="pre" if before else "post") | fixed,
        buffers="^$" if layer_norm else r"embed_positions\.weights?$",
        fields={
            "vocab_size": (50265, VOCABULARY), "d_model": (1024, WIDTH), "encoder_layers": (12, option("encoder_layers")), "decoder_layers": (12, option("decoder_layers")),
            "encoder_attention_heads": (16, HEADS), "decoder_attention_heads": (16, option("decoder_heads")), "encoder_ffn_dim": (4096, FEED),
            "decoder_ffn_dim": (4096, option("decoder_feed_forward")), "num_hidden_layers": (None, lambda x, f: {}), "activation_function": ("gelu", ACTIVATION),
            "scale_embedding": (False, lambda x, f: {} if truth(x, f) else {"embedding_scale": 1}), "tie_word_embeddings": (True, TIED),
            "normalize_before": (before, Only(before)), "add_final_layer_norm": (before, Only(before)), "normalize_embedding": (layer_norm, Only(layer_norm)),
            "add_bias_logits": (False, Only(False, True))} | more,
        names={
            "encoder.embedding": "model.shared or model.encoder.embed_tokens", "decoder.embedding": "model.decoder.embed_tokens", "output": "lm_head", "output.bias": "final_logits_bias|row",
            **{ours: theirs for side in ("encoder", "decoder") for ours, theirs in (
                under(f"{side}.", f"model.{side}.", "embedding.positions embed_positions.weight, embedding.norm layernorm_embedding, norm layer_norm")
                | under(f"{side}.layers.*.self_attention.", f"model.{side}.layers.*.self_attn.", f"{QKV}, output out_proj")
                | under(f"{side}.layers.*.cross_attention.", f"model.{side}.layers.*.encoder_attn.", f"{QKV}, output out_proj")
                | under(f"{side}.layers.*.", f"model.{side}.layers.*.", "self_norm self_attn_layer_norm, cross_norm encoder_attn_layer_norm, feed_norm final_layer_norm, "
                        "feed_forward.up fc1, feed_forward.down fc2")).items()}},
        tied=dict.fromkeys(("lm_head.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"), "encoder.embedding.weight"))


BART = bart("BartForConditionalGeneration", {"max_position_embeddings": (1024, LONGEST)}, True,
            positions="learned", position_offset=2, position_scale=1, embedding_norm=True)
MBART = bart("MBartForConditionalGeneration", {"max_position_embeddings": (1024, LONGEST)}, True, True,
             positions="learned", position_offset=2, position_scale=1, embedding_norm=True)
MARIAN = bart("MarianMTModel", {
    "max_position_embeddings": (1024, lambda x, f: {}), "decoder_vocab_size": (None, option("decoder_vocabulary", but_null=True)),
    "share_encoder_decoder_embeddings": (True, option("share_embeddings", truth))}, False, positions="halves")
T5 = SimpleNamespace(
    kind="seq2seq", architecture="T5ForConditionalGeneration", prefix="", buffers="^$",
    fixed=dict(positions="buckets", norm_kind="rms", biases="none", embedding_scale=1, score_scale=1, share_embeddings=True),
    fields={
        "vocab_size": (32128, VOCABULARY), "d_model": (512, WIDTH), "d_kv": (64, option("head_size")), "d_ff": (2048, FEED),
        "num_layers": (6, option("encoder_layers")), "num_decoder_layers": (None, option("decoder_layers", but_null=True)), "num_heads": (8, HEADS),
        "relative_attention_num_buckets": (32, option("position_buckets")), "relative_attention_max_distance": (128, option("position_distance")),
        "layer_norm_epsilon": (1e-6, EPSILON), "feed_forward_proj": ("relu", projection), "n_positions": (512, lambda x, f: {}),
        "tie_word_embeddings": (True, TIED), "scale_decoder_outputs": (None, lambda x, f: {})},
    names={
        "encoder.embedding": "shared", "output": "lm_head",
        **{f"{s}.distance": f"{s}.block.0.layer.0.SelfAttention.relative_attention_bias.weight|T" for s in ("encoder", "decoder")},
        **{f"{s}.layers.*.{kind}_attention.{name}": f"{s}.block.*.layer.{i}.{theirs}.{name[0]}" for s in ("encoder", "decoder")
           for kind, i, theirs in (("self", 0, "SelfAttention"), ("cross", 1, "EncDecAttention")) for name in ("query", "key", "value", "output")},
        **{f"{s}.layers.*.{name}": f"{s}.block.*.layer.{i}.layer_norm" for s, n in (("encoder", 1), ("decoder", 2))
           for name, i in (("self_norm", 0), ("cross_norm", 1), ("feed_norm", n))},
        **{f"{s}.layers.*.feed_forward.{name}": " or ".join(f"{s}.block.*.layer.{n}.DenseReluDense.{theirs}" for theirs in many.split())
           for s, n in (("encoder", 1), ("decoder", 2)) for name, many in (("gate", "wi_0"), ("up", "wi wi_1"), ("down", "wo"))},
        "encoder.norm": "encoder.final_layer_norm", "decoder.norm": "decoder.final_layer_norm"},
    tied=dict.fromkeys(("lm_head.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight"), "encoder.embedding.weight"))
MT5 = SimpleNamespace(**vars(T5) | {"architecture": "MT5ForConditionalGeneration", "fields": T5.fields | {
    "vocab_size": (250112, VOCABULARY), "d_ff": (1024, FEED), "num_layers": (8, option("encoder_layers")), "num_heads": (6, HEADS), "feed_forward_proj": ("gated-gelu", projection)}})


def heads(prefix, pooler, hidden, activation, output, masked):
    """What stands on an encoder: for each ending of an architecture's name, options and names of weights. `masked` has those of a
    dense layer, a norm, the logits and their bias, and the dense layer's activation; None: that of the encoder."""
    *layers, act = masked
    return {
        "ForSequenceClassification": (dict(pooling="first", hidden=activation), {"hidden": hidden, "output": output}),
        "Model": (dict(pooling="first", hidden="tanh"), {"hidden": f"{prefix}pooler.dense"} if pooler else {}),
        "ForMaskedLM": (dict(hidden=act), dict(zip(("hidden", "hidden_norm", "output", "output.bias"), layers))),
        "ForTokenClassification": ({}, {"output": "classifier"})}


def encoder(stem, prefix, fields, names, above, **fixed):
    """The models of an encoder, by the names of their architectures."""
    return {stem + name: SimpleNamespace(
        kind="classifier" if name == "ForSequenceClassification" else "encoder", architecture=stem + name, prefix=prefix,
        buffers=r"(position_ids|token_type_ids)$|pooler\.dense\.|^cls\.seq_relationship\.",
        fixed=dict(norm_place="post", positions="learned", embedding_scale=1, position_scale=1, embedding_norm=True) | fixed | head,
        fields=fields | {"tie_word_embeddings": (True, Only(True) if name == "ForMaskedLM" else lambda x, f: {})},
        names={ours: prefix + theirs for ours, theirs in names.items()} | more,
        tied={more["output"] + ".weight": "encoder.embedding.weight", more["output"] + ".bias": "output.bias"} if name == "ForMaskedLM" else {})
        for name, (head, more) in above.items()}


EMBEDDINGS = under("encoder.", "embeddings.", "embedding word_embeddings, embedding.positions position_embeddings.weight, embedding.norm LayerNorm")


def bert(stem, prefix, above, more=None, **fixed):
    """BERT, RoBERTa and ELECTRA."""
    return encoder(stem, prefix, {
        "vocab_size": (30522, VOCABULARY), "hidden_size": (768, WIDTH), "num_hidden_layers": (12, option("encoder_layers")), "num_attention_heads": (12, HEADS),
        "intermediate_size": (3072, FEED), "hidden_act": ("gelu", ACTIVATION), "max_position_embeddings": (512, LONGEST), "type_vocab_size": (2, option("segments")),
        "layer_norm_eps": (1e-12, EPSILON), "position_embedding_type": ("absolute", Only("absolute")), "add_cross_attention": (False, Only(False))} | (more or {}), {
        **EMBEDDINGS, "encoder.embedding.segments": "embeddings.token_type_embeddings.weight",
        **under("encoder.layers.*.self_attention.", "encoder.layer.*.attention.", "query self.query, key self.key, value self.value, output output.dense"),
        **under("encoder.layers.*.", "encoder.layer.*.", "self_norm attention.output.LayerNorm, feed_forward.up intermediate.dense, feed_forward.down output.dense, "
                "feed_norm output.LayerNorm")}, above, **fixed)


def roberta(stem):
    return bert(stem, "roberta.", heads("roberta.", True, "classifier.dense", "tanh", "classifier.out_proj", (
        "lm_head.dense", "lm_head.layer_norm", "lm_head.decoder", "lm_head.bias", "gelu")), roberta=True)


BERT = bert("Bert", "bert.", heads("bert.", True, "bert.pooler.dense", "tanh", "classifier", (
    "cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", "cls.predictions.decoder", "cls.predictions.bias", None)))
ELECTRA = bert("Electra", "electra.", heads("electra.", False, "classifier.dense", "gelu", "classifier.out_proj", (
    "generator_predictions.dense", "generator_predictions.LayerNorm", "generator_lm_head", "generator_lm_head.bias", "gelu")),
    {"embedding_size": (128, option("embedding_size"))})
DISTILBERT = encoder("DistilBert", "distilbert.", {
    "vocab_size": (30522, VOCABULARY), "dim": (768, WIDTH), "n_layers": (6, option("encoder_layers")), "n_heads": (12, HEADS), "hidden_dim": (3072, FEED),
    "activation": ("gelu", ACTIVATION), "max_position_embeddings": (512, LONGEST)}, {
    **EMBEDDINGS, **under("encoder.layers.*.self_attention.", "transformer.layer.*.attention.", "query q_lin, key k_lin, value v_lin, output out_lin"),
    **under("encoder.layers.*.", "transformer.layer.*.", "self_norm sa_layer_norm, feed_norm output_layer_norm, feed_forward.up ffn.lin1, feed_forward.down ffn.lin2")},
    heads("distilbert.", False, "pre_classifier", "relu", "classifier", ("vocab_transform", "vocab_layer_norm", "vocab_projector", "vocab_projector.bias", None)), norm_epsilon=1e-12)

# For each model_type its architectures, the first that of a config that names none.
FAMILIES = {"gpt2": GPT2, "llama": LLAMA, "mistral": MISTRAL, "qwen2": QWEN2, "qwen3": QWEN3, "smollm3": SMOLLM3, "phi3": PHI3, "gpt_neox": NEOX, "opt": OPT,
            "marian": MARIAN, "bart": BART, "mbart": MBART, "t5": T5, "mt5": MT5}
FAMILIES = {kind: {family.architecture: family} for kind, family in FAMILIES.items()} | {
    "bert": BERT, "roberta": roberta("Roberta"), "xlm-roberta": roberta("XLMRoberta"), "camembert": roberta("Camembert"), "electra": ELECTRA, "distilbert": DISTILBERT}
