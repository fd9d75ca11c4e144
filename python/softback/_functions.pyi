from __future__ import annotations
from ctypes import byref, c_double, c_int, c_int32, c_int64, c_void_p
from typing import Any
from . import convert as _to
from ._declarations import *
from .library import c as _c
from .objects import Object
from .tensors import Mask, Tensor
def random_new(seed, stream) -> sb_random:
def random_bits(random) -> int:
def random_uniform(random) -> float:
def random_below(random, limit) -> int:
def random_normal(random) -> float:
def device_name(device) -> str:
def choose_cuda(number) -> bool:
def device_description(device) -> str:
def use_device(device) -> None:
def device_synchronize(device) -> bool:
def device_memory(device) -> sb_memory:
def device_reset_peak(device) -> None:
def device_trim(device) -> None:
def set_threads(threads) -> bool:
def threads() -> int:
def mask_allow(allowed) -> Mask:
def mask_block(blocked) -> Mask:
def mask_from_bias(bias) -> Mask:
def mask_causal() -> Mask:
def mask_causal_last() -> Mask:
def mask_lengths(lengths) -> Mask:
def mask_window(before, after) -> Mask:
def mask_blocks(kept, size) -> Mask:
def mask_local(Lq, Lk, size, around) -> Mask:
def mask_strided(Lq, Lk, size, around, stride) -> Mask:
def mask_global(Lq, Lk, size, around, globals) -> Mask:
def mask_and(a, b) -> Mask:
def add(a, b) -> Tensor:
def subtract(a, b) -> Tensor:
def multiply(a, b) -> Tensor:
def divide(a, b) -> Tensor:
def maximum(a, b) -> Tensor:
def minimum(a, b) -> Tensor:
def where(condition, a, b) -> Tensor:
def negate(x) -> Tensor:
def scale(x, factor) -> Tensor:
def sqrt(x) -> Tensor:
def exp(x) -> Tensor:
def log(x) -> Tensor:
def tanh(x) -> Tensor:
def sigmoid(x) -> Tensor:
def relu(x) -> Tensor:
def gelu(x) -> Tensor:
def gelu_tanh(x) -> Tensor:
def silu(x) -> Tensor:
def abs(x) -> Tensor:
def sin(x) -> Tensor:
def cos(x) -> Tensor:
def expm1(x) -> Tensor:
def log1p(x) -> Tensor:
def erf(x) -> Tensor:
def pow(x, exponent) -> Tensor:
def clamp(x, low, high) -> Tensor:
def detach(x) -> Tensor:
def cast(x, dtype) -> Tensor:
def matmul(a, b) -> Tensor:
def matmul_nt(a, b) -> Tensor:
def matmul_tn(a, b) -> Tensor:
def linear(x, weight, bias=None) -> Tensor:
def linear_activation(x, weight, bias=None, activation="identity") -> Tensor:
def reshape(x, shape) -> Tensor:
def permute(x, order) -> Tensor:
def transpose(x, axis_a, axis_b) -> Tensor:
def concatenate(x, axis) -> Tensor:
def stack(x, axis) -> Tensor:
def slice(x, axis, start, length) -> Tensor:
def split(x, axis, lengths) -> Any:
def expand(x, shape) -> Tensor:
def sum(x, axis=None, keep=False) -> Tensor:
def mean(x, axis=None, keep=False) -> Tensor:
def max(x, axis=None, keep=False) -> Tensor:
def argmax(x, axis=None) -> Tensor:
def variance(x, axis, correction, keep=False) -> Tensor:
def topk(x, k) -> Any:
def softmax(x) -> Tensor:
def masked_softmax(x, mask=None, temperature=1.0) -> Tensor:
def log_softmax(x) -> Tensor:
def logsumexp(x) -> Tensor:
def layer_norm(x, gain, bias=None, epsilon=None) -> Tensor:
def residual_layer_norm(x, branch, p, gain, bias, epsilon=None) -> Any:
def rms_norm(x, gain, epsilon=None) -> Tensor:
def l2_normalize(x) -> Tensor:
def softmax_over(x, axis) -> Tensor:
def log_softmax_over(x, axis) -> Tensor:
def logsumexp_over(x, axis) -> Tensor:
def layer_norm_over(x, axis, gain, bias=None, epsilon=None) -> Tensor:
def rms_norm_over(x, axis, gain, epsilon=None) -> Tensor:
def l2_normalize_over(x, axis) -> Tensor:
def embedding(table, ids) -> Tensor:
def embedding_padded(table, ids, padding_id) -> Tensor:
def gather(x, ids) -> Tensor:
def dropout(x, p) -> Tensor:
def residual_dropout(x, branch, p) -> Tensor:
def cross_entropy(x, targets, *, label_smoothing=..., class_weight=..., reduction=...) -> Tensor:
def linear_cross_entropy(x, weight, bias, targets, *, label_smoothing=..., class_weight=..., reduction=...) -> Tensor:
def mean_squared_error(x, target, reduction="mean") -> Tensor:
def sinusoidal(dtype, start, length, C) -> Tensor:
def rotary(x, start=0, base=None) -> Tensor:
def rotary_scaled(x, start, base, scaling) -> Tensor:
def alibi(dtype, H, Lq, Lk) -> Tensor:
def relative_bias(table, Lq, Lk) -> Tensor:
def attention(q, k, v, *, layout=..., mask=..., bias=..., score=..., scale=..., temperature=..., log_temperature=..., softcap=..., dropout=..., weights=..., algorithm=..., queries=..., keys=..., heads=..., of=..., first=..., turn=..., second=...) -> Tensor:
def attention_weights(y, first, count) -> Tensor:
def to_ranks(x, ranks=None) -> Tensor:
def from_ranks(x, ranks=None) -> Tensor:
def attention_cached(q, cache, *, layout=..., mask=..., bias=..., score=..., scale=..., temperature=..., log_temperature=..., softcap=..., dropout=..., weights=..., algorithm=..., queries=..., keys=..., heads=..., of=..., first=..., turn=..., second=...) -> Tensor:
def version() -> str:
def transformer_complete(options=None, complete=None) -> bool:
def units_name(units) -> str:
def units_description(units) -> str:
def task_name(task) -> str:
def task_description(task) -> str:
def task_make(task, seed, part, index, *, min_length=..., max_length=...) -> Any:
def task_part(task, source, target) -> str:
def model_kind_find(name) -> sb_model_kind:
def model_decode(model, texts, *, beam_width=..., length_penalty=..., longest=..., sample=..., temperature=..., top_k=..., top_p=..., seed=..., batch_pairs=..., weights=..., no_cache=...) -> Any:
def tensor_draw(t) -> str:
def edit_distance(a, b) -> int:
def perplexity(log_likelihood, count) -> float:
def score_texts(sources, references, outputs, units) -> Any:
def bleu_corpus(outputs, references) -> Any:
def bleu_signature() -> str:
def schedule_check(schedule) -> bool:
def schedule_rate(schedule, step, plateau=None) -> float:
def plateau_observe(plateau, schedule, loss) -> None:
def model_save(model, path) -> bool:
class KVCache(Object):
    def __init__(self) -> None:
    free = _c.sb_kv_cache_free
    def length(self) -> int:
    def batch(self) -> int:
    def append(self, k, v) -> bool:
    def truncate(self, length) -> bool:
class SafeTensors(Object):
    def __init__(self, path) -> None:
    free = _c.sb_safetensors_close
    def count(self) -> int:
    def find(self, name) -> int:
    def name(self, i) -> str:
    def dtype(self, i) -> str:
    def rank(self, i) -> int:
    def tensor(self, name) -> Tensor:
    def read(self, name, into) -> bool:
    def metadata(self, key) -> str:
    def metadata_count(self) -> int:
class Parameters(Object):
    def __init__(self, seed=0) -> None:
    @staticmethod
    def of(dtype, seed=0) -> Parameters:
    free = _c.sb_parameters_free
    def add(self, name, shape, initial) -> Tensor:
    def add_cut(self, name, shape, initial, cut) -> Tensor:
    def dtype(self) -> str:
    def count(self) -> int:
    def size(self) -> int:
    def name(self, i) -> str:
    def get(self, i) -> Tensor:
    def find(self, name) -> Tensor:
    def clear(self) -> None:
    def clip(self, limit) -> Any:
    def fingerprint(self) -> int:
    def group(self, pattern, group) -> bool:
    def freeze(self, pattern, frozen) -> bool:
    def trainable(self) -> int:
    def lora(self, *, rank=..., alpha=..., on=...) -> bool:
    def lora_freeze(self) -> bool:
    def lora_merge(self) -> bool:
    def vector(self, random) -> Parameters:
    def save(self, pattern, path) -> bool:
    def load(self, pattern, path, loaded) -> bool:
class LinearLayer(sb_linear_layer):
    def __init__(self, set, name, in_, out, bias=True) -> None:
    def init_cut(self, set, name, in_, out, bias, cut) -> bool:
    def __call__(self, x, activation="identity") -> Tensor:
    def join(self, x, ranks=None) -> Tensor:
class NormLayer(sb_norm_layer):
    def __init__(self, set, name, C, kind="layer") -> None:
    def init_with(self, set, name, C, *, kind=..., no_bias=..., epsilon=...) -> bool:
    def __call__(self, x) -> Tensor:
    def residual(self, x, branch, p, along) -> Any:
class MultiHeadAttention(sb_multi_head_attention):
    def __init__(self, set, name, rotary=False, *, width=..., heads=..., head_size=..., key_heads=..., key_width=..., value_width=..., feed_forward=..., encoder_layers=..., decoder_layers=..., dropout=..., attention_dropout=..., feed_forward_dropout=..., norm_place=..., norm_kind=..., norm_epsilon=..., biases=..., no_output_bias=..., activation=..., gated=..., score=..., score_scale=..., temperature=..., attention=..., embedding_scale=..., position_scale=..., embedding_norm=..., positions=..., position_offset=..., rotary_base=..., rotary_scaling=..., position_buckets=..., position_distance=..., precision=..., recompute=..., along=..., longest=..., padded=..., padding_id=..., ranks=...) -> None:
    def __call__(self, x, memory=None, *, mask=..., values=..., bias=..., start=..., cache=..., cached=..., weights=...) -> Tensor:
class FeedForward(sb_feed_forward):
    def __init__(self, set, name, *, width=..., heads=..., head_size=..., key_heads=..., key_width=..., value_width=..., feed_forward=..., encoder_layers=..., decoder_layers=..., dropout=..., attention_dropout=..., feed_forward_dropout=..., norm_place=..., norm_kind=..., norm_epsilon=..., biases=..., no_output_bias=..., activation=..., gated=..., score=..., score_scale=..., temperature=..., attention=..., embedding_scale=..., position_scale=..., embedding_norm=..., positions=..., position_offset=..., rotary_base=..., rotary_scaling=..., position_buckets=..., position_distance=..., precision=..., recompute=..., along=..., longest=..., padded=..., padding_id=..., ranks=...) -> None:
    def __call__(self, x) -> Tensor:
class TransformerLayer(sb_transformer_layer):
    def __init__(self, set, name, crosses=False, *, width=..., heads=..., head_size=..., key_heads=..., key_width=..., value_width=..., feed_forward=..., encoder_layers=..., decoder_layers=..., dropout=..., attention_dropout=..., feed_forward_dropout=..., norm_place=..., norm_kind=..., norm_epsilon=..., biases=..., no_output_bias=..., activation=..., gated=..., score=..., score_scale=..., temperature=..., attention=..., embedding_scale=..., position_scale=..., embedding_norm=..., positions=..., position_offset=..., rotary_base=..., rotary_scaling=..., position_buckets=..., position_distance=..., precision=..., recompute=..., along=..., longest=..., padded=..., padding_id=..., ranks=...) -> None:
    def __call__(self, x, memory=None, self_=None, cross=None) -> Tensor:
class EncoderLayer(sb_encoder_layer):
    def __init__(self, set, name, *, width=..., heads=..., head_size=..., key_heads=..., key_width=..., value_width=..., feed_forward=..., encoder_layers=..., decoder_layers=..., dropout=..., attention_dropout=..., feed_forward_dropout=..., norm_place=..., norm_kind=..., norm_epsilon=..., biases=..., no_output_bias=..., activation=..., gated=..., score=..., score_scale=..., temperature=..., attention=..., embedding_scale=..., position_scale=..., embedding_norm=..., positions=..., position_offset=..., rotary_base=..., rotary_scaling=..., position_buckets=..., position_distance=..., precision=..., recompute=..., along=..., longest=..., padded=..., padding_id=..., ranks=...) -> None:
    def __call__(self, x, *, mask=..., values=..., bias=..., start=..., cache=..., cached=..., weights=...) -> Tensor:
class DecoderLayer(sb_decoder_layer):
    def __init__(self, set, name, crosses=False, *, width=..., heads=..., head_size=..., key_heads=..., key_width=..., value_width=..., feed_forward=..., encoder_layers=..., decoder_layers=..., dropout=..., attention_dropout=..., feed_forward_dropout=..., norm_place=..., norm_kind=..., norm_epsilon=..., biases=..., no_output_bias=..., activation=..., gated=..., score=..., score_scale=..., temperature=..., attention=..., embedding_scale=..., position_scale=..., embedding_norm=..., positions=..., position_offset=..., rotary_base=..., rotary_scaling=..., position_buckets=..., position_distance=..., precision=..., recompute=..., along=..., longest=..., padded=..., padding_id=..., ranks=...) -> None:
    def __call__(self, x, memory=None, self_=None, cross=None) -> Tensor:
class Encoder(Object):
    def __init__(self, set, name, V, *, width=..., heads=..., head_size=..., key_heads=..., key_width=..., value_width=..., feed_forward=..., encoder_layers=..., decoder_layers=..., dropout=..., attention_dropout=..., feed_forward_dropout=..., norm_place=..., norm_kind=..., norm_epsilon=..., biases=..., no_output_bias=..., activation=..., gated=..., score=..., score_scale=..., temperature=..., attention=..., embedding_scale=..., position_scale=..., embedding_norm=..., positions=..., position_offset=..., rotary_base=..., rotary_scaling=..., position_buckets=..., position_distance=..., precision=..., recompute=..., along=..., longest=..., padded=..., padding_id=..., ranks=...) -> None:
    free = _c.sb_encoder_free
    def __call__(self, ids, lengths=None) -> Tensor:
    def table(self) -> Tensor:
    def layers(self) -> int:
class Labels(Object):
    def __init__(self, texts) -> None:
    free = _c.sb_labels_free
    def count(self) -> int:
    def text(self, i) -> str:
    def find(self, text) -> int:
class Pairs(Object):
    def __init__(self) -> None:
    free = _c.sb_pairs_free
    def add(self, source, target) -> bool:
    def count(self) -> int:
    def source(self, index) -> str:
    def target(self, index) -> str:
    def skipped(self) -> int:
    def problem(self, index) -> str:
    @staticmethod
    def read(path, *, strict=..., length=...) -> Pairs:
    @staticmethod
    def read_two(source_path, target_path, *, strict=..., length=...) -> Pairs:
    @staticmethod
    def parse(name, text, *, strict=..., length=...) -> Pairs:
    def shared(self, b) -> int:
class Vocabulary(Object):
    def __init__(self, texts, *, units=..., size=...) -> None:
    free = _c.sb_vocabulary_release
    def size(self) -> int:
    def units(self) -> str:
    def symbol(self, id) -> str:
    def id(self, symbol) -> int:
    def decode(self, ids) -> str:
class Batch(Object):
    def get(self, name) -> Tensor:
    free = _c.sb_batch_free
class Data(Object):
    @staticmethod
    def task(task, seed=0) -> Data:
    @staticmethod
    def task_with(task, task_options=None, options=None) -> Data:
    def __init__(self, pairs, source, target, *, seed=..., batch_pairs=..., batch_symbols=..., longest=...) -> None:
    free = _c.sb_data_free
    def source(self) -> Vocabulary:
    def target(self) -> Vocabulary:
    def pairs(self) -> int:
    def left_out(self) -> int:
    def longest_source(self) -> int:
    def longest_target(self) -> int:
    def batches(self) -> int:
    def next(self) -> Batch:
    def tell(self) -> sb_data_position:
    def seek(self, position) -> bool:
    def hash(self) -> int:
    def as_source(self) -> sb_source:
class Labelled(Object):
    def __init__(self, pairs, vocabulary, labels, *, seed=..., batch_pairs=..., batch_symbols=..., longest=...) -> None:
    free = _c.sb_labelled_free
    def count(self) -> int:
    def left_out(self) -> int:
    def next(self) -> Batch:
    def tell(self) -> sb_data_position:
    def seek(self, position) -> bool:
    def as_source(self) -> sb_source:
class Description(Object):
    def __init__(self, kind) -> None:
    free = _c.sb_description_free
    def kind(self) -> str:
    def set(self, name, value) -> bool:
    def set_number(self, name, value) -> bool:
    def get(self, name) -> str:
    def name(self, i) -> str:
    def value(self, i) -> str:
    def add_vocabulary(self, name, vocabulary) -> bool:
    def vocabulary(self, name) -> Vocabulary:
    def add_label(self, label) -> bool:
    def label(self, i) -> str:
    def set_ranks(self, ranks=None) -> None:
    @staticmethod
    def model_describe(model) -> Description:
class Classifier(Object):
    @staticmethod
    def for_(weights, vocabulary, labels, *, transformer=..., width=..., heads=..., head_size=..., key_heads=..., key_width=..., value_width=..., feed_forward=..., encoder_layers=..., decoder_layers=..., dropout=..., attention_dropout=..., feed_forward_dropout=..., norm_place=..., norm_kind=..., norm_epsilon=..., biases=..., no_output_bias=..., activation=..., gated=..., score=..., score_scale=..., temperature=..., attention=..., embedding_scale=..., position_scale=..., embedding_norm=..., positions=..., position_offset=..., rotary_base=..., rotary_scaling=..., position_buckets=..., position_distance=..., precision=..., recompute=..., along=..., longest=..., padded=..., padding_id=..., ranks=..., pooling=..., label_smoothing=...) -> Classifier:
    free = _c.sb_classifier_free
    def options_of(self) -> sb_classifier_options:
    def vocabulary(self) -> Vocabulary:
    def labels(self) -> int:
    def label(self, i) -> str:
    def logits(self, batch) -> Tensor:
    def classify(self, texts) -> Any:
    def save(self, path) -> bool:
    @staticmethod
    def load(weights, path) -> Classifier:
    def as_model(self) -> sb_model:
class Documents(Object):
    def __init__(self) -> None:
    free = _c.sb_documents_free
    def add(self, name, text, cut="files") -> bool:
    def read(self, path, cut="files") -> bool:
    def count(self) -> int:
    def bytes(self) -> int:
    def text(self, i) -> str:
    def begins(self, i) -> bool:
    def ends(self, i) -> bool:
    def hash(self) -> int:
class Windows(Object):
    def __init__(self, documents, vocabulary, *, seed=..., length=..., batch_windows=..., batch_symbols=..., fixed=...) -> None:
    free = _c.sb_windows_free
    def vocabulary(self) -> Vocabulary:
    def symbols(self) -> int:
    def bytes(self) -> int:
    def unknown(self) -> int:
    def batches(self) -> int:
    def next(self) -> Batch:
    def tell(self) -> sb_data_position:
    def seek(self, position) -> bool:
    def hash(self) -> int:
    def as_source(self) -> sb_source:
class Decoder(Object):
    def __init__(self, set, name, V, crosses=False, shared=None, *, width=..., heads=..., head_size=..., key_heads=..., key_width=..., value_width=..., feed_forward=..., encoder_layers=..., decoder_layers=..., dropout=..., attention_dropout=..., feed_forward_dropout=..., norm_place=..., norm_kind=..., norm_epsilon=..., biases=..., no_output_bias=..., activation=..., gated=..., score=..., score_scale=..., temperature=..., attention=..., embedding_scale=..., position_scale=..., embedding_norm=..., positions=..., position_offset=..., rotary_base=..., rotary_scaling=..., position_buckets=..., position_distance=..., precision=..., recompute=..., along=..., longest=..., padded=..., padding_id=..., ranks=...) -> None:
    free = _c.sb_decoder_free
    def table(self) -> Tensor:
    def layers(self) -> int:
    def __call__(self, ids, memory=None, lengths=None) -> Tensor:
    def step(self, state, ids, memory=None, lengths=None) -> Tensor:
class DecoderState(Object):
    def __init__(self, decoder) -> None:
    free = _c.sb_decoder_state_free
    def length(self) -> int:
class LanguageModel(Object):
    def __init__(self, weights, data, *, transformer=..., width=..., heads=..., head_size=..., key_heads=..., key_width=..., value_width=..., feed_forward=..., encoder_layers=..., decoder_layers=..., dropout=..., attention_dropout=..., feed_forward_dropout=..., norm_place=..., norm_kind=..., norm_epsilon=..., biases=..., no_output_bias=..., activation=..., gated=..., score=..., score_scale=..., temperature=..., attention=..., embedding_scale=..., position_scale=..., embedding_norm=..., positions=..., position_offset=..., rotary_base=..., rotary_scaling=..., position_buckets=..., position_distance=..., precision=..., recompute=..., along=..., longest=..., padded=..., padding_id=..., ranks=..., tie_embeddings=..., label_smoothing=..., context=..., running_text=...) -> None:
    @staticmethod
    def for_(weights, vocabulary, *, transformer=..., width=..., heads=..., head_size=..., key_heads=..., key_width=..., value_width=..., feed_forward=..., encoder_layers=..., decoder_layers=..., dropout=..., attention_dropout=..., feed_forward_dropout=..., norm_place=..., norm_kind=..., norm_epsilon=..., biases=..., no_output_bias=..., activation=..., gated=..., score=..., score_scale=..., temperature=..., attention=..., embedding_scale=..., position_scale=..., embedding_norm=..., positions=..., position_offset=..., rotary_base=..., rotary_scaling=..., position_buckets=..., position_distance=..., precision=..., recompute=..., along=..., longest=..., padded=..., padding_id=..., ranks=..., tie_embeddings=..., label_smoothing=..., context=..., running_text=...) -> LanguageModel:
    free = _c.sb_language_model_free
    def options_of(self) -> sb_language_model_options:
    def vocabulary(self) -> Vocabulary:
    def parameters(self) -> Parameters:
    def loss(self, ids) -> Tensor:
    def logits(self, ids) -> Tensor:
    def window_loss(self, input, targets) -> Tensor:
    def window_logits(self, input) -> Tensor:
    def save(self, path) -> bool:
    @staticmethod
    def load(weights, path) -> LanguageModel:
    def as_model(self) -> sb_model:
    def continue_(self, prompt, *, beam_width=..., length_penalty=..., longest=..., sample=..., temperature=..., top_k=..., top_p=..., seed=..., batch_pairs=..., weights=..., no_cache=...) -> str:
    def continue_texts(self, prompts, *, beam_width=..., length_penalty=..., longest=..., sample=..., temperature=..., top_k=..., top_p=..., seed=..., batch_pairs=..., weights=..., no_cache=...) -> Any:
class Seq2Seq(Object):
    def __init__(self, weights, data, *, transformer=..., width=..., heads=..., head_size=..., key_heads=..., key_width=..., value_width=..., feed_forward=..., encoder_layers=..., decoder_layers=..., dropout=..., attention_dropout=..., feed_forward_dropout=..., norm_place=..., norm_kind=..., norm_epsilon=..., biases=..., no_output_bias=..., activation=..., gated=..., score=..., score_scale=..., temperature=..., attention=..., embedding_scale=..., position_scale=..., embedding_norm=..., positions=..., position_offset=..., rotary_base=..., rotary_scaling=..., position_buckets=..., position_distance=..., precision=..., recompute=..., along=..., longest=..., padded=..., padding_id=..., ranks=..., tie_embeddings=..., share_embeddings=..., label_smoothing=...) -> None:
    @staticmethod
    def for_(weights, source, target, *, transformer=..., width=..., heads=..., head_size=..., key_heads=..., key_width=..., value_width=..., feed_forward=..., encoder_layers=..., decoder_layers=..., dropout=..., attention_dropout=..., feed_forward_dropout=..., norm_place=..., norm_kind=..., norm_epsilon=..., biases=..., no_output_bias=..., activation=..., gated=..., score=..., score_scale=..., temperature=..., attention=..., embedding_scale=..., position_scale=..., embedding_norm=..., positions=..., position_offset=..., rotary_base=..., rotary_scaling=..., position_buckets=..., position_distance=..., precision=..., recompute=..., along=..., longest=..., padded=..., padding_id=..., ranks=..., tie_embeddings=..., share_embeddings=..., label_smoothing=...) -> Seq2Seq:
    free = _c.sb_seq2seq_free
    def save(self, path) -> bool:
    @staticmethod
    def load(weights, path) -> Seq2Seq:
    def options_of(self) -> sb_seq2seq_options:
    def source(self) -> Vocabulary:
    def target(self) -> Vocabulary:
    def parameters(self) -> Parameters:
    def as_model(self) -> sb_model:
    def loss(self, batch) -> Tensor:
    def loss_sum(self, batch) -> Tensor:
    def cost(self, batch) -> Tensor:
    def logits(self, batch) -> Tensor:
    def encode(self, ids, lengths=None) -> Tensor:
    def decoder(self) -> Decoder:
    def output(self, y) -> Tensor:
    def evaluate_loss(self, data) -> float:
    def translate(self, text, *, beam_width=..., length_penalty=..., longest=..., sample=..., temperature=..., top_k=..., top_p=..., seed=..., batch_pairs=..., weights=..., no_cache=...) -> str:
    def translate_texts(self, texts, *, beam_width=..., length_penalty=..., longest=..., sample=..., temperature=..., top_k=..., top_p=..., seed=..., batch_pairs=..., weights=..., no_cache=...) -> Any:
    def decode_texts(self, texts, *, beam_width=..., length_penalty=..., longest=..., sample=..., temperature=..., top_k=..., top_p=..., seed=..., batch_pairs=..., weights=..., no_cache=...) -> Any:
class Average(Object):
    def __init__(self, set, decay) -> None:
    free = _c.sb_average_free
    def update(self) -> bool:
    def swap(self) -> bool:
    def values(self) -> Tensor:
    def updates(self) -> int:
    def restore(self, updates) -> None:
class Optimiser(Object):
    @staticmethod
    def sgd(set, *, learning_rate=..., schedule=..., kind=..., rate=..., warmup=..., steps=..., lowest=..., factor=..., patience=..., cycle=..., growth=..., beta1=..., beta2=..., epsilon=..., momentum=..., nesterov=..., weight_decay=..., decay_all=..., clip=...) -> Optimiser:
    @staticmethod
    def adam(set, *, learning_rate=..., schedule=..., kind=..., rate=..., warmup=..., steps=..., lowest=..., factor=..., patience=..., cycle=..., growth=..., beta1=..., beta2=..., epsilon=..., momentum=..., nesterov=..., weight_decay=..., decay_all=..., clip=...) -> Optimiser:
    @staticmethod
    def adamw(set, *, learning_rate=..., schedule=..., kind=..., rate=..., warmup=..., steps=..., lowest=..., factor=..., patience=..., cycle=..., growth=..., beta1=..., beta2=..., epsilon=..., momentum=..., nesterov=..., weight_decay=..., decay_all=..., clip=...) -> Optimiser:
    free = _c.sb_optimiser_free
    def step(self) -> bool:
    def step_scaled(self, factor) -> bool:
    def steps(self) -> int:
    def rate(self) -> float:
    def norm(self) -> float:
    def set_rate(self, rate) -> bool:
    def observe(self, loss) -> None:
    def moment(self, i) -> Tensor:
    def plateau(self) -> sb_plateau:
    def restore(self, steps, plateau) -> None:
    def save(self, path) -> bool:
    def load(self, path) -> bool:
class Trainer(Object):
    def __init__(self, model, source, *, seed=..., optimiser_kind=..., optimiser=..., learning_rate=..., schedule=..., kind=..., rate=..., warmup=..., steps=..., lowest=..., factor=..., patience=..., cycle=..., growth=..., beta1=..., beta2=..., epsilon=..., momentum=..., nesterov=..., weight_decay=..., decay_all=..., clip=..., accumulate=..., average_decay=..., graphs=..., communicator=..., sequence_ranks=...) -> None:
    free = _c.sb_trainer_free
    def step(self) -> Any:
    def batch(self) -> Batch:
    def subject(self) -> sb_model:
    def source(self) -> sb_source:
    def model(self) -> Seq2Seq:
    def data(self) -> Data:
    def optimiser(self) -> Optimiser:
    def average(self) -> Average:
    def steps(self) -> int:
    def save(self) -> sb_trainer_state:
    def restore(self, state) -> bool:
    def checkpoint_save(self, path) -> bool:
    def checkpoint_resume(self, path) -> bool:
class EmbeddingLayer(sb_embedding_layer):
    def __init__(self, set, name, V, shared=None, *, width=..., heads=..., head_size=..., key_heads=..., key_width=..., value_width=..., feed_forward=..., encoder_layers=..., decoder_layers=..., dropout=..., attention_dropout=..., feed_forward_dropout=..., norm_place=..., norm_kind=..., norm_epsilon=..., biases=..., no_output_bias=..., activation=..., gated=..., score=..., score_scale=..., temperature=..., attention=..., embedding_scale=..., position_scale=..., embedding_norm=..., positions=..., position_offset=..., rotary_base=..., rotary_scaling=..., position_buckets=..., position_distance=..., precision=..., recompute=..., along=..., longest=..., padded=..., padding_id=..., ranks=...) -> None:
    def __call__(self, ids, start=0) -> Tensor:
class AdditiveAttention(sb_additive_attention):
    def __init__(self, set, name, query_size, key_size, hidden, bias, dropout) -> None:
    def __call__(self, q, k, v, mask=None) -> Any:
class MultiplicativeAttention(sb_multiplicative_attention):
    def __init__(self, set, name, query_size, key_size, dropout) -> None:
    def __call__(self, q, k, v, mask=None) -> Any:
class CosineAttention(sb_cosine_attention):
    def __init__(self, set, name, temperature, dropout) -> None:
    def __call__(self, q, k, v, mask=None) -> Any:
class OutputHead(sb_output_head):
    def __init__(self, set, name, C, V, bias=True, tied=None) -> None:
    def logits(self, y) -> Tensor:
    def loss(self, y, targets, *, label_smoothing=..., class_weight=..., reduction=...) -> Tensor:
class Loaded(Object):
    free = _c.sb_loaded_free
class PositionBias(sb_position_bias):
    def __init__(self, set, name, *, width=..., heads=..., head_size=..., key_heads=..., key_width=..., value_width=..., feed_forward=..., encoder_layers=..., decoder_layers=..., dropout=..., attention_dropout=..., feed_forward_dropout=..., norm_place=..., norm_kind=..., norm_epsilon=..., biases=..., no_output_bias=..., activation=..., gated=..., score=..., score_scale=..., temperature=..., attention=..., embedding_scale=..., position_scale=..., embedding_norm=..., positions=..., position_offset=..., rotary_base=..., rotary_scaling=..., position_buckets=..., position_distance=..., precision=..., recompute=..., along=..., longest=..., padded=..., padding_id=..., ranks=...) -> None: