"""The headers of softback for ctypes. Made by python/generate.py; do not edit."""
from ctypes import *

from .structure import Handle, Structure

VERSION = "0.2.0"
ALL = 1000


ENUMS = {
    "sb_stream": {'initial': 0, 'train': 1, 'data': 2, 'sample': 3, 'user': 4},
    "sb_dtype": {'f32': 0, 'f64': 1, 'bf16': 2, 'dual': 3, 'i32': 4, 'bool': 5},
    "sb_mode": {'record': 0, 'no_record': 1},
    "sb_gradcheck_method": {'automatic': 0, 'exact': 1, 'differences': 2},
    "sb_sequence": {'source': 0, 'target': 1, 'none': 2},
    "sb_activation": {'identity': 0, 'relu': 1, 'gelu': 2, 'gelu_tanh': 3, 'silu': 4, 'tanh': 5, 'sigmoid': 6},
    "sb_reduction": {'mean': 0, 'sum': 1, 'none': 2},
    "sb_layout": {'length_first': 0, 'heads_first': 1},
    "sb_score": {'scaled': 0, 'balanced': 1, 'cosine': 2},
    "sb_attention_algorithm": {'automatic': 0, 'composed': 1, 'tiled': 2},
    "sb_initial_kind": {'xavier': 0, 'normal': 1, 'constant': 2},
    "sb_norm_kind": {'layer': 0, 'rms': 1},
    "sb_norm_place": {'pre': 0, 'post': 1},
    "sb_positions": {'sinusoidal': 0, 'learned': 1, 'rotary': 2, 'alibi': 3, 'relative': 4, 'none': 5, 'halves': 6, 'buckets': 7},
    "sb_biases": {'all': 0, 'qkv': 1, 'none': 2},
    "sb_precision": {'f32': 0, 'bf16': 1, 'tf32x3': 2},
    "sb_units": {'auto': 0, 'characters': 1, 'bytes': 2, 'words': 3, 'bpe': 4},
    "sb_task": {'copy': 0, 'reverse': 1, 'sort': 2, 'addition': 3, 'dates': 4},
    "sb_part": {'train': 0, 'valid': 1, 'test': 2},
    "sb_weight_format": {'as_stored': 0, 'int8': 1},
    "sb_loss": {'mean': 0, 'sum': 1, 'cost': 2},
    "sb_pooling": {'mean': 0, 'first': 1},
    "sb_document_cut": {'files': 0, 'paragraphs': 1, 'lines': 2},
    "sb_drawing_format": {'svg': 0, 'dot': 1},
    "sb_schedule_kind": {'constant': 0, 'inverse_root': 1, 'cosine': 2, 'plateau': 3, 'linear': 4, 'restarts': 5, 'custom': 6},
    "sb_optimiser_kind": {'adam': 0, 'adamw': 1, 'sgd': 2},
    "sb_graphs": {'auto': 0, 'off': 1},
}


class sb_random(Structure):
    _fields_ = [
        ("seed", c_uint64),
        ("position", c_uint64),
    ]
    forms = {
    }


class sb_memory(Structure):
    _fields_ = [
        ("live_blocks", c_int64),
        ("live_bytes", c_int64),
        ("peak_bytes", c_int64),
        ("system_calls", c_int64),
    ]
    forms = {
    }


class sb_tape(Structure):
    _fields_ = [
        ("serial", c_uint64),
    ]
    forms = {
    }


class sb_gradcheck_options(Structure):
    _fields_ = [
        ("step", c_double),
        ("tolerance", c_double),
        ("random", c_void_p),
        ("method", c_int),
        ("directions", c_int),
        ("second_order", c_bool),
    ]
    forms = {
        "step": ("number", ),
        "tolerance": ("number", ),
        "random": ("value", sb_random),
        "method": ("choice", "sb_gradcheck_method"),
    }


class sb_gradcheck_result(Structure):
    _fields_ = [
        ("ok", c_bool),
        ("method", c_int),
        ("error", c_double),
        ("input", c_int),
        ("index", c_int64),
        ("backward", c_double),
        ("difference", c_double),
        ("step", c_double),
        ("symmetry", c_double),
        ("curvature", c_double),
        ("mistake", c_char * 160),
    ]
    forms = {
        "method": ("choice", "sb_gradcheck_method"),
    }


class sb_operation(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("inputs", c_char_p),
        ("backward", c_void_p),
        ("writes_fresh", c_bool),
        ("dual", c_bool),
    ]
    forms = {
        "name": ("text", ),
        "inputs": ("text", ),
    }


class sb_piece(Structure):
    _fields_ = [
        ("of", c_int64),
        ("first", c_int64),
        ("turn", c_int64),
        ("second", c_int64),
    ]
    forms = {
    }


class sb_partition(Structure):
    _fields_ = [
        ("items", sb_piece),
        ("source", sb_piece),
        ("target", sb_piece),
    ]
    forms = {
        "items": ("value", sb_piece),
        "source": ("value", sb_piece),
        "target": ("value", sb_piece),
    }


class sb_context(Structure):
    _fields_ = [
        ("partition", c_void_p),
        ("ring", c_void_p),
        ("packed", c_void_p),
        ("position", c_void_p),
        ("rounded", c_void_p),
    ]
    forms = {
        "partition": ("value", sb_partition),
        "ring": ("handle", "sb_communicator"),
    }


class sb_cross_entropy_options(Structure):
    _fields_ = [
        ("label_smoothing", c_double),
        ("class_weight", c_void_p),
        ("reduction", c_int),
    ]
    forms = {
        "label_smoothing": ("number", ),
        "class_weight": ("tensor", ),
        "reduction": ("choice", "sb_reduction"),
    }


class sb_attention_options(Structure):
    _fields_ = [
        ("layout", c_int),
        ("mask", c_void_p),
        ("bias", c_void_p),
        ("score", c_int),
        ("scale", c_double),
        ("temperature", c_double),
        ("log_temperature", c_void_p),
        ("softcap", c_double),
        ("dropout", c_double),
        ("weights", c_void_p),
        ("algorithm", c_int),
        ("tf32x3", c_bool),
        ("queries", c_int),
        ("keys", c_int),
        ("heads", sb_piece),
    ]
    forms = {
        "layout": ("choice", "sb_layout"),
        "mask": ("mask", ),
        "bias": ("tensor", ),
        "score": ("choice", "sb_score"),
        "scale": ("number", ),
        "temperature": ("number", ),
        "log_temperature": ("tensor", ),
        "softcap": ("number", ),
        "dropout": ("number", ),
        "weights": ("out", ),
        "algorithm": ("choice", "sb_attention_algorithm"),
        "queries": ("choice", "sb_sequence"),
        "keys": ("choice", "sb_sequence"),
        "heads": ("value", sb_piece),
    }


class sb_named_tensor(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("tensor", c_void_p),
    ]
    forms = {
        "name": ("text", ),
        "tensor": ("tensor", ),
    }


class sb_initial(Structure):
    _fields_ = [
        ("kind", c_int),
        ("value", c_double),
    ]
    forms = {
        "kind": ("choice", "sb_initial_kind"),
    }


class sb_cut(Structure):
    _fields_ = [
        ("ranks", c_void_p),
        ("axis", c_int),
    ]
    forms = {
        "ranks": ("handle", "sb_communicator"),
    }


class sb_linear_layer(Structure):
    _fields_ = [
        ("weight", c_void_p),
        ("bias", c_void_p),
        ("lora_a", c_void_p),
        ("lora_b", c_void_p),
        ("lora_scale", c_double),
    ]
    forms = {
        "weight": ("tensor", ),
        "bias": ("tensor", ),
        "lora_a": ("tensor", ),
        "lora_b": ("tensor", ),
    }


class sb_norm_layer(Structure):
    _fields_ = [
        ("kind", c_int),
        ("gain", c_void_p),
        ("bias", c_void_p),
        ("epsilon", c_double),
    ]
    forms = {
        "kind": ("choice", "sb_norm_kind"),
        "gain": ("tensor", ),
        "bias": ("tensor", ),
    }


class sb_norm_options(Structure):
    _fields_ = [
        ("kind", c_int),
        ("no_bias", c_bool),
        ("epsilon", c_double),
    ]
    forms = {
        "kind": ("choice", "sb_norm_kind"),
        "epsilon": ("number", ),
    }


class sb_transformer_options(Structure):
    _fields_ = [
        ("width", c_int64),
        ("heads", c_int64),
        ("head_size", c_int64),
        ("key_heads", c_int64),
        ("key_width", c_int64),
        ("value_width", c_int64),
        ("feed_forward", c_int64),
        ("encoder_layers", c_int),
        ("decoder_layers", c_int),
        ("dropout", c_double),
        ("attention_dropout", c_double),
        ("feed_forward_dropout", c_double),
        ("norm_place", c_int),
        ("norm_kind", c_int),
        ("norm_epsilon", c_double),
        ("biases", c_int),
        ("no_output_bias", c_bool),
        ("activation", c_int),
        ("gated", c_bool),
        ("score", c_int),
        ("score_scale", c_double),
        ("temperature", c_double),
        ("attention", c_int),
        ("embedding_scale", c_double),
        ("position_scale", c_double),
        ("embedding_norm", c_bool),
        ("positions", c_int),
        ("position_offset", c_int64),
        ("rotary_base", c_double),
        ("rotary_scaling", c_double),
        ("position_buckets", c_int64),
        ("position_distance", c_int64),
        ("precision", c_int),
        ("recompute", c_bool),
        ("along", c_int),
        ("longest", c_int64),
        ("padded", c_bool),
        ("padding_id", c_int64),
        ("ranks", c_void_p),
    ]
    forms = {
        "dropout": ("number", ),
        "attention_dropout": ("number", ),
        "feed_forward_dropout": ("number", ),
        "norm_place": ("choice", "sb_norm_place"),
        "norm_kind": ("choice", "sb_norm_kind"),
        "norm_epsilon": ("number", ),
        "biases": ("choice", "sb_biases"),
        "activation": ("choice", "sb_activation"),
        "score": ("choice", "sb_score"),
        "score_scale": ("number", ),
        "temperature": ("number", ),
        "attention": ("choice", "sb_attention_algorithm"),
        "embedding_scale": ("number", ),
        "position_scale": ("number", ),
        "positions": ("choice", "sb_positions"),
        "rotary_base": ("number", ),
        "rotary_scaling": ("number", ),
        "precision": ("choice", "sb_precision"),
        "along": ("choice", "sb_sequence"),
        "ranks": ("handle", "sb_communicator"),
    }


class sb_multi_head_attention(Structure):
    _fields_ = [
        ("heads", c_int64),
        ("key_heads", c_int64),
        ("size", c_int64),
        ("ranks", c_void_p),
        ("dropout", c_double),
        ("score", c_int),
        ("scale", c_double),
        ("temperature", c_double),
        ("algorithm", c_int),
        ("tf32x3", c_bool),
        ("rotary", c_bool),
        ("rotary_base", c_double),
        ("rotary_scaling", c_double),
        ("along", c_int),
        ("keys_along", c_int),
        ("query", sb_linear_layer),
        ("key", sb_linear_layer),
        ("value", sb_linear_layer),
        ("output", sb_linear_layer),
    ]
    forms = {
        "ranks": ("handle", "sb_communicator"),
        "score": ("choice", "sb_score"),
        "algorithm": ("choice", "sb_attention_algorithm"),
        "along": ("choice", "sb_sequence"),
        "keys_along": ("choice", "sb_sequence"),
        "query": ("value", sb_linear_layer),
        "key": ("value", sb_linear_layer),
        "value": ("value", sb_linear_layer),
        "output": ("value", sb_linear_layer),
    }


class sb_attending(Structure):
    _fields_ = [
        ("mask", c_void_p),
        ("values", c_void_p),
        ("bias", c_void_p),
        ("start", c_int64),
        ("cache", c_void_p),
        ("cached", c_bool),
        ("weights", c_void_p),
    ]
    forms = {
        "mask": ("mask", ),
        "values": ("tensor", ),
        "bias": ("tensor", ),
        "cache": ("handle", "sb_kv_cache"),
        "weights": ("out", ),
    }


class sb_feed_forward(Structure):
    _fields_ = [
        ("activation", c_int),
        ("ranks", c_void_p),
        ("up", sb_linear_layer),
        ("gate", sb_linear_layer),
        ("down", sb_linear_layer),
        ("dropout", c_double),
        ("along", c_int),
    ]
    forms = {
        "activation": ("choice", "sb_activation"),
        "ranks": ("handle", "sb_communicator"),
        "up": ("value", sb_linear_layer),
        "gate": ("value", sb_linear_layer),
        "down": ("value", sb_linear_layer),
        "along": ("choice", "sb_sequence"),
    }


class sb_transformer_layer(Structure):
    _fields_ = [
        ("place", c_int),
        ("dropout", c_double),
        ("along", c_int),
        ("crosses", c_bool),
        ("self_norm", sb_norm_layer),
        ("cross_norm", sb_norm_layer),
        ("feed_norm", sb_norm_layer),
        ("self_attention", sb_multi_head_attention),
        ("cross_attention", sb_multi_head_attention),
        ("feed_forward", sb_feed_forward),
    ]
    forms = {
        "place": ("choice", "sb_norm_place"),
        "along": ("choice", "sb_sequence"),
        "self_norm": ("value", sb_norm_layer),
        "cross_norm": ("value", sb_norm_layer),
        "feed_norm": ("value", sb_norm_layer),
        "self_attention": ("value", sb_multi_head_attention),
        "cross_attention": ("value", sb_multi_head_attention),
        "feed_forward": ("value", sb_feed_forward),
    }


class sb_encoder_layer(Structure):
    _fields_ = [
        ("place", c_int),
        ("dropout", c_double),
        ("along", c_int),
        ("crosses", c_bool),
        ("self_norm", sb_norm_layer),
        ("cross_norm", sb_norm_layer),
        ("feed_norm", sb_norm_layer),
        ("self_attention", sb_multi_head_attention),
        ("cross_attention", sb_multi_head_attention),
        ("feed_forward", sb_feed_forward),
    ]
    forms = {
        "place": ("choice", "sb_norm_place"),
        "along": ("choice", "sb_sequence"),
        "self_norm": ("value", sb_norm_layer),
        "cross_norm": ("value", sb_norm_layer),
        "feed_norm": ("value", sb_norm_layer),
        "self_attention": ("value", sb_multi_head_attention),
        "cross_attention": ("value", sb_multi_head_attention),
        "feed_forward": ("value", sb_feed_forward),
    }


class sb_decoder_layer(Structure):
    _fields_ = [
        ("place", c_int),
        ("dropout", c_double),
        ("along", c_int),
        ("crosses", c_bool),
        ("self_norm", sb_norm_layer),
        ("cross_norm", sb_norm_layer),
        ("feed_norm", sb_norm_layer),
        ("self_attention", sb_multi_head_attention),
        ("cross_attention", sb_multi_head_attention),
        ("feed_forward", sb_feed_forward),
    ]
    forms = {
        "place": ("choice", "sb_norm_place"),
        "along": ("choice", "sb_sequence"),
        "self_norm": ("value", sb_norm_layer),
        "cross_norm": ("value", sb_norm_layer),
        "feed_norm": ("value", sb_norm_layer),
        "self_attention": ("value", sb_multi_head_attention),
        "cross_attention": ("value", sb_multi_head_attention),
        "feed_forward": ("value", sb_feed_forward),
    }


class sb_pairs_options(Structure):
    _fields_ = [
        ("strict", c_bool),
        ("length", c_int64),
    ]
    forms = {
    }


class sb_vocabulary_options(Structure):
    _fields_ = [
        ("units", c_int),
        ("size", c_int64),
    ]
    forms = {
        "units": ("choice", "sb_units"),
    }


class sb_unknown(Structure):
    _fields_ = [
        ("count", c_int64),
        ("first", c_size_t),
        ("first_size", c_size_t),
    ]
    forms = {
    }


class sb_task_options(Structure):
    _fields_ = [
        ("min_length", c_int),
        ("max_length", c_int),
    ]
    forms = {
    }


class sb_task_pair(Structure):
    _fields_ = [
        ("source", c_char * 1024),
        ("target", c_char * 1024),
    ]
    forms = {
    }


class sb_batch_part(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("t", c_void_p),
        ("along", c_int),
    ]
    forms = {
        "name": ("text", ),
        "t": ("tensor", ),
        "along": ("choice", "sb_sequence"),
    }


class sb_batch(Structure):
    _fields_ = [
        ("items", c_int64),
        ("targets", c_int64),
        ("parts", c_int),
        ("part", sb_batch_part * 8),
        ("partition", c_void_p),
    ]
    forms = {
        "partition": ("value", sb_partition),
    }


class sb_encoded_pair(Structure):
    _fields_ = [
        ("source", c_void_p),
        ("target", c_void_p),
        ("source_length", c_int64),
        ("target_length", c_int64),
    ]
    forms = {
    }


class sb_data_position(Structure):
    _fields_ = [
        ("epoch", c_int64),
        ("batch", c_int64),
    ]
    forms = {
    }


class sb_source(Structure):
    _fields_ = [
        ("object", c_void_p),
        ("next", c_void_p),
        ("tell", c_void_p),
        ("seek", c_void_p),
        ("hash", c_void_p),
        ("batches", c_void_p),
    ]
    forms = {
    }


class sb_data_options(Structure):
    _fields_ = [
        ("seed", c_uint64),
        ("batch_pairs", c_int64),
        ("batch_symbols", c_int64),
        ("longest", c_int64),
    ]
    forms = {
    }


class sb_decoding_options(Structure):
    _fields_ = [
        ("beam_width", c_int64),
        ("length_penalty", c_double),
        ("longest", c_int64),
        ("sample", c_bool),
        ("temperature", c_double),
        ("top_k", c_int64),
        ("top_p", c_double),
        ("seed", c_uint64),
        ("batch_pairs", c_int64),
        ("weights", c_int),
        ("no_cache", c_bool),
        ("listen", c_void_p),
        ("listener", c_void_p),
    ]
    forms = {
        "length_penalty": ("number", ),
        "temperature": ("number", ),
        "top_p": ("number", ),
        "weights": ("choice", "sb_weight_format"),
    }


class sb_decoded(Structure):
    _fields_ = [
        ("ids", c_void_p),
        ("length", c_int64),
        ("ended", c_bool),
        ("slid", c_bool),
        ("log_probability", c_double),
        ("score", c_double),
    ]
    forms = {
    }


class sb_attention_map(Structure):
    _fields_ = [
        ("weights", c_void_p),
        ("queries", c_void_p),
        ("keys", c_void_p),
        ("causal", c_bool),
    ]
    forms = {
        "weights": ("tensor", ),
        "queries": ("tensor", ),
        "keys": ("tensor", ),
    }


class sb_attentions(Structure):
    _fields_ = [
        ("loss", c_void_p),
        ("maps", c_int),
        ("map", c_void_p),
    ]
    forms = {
        "loss": ("tensor", ),
    }


class sb_evaluation(Structure):
    _fields_ = [
        ("loss", c_double),
        ("error", c_double),
        ("unit_error", c_double),
        ("bleu", c_double),
    ]
    forms = {
    }


class sb_model_kind(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("build", c_void_p),
        ("describe", c_void_p),
        ("free", c_void_p),
        ("loss", c_void_p),
        ("score", c_void_p),
        ("attentions", c_void_p),
        ("generator", c_void_p),
        ("splits", c_char_p),
    ]
    forms = {
        "name": ("text", ),
        "splits": ("text", ),
    }


class sb_model(Structure):
    _fields_ = [
        ("kind", c_void_p),
        ("self", c_void_p),
        ("weights", c_void_p),
    ]
    forms = {
        "kind": ("value", sb_model_kind),
        "weights": ("handle", "sb_parameters"),
    }


class sb_classifier_options(Structure):
    _fields_ = [
        ("transformer", sb_transformer_options),
        ("pooling", c_int),
        ("label_smoothing", c_double),
    ]
    forms = {
        "transformer": ("value", sb_transformer_options),
        "pooling": ("choice", "sb_pooling"),
        "label_smoothing": ("number", ),
    }


class sb_class(Structure):
    _fields_ = [
        ("label", c_int64),
        ("probability", c_double),
    ]
    forms = {
    }


class sb_held_labelled(Structure):
    _fields_ = [
        ("pairs", c_void_p),
    ]
    forms = {
        "pairs": ("handle", "sb_pairs"),
    }


class sb_windows_options(Structure):
    _fields_ = [
        ("seed", c_uint64),
        ("length", c_int64),
        ("batch_windows", c_int64),
        ("batch_symbols", c_int64),
        ("fixed", c_bool),
    ]
    forms = {
    }


class sb_decoder_weights(Structure):
    _fields_ = [
        ("self", c_void_p),
        ("cross", c_void_p),
    ]
    forms = {
        "self": ("out", ),
        "cross": ("out", ),
    }


class sb_language_model_options(Structure):
    _fields_ = [
        ("transformer", sb_transformer_options),
        ("tie_embeddings", c_bool),
        ("label_smoothing", c_double),
        ("context", c_int64),
        ("running_text", c_bool),
    ]
    forms = {
        "transformer": ("value", sb_transformer_options),
        "label_smoothing": ("number", ),
    }


class sb_seq2seq_options(Structure):
    _fields_ = [
        ("transformer", sb_transformer_options),
        ("tie_embeddings", c_bool),
        ("share_embeddings", c_bool),
        ("label_smoothing", c_double),
    ]
    forms = {
        "transformer": ("value", sb_transformer_options),
        "label_smoothing": ("number", ),
    }


class sb_seq2seq_weights(Structure):
    _fields_ = [
        ("encoder", c_void_p),
        ("decoder", sb_decoder_weights),
    ]
    forms = {
        "encoder": ("out", ),
        "decoder": ("value", sb_decoder_weights),
    }


class sb_text_score(Structure):
    _fields_ = [
        ("lines", c_int64),
        ("exact", c_int64),
        ("positions", c_int64),
        ("right", c_int64),
        ("sources", c_int64),
        ("wrong", c_int64),
        ("units", c_int64),
        ("edits", c_int64),
        ("exact_match", c_double),
        ("token_accuracy", c_double),
        ("wer", c_double),
        ("per", c_double),
    ]
    forms = {
    }


class sb_bleu(Structure):
    _fields_ = [
        ("score", c_double),
        ("precision", c_double * 4),
        ("brevity_penalty", c_double),
        ("correct", c_int64 * 4),
        ("total", c_int64 * 4),
        ("output_tokens", c_int64),
        ("reference_tokens", c_int64),
    ]
    forms = {
    }


class sb_schedule(Structure):
    _fields_ = [
        ("kind", c_int),
        ("rate", c_double),
        ("warmup", c_int64),
        ("steps", c_int64),
        ("lowest", c_double),
        ("factor", c_double),
        ("patience", c_int),
        ("cycle", c_int64),
        ("growth", c_double),
        ("custom", c_void_p),
        ("custom_context", c_void_p),
    ]
    forms = {
        "kind": ("choice", "sb_schedule_kind"),
        "rate": ("number", ),
        "lowest": ("number", ),
        "factor": ("number", ),
        "growth": ("number", ),
    }


class sb_plateau(Structure):
    _fields_ = [
        ("best", c_double),
        ("seen", c_int64),
        ("waited", c_int),
        ("reduced", c_int),
    ]
    forms = {
    }


class sb_optimiser_options(Structure):
    _fields_ = [
        ("learning_rate", c_double),
        ("schedule", sb_schedule),
        ("beta1", c_double),
        ("beta2", c_double),
        ("epsilon", c_double),
        ("momentum", c_double),
        ("nesterov", c_bool),
        ("weight_decay", c_double),
        ("decay_all", c_bool),
        ("clip", c_double),
    ]
    forms = {
        "learning_rate": ("number", ),
        "schedule": ("value", sb_schedule),
        "beta1": ("number", ),
        "beta2": ("number", ),
        "epsilon": ("number", ),
        "momentum": ("number", ),
        "weight_decay": ("number", ),
        "clip": ("number", ),
    }


class sb_trainer_options(Structure):
    _fields_ = [
        ("seed", c_uint64),
        ("optimiser_kind", c_int),
        ("optimiser", sb_optimiser_options),
        ("accumulate", c_int64),
        ("average_decay", c_double),
        ("graphs", c_int),
        ("communicator", c_void_p),
        ("sequence_ranks", c_int),
        ("stop", c_void_p),
        ("stop_context", c_void_p),
    ]
    forms = {
        "optimiser_kind": ("choice", "sb_optimiser_kind"),
        "optimiser": ("value", sb_optimiser_options),
        "average_decay": ("number", ),
        "graphs": ("choice", "sb_graphs"),
        "communicator": ("handle", "sb_communicator"),
    }


class sb_trained(Structure):
    _fields_ = [
        ("loss", c_double),
        ("rate", c_double),
        ("norm", c_double),
        ("targets", c_int64),
        ("waited", c_double),
        ("sent", c_int64),
        ("without_gradient", c_char_p),
        ("stopped", c_bool),
        ("skipped", c_bool),
    ]
    forms = {
        "without_gradient": ("text", ),
    }


class sb_trainer_state(Structure):
    _fields_ = [
        ("steps", c_int64),
        ("skipped_in_a_row", c_int64),
        ("updates", c_int64),
        ("average_updates", c_int64),
        ("random_position", c_uint64),
        ("data", sb_data_position),
        ("plateau", sb_plateau),
    ]
    forms = {
        "data": ("value", sb_data_position),
        "plateau": ("value", sb_plateau),
    }


class sb_held_pairs(Structure):
    _fields_ = [
        ("pairs", c_void_p),
        ("options", c_void_p),
    ]
    forms = {
        "pairs": ("handle", "sb_pairs"),
        "options": ("value", sb_decoding_options),
    }


class sb_embedding_layer(Structure):
    _fields_ = [
        ("C", c_int64),
        ("dropout", c_double),
        ("positions", c_int),
        ("precision", c_int),
        ("along", c_int),
        ("padded", c_bool),
        ("padding_id", c_int64),
        ("scale", c_double),
        ("position_scale", c_double),
        ("offset", c_int64),
        ("weight", c_void_p),
        ("position", c_void_p),
        ("has_norm", c_bool),
        ("norm", sb_norm_layer),
    ]
    forms = {
        "positions": ("choice", "sb_positions"),
        "precision": ("choice", "sb_precision"),
        "along": ("choice", "sb_sequence"),
        "weight": ("tensor", ),
        "position": ("tensor", ),
        "norm": ("value", sb_norm_layer),
    }


class sb_group(Structure):
    _fields_ = [
        ("rate", c_double),
        ("decay", c_double),
        ("frozen", c_bool),
    ]
    forms = {
        "rate": ("number", ),
        "decay": ("number", ),
    }


class sb_additive_attention(Structure):
    _fields_ = [
        ("dropout", c_double),
        ("query", sb_linear_layer),
        ("key", sb_linear_layer),
        ("score", sb_linear_layer),
    ]
    forms = {
        "query": ("value", sb_linear_layer),
        "key": ("value", sb_linear_layer),
        "score": ("value", sb_linear_layer),
    }


class sb_multiplicative_attention(Structure):
    _fields_ = [
        ("dropout", c_double),
        ("query", sb_linear_layer),
    ]
    forms = {
        "query": ("value", sb_linear_layer),
    }


class sb_cosine_attention(Structure):
    _fields_ = [
        ("dropout", c_double),
        ("log_temperature", c_void_p),
    ]
    forms = {
        "log_temperature": ("tensor", ),
    }


class sb_lora_options(Structure):
    _fields_ = [
        ("rank", c_int64),
        ("alpha", c_double),
        ("on", c_char_p),
    ]
    forms = {
        "alpha": ("number", ),
        "on": ("text", ),
    }


class sb_output_head(Structure):
    _fields_ = [
        ("weight", c_void_p),
        ("bias", c_void_p),
        ("padded", c_bool),
        ("padding_id", c_int64),
    ]
    forms = {
        "weight": ("tensor", ),
        "bias": ("tensor", ),
    }


class sb_loaded(Structure):
    _fields_ = [
        ("count", c_int64),
        ("missing", c_void_p),
        ("left_over", c_void_p),
    ]
    forms = {
    }


class sb_position_bias(Structure):
    _fields_ = [
        ("positions", c_int),
        ("heads", c_int64),
        ("ranks", c_void_p),
        ("dtype", c_int),
        ("along", c_int),
        ("buckets", c_int64),
        ("distance", c_int64),
        ("table", c_void_p),
    ]
    forms = {
        "positions": ("choice", "sb_positions"),
        "ranks": ("handle", "sb_communicator"),
        "dtype": ("choice", "sb_dtype"),
        "along": ("choice", "sb_sequence"),
        "table": ("tensor", ),
    }

# The type of the result, then those of the parameters.
FUNCTIONS = {
    "sb_error": (c_char_p,),
    "sb_fail": (c_void_p, c_char_p,),
    "sb_random_new": (sb_random, c_uint64, c_int,),
    "sb_random_bits": (c_uint32, POINTER(sb_random),),
    "sb_random_uniform": (c_double, POINTER(sb_random),),
    "sb_random_below": (c_uint32, POINTER(sb_random), c_uint32,),
    "sb_random_normal": (c_double, POINTER(sb_random),),
    "sb_random_shuffle": (None, POINTER(sb_random), c_int64, c_void_p,),
    "sb_device_cpu": (c_void_p,),
    "sb_device_name": (c_char_p, c_void_p,),
    "sb_device_cuda": (c_void_p,),
    "sb_choose_cuda": (c_bool, c_int,),
    "sb_device_description": (c_char_p, c_void_p,),
    "sb_use_device": (None, c_void_p,),
    "sb_device_in_use": (c_void_p,),
    "sb_device_synchronize": (c_bool, c_void_p,),
    "sb_device_memory": (sb_memory, c_void_p,),
    "sb_device_reset_peak": (None, c_void_p,),
    "sb_device_trim": (None, c_void_p,),
    "sb_free": (None, c_void_p,),
    "sb_set_threads": (c_bool, c_int,),
    "sb_threads": (c_int,),
    "sb_dtype_name": (c_char_p, c_int,),
    "sb_dtype_bytes": (c_size_t, c_int,),
    "sb_dtype_is_real": (c_bool, c_int,),
    "sb_tensor_zeros": (c_void_p, c_int, c_int, c_void_p,),
    "sb_tensor_full": (c_void_p, c_int, c_int, c_void_p, c_double,),
    "sb_tensor_from": (c_void_p, c_int, c_int, c_void_p, c_void_p,),
    "sb_tensor_from_doubles": (c_void_p, c_int, c_int, c_void_p, c_void_p,),
    "sb_tensor_scalar": (c_void_p, c_int, c_double,),
    "sb_tensor_wrap": (c_void_p, c_int, c_int, c_void_p, c_void_p, c_void_p, c_void_p,),
    "sb_tensor_to": (c_void_p, c_void_p, c_void_p,),
    "sb_tensor_retain": (c_void_p, c_void_p,),
    "sb_tensor_release": (None, c_void_p,),
    "sb_tensor_rank": (c_int, c_void_p,),
    "sb_tensor_dim": (c_int64, c_void_p, c_int,),
    "sb_tensor_size": (c_int64, c_void_p,),
    "sb_tensor_dtype": (c_int, c_void_p,),
    "sb_tensor_device": (c_void_p, c_void_p,),
    "sb_tensor_data": (c_void_p, c_void_p,),
    "sb_tensor_dual_data": (c_void_p, c_void_p,),
    "sb_tensor_get": (c_double, c_void_p, c_int64,),
    "sb_tensor_tangent": (c_double, c_void_p, c_int64,),
    "sb_tensor_set": (c_bool, c_void_p, c_int64, c_double,),
    "sb_tensor_value": (c_double, c_void_p,),
    "sb_tensor_read": (c_bool, c_void_p, c_void_p,),
    "sb_tensor_write": (c_bool, c_void_p, c_void_p,),
    "sb_tensor_requires_grad": (c_void_p, c_void_p,),
    "sb_tensor_needs_grad": (c_bool, c_void_p,),
    "sb_tensor_grad": (c_void_p, c_void_p,),
    "sb_tensor_clear_grad": (None, c_void_p,),
    "sb_tensor_print": (None, c_void_p,),
    "sb_tensor_text": (c_void_p, c_void_p,),
    "sb_tape_begin": (None, POINTER(sb_tape), c_int,),
    "sb_tape_begin_with": (None, POINTER(sb_tape), c_int, POINTER(sb_context),),
    "sb_tape_end": (c_bool, POINTER(sb_tape),),
    "sb_tape_end_keep": (c_void_p, POINTER(sb_tape), c_void_p,),
    "sb_tape_own": (c_void_p, c_void_p,),
    "sb_tape_random": (None, POINTER(sb_tape), POINTER(sb_random),),
    "sb_backward": (c_bool, c_void_p,),
    "sb_backward_from": (c_bool, c_void_p, c_void_p,),
    "sb_keep": (c_void_p, c_void_p,),
    "sb_tape_find_nonfinite": (c_void_p,),
    "sb_jvp": (c_bool, c_void_p, c_void_p, c_void_p, c_void_p, c_int, c_void_p, c_void_p,),
    "sb_hvp": (c_bool, c_void_p, c_void_p, c_void_p, c_void_p, c_int, c_void_p,),
    "sb_gradcheck": (c_bool, c_void_p, c_void_p, c_void_p, c_int, POINTER(sb_gradcheck_options), POINTER(sb_gradcheck_result),),
    "sb_node_new": (c_void_p, POINTER(sb_operation), c_int, c_void_p, c_int, c_void_p, c_size_t,),
    "sb_node_output": (c_void_p, c_void_p, c_int, c_int, c_void_p,),
    "sb_node_save": (c_void_p, c_void_p, c_void_p,),
    "sb_node_input": (c_void_p, c_void_p, c_int,),
    "sb_node_result": (c_void_p, c_void_p, c_int,),
    "sb_node_saved": (c_void_p, c_void_p, c_int,),
    "sb_node_options": (c_void_p, c_void_p,),
    "sb_node_dy": (c_void_p, c_void_p, c_int,),
    "sb_node_dx": (c_void_p, c_void_p, c_int,),
    "sb_node_fresh": (c_bool, c_void_p, c_int,),
    "sb_recompute": (c_void_p, c_void_p, c_void_p, c_size_t, c_int, c_void_p,),
    "sb_communicator_world": (c_void_p,),
    "sb_communicator_split": (c_void_p, c_void_p, c_int, c_int,),
    "sb_communicator_close": (None, c_void_p,),
    "sb_communicator_rank": (c_int, c_void_p,),
    "sb_communicator_size": (c_int, c_void_p,),
    "sb_communicator_processors": (c_int, c_void_p,),
    "sb_communicator_sent": (c_int64, c_void_p,),
    "sb_communicator_sum": (c_bool, c_void_p, c_int, c_int64, c_void_p,),
    "sb_communicator_broadcast": (c_bool, c_void_p, c_int, c_void_p, c_size_t,),
    "sb_communicator_barrier": (c_bool, c_void_p,),
    "sb_exchange_start": (c_void_p, c_void_p, c_int, c_void_p, c_size_t, c_int, c_void_p, c_size_t,),
    "sb_exchange_finish": (c_bool, c_void_p,),
    "sb_communicator_watch": (c_bool, c_void_p, c_double,),
    "sb_communicator_abort": (None, c_void_p, c_char_p, c_char_p,),
    "sb_piece_zigzag": (sb_piece, c_int64, c_int, c_int, c_void_p,),
    "sb_mask_allow": (c_void_p, c_void_p,),
    "sb_mask_block": (c_void_p, c_void_p,),
    "sb_mask_from_bias": (c_void_p, c_void_p,),
    "sb_mask_causal": (c_void_p,),
    "sb_mask_causal_last": (c_void_p,),
    "sb_mask_lengths": (c_void_p, c_void_p,),
    "sb_mask_window": (c_void_p, c_int64, c_int64,),
    "sb_mask_blocks": (c_void_p, c_void_p, c_int64,),
    "sb_mask_block_list": (c_void_p, c_int64, c_int64, c_int64, c_int64, c_void_p,),
    "sb_mask_local": (c_void_p, c_int64, c_int64, c_int64, c_int64,),
    "sb_mask_strided": (c_void_p, c_int64, c_int64, c_int64, c_int64, c_int64,),
    "sb_mask_global": (c_void_p, c_int64, c_int64, c_int64, c_int64, c_int64,),
    "sb_mask_and": (c_void_p, c_void_p, c_void_p,),
    "sb_mask_text": (c_void_p, c_void_p, c_int64, c_int64, c_int64, c_int64,),
    "sb_add": (c_void_p, c_void_p, c_void_p,),
    "sb_subtract": (c_void_p, c_void_p, c_void_p,),
    "sb_multiply": (c_void_p, c_void_p, c_void_p,),
    "sb_divide": (c_void_p, c_void_p, c_void_p,),
    "sb_maximum": (c_void_p, c_void_p, c_void_p,),
    "sb_minimum": (c_void_p, c_void_p, c_void_p,),
    "sb_where": (c_void_p, c_void_p, c_void_p, c_void_p,),
    "sb_negate": (c_void_p, c_void_p,),
    "sb_scale": (c_void_p, c_void_p, c_double,),
    "sb_sqrt": (c_void_p, c_void_p,),
    "sb_exp": (c_void_p, c_void_p,),
    "sb_log": (c_void_p, c_void_p,),
    "sb_tanh": (c_void_p, c_void_p,),
    "sb_sigmoid": (c_void_p, c_void_p,),
    "sb_relu": (c_void_p, c_void_p,),
    "sb_gelu": (c_void_p, c_void_p,),
    "sb_gelu_tanh": (c_void_p, c_void_p,),
    "sb_silu": (c_void_p, c_void_p,),
    "sb_abs": (c_void_p, c_void_p,),
    "sb_sin": (c_void_p, c_void_p,),
    "sb_cos": (c_void_p, c_void_p,),
    "sb_expm1": (c_void_p, c_void_p,),
    "sb_log1p": (c_void_p, c_void_p,),
    "sb_erf": (c_void_p, c_void_p,),
    "sb_pow": (c_void_p, c_void_p, c_double,),
    "sb_clamp": (c_void_p, c_void_p, c_double, c_double,),
    "sb_detach": (c_void_p, c_void_p,),
    "sb_cast": (c_void_p, c_void_p, c_int,),
    "sb_matmul": (c_void_p, c_void_p, c_void_p,),
    "sb_matmul_nt": (c_void_p, c_void_p, c_void_p,),
    "sb_matmul_tn": (c_void_p, c_void_p, c_void_p,),
    "sb_linear": (c_void_p, c_void_p, c_void_p, c_void_p,),
    "sb_linear_activation": (c_void_p, c_void_p, c_void_p, c_void_p, c_int,),
    "sb_reshape": (c_void_p, c_void_p, c_int, c_void_p,),
    "sb_permute": (c_void_p, c_void_p, c_int, c_void_p,),
    "sb_transpose": (c_void_p, c_void_p, c_int, c_int,),
    "sb_concatenate": (c_void_p, c_void_p, c_int, c_int,),
    "sb_stack": (c_void_p, c_void_p, c_int, c_int,),
    "sb_slice": (c_void_p, c_void_p, c_int, c_int64, c_int64,),
    "sb_split": (c_bool, c_void_p, c_int, c_int, c_void_p, c_void_p,),
    "sb_expand": (c_void_p, c_void_p, c_int, c_void_p,),
    "sb_sum": (c_void_p, c_void_p, c_int, c_bool,),
    "sb_mean": (c_void_p, c_void_p, c_int, c_bool,),
    "sb_max": (c_void_p, c_void_p, c_int, c_bool,),
    "sb_argmax": (c_void_p, c_void_p, c_int,),
    "sb_variance": (c_void_p, c_void_p, c_int, c_double, c_bool,),
    "sb_topk": (c_void_p, c_void_p, c_int64, c_void_p,),
    "sb_softmax": (c_void_p, c_void_p,),
    "sb_masked_softmax": (c_void_p, c_void_p, c_void_p, c_double,),
    "sb_log_softmax": (c_void_p, c_void_p,),
    "sb_logsumexp": (c_void_p, c_void_p,),
    "sb_layer_norm": (c_void_p, c_void_p, c_void_p, c_void_p, c_double,),
    "sb_residual_layer_norm": (c_void_p, c_void_p, c_void_p, c_double, c_void_p, c_void_p, c_double, c_void_p,),
    "sb_rms_norm": (c_void_p, c_void_p, c_void_p, c_double,),
    "sb_l2_normalize": (c_void_p, c_void_p,),
    "sb_softmax_over": (c_void_p, c_void_p, c_int,),
    "sb_log_softmax_over": (c_void_p, c_void_p, c_int,),
    "sb_logsumexp_over": (c_void_p, c_void_p, c_int,),
    "sb_layer_norm_over": (c_void_p, c_void_p, c_int, c_void_p, c_void_p, c_double,),
    "sb_rms_norm_over": (c_void_p, c_void_p, c_int, c_void_p, c_double,),
    "sb_l2_normalize_over": (c_void_p, c_void_p, c_int,),
    "sb_embedding": (c_void_p, c_void_p, c_void_p,),
    "sb_embedding_padded": (c_void_p, c_void_p, c_void_p, c_int64,),
    "sb_gather": (c_void_p, c_void_p, c_void_p,),
    "sb_dropout": (c_void_p, c_void_p, c_double,),
    "sb_residual_dropout": (c_void_p, c_void_p, c_void_p, c_double,),
    "sb_cross_entropy": (c_void_p, c_void_p, c_void_p, POINTER(sb_cross_entropy_options),),
    "sb_linear_cross_entropy": (c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, POINTER(sb_cross_entropy_options),),
    "sb_mean_squared_error": (c_void_p, c_void_p, c_void_p, c_int,),
    "sb_sinusoidal": (c_void_p, c_int, c_int64, c_int64, c_int64,),
    "sb_rotary": (c_void_p, c_void_p, c_int64, c_double,),
    "sb_rotary_scaled": (c_void_p, c_void_p, c_int64, c_double, c_double,),
    "sb_alibi": (c_void_p, c_int, c_int64, c_int64, c_int64,),
    "sb_relative_bias": (c_void_p, c_void_p, c_int64, c_int64,),
    "sb_attention": (c_void_p, c_void_p, c_void_p, c_void_p, POINTER(sb_attention_options),),
    "sb_attention_weights": (c_void_p, c_void_p, c_int64, c_int64,),
    "sb_to_ranks": (c_void_p, c_void_p, c_void_p,),
    "sb_from_ranks": (c_void_p, c_void_p, c_void_p,),
    "sb_kv_cache_new": (c_void_p,),
    "sb_kv_cache_free": (None, Handle("sb_kv_cache"),),
    "sb_kv_cache_length": (c_int64, Handle("sb_kv_cache"),),
    "sb_kv_cache_batch": (c_int64, Handle("sb_kv_cache"),),
    "sb_kv_cache_append": (c_bool, Handle("sb_kv_cache"), c_void_p, c_void_p,),
    "sb_kv_cache_reorder": (c_bool, Handle("sb_kv_cache"), c_int64, c_void_p,),
    "sb_kv_cache_truncate": (c_bool, Handle("sb_kv_cache"), c_int64,),
    "sb_attention_cached": (c_void_p, c_void_p, Handle("sb_kv_cache"), POINTER(sb_attention_options),),
    "sb_safetensors_open": (c_void_p, c_char_p,),
    "sb_safetensors_open_memory": (c_void_p, c_void_p, c_size_t,),
    "sb_safetensors_close": (None, Handle("sb_safetensors"),),
    "sb_safetensors_count": (c_int, Handle("sb_safetensors"),),
    "sb_safetensors_find": (c_int, Handle("sb_safetensors"), c_char_p,),
    "sb_safetensors_name": (c_char_p, Handle("sb_safetensors"), c_int,),
    "sb_safetensors_dtype": (c_char_p, Handle("sb_safetensors"), c_int,),
    "sb_safetensors_rank": (c_int, Handle("sb_safetensors"), c_int,),
    "sb_safetensors_shape": (c_void_p, Handle("sb_safetensors"), c_int,),
    "sb_safetensors_tensor": (c_void_p, Handle("sb_safetensors"), c_char_p,),
    "sb_safetensors_read": (c_bool, Handle("sb_safetensors"), c_char_p, c_void_p,),
    "sb_safetensors_metadata": (c_char_p, Handle("sb_safetensors"), c_char_p,),
    "sb_safetensors_metadata_count": (c_int, Handle("sb_safetensors"),),
    "sb_safetensors_metadata_pair": (c_char_p, Handle("sb_safetensors"), c_int, c_void_p,),
    "sb_safetensors_save": (c_bool, c_char_p, c_int, c_void_p, c_int, c_void_p,),
    "sb_version": (c_char_p,),
    "sb_parameters_new": (c_void_p, c_uint64,),
    "sb_parameters_of": (c_void_p, c_int, c_uint64,),
    "sb_parameters_free": (None, Handle("sb_parameters"),),
    "sb_parameters_add": (c_void_p, Handle("sb_parameters"), c_char_p, c_int, c_void_p, sb_initial,),
    "sb_parameters_add_cut": (c_void_p, Handle("sb_parameters"), c_char_p, c_int, c_void_p, sb_initial, sb_cut,),
    "sb_parameters_dtype": (c_int, Handle("sb_parameters"),),
    "sb_parameters_count": (c_int64, Handle("sb_parameters"),),
    "sb_parameters_size": (c_int64, Handle("sb_parameters"),),
    "sb_parameters_name": (c_char_p, Handle("sb_parameters"), c_int64,),
    "sb_parameters_get": (c_void_p, Handle("sb_parameters"), c_int64,),
    "sb_parameters_find": (c_void_p, Handle("sb_parameters"), c_char_p,),
    "sb_parameters_without_gradient": (c_char_p, Handle("sb_parameters"), c_void_p,),
    "sb_parameters_clear": (None, Handle("sb_parameters"),),
    "sb_parameters_clip": (c_bool, Handle("sb_parameters"), c_double, c_void_p,),
    "sb_parameters_fingerprint": (c_uint64, Handle("sb_parameters"),),
    "sb_linear_layer_init": (c_bool, POINTER(sb_linear_layer), Handle("sb_parameters"), c_char_p, c_int64, c_int64, c_bool,),
    "sb_linear_layer_init_cut": (c_bool, POINTER(sb_linear_layer), Handle("sb_parameters"), c_char_p, c_int64, c_int64, c_bool, sb_cut,),
    "sb_linear_layer_forward": (c_void_p, POINTER(sb_linear_layer), c_void_p, c_int,),
    "sb_linear_layer_join": (c_void_p, POINTER(sb_linear_layer), c_void_p, c_void_p,),
    "sb_norm_layer_init": (c_bool, POINTER(sb_norm_layer), Handle("sb_parameters"), c_char_p, c_int64, c_int,),
    "sb_norm_layer_init_with": (c_bool, POINTER(sb_norm_layer), Handle("sb_parameters"), c_char_p, c_int64, POINTER(sb_norm_options),),
    "sb_norm_layer_forward": (c_void_p, POINTER(sb_norm_layer), c_void_p,),
    "sb_norm_layer_residual": (c_void_p, POINTER(sb_norm_layer), c_void_p, c_void_p, c_double, c_int, c_void_p,),
    "sb_transformer_complete": (c_bool, POINTER(sb_transformer_options), POINTER(sb_transformer_options),),
    "sb_multi_head_attention_init": (c_bool, POINTER(sb_multi_head_attention), Handle("sb_parameters"), c_char_p, POINTER(sb_transformer_options), c_bool,),
    "sb_multi_head_attention_forward": (c_void_p, POINTER(sb_multi_head_attention), c_void_p, c_void_p, POINTER(sb_attending),),
    "sb_feed_forward_init": (c_bool, POINTER(sb_feed_forward), Handle("sb_parameters"), c_char_p, POINTER(sb_transformer_options),),
    "sb_feed_forward_forward": (c_void_p, POINTER(sb_feed_forward), c_void_p,),
    "sb_transformer_layer_init": (c_bool, POINTER(sb_transformer_layer), Handle("sb_parameters"), c_char_p, POINTER(sb_transformer_options), c_bool,),
    "sb_transformer_layer_forward": (c_void_p, POINTER(sb_transformer_layer), c_void_p, c_void_p, POINTER(sb_attending), POINTER(sb_attending),),
    "sb_encoder_layer_init": (c_bool, POINTER(sb_encoder_layer), Handle("sb_parameters"), c_char_p, POINTER(sb_transformer_options),),
    "sb_encoder_layer_forward": (c_void_p, POINTER(sb_encoder_layer), c_void_p, POINTER(sb_attending),),
    "sb_decoder_layer_init": (c_bool, POINTER(sb_decoder_layer), Handle("sb_parameters"), c_char_p, POINTER(sb_transformer_options), c_bool,),
    "sb_decoder_layer_forward": (c_void_p, POINTER(sb_decoder_layer), c_void_p, c_void_p, POINTER(sb_attending), POINTER(sb_attending),),
    "sb_encoder_new": (c_void_p, Handle("sb_parameters"), c_char_p, c_int64, POINTER(sb_transformer_options),),
    "sb_encoder_free": (None, Handle("sb_encoder"),),
    "sb_encoder_forward": (c_void_p, Handle("sb_encoder"), c_void_p, c_void_p, c_void_p,),
    "sb_encoder_table": (c_void_p, Handle("sb_encoder"),),
    "sb_encoder_layers": (c_int, Handle("sb_encoder"),),
    "sb_labels_new": (c_void_p, c_void_p, c_int64,),
    "sb_labels_free": (None, Handle("sb_labels"),),
    "sb_labels_count": (c_int64, Handle("sb_labels"),),
    "sb_labels_text": (c_char_p, Handle("sb_labels"), c_int64,),
    "sb_labels_find": (c_int64, Handle("sb_labels"), c_char_p,),
    "sb_pairs_new": (c_void_p,),
    "sb_pairs_free": (None, Handle("sb_pairs"),),
    "sb_pairs_add": (c_bool, Handle("sb_pairs"), c_char_p, c_char_p,),
    "sb_pairs_count": (c_int64, Handle("sb_pairs"),),
    "sb_pairs_source": (c_char_p, Handle("sb_pairs"), c_int64,),
    "sb_pairs_target": (c_char_p, Handle("sb_pairs"), c_int64,),
    "sb_pairs_sources": (c_void_p, Handle("sb_pairs"),),
    "sb_pairs_targets": (c_void_p, Handle("sb_pairs"),),
    "sb_pairs_skipped": (c_int64, Handle("sb_pairs"),),
    "sb_pairs_problem": (c_char_p, Handle("sb_pairs"), c_int64,),
    "sb_pairs_read": (c_void_p, c_char_p, POINTER(sb_pairs_options),),
    "sb_pairs_read_two": (c_void_p, c_char_p, c_char_p, POINTER(sb_pairs_options),),
    "sb_pairs_parse": (c_void_p, c_char_p, c_char_p, c_size_t, POINTER(sb_pairs_options),),
    "sb_pairs_divide": (c_bool, Handle("sb_pairs"), c_int64, c_void_p, c_void_p,),
    "sb_pairs_shared": (c_int64, Handle("sb_pairs"), Handle("sb_pairs"),),
    "sb_units_name": (c_char_p, c_int,),
    "sb_units_description": (c_char_p, c_int,),
    "sb_units_find": (c_bool, c_char_p, c_void_p,),
    "sb_units_detect": (c_bool, c_void_p, c_int64, c_void_p,),
    "sb_vocabulary_new": (c_void_p, c_void_p, c_int64, POINTER(sb_vocabulary_options),),
    "sb_vocabulary_retain": (c_void_p, Handle("sb_vocabulary"),),
    "sb_vocabulary_release": (None, Handle("sb_vocabulary"),),
    "sb_vocabulary_size": (c_int64, Handle("sb_vocabulary"),),
    "sb_vocabulary_units": (c_int, Handle("sb_vocabulary"),),
    "sb_vocabulary_symbol": (c_char_p, Handle("sb_vocabulary"), c_int32,),
    "sb_vocabulary_id": (c_int32, Handle("sb_vocabulary"), c_char_p,),
    "sb_vocabulary_encode": (c_void_p, Handle("sb_vocabulary"), c_char_p, c_void_p, POINTER(sb_unknown),),
    "sb_vocabulary_decode": (c_void_p, Handle("sb_vocabulary"), c_void_p, c_int64,),
    "sb_task_name": (c_char_p, c_int,),
    "sb_task_description": (c_char_p, c_int,),
    "sb_task_find": (c_bool, c_char_p, c_void_p,),
    "sb_task_make": (c_bool, c_int, POINTER(sb_task_options), c_uint64, c_int, c_uint64, POINTER(sb_task_pair),),
    "sb_task_part": (c_int, c_int, c_char_p, c_char_p,),
    "sb_batch_get": (c_void_p, Handle("sb_batch"), c_char_p,),
    "sb_batch_new": (c_void_p, c_int64, c_void_p,),
    "sb_batch_free": (None, Handle("sb_batch"),),
    "sb_data_task": (c_void_p, c_char_p, c_uint64,),
    "sb_data_task_with": (c_void_p, c_int, POINTER(sb_task_options), POINTER(sb_data_options),),
    "sb_data_new": (c_void_p, Handle("sb_pairs"), Handle("sb_vocabulary"), Handle("sb_vocabulary"), POINTER(sb_data_options),),
    "sb_data_free": (None, Handle("sb_data"),),
    "sb_data_source": (c_void_p, Handle("sb_data"),),
    "sb_data_target": (c_void_p, Handle("sb_data"),),
    "sb_data_pairs": (c_int64, Handle("sb_data"),),
    "sb_data_left_out": (c_int64, Handle("sb_data"),),
    "sb_data_longest_source": (c_int64, Handle("sb_data"),),
    "sb_data_longest_target": (c_int64, Handle("sb_data"),),
    "sb_data_batches": (c_int64, Handle("sb_data"),),
    "sb_data_next": (c_void_p, Handle("sb_data"),),
    "sb_data_tell": (sb_data_position, Handle("sb_data"),),
    "sb_data_seek": (c_bool, Handle("sb_data"), sb_data_position,),
    "sb_data_hash": (c_uint64, Handle("sb_data"),),
    "sb_data_as_source": (sb_source, Handle("sb_data"),),
    "sb_labelled_new": (c_void_p, Handle("sb_pairs"), Handle("sb_vocabulary"), Handle("sb_labels"), POINTER(sb_data_options),),
    "sb_labelled_free": (None, Handle("sb_labelled"),),
    "sb_labelled_count": (c_int64, Handle("sb_labelled"),),
    "sb_labelled_left_out": (c_int64, Handle("sb_labelled"),),
    "sb_labelled_next": (c_void_p, Handle("sb_labelled"),),
    "sb_labelled_tell": (sb_data_position, Handle("sb_labelled"),),
    "sb_labelled_seek": (c_bool, Handle("sb_labelled"), sb_data_position,),
    "sb_labelled_as_source": (sb_source, Handle("sb_labelled"),),
    "sb_labelled_batch_new": (c_void_p, c_int64, c_void_p, c_void_p, c_void_p,),
    "sb_sample": (c_bool, c_void_p, POINTER(sb_decoding_options), POINTER(sb_random), c_void_p,),
    "sb_decoded_free": (None, c_int64, c_void_p,),
    "sb_description_new": (c_void_p, c_char_p,),
    "sb_description_free": (None, Handle("sb_description"),),
    "sb_description_kind": (c_char_p, Handle("sb_description"),),
    "sb_description_set": (c_bool, Handle("sb_description"), c_char_p, c_char_p,),
    "sb_description_set_number": (c_bool, Handle("sb_description"), c_char_p, c_double,),
    "sb_description_get": (c_char_p, Handle("sb_description"), c_char_p,),
    "sb_description_number": (c_bool, Handle("sb_description"), c_char_p, c_double, c_double, c_void_p,),
    "sb_description_name": (c_char_p, Handle("sb_description"), c_int64,),
    "sb_description_value": (c_char_p, Handle("sb_description"), c_int64,),
    "sb_description_add_vocabulary": (c_bool, Handle("sb_description"), c_char_p, Handle("sb_vocabulary"),),
    "sb_description_vocabulary": (c_void_p, Handle("sb_description"), c_char_p,),
    "sb_description_add_label": (c_bool, Handle("sb_description"), c_char_p,),
    "sb_description_label": (c_char_p, Handle("sb_description"), c_int64,),
    "sb_description_set_ranks": (None, Handle("sb_description"), c_void_p,),
    "sb_description_ranks": (c_void_p, Handle("sb_description"),),
    "sb_model_kind_find": (c_void_p, c_char_p,),
    "sb_model_build": (c_bool, POINTER(sb_model), POINTER(sb_model_kind), Handle("sb_parameters"), Handle("sb_description"),),
    "sb_model_free": (None, POINTER(sb_model),),
    "sb_model_describe": (c_void_p, POINTER(sb_model),),
    "sb_model_decode": (c_bool, POINTER(sb_model), c_void_p, c_int64, POINTER(sb_decoding_options), c_void_p,),
    "sb_classifier_for": (c_void_p, Handle("sb_parameters"), Handle("sb_vocabulary"), c_void_p, c_int64, POINTER(sb_classifier_options),),
    "sb_classifier_free": (None, Handle("sb_classifier"),),
    "sb_classifier_options_of": (c_void_p, Handle("sb_classifier"),),
    "sb_classifier_vocabulary": (c_void_p, Handle("sb_classifier"),),
    "sb_classifier_labels": (c_int64, Handle("sb_classifier"),),
    "sb_classifier_label": (c_char_p, Handle("sb_classifier"), c_int64,),
    "sb_classifier_logits": (c_void_p, Handle("sb_classifier"), Handle("sb_batch"),),
    "sb_classify": (c_bool, Handle("sb_classifier"), c_void_p, c_int64, c_void_p,),
    "sb_classifier_save": (c_bool, Handle("sb_classifier"), c_char_p,),
    "sb_classifier_load": (c_void_p, Handle("sb_parameters"), c_char_p,),
    "sb_classifier_as_model": (sb_model, Handle("sb_classifier"),),
    "sb_documents_new": (c_void_p,),
    "sb_documents_free": (None, Handle("sb_documents"),),
    "sb_documents_add": (c_bool, Handle("sb_documents"), c_char_p, c_char_p, c_size_t, c_int,),
    "sb_documents_read": (c_bool, Handle("sb_documents"), c_char_p, c_int,),
    "sb_documents_count": (c_int64, Handle("sb_documents"),),
    "sb_documents_bytes": (c_int64, Handle("sb_documents"),),
    "sb_documents_text": (c_char_p, Handle("sb_documents"), c_int64,),
    "sb_documents_texts": (c_void_p, Handle("sb_documents"),),
    "sb_documents_begins": (c_bool, Handle("sb_documents"), c_int64,),
    "sb_documents_ends": (c_bool, Handle("sb_documents"), c_int64,),
    "sb_documents_divide": (c_bool, Handle("sb_documents"), c_int64, c_void_p, c_void_p,),
    "sb_documents_hash": (c_uint64, Handle("sb_documents"),),
    "sb_windows_new": (c_void_p, Handle("sb_documents"), Handle("sb_vocabulary"), POINTER(sb_windows_options),),
    "sb_windows_free": (None, Handle("sb_windows"),),
    "sb_windows_vocabulary": (c_void_p, Handle("sb_windows"),),
    "sb_windows_symbols": (c_int64, Handle("sb_windows"),),
    "sb_windows_bytes": (c_int64, Handle("sb_windows"),),
    "sb_windows_unknown": (c_int64, Handle("sb_windows"),),
    "sb_windows_batches": (c_int64, Handle("sb_windows"),),
    "sb_windows_next": (c_void_p, Handle("sb_windows"),),
    "sb_windows_tell": (sb_data_position, Handle("sb_windows"),),
    "sb_windows_seek": (c_bool, Handle("sb_windows"), sb_data_position,),
    "sb_windows_hash": (c_uint64, Handle("sb_windows"),),
    "sb_windows_as_source": (sb_source, Handle("sb_windows"),),
    "sb_window_batch_new": (c_void_p, c_int64, c_void_p, c_void_p,),
    "sb_tape_draw": (c_void_p, c_void_p, c_int, Handle("sb_parameters"),),
    "sb_tensor_draw": (c_void_p, c_void_p,),
    "sb_decoder_new": (c_void_p, Handle("sb_parameters"), c_char_p, c_int64, POINTER(sb_transformer_options), c_bool, c_void_p,),
    "sb_decoder_free": (None, Handle("sb_decoder"),),
    "sb_decoder_table": (c_void_p, Handle("sb_decoder"),),
    "sb_decoder_layers": (c_int, Handle("sb_decoder"),),
    "sb_decoder_forward": (c_void_p, Handle("sb_decoder"), c_void_p, c_void_p, c_void_p, POINTER(sb_decoder_weights),),
    "sb_decoder_state_new": (c_void_p, Handle("sb_decoder"),),
    "sb_decoder_state_free": (None, Handle("sb_decoder_state"),),
    "sb_decoder_state_length": (c_int64, Handle("sb_decoder_state"),),
    "sb_decoder_state_reorder": (c_bool, Handle("sb_decoder_state"), c_int64, c_void_p,),
    "sb_decoder_step": (c_void_p, Handle("sb_decoder"), Handle("sb_decoder_state"), c_void_p, c_void_p, c_void_p, POINTER(sb_decoder_weights),),
    "sb_language_model_new": (c_void_p, Handle("sb_parameters"), Handle("sb_data"), POINTER(sb_language_model_options),),
    "sb_language_model_for": (c_void_p, Handle("sb_parameters"), Handle("sb_vocabulary"), POINTER(sb_language_model_options),),
    "sb_language_model_free": (None, Handle("sb_language_model"),),
    "sb_language_model_options_of": (c_void_p, Handle("sb_language_model"),),
    "sb_language_model_vocabulary": (c_void_p, Handle("sb_language_model"),),
    "sb_language_model_parameters": (c_void_p, Handle("sb_language_model"),),
    "sb_language_model_loss": (c_void_p, Handle("sb_language_model"), c_void_p,),
    "sb_language_model_logits": (c_void_p, Handle("sb_language_model"), c_void_p,),
    "sb_language_model_window_loss": (c_void_p, Handle("sb_language_model"), c_void_p, c_void_p,),
    "sb_language_model_window_logits": (c_void_p, Handle("sb_language_model"), c_void_p,),
    "sb_language_model_save": (c_bool, Handle("sb_language_model"), c_char_p,),
    "sb_language_model_load": (c_void_p, Handle("sb_parameters"), c_char_p,),
    "sb_language_model_as_model": (sb_model, Handle("sb_language_model"),),
    "sb_continue": (c_void_p, Handle("sb_language_model"), c_char_p, POINTER(sb_decoding_options),),
    "sb_continue_texts": (c_bool, Handle("sb_language_model"), c_void_p, c_int64, POINTER(sb_decoding_options), c_void_p,),
    "sb_seq2seq_new": (c_void_p, Handle("sb_parameters"), Handle("sb_data"), POINTER(sb_seq2seq_options),),
    "sb_seq2seq_for": (c_void_p, Handle("sb_parameters"), Handle("sb_vocabulary"), Handle("sb_vocabulary"), POINTER(sb_seq2seq_options),),
    "sb_seq2seq_free": (None, Handle("sb_seq2seq"),),
    "sb_seq2seq_save": (c_bool, Handle("sb_seq2seq"), c_char_p,),
    "sb_seq2seq_load": (c_void_p, Handle("sb_parameters"), c_char_p,),
    "sb_seq2seq_options_of": (c_void_p, Handle("sb_seq2seq"),),
    "sb_seq2seq_source": (c_void_p, Handle("sb_seq2seq"),),
    "sb_seq2seq_target": (c_void_p, Handle("sb_seq2seq"),),
    "sb_seq2seq_parameters": (c_void_p, Handle("sb_seq2seq"),),
    "sb_seq2seq_as_model": (sb_model, Handle("sb_seq2seq"),),
    "sb_seq2seq_loss": (c_void_p, Handle("sb_seq2seq"), Handle("sb_batch"),),
    "sb_seq2seq_loss_sum": (c_void_p, Handle("sb_seq2seq"), Handle("sb_batch"),),
    "sb_seq2seq_cost": (c_void_p, Handle("sb_seq2seq"), Handle("sb_batch"),),
    "sb_seq2seq_logits": (c_void_p, Handle("sb_seq2seq"), Handle("sb_batch"), POINTER(sb_seq2seq_weights),),
    "sb_seq2seq_encode": (c_void_p, Handle("sb_seq2seq"), c_void_p, c_void_p,),
    "sb_seq2seq_decoder": (c_void_p, Handle("sb_seq2seq"),),
    "sb_seq2seq_output": (c_void_p, Handle("sb_seq2seq"), c_void_p,),
    "sb_edit_distance": (c_int64, c_void_p, c_int64, c_void_p, c_int64,),
    "sb_perplexity": (c_double, c_double, c_int64,),
    "sb_score_texts": (c_bool, c_void_p, c_void_p, c_void_p, c_int64, c_int, POINTER(sb_text_score),),
    "sb_bleu_corpus": (c_bool, c_void_p, c_void_p, c_int64, POINTER(sb_bleu),),
    "sb_bleu_signature": (c_char_p,),
    "sb_evaluate": (c_bool, POINTER(sb_model), POINTER(sb_source), c_void_p, c_void_p, POINTER(sb_evaluation),),
    "sb_evaluate_loss": (c_double, Handle("sb_seq2seq"), Handle("sb_data"),),
    "sb_average_new": (c_void_p, Handle("sb_parameters"), c_double,),
    "sb_average_free": (None, Handle("sb_average"),),
    "sb_average_update": (c_bool, Handle("sb_average"),),
    "sb_average_swap": (c_bool, Handle("sb_average"),),
    "sb_average_values": (c_void_p, Handle("sb_average"),),
    "sb_average_updates": (c_int64, Handle("sb_average"),),
    "sb_average_restore": (None, Handle("sb_average"), c_int64,),
    "sb_schedule_check": (c_bool, POINTER(sb_schedule),),
    "sb_schedule_rate": (c_double, POINTER(sb_schedule), c_int64, POINTER(sb_plateau),),
    "sb_plateau_observe": (None, POINTER(sb_plateau), POINTER(sb_schedule), c_double,),
    "sb_sgd_new": (c_void_p, Handle("sb_parameters"), POINTER(sb_optimiser_options),),
    "sb_adam_new": (c_void_p, Handle("sb_parameters"), POINTER(sb_optimiser_options),),
    "sb_adamw_new": (c_void_p, Handle("sb_parameters"), POINTER(sb_optimiser_options),),
    "sb_optimiser_free": (None, Handle("sb_optimiser"),),
    "sb_optimiser_step": (c_bool, Handle("sb_optimiser"),),
    "sb_optimiser_step_scaled": (c_bool, Handle("sb_optimiser"), c_double,),
    "sb_optimiser_steps": (c_int64, Handle("sb_optimiser"),),
    "sb_optimiser_rate": (c_double, Handle("sb_optimiser"),),
    "sb_optimiser_norm": (c_double, Handle("sb_optimiser"),),
    "sb_optimiser_set_rate": (c_bool, Handle("sb_optimiser"), c_double,),
    "sb_optimiser_observe": (None, Handle("sb_optimiser"), c_double,),
    "sb_optimiser_moment": (c_void_p, Handle("sb_optimiser"), c_int,),
    "sb_optimiser_plateau": (sb_plateau, Handle("sb_optimiser"),),
    "sb_optimiser_restore": (None, Handle("sb_optimiser"), c_int64, sb_plateau,),
    "sb_trainer_for": (c_void_p, POINTER(sb_model), POINTER(sb_source), POINTER(sb_trainer_options),),
    "sb_trainer_new": (c_void_p, Handle("sb_seq2seq"), Handle("sb_data"), POINTER(sb_trainer_options),),
    "sb_trainer_free": (None, Handle("sb_trainer"),),
    "sb_trainer_step": (c_bool, Handle("sb_trainer"), POINTER(sb_trained),),
    "sb_trainer_batch": (c_void_p, Handle("sb_trainer"),),
    "sb_trainer_subject": (c_void_p, Handle("sb_trainer"),),
    "sb_trainer_source": (c_void_p, Handle("sb_trainer"),),
    "sb_trainer_model": (c_void_p, Handle("sb_trainer"),),
    "sb_trainer_data": (c_void_p, Handle("sb_trainer"),),
    "sb_trainer_optimiser": (c_void_p, Handle("sb_trainer"),),
    "sb_trainer_average": (c_void_p, Handle("sb_trainer"),),
    "sb_trainer_steps": (c_int64, Handle("sb_trainer"),),
    "sb_trainer_save": (sb_trainer_state, Handle("sb_trainer"),),
    "sb_trainer_restore": (c_bool, Handle("sb_trainer"), POINTER(sb_trainer_state),),
    "sb_model_save": (c_bool, POINTER(sb_model), c_char_p,),
    "sb_model_load": (c_bool, POINTER(sb_model), POINTER(sb_model_kind), Handle("sb_parameters"), c_char_p,),
    "sb_checkpoint_save": (c_bool, Handle("sb_trainer"), c_char_p,),
    "sb_checkpoint_resume": (c_bool, Handle("sb_trainer"), c_char_p,),
    "sb_translate": (c_void_p, Handle("sb_seq2seq"), c_char_p, POINTER(sb_decoding_options),),
    "sb_translate_texts": (c_bool, Handle("sb_seq2seq"), c_void_p, c_int64, POINTER(sb_decoding_options), c_void_p,),
    "sb_decode_texts": (c_bool, Handle("sb_seq2seq"), c_void_p, c_int64, POINTER(sb_decoding_options), c_void_p,),
    "sb_embedding_layer_init": (c_bool, POINTER(sb_embedding_layer), Handle("sb_parameters"), c_char_p, c_int64, POINTER(sb_transformer_options), c_void_p,),
    "sb_embedding_layer_forward": (c_void_p, POINTER(sb_embedding_layer), c_void_p, c_int64,),
    "sb_parameters_group": (c_bool, Handle("sb_parameters"), c_char_p, POINTER(sb_group),),
    "sb_parameters_freeze": (c_bool, Handle("sb_parameters"), c_char_p, c_bool,),
    "sb_parameters_trainable": (c_int64, Handle("sb_parameters"),),
    "sb_additive_attention_init": (c_bool, POINTER(sb_additive_attention), Handle("sb_parameters"), c_char_p, c_int64, c_int64, c_int64, c_bool, c_double,),
    "sb_additive_attention_forward": (c_void_p, POINTER(sb_additive_attention), c_void_p, c_void_p, c_void_p, c_void_p, c_void_p,),
    "sb_multiplicative_attention_init": (c_bool, POINTER(sb_multiplicative_attention), Handle("sb_parameters"), c_char_p, c_int64, c_int64, c_double,),
    "sb_multiplicative_attention_forward": (c_void_p, POINTER(sb_multiplicative_attention), c_void_p, c_void_p, c_void_p, c_void_p, c_void_p,),
    "sb_cosine_attention_init": (c_bool, POINTER(sb_cosine_attention), Handle("sb_parameters"), c_char_p, c_double, c_double,),
    "sb_cosine_attention_forward": (c_void_p, POINTER(sb_cosine_attention), c_void_p, c_void_p, c_void_p, c_void_p, c_void_p,),
    "sb_parameters_lora": (c_bool, Handle("sb_parameters"), POINTER(sb_lora_options),),
    "sb_lora_freeze": (c_bool, Handle("sb_parameters"),),
    "sb_lora_merge": (c_bool, Handle("sb_parameters"),),
    "sb_output_head_init": (c_bool, POINTER(sb_output_head), Handle("sb_parameters"), c_char_p, c_int64, c_int64, c_bool, c_void_p,),
    "sb_output_head_logits": (c_void_p, POINTER(sb_output_head), c_void_p,),
    "sb_output_head_loss": (c_void_p, POINTER(sb_output_head), c_void_p, c_void_p, POINTER(sb_cross_entropy_options),),
    "sb_parameters_vector": (c_void_p, Handle("sb_parameters"), POINTER(sb_random),),
    "sb_parameters_jvp": (c_bool, Handle("sb_parameters"), c_void_p, c_void_p, Handle("sb_parameters"), c_void_p, c_void_p,),
    "sb_parameters_hvp": (c_void_p, Handle("sb_parameters"), c_void_p, c_void_p, Handle("sb_parameters"),),
    "sb_parameters_save": (c_bool, Handle("sb_parameters"), c_char_p, c_char_p,),
    "sb_parameters_load": (c_bool, Handle("sb_parameters"), c_char_p, c_char_p, POINTER(sb_loaded),),
    "sb_loaded_free": (None, POINTER(sb_loaded),),
    "sb_optimiser_save": (c_bool, Handle("sb_optimiser"), c_char_p,),
    "sb_optimiser_load": (c_bool, Handle("sb_optimiser"), c_char_p,),
    "sb_position_bias_init": (c_bool, POINTER(sb_position_bias), Handle("sb_parameters"), c_char_p, POINTER(sb_transformer_options),),
    "sb_position_bias_forward": (c_void_p, POINTER(sb_position_bias), c_int64, c_int64, c_void_p,),
}
