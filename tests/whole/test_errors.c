/*
 * Bad calls of tensors, tapes, layers, optimisers and models, and the message of each one:
 * golden/errors.txt. Those of operations are in tests/ops/test_errors_of_operations.c.
 */
#include "tests/support/errors.h"
#include "tests/support/test.h"

static void bad_tensors(struct errors *f)
{
    ALONE(sb_tensor_zeros(SB_F32, -1, NULL));
    ALONE(sb_tensor_zeros(SB_F32, 7, (const int64_t[]){1, 1, 1, 1, 1, 1, 1}));
    ALONE(sb_tensor_zeros(SB_F32, 2, NULL));
    ALONE(sb_tensor_zeros(SB_F32, SB_SHAPE(2, -3)));
    ALONE(sb_tensor_zeros(SB_F32, SB_SHAPE(INT64_MAX, 2)));
    ALONE(sb_tensor_zeros(SB_F32, SB_SHAPE(1 << 30, 1 << 30)));
    ALONE(sb_tensor_zeros(SB_F64, SB_SHAPE(1 << 20, 1 << 20, 1 << 15)));
    ALONE(sb_tensor_zeros((sb_dtype)99, SB_SHAPE(2)));
    ALONE(sb_tensor_full((sb_dtype)-1, SB_SHAPE(2), 1));
    ALONE(sb_tensor_from(SB_F32, SB_SHAPE(2), NULL));
    ALONE(sb_tensor_from_doubles(SB_F32, SB_SHAPE(2), NULL));
    ALONE(sb_tensor_from(SB_F32, SB_SHAPE(-2), f));
    ALONE(sb_tensor_scalar((sb_dtype)7, 1));
    ALONE(sb_tensor_data(NULL));
    ALONE(sb_tensor_set(f->x, -1, 0));
    ALONE(sb_tensor_set(f->x, 6, 0));
    ALONE(sb_tensor_set(NULL, 0, 0));
    ALONE(!isnan(sb_tensor_get(f->x, 6)));
    ALONE(!isnan(sb_tensor_get(f->e, 0)));
    ALONE(!isnan(sb_tensor_get(NULL, 0)));
    ALONE(!isnan(sb_tensor_value(f->x)));
    ALONE(!isnan(sb_tensor_value(NULL)));
    ALONE(!isnan(sb_tensor_value(f->e)));
    ALONE(sb_tensor_read(NULL, (double[]){0}));
    ALONE(sb_tensor_read(f->x, NULL));
    ALONE(sb_tensor_write(f->x, NULL));
    ALONE(sb_tensor_write(NULL, (double[]){0}));
    ALONE(sb_tensor_requires_grad(NULL));
    ALONE(sb_tensor_requires_grad(f->i2));
    ALONE(sb_tensor_requires_grad(f->b));
    ALONE(sb_tensor_text(NULL));
    ALONE(sb_set_threads(0));
    ALONE(sb_set_threads(100000));
    ALONE(sb_tensor_zeros((sb_dtype)6, SB_SHAPE(2)));
    ALONE(sb_tensor_wrap(SB_F32, SB_SHAPE(2), NULL, NULL, NULL));
}

static void bad_tapes(struct errors *f)
{
    ALONE(sb_softmax(f->x));
    ALONE(sb_add(f->x, f->x));
    ALONE(sb_tape_own(NULL));
    ALONE(sb_tape_own(sb_tensor_zeros(SB_F32, SB_SHAPE(2))));
    ALONE(sb_keep(NULL));
    ALONE(sb_backward(f->s));
    ALONE(sb_backward(NULL));
    ALONE(sb_tape_end(&(sb_tape){0}));
    ALONE(sb_tape_end(NULL));
    ALONE(sb_mask_causal());
    ALONE(sb_sinusoidal(SB_F32, 0, 4, 6));
    CALL(sb_backward(NULL));
    CALL(sb_backward(f->x));
    CALL(sb_backward(f->s));
    CALL(sb_backward(sb_sum(f->b, SB_ALL, false)));
    CALL(sb_backward(sb_tanh(f->x)));
    CALL(sb_backward_from(f->x, NULL));
    CALL(sb_backward_from(NULL, f->x));
    CALL(sb_backward_from(sb_tanh(f->x), f->y));
    CALL(sb_backward_from(sb_tanh(f->x), f->d));
    CALL(sb_backward(sb_detach(sb_sum(f->x, SB_ALL, false))));
    CALL(sb_tensor_requires_grad(sb_tanh(f->x)));
    FREED(sb_backward(sb_sum(f->x, SB_ALL, false)));
    FREED(sb_keep(f->freed));
    FREED(sb_softmax(f->freed));
    FREED(sb_add(f->x, f->freed));
    FREED(sb_tensor_data(f->freed));
    FREED(!isnan(sb_tensor_get(f->freed, 0)));
    FREED(sb_tensor_read(f->freed, (double[6]){0}));
    FREED(sb_tensor_text(f->freed));
    FREED(sb_reshape(f->freed, SB_SHAPE(6)));
    ALONE(sb_backward_from(f->x, f->x));
    ALONE(sb_tape_draw(f->s, SB_DRAW_SVG, NULL));
    CALL(sb_tape_draw(NULL, SB_DRAW_SVG, NULL));
    CALL(sb_tape_draw(sb_sum(f->x, SB_ALL, false), (sb_drawing_format)7, NULL));
    CALL(sb_tape_draw(sb_exp(f->x), SB_DRAW_SVG, NULL));
}

static void bad_layers(struct errors *f)
{
    sb_additive_attention additive;
    sb_multiplicative_attention multiplicative;
    sb_cosine_attention cosine;
    ALONE(sb_parameters_of(SB_I32, 1));
    ALONE(sb_parameters_add(NULL, "a", SB_SHAPE(2), (sb_initial){0}));
    ALONE(sb_parameters_add(f->set, NULL, SB_SHAPE(2), (sb_initial){0}));
    ALONE(sb_parameters_add(f->set, "", SB_SHAPE(2), (sb_initial){0}));
    ALONE(sb_parameters_add(f->set, "w", SB_SHAPE(2), (sb_initial){0}));
    ALONE(sb_parameters_add(f->set, "a", SB_SHAPE(-2), (sb_initial){0}));
    ALONE(sb_parameters_add(f->set, "a", SB_SHAPE(2), (sb_initial){(sb_initial_kind)9, 0}));
    ALONE(sb_parameters_add(f->set, "a", SB_SHAPE(2), (sb_initial){SB_INITIAL_NORMAL, NAN}));
    ALONE(sb_parameters_add(f->set, "a", SB_SHAPE(2), (sb_initial){SB_INITIAL_NORMAL, 0}));
    ALONE(sb_parameters_vector(NULL, NULL));
    ALONE(sb_parameters_hvp(NULL, NULL, NULL, f->set));
    ALONE(sb_parameters_hvp(f->set, NULL, NULL, NULL));
    ALONE(sb_parameters_hvp(f->set, NULL, NULL, f->set));
    ALONE(sb_encoder_new(NULL, "e", 9, NULL));
    ALONE(sb_encoder_new(f->set, "e", 9, &(sb_transformer_options){.width = -1}));
    ALONE(sb_encoder_new(f->set, "e", 9, &(sb_transformer_options){.width = 10, .heads = 3}));
    ALONE(sb_encoder_new(f->set, "e", 9, &(sb_transformer_options){.heads = 4, .key_heads = 3}));
    ALONE(sb_encoder_new(f->set, "e", 9, &(sb_transformer_options){.dropout = 1}));
    ALONE(sb_encoder_new(f->set, "e", 9, &(sb_transformer_options){.dropout = NAN}));
    ALONE(sb_encoder_new(f->set, "e", 9, &(sb_transformer_options){.encoder_layers = 5000}));
    ALONE(sb_encoder_new(f->set, "e", 9, &(sb_transformer_options){.positions = (sb_positions)77}));
    ALONE(sb_encoder_new(f->set, "e", 9,
                         &(sb_transformer_options){.width = 12, .positions = SB_POSITIONS_ROTARY}));
    ALONE(sb_output_head_logits(&(sb_output_head){.weight = f->x, .padded = true}, f->x));
    CALL(sb_output_head_logits(&(sb_output_head){.padded = true}, f->x));
    CALL(sb_output_head_logits(&(sb_output_head){.weight = f->x, .padded = true}, NULL));
    CALL(sb_output_head_logits(&(sb_output_head){.weight = f->x, .padded = true, .padding_id = 2},
                               f->x));
    CALL(sb_output_head_loss(&(sb_output_head){.weight = f->x, .padded = true, .padding_id = -1},
                             f->x, f->i2, NULL));
    ALONE(sb_additive_attention_init(&additive, f->set, "a", 0, 2, 3, false, 0));
    ALONE(sb_additive_attention_init(&additive, f->set, "a", 2, -2, 3, false, 0));
    ALONE(sb_additive_attention_init(&additive, f->set, "a", 2, 2, 0, false, 0));
    ALONE(sb_additive_attention_init(&additive, f->set, "a", 2, 2, 2, false, 1));
    ALONE(sb_multiplicative_attention_init(&multiplicative, f->set, "a", 0, 2, 0));
    ALONE(sb_multiplicative_attention_init(&multiplicative, f->set, "a", 2, 0, 0));
    ALONE(sb_multiplicative_attention_init(&multiplicative, f->set, "a", 2, 2, NAN));
    ALONE(sb_cosine_attention_init(&cosine, f->set, "a", -1, 0));
    ALONE(sb_cosine_attention_init(&cosine, f->set, "a", INFINITY, 0));
    ALONE(sb_cosine_attention_init(&cosine, f->set, "a", NAN, 0));
    ALONE(sb_cosine_attention_init(&cosine, f->set, "a", 0, -0.5));
    ALONE(sb_cosine_attention_init(&cosine, NULL, "a", 0, 0));
}

static void bad_optimisers(struct errors *f)
{
    ALONE(sb_adam_new(NULL, NULL));
    ALONE(sb_adam_new(f->set, &(sb_optimiser_options){.beta1 = 1}));
    ALONE(sb_adam_new(f->set, &(sb_optimiser_options){.beta2 = NAN}));
    ALONE(sb_adam_new(f->set, &(sb_optimiser_options){.epsilon = -1}));
    ALONE(sb_adamw_new(f->set, &(sb_optimiser_options){.weight_decay = -1}));
    ALONE(sb_sgd_new(f->set, &(sb_optimiser_options){.momentum = 1}));
    ALONE(sb_sgd_new(f->set, &(sb_optimiser_options){.learning_rate = NAN}));
    ALONE(sb_sgd_new(f->set,
                     &(sb_optimiser_options){.schedule = {.kind = SB_SCHEDULE_COSINE, .rate = 1}}));
    ALONE(sb_optimiser_step(NULL));
    ALONE(sb_parameters_freeze(f->set, "x.*", true));
    ALONE(sb_lora_freeze(f->set));
    ALONE(sb_average_new(NULL, 0.9));
    ALONE(sb_average_new(f->set, 1));
    ALONE(sb_average_new(f->set, NAN));
    ALONE(sb_average_update(NULL));
    ALONE(sb_sgd_new(f->set, &(sb_optimiser_options){.momentum = NAN}));
    ALONE(sb_adamw_new(f->set, &(sb_optimiser_options){.learning_rate = -1}));
    ALONE(sb_schedule_check(NULL));
    ALONE(sb_schedule_check(&(sb_schedule){.rate = 0}));
    ALONE(sb_schedule_check(&(sb_schedule){.rate = 1, .kind = SB_SCHEDULE_INVERSE_ROOT}));
    ALONE(sb_schedule_check(&(sb_schedule){.rate = 1, .kind = SB_SCHEDULE_COSINE}));
    ALONE(sb_schedule_check(&(sb_schedule){.rate = 1, .lowest = 2}));
}

static void bad_models(struct errors *f)
{
    ALONE(sb_data_task("rewind", 1));
    ALONE(sb_data_task(NULL, 1));
    ALONE(sb_data_next(NULL));
    ALONE(sb_data_new(NULL, NULL, NULL, NULL));
    ALONE(sb_seq2seq_new(NULL, NULL, NULL));
    ALONE(sb_seq2seq_new(f->set, NULL, NULL));
    ALONE(sb_seq2seq_for(f->set, NULL, NULL, NULL));
    ALONE(sb_seq2seq_new(f->set, sb_data_task("rewind", 1), NULL));
    ALONE(sb_adam_new(sb_parameters_of(SB_BOOL, 1), NULL));
    ALONE(sb_tensor_requires_grad(sb_tensor_zeros(SB_F32, SB_SHAPE(2, -3))));
    ALONE(sb_seq2seq_loss(NULL, NULL));
    ALONE(sb_seq2seq_save(NULL, "model.safetensors"));
    ALONE(sb_seq2seq_load(NULL, "model.safetensors"));
    ALONE(sb_seq2seq_load(f->set, NULL));
    ALONE(sb_seq2seq_load(f->set, "model.safetensors"));
    ALONE(sb_trainer_new(NULL, NULL, NULL));
    ALONE(sb_trainer_step(NULL, NULL));
    ALONE(sb_pairs_read("no/such/file.tsv", NULL));
    ALONE(sb_pairs_parse("pairs.tsv", "", 0, NULL));
    ALONE(sb_pairs_parse("pairs.tsv", "no tab\n", 7, NULL));
    ALONE(sb_vocabulary_new(NULL, 0, NULL));
    ALONE(sb_vocabulary_encode(NULL, "a", &(int64_t){0}, NULL));
    ALONE(sb_safetensors_open("no/such/file.safetensors"));
    ALONE(sb_safetensors_open(NULL));
    ALONE(sb_gradcheck(NULL, NULL, &f->d, 1, NULL, NULL));
}

static void bad_texts(struct errors *f)
{
    const char *text[] = {"x"}, *two[] = {"a", "a"}, *empty[] = {"", ""}, *bad[] = {"x\xFF"},
               *none[] = {NULL};
    sb_text_score score;
    sb_bleu bleu;
    ALONE(sb_vocabulary_new(NULL, 1, NULL));
    ALONE(sb_vocabulary_new(text, 0, NULL));
    ALONE(sb_vocabulary_new(empty, 2, NULL));
    ALONE(sb_vocabulary_new(none, 1, NULL));
    ALONE(sb_vocabulary_new(two, 2, &(sb_vocabulary_options){.size = 4}));
    ALONE(sb_vocabulary_new(two, 2, &(sb_vocabulary_options){SB_UNITS_BYTES, 259}));
    ALONE(sb_vocabulary_new(two, 2, &(sb_vocabulary_options){.size = -1}));
    ALONE(sb_vocabulary_new(two, 2, &(sb_vocabulary_options){.size = 1L << 31}));
    ALONE(sb_vocabulary_new(two, 2, &(sb_vocabulary_options){.units = (sb_units)9}));
    ALONE(sb_vocabulary_new(text, 1, &(sb_vocabulary_options){.units = SB_UNITS_IDS}));
    ALONE(sb_vocabulary_of_ids(0, -1, 0, 0));
    ALONE(sb_vocabulary_of_ids(9, -1, 9, 0));
    ALONE(sb_vocabulary_encode(NULL, "a", NULL, NULL));
    ALONE(sb_vocabulary_decode(NULL, NULL, 0));
    ALONE(sb_score_texts(text, text, text, 0, SB_UNITS_WORDS, &score));
    ALONE(sb_score_texts(text, text, text, 1, SB_UNITS_AUTO, &score));
    ALONE(sb_score_texts(text, text, bad, 1, SB_UNITS_WORDS, &score));
    ALONE(sb_score_texts(none, text, text, 1, SB_UNITS_WORDS, &score));
    ALONE(sb_score_texts(text, NULL, text, 1, SB_UNITS_WORDS, &score));
    ALONE(sb_bleu_corpus(text, bad, 1, &bleu));
    ALONE(sb_bleu_corpus(none, text, 1, &bleu));
    ALONE(sb_bleu_corpus(text, text, 0, &bleu));
    ALONE(sb_bleu_corpus(NULL, text, 1, &bleu));
}

static void bad_files(struct errors *f)
{
    const char *path = "nowhere/a.safetensors";
    ALONE(sb_safetensors_open_memory(NULL, 0));
    ALONE(sb_safetensors_save(NULL, 0, NULL, 0, NULL));
    ALONE(sb_safetensors_save(path, 1, NULL, 0, NULL));
    ALONE(sb_safetensors_save(path, 0, NULL, 1, NULL));
    ALONE(sb_safetensors_save(path, 1, &(sb_named_tensor){NULL, f->x}, 0, NULL));
    ALONE(sb_safetensors_save(path, 1, &(sb_named_tensor){"x", NULL}, 0, NULL));
    ALONE(sb_safetensors_save(path, 0, NULL, 1, (const char *const[][2]){{NULL, "text"}}));
    ALONE(sb_safetensors_save(path, 0, NULL, 1, (const char *const[][2]){{"key", NULL}}));
    ALONE(sb_safetensors_save(path, -1, NULL, 0, NULL));
    ALONE(sb_safetensors_save(path, 1, &(sb_named_tensor){"x", f->x}, 0, NULL));
    ALONE(sb_safetensors_tensor(NULL, "x"));
    ALONE(sb_safetensors_metadata(NULL, "x"));
}

static void bad_kinds(struct errors *f)
{
    const sb_model_kind kind = {.name = "mine"};
    const sb_model model = {&kind, f, f->set};
    const sb_source source = {.object = f};
    sb_model other;
    sb_evaluation evaluation;
    ALONE(sb_model_kind_find("diffusion"));
    ALONE(sb_description_new(NULL));
    ALONE(sb_description_set(NULL, "width", "8"));
    ALONE(sb_description_vocabulary(NULL, "source"));
    ALONE(sb_model_build(&other, NULL, f->set, NULL));
    ALONE(sb_model_save(NULL, "model.safetensors"));
    ALONE(sb_model_load(&other, NULL, f->set, "model.safetensors"));
    ALONE(sb_batch_get(&(sb_batch){.parts = 0}, "source"));
    ALONE(sb_batch_get(&(sb_batch){.parts = 9}, "source"));
    ALONE(sb_trainer_for(NULL, NULL, NULL));
    ALONE(sb_trainer_for(&model, &source, NULL));
    ALONE(sb_checkpoint_save(NULL, "model.safetensors"));
    ALONE(sb_checkpoint_resume(NULL, "model.safetensors"));
    ALONE(sb_evaluate(NULL, &source, NULL, NULL, &evaluation));
}

CPU_TEST(errors, each_bad_call_gives_its_message)
{
    struct errors f;
    errors_open(&f, "errors");
    bad_tensors(&f);
    bad_tapes(&f);
    bad_layers(&f);
    bad_optimisers(&f);
    bad_models(&f);
    bad_texts(&f);
    bad_files(&f);
    bad_kinds(&f);
    errors_close(&f);
}
