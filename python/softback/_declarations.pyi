"""Enums and structs. Made by python/generate.py; do not edit."""
from typing import Any, Literal, TypeAlias

from . import Tensor

sb_stream: TypeAlias = Literal['initial', 'train', 'data', 'sample', 'user']
sb_dtype: TypeAlias = Literal['f32', 'f64', 'bf16', 'dual', 'i32', 'bool']
sb_mode: TypeAlias = Literal['record', 'no_record']
sb_gradcheck_method: TypeAlias = Literal['automatic', 'exact', 'differences']
sb_sequence: TypeAlias = Literal['source', 'target', 'none']
sb_activation: TypeAlias = Literal['identity', 'relu', 'gelu', 'gelu_tanh', 'silu', 'tanh', 'sigmoid']
sb_reduction: TypeAlias = Literal['mean', 'sum', 'none']
sb_layout: TypeAlias = Literal['length_first', 'heads_first']
sb_score: TypeAlias = Literal['scaled', 'balanced', 'cosine']
sb_attention_algorithm: TypeAlias = Literal['automatic', 'composed', 'tiled']
sb_initial_kind: TypeAlias = Literal['xavier', 'normal', 'constant']
sb_norm_kind: TypeAlias = Literal['layer', 'rms']
sb_norm_place: TypeAlias = Literal['pre', 'post']
sb_positions: TypeAlias = Literal['sinusoidal', 'learned', 'rotary', 'alibi', 'relative', 'none', 'halves', 'buckets']
sb_biases: TypeAlias = Literal['all', 'qkv', 'none']
sb_precision: TypeAlias = Literal['f32', 'bf16', 'tf32x3']
sb_units: TypeAlias = Literal['auto', 'characters', 'bytes', 'words', 'bpe']
sb_task: TypeAlias = Literal['copy', 'reverse', 'sort', 'addition', 'dates']
sb_part: TypeAlias = Literal['train', 'valid', 'test']
sb_weight_format: TypeAlias = Literal['as_stored', 'int8']
sb_loss: TypeAlias = Literal['mean', 'sum', 'cost']
sb_pooling: TypeAlias = Literal['mean', 'first']
sb_document_cut: TypeAlias = Literal['files', 'paragraphs', 'lines']
sb_drawing_format: TypeAlias = Literal['svg', 'dot']
sb_schedule_kind: TypeAlias = Literal['constant', 'inverse_root', 'cosine', 'plateau', 'linear', 'restarts', 'custom']
sb_optimiser_kind: TypeAlias = Literal['adam', 'adamw', 'sgd']
sb_graphs: TypeAlias = Literal['auto', 'off']

class sb_random:
    seed: int
    position: int

class sb_memory:
    live_blocks: int
    live_bytes: int
    peak_bytes: int
    system_calls: int

class sb_tape:
    serial: int

class sb_gradcheck_options:
    step: float
    tolerance: float
    random: Any
    method: sb_gradcheck_method
    directions: int
    second_order: bool

class sb_gradcheck_result:
    ok: bool
    method: sb_gradcheck_method
    error: float
    input: int
    index: int
    backward: float
    difference: float
    step: float
    symmetry: float
    curvature: float
    mistake: str

class sb_operation:
    name: str
    inputs: str
    backward: Any
    writes_fresh: bool
    dual: bool

class sb_piece:
    of: int
    first: int
    turn: int
    second: int

class sb_partition:
    items: sb_piece
    source: sb_piece
    target: sb_piece

class sb_context:
    partition: Any
    ring: Any
    packed: Any
    position: Any
    rounded: Any

class sb_cross_entropy_options:
    label_smoothing: float
    class_weight: Tensor
    reduction: sb_reduction

class sb_attention_options:
    layout: sb_layout
    mask: Any
    bias: Tensor
    score: sb_score
    scale: float
    temperature: float
    log_temperature: Tensor
    softcap: float
    dropout: float
    weights: Tensor
    algorithm: sb_attention_algorithm
    tf32x3: bool
    queries: sb_sequence
    keys: sb_sequence
    heads: sb_piece

class sb_named_tensor:
    name: str
    tensor: Tensor

class sb_initial:
    kind: sb_initial_kind
    value: float

class sb_cut:
    ranks: Any
    axis: int

class sb_linear_layer:
    weight: Tensor
    bias: Tensor
    lora_a: Tensor
    lora_b: Tensor
    lora_scale: float

class sb_norm_layer:
    kind: sb_norm_kind
    gain: Tensor
    bias: Tensor
    epsilon: float

class sb_norm_options:
    kind: sb_norm_kind
    no_bias: bool
    epsilon: float

class sb_transformer_options:
    width: int
    heads: int
    head_size: int
    key_heads: int
    key_width: int
    value_width: int
    feed_forward: int
    encoder_layers: int
    decoder_layers: int
    dropout: float
    attention_dropout: float
    feed_forward_dropout: float
    norm_place: sb_norm_place
    norm_kind: sb_norm_kind
    norm_epsilon: float
    biases: sb_biases
    no_output_bias: bool
    activation: sb_activation
    gated: bool
    score: sb_score
    score_scale: float
    temperature: float
    attention: sb_attention_algorithm
    embedding_scale: float
    position_scale: float
    embedding_norm: bool
    positions: sb_positions
    position_offset: int
    rotary_base: float
    rotary_scaling: float
    position_buckets: int
    position_distance: int
    precision: sb_precision
    recompute: bool
    along: sb_sequence
    longest: int
    padded: bool
    padding_id: int
    ranks: Any

class sb_multi_head_attention:
    heads: int
    key_heads: int
    size: int
    ranks: Any
    dropout: float
    score: sb_score
    scale: float
    temperature: float
    algorithm: sb_attention_algorithm
    tf32x3: bool
    rotary: bool
    rotary_base: float
    rotary_scaling: float
    along: sb_sequence
    keys_along: sb_sequence
    query: sb_linear_layer
    key: sb_linear_layer
    value: sb_linear_layer
    output: sb_linear_layer

class sb_attending:
    mask: Any
    values: Tensor
    bias: Tensor
    start: int
    cache: Any
    cached: bool
    weights: Tensor

class sb_feed_forward:
    activation: sb_activation
    ranks: Any
    up: sb_linear_layer
    gate: sb_linear_layer
    down: sb_linear_layer
    dropout: float
    along: sb_sequence

class sb_transformer_layer:
    place: sb_norm_place
    dropout: float
    along: sb_sequence
    crosses: bool
    self_norm: sb_norm_layer
    cross_norm: sb_norm_layer
    feed_norm: sb_norm_layer
    self_attention: sb_multi_head_attention
    cross_attention: sb_multi_head_attention
    feed_forward: sb_feed_forward

class sb_encoder_layer:
    place: sb_norm_place
    dropout: float
    along: sb_sequence
    crosses: bool
    self_norm: sb_norm_layer
    cross_norm: sb_norm_layer
    feed_norm: sb_norm_layer
    self_attention: sb_multi_head_attention
    cross_attention: sb_multi_head_attention
    feed_forward: sb_feed_forward

class sb_decoder_layer:
    place: sb_norm_place
    dropout: float
    along: sb_sequence
    crosses: bool
    self_norm: sb_norm_layer
    cross_norm: sb_norm_layer
    feed_norm: sb_norm_layer
    self_attention: sb_multi_head_attention
    cross_attention: sb_multi_head_attention
    feed_forward: sb_feed_forward

class sb_pairs_options:
    strict: bool
    length: int

class sb_vocabulary_options:
    units: sb_units
    size: int

class sb_unknown:
    count: int
    first: int
    first_size: int

class sb_task_options:
    min_length: int
    max_length: int

class sb_task_pair:
    source: str
    target: str

class sb_batch_part:
    name: str
    t: Tensor
    along: sb_sequence

class sb_batch:
    items: int
    targets: int
    parts: int
    part: list[Any]
    partition: Any

class sb_encoded_pair:
    source: int
    target: int
    source_length: int
    target_length: int

class sb_data_position:
    epoch: int
    batch: int

class sb_source:
    object: Any
    next: Any
    tell: Any
    seek: Any
    hash: Any
    batches: Any

class sb_data_options:
    seed: int
    batch_pairs: int
    batch_symbols: int
    longest: int

class sb_decoding_options:
    beam_width: int
    length_penalty: float
    longest: int
    sample: bool
    temperature: float
    top_k: int
    top_p: float
    seed: int
    batch_pairs: int
    weights: sb_weight_format
    no_cache: bool
    listen: Any
    listener: Any

class sb_decoded:
    ids: int
    length: int
    ended: bool
    slid: bool
    log_probability: float
    score: float

class sb_attention_map:
    weights: Tensor
    queries: Tensor
    keys: Tensor
    causal: bool

class sb_attentions:
    loss: Tensor
    maps: int
    map: Any

class sb_evaluation:
    loss: float
    error: float
    unit_error: float
    bleu: float

class sb_model_kind:
    name: str
    build: Any
    describe: Any
    free: Any
    loss: Any
    score: Any
    attentions: Any
    generator: Any
    splits: str

class sb_model:
    kind: Any
    self: Any
    weights: Any

class sb_classifier_options:
    transformer: sb_transformer_options
    pooling: sb_pooling
    label_smoothing: float

class sb_class:
    label: int
    probability: float

class sb_held_labelled:
    pairs: Any

class sb_windows_options:
    seed: int
    length: int
    batch_windows: int
    batch_symbols: int
    fixed: bool

class sb_decoder_weights:
    self: Tensor
    cross: Tensor

class sb_language_model_options:
    transformer: sb_transformer_options
    tie_embeddings: bool
    label_smoothing: float
    context: int
    running_text: bool

class sb_seq2seq_options:
    transformer: sb_transformer_options
    tie_embeddings: bool
    share_embeddings: bool
    label_smoothing: float

class sb_seq2seq_weights:
    encoder: Tensor
    decoder: sb_decoder_weights

class sb_text_score:
    lines: int
    exact: int
    positions: int
    right: int
    sources: int
    wrong: int
    units: int
    edits: int
    exact_match: float
    token_accuracy: float
    wer: float
    per: float

class sb_bleu:
    score: float
    precision: list[float]
    brevity_penalty: float
    correct: list[int]
    total: list[int]
    output_tokens: int
    reference_tokens: int

class sb_schedule:
    kind: sb_schedule_kind
    rate: float
    warmup: int
    steps: int
    lowest: float
    factor: float
    patience: int
    cycle: int
    growth: float
    custom: Any
    custom_context: Any

class sb_plateau:
    best: float
    seen: int
    waited: int
    reduced: int

class sb_optimiser_options:
    learning_rate: float
    schedule: sb_schedule
    beta1: float
    beta2: float
    epsilon: float
    momentum: float
    nesterov: bool
    weight_decay: float
    decay_all: bool
    clip: float

class sb_trainer_options:
    seed: int
    optimiser_kind: sb_optimiser_kind
    optimiser: sb_optimiser_options
    accumulate: int
    average_decay: float
    graphs: sb_graphs
    communicator: Any
    sequence_ranks: int
    stop: Any
    stop_context: Any

class sb_trained:
    loss: float
    rate: float
    norm: float
    targets: int
    waited: float
    sent: int
    without_gradient: str
    stopped: bool
    skipped: bool

class sb_trainer_state:
    steps: int
    skipped_in_a_row: int
    updates: int
    average_updates: int
    random_position: int
    data: sb_data_position
    plateau: sb_plateau

class sb_held_pairs:
    pairs: Any
    options: Any

class sb_embedding_layer:
    C: int
    dropout: float
    positions: sb_positions
    precision: sb_precision
    along: sb_sequence
    padded: bool
    padding_id: int
    scale: float
    position_scale: float
    offset: int
    weight: Tensor
    position: Tensor
    has_norm: bool
    norm: sb_norm_layer

class sb_group:
    rate: float
    decay: float
    frozen: bool

class sb_additive_attention:
    dropout: float
    query: sb_linear_layer
    key: sb_linear_layer
    score: sb_linear_layer

class sb_multiplicative_attention:
    dropout: float
    query: sb_linear_layer

class sb_cosine_attention:
    dropout: float
    log_temperature: Tensor

class sb_lora_options:
    rank: int
    alpha: float
    on: str

class sb_output_head:
    weight: Tensor
    bias: Tensor
    padded: bool
    padding_id: int

class sb_loaded:
    count: int
    missing: Any
    left_over: Any

class sb_position_bias:
    positions: sb_positions
    heads: int
    ranks: Any
    dtype: sb_dtype
    along: sb_sequence
    buckets: int
    distance: int
    table: Tensor
