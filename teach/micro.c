/*
 * softback in one file: an encoder-decoder transformer that learns to reverse digits, and all that
 * it needs, from tensors to Adam. Nothing is hidden in a library.
 *
 *     cc -O2 micro.c -lm && ./a.out
 *
 * Read it from top to bottom. You know C and the chain rule. A name with d is a gradient: dx is the
 * derivative of the loss with respect to x. Each backward quotes lines of its forward and applies
 * the chain rule to them: from z += x * w follow dx += dz * w and dw += dz * x.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DIGITS = 10,
    START = DIGITS,        /* the symbol that the decoder reads first */
    SYMBOLS = DIGITS + 1,  /* the digits and START */
    LENGTH = 8,            /* of a sequence */
    BATCH = 32,            /* sequences of a training step */
    ROWS = BATCH * LENGTH, /* symbols of a batch; most tensors have a row for each */
    WIDTH = 32,            /* numbers that represent a symbol */
    HEADS = 2,             /* of attention */
    SIZE = WIDTH / HEADS,  /* of queries, keys and values */
    HIDDEN = 64,           /* of the feed-forward layers */
    STEPS = 200,           /* of training */
};

/* ---- 1. Tensors and the tape ---- */

enum operation { ADD, RELU, MATMUL, EMBEDDING, LAYER_NORM, ATTENTION, CROSS_ENTROPY, KEPT, WEIGHT };

/* A tensor is a matrix here, and remembers how it was computed. */
typedef struct tensor {
    int rows, cols;
    double *x, *dx;                  /* values and their gradients */
    enum operation from;             /* which operation computed it, */
    struct tensor *a, *b, *c, *kept; /* from which inputs, and what else backward needs */
    const int *ids;                  /* EMBEDDING: rows of the table; CROSS_ENTROPY: targets */
    int causal;                      /* ATTENTION: whether later keys are hidden */
    const char *part, *name;         /* WEIGHT */
} tensor;

/* The value and the gradient in row i and column j. */
#define at(t, i, j) ((t)->x[(i) * (t)->cols + (j)])
#define d(t, i, j) ((t)->dx[(i) * (t)->cols + (j)])

/* The tape has all tensors: first the weights, then the results of one step, in the order in which
   they were computed. Their numbers lie in one array, their gradients in another. */
enum { WEIGHTS = 32, WEIGHT_NUMBERS = 1 << 15, TENSORS = 128, NUMBERS = 1 << 20 };
static tensor tape[TENSORS];
static double numbers[NUMBERS], gradients[NUMBERS];
static struct region {
    int tensors, numbers, most_tensors, most_numbers; /* in use, and where the region ends */
} weights = {0, 0, WEIGHTS, WEIGHT_NUMBERS}, results;
static const tensor *attended; /* the weights of the last attention, to be drawn */

static tensor *new_tensor(enum operation from, int rows, int cols, tensor *a, tensor *b)
{
    struct region *r = from == WEIGHT ? &weights : &results;
    double *x = numbers + r->numbers, *dx = gradients + r->numbers;
    if (r->tensors == r->most_tensors || rows * cols > r->most_numbers - r->numbers) {
        fprintf(stderr, "the tape is full: increase the sizes above\n");
        exit(1);
    }
    memset(x, 0, (size_t)(rows * cols) * sizeof *x);
    r->numbers += rows * cols;
    tape[r->tensors] = (tensor){rows, cols, x, dx, .from = from, .a = a, .b = b};
    return &tape[r->tensors++];
}

/* ---- 2. Operations, each with its backward ---- */

static tensor *add(tensor *x, tensor *y)
{
    tensor *z = new_tensor(ADD, x->rows, x->cols, x, y);
    for (int i = 0; i < z->rows * z->cols; i++)
        z->x[i] = x->x[i] + y->x[i];
    return z;
}

static void add_backward(tensor *z)
{
    for (int i = 0; i < z->rows * z->cols; i++) { /* z[i] = x[i] + y[i] */
        z->a->dx[i] += z->dx[i];
        z->b->dx[i] += z->dx[i];
    }
}

static unsigned sides; /* a hash of which numbers were above 0, where relu has its kink */

static tensor *relu(tensor *x)
{
    tensor *z = new_tensor(RELU, x->rows, x->cols, x, NULL);
    for (int i = 0; i < z->rows * z->cols; i++) {
        z->x[i] = x->x[i] > 0 ? x->x[i] : 0;
        sides = 31 * sides + (x->x[i] > 0);
    }
    return z;
}

static void relu_backward(tensor *z)
{
    for (int i = 0; i < z->rows * z->cols; i++) /* z[i] = x[i] > 0 ? x[i] : 0 */
        z->a->dx[i] += z->a->x[i] > 0 ? z->dx[i] : 0;
}

static tensor *matmul(tensor *x, tensor *w)
{
    tensor *z = new_tensor(MATMUL, x->rows, w->cols, x, w);
    for (int i = 0; i < x->rows; i++)
        for (int k = 0; k < x->cols; k++)
            for (int j = 0; j < w->cols; j++)
                at(z, i, j) += at(x, i, k) * at(w, k, j);
    return z;
}

static void matmul_backward(tensor *z)
{
    tensor *x = z->a, *w = z->b;
    for (int i = 0; i < x->rows; i++)
        for (int k = 0; k < x->cols; k++)
            for (int j = 0; j < w->cols; j++) { /* z(i, j) += x(i, k) * w(k, j) */
                d(x, i, k) += d(z, i, j) * at(w, k, j);
                d(w, k, j) += d(z, i, j) * at(x, i, k);
            }
}

/* Row i of the result is row ids[i] of the table: the vector of a symbol, or of a position. */
static tensor *embedding(tensor *table, const int *ids)
{
    tensor *z = new_tensor(EMBEDDING, ROWS, table->cols, table, NULL);
    z->ids = ids;
    for (int i = 0; i < z->rows; i++)
        for (int j = 0; j < z->cols; j++)
            at(z, i, j) = at(table, ids[i], j);
    return z;
}

static void embedding_backward(tensor *z)
{
    for (int i = 0; i < z->rows; i++)
        for (int j = 0; j < z->cols; j++) /* z(i, j) = table(ids[i], j) */
            d(z->a, z->ids[i], j) += d(z, i, j);
}

/* h = (x - m) / s, with the mean m and the standard deviation s of a row x. Returns s. */
static double normalise(int n, const double *x, double *h)
{
    double m = 0, variance = 0;
    for (int j = 0; j < n; j++)
        m += x[j] / n;
    for (int j = 0; j < n; j++)
        variance += (x[j] - m) * (x[j] - m) / n;
    const double s = sqrt(variance + 1e-5);
    for (int j = 0; j < n; j++)
        h[j] = (x[j] - m) / s;
    return s;
}

static tensor *layer_norm(tensor *x, tensor *gain)
{
    tensor *z = new_tensor(LAYER_NORM, x->rows, x->cols, x, gain);
    double h[WIDTH];
    for (int i = 0; i < z->rows; i++) {
        normalise(WIDTH, &at(x, i, 0), h);
        for (int j = 0; j < WIDTH; j++)
            at(z, i, j) = gain->x[j] * h[j];
    }
    return z;
}

/* m and s depend on x, too: by x[j], the derivative of m is 1 / n and that of s is h[j] / n. So
   that of h[i] is ((i == j) - 1 / n - h[i] * h[j] / n) / s. Times dh[i] and summed over i, that is
   dh[j] less its mean and its part along h, over s: x + 1 and 2 x have the same h but for 1e-5. */
static void layer_norm_backward(tensor *z)
{
    tensor *x = z->a, *gain = z->b;
    double h[WIDTH], dh[WIDTH];
    for (int i = 0; i < z->rows; i++) {
        const double s = normalise(WIDTH, &at(x, i, 0), h);
        double mean = 0, along = 0;
        for (int j = 0; j < WIDTH; j++) { /* z(i, j) = gain[j] * h[j] */
            gain->dx[j] += d(z, i, j) * h[j];
            dh[j] = d(z, i, j) * gain->x[j];
            mean += dh[j] / WIDTH;
            along += dh[j] * h[j] / WIDTH;
        }
        for (int j = 0; j < WIDTH; j++) /* h[j] = (x(i, j) - m) / s */
            d(x, i, j) += (dh[j] - mean - along * h[j]) / s;
    }
}

/* ---- 3. Softmax and attention ---- */

/* In place: the scores s become weights a, which are positive and sum to 1. */
static void softmax(int n, double *s)
{
    double max = s[0], sum = 0;
    for (int j = 1; j < n; j++)
        max = fmax(max, s[j]);
    for (int j = 0; j < n; j++)
        sum += s[j] = exp(s[j] - max); /* a shift changes no weight, and now nothing overflows */
    for (int j = 0; j < n; j++)
        s[j] /= sum;
}

/* In place: g, the gradient of the weights, becomes that of the scores. a[j] = exp(s[j]) / sum, and
   each score is part of the sum: the derivative of a[j] by s[i] is a[j] * ((i == j) - a[i]). Times
   g[j] and summed over j, that is a[i] * (g[i] - average): backward through softmax. */
static void softmax_backward(int n, const double *a, double *g)
{
    double average = 0;
    for (int j = 0; j < n; j++)
        average += a[j] * g[j];
    for (int j = 0; j < n; j++)
        g[j] = a[j] * (g[j] - average); /* try a[j] * (1 - a[j]) * g[j]: the check says WRONG */
}

/* For each head, softmax(q k' / sqrt(SIZE)) v: query i has a score with each key of its sequence
   (with a causal mask, up to its own position). Softmax makes weights of the scores, and the result
   is the weighted mean of the values. Row r of the weights belongs to one query and one head. */
static tensor *attention(tensor *q, tensor *k, tensor *v, int causal)
{
    tensor *a = new_tensor(KEPT, ROWS * HEADS, LENGTH, NULL, NULL); /* scores, then weights */
    tensor *z = new_tensor(ATTENTION, ROWS, WIDTH, q, k);
    z->c = v, z->kept = a, z->causal = causal;
    for (int r = 0; r < ROWS * HEADS; r++) {
        const int i = r / HEADS, first = i - i % LENGTH, keys = causal ? i - first + 1 : LENGTH;
        const int begin = r % HEADS * SIZE, end = begin + SIZE; /* columns of the head */
        for (int j = 0; j < keys; j++)
            for (int c = begin; c < end; c++)
                at(a, r, j) += at(q, i, c) * at(k, first + j, c) / sqrt(SIZE);
        softmax(keys, &at(a, r, 0));
        for (int j = 0; j < keys; j++)
            for (int c = begin; c < end; c++)
                at(z, i, c) += at(a, r, j) * at(v, first + j, c);
    }
    return z;
}

static void attention_backward(tensor *z)
{
    tensor *q = z->a, *k = z->b, *v = z->c, *a = z->kept;
    for (int r = 0; r < ROWS * HEADS; r++) {
        const int i = r / HEADS, first = i - i % LENGTH, keys = z->causal ? i - first + 1 : LENGTH;
        const int begin = r % HEADS * SIZE, end = begin + SIZE;
        for (int j = 0; j < keys; j++) /* z(i, c) += a(r, j) * v(first + j, c) */
            for (int c = begin; c < end; c++) {
                d(a, r, j) += d(z, i, c) * at(v, first + j, c);
                d(v, first + j, c) += d(z, i, c) * at(a, r, j);
            }
        softmax_backward(keys, &at(a, r, 0), &d(a, r, 0)); /* da becomes ds */
        for (int j = 0; j < keys; j++) /* s(r, j) += q(i, c) * k(first + j, c) / sqrt(SIZE) */
            for (int c = begin; c < end; c++) {
                d(q, i, c) += d(a, r, j) * at(k, first + j, c) / sqrt(SIZE);
                d(k, first + j, c) += d(a, r, j) * at(q, i, c) / sqrt(SIZE);
            }
    }
}

/* ---- 4. The loss ---- */

/* The mean of -log p, with p the probability of the target; log SYMBOLS if all are equal. */
static tensor *cross_entropy(tensor *logits, const int *targets)
{
    tensor *p = new_tensor(KEPT, logits->rows, logits->cols, NULL, NULL);
    tensor *z = new_tensor(CROSS_ENTROPY, 1, 1, logits, NULL);
    z->kept = p, z->ids = targets;
    memcpy(p->x, logits->x, (size_t)(p->rows * p->cols) * sizeof *p->x);
    for (int i = 0; i < p->rows; i++) {
        softmax(p->cols, &at(p, i, 0));
        z->x[0] += -log(at(p, i, targets[i])) / p->rows; /* lesson 6: without log 0 */
    }
    return z;
}

/* Of log and softmax together the gradient is p - y, where y is 1 at the target and 0 elsewhere. */
static void cross_entropy_backward(tensor *z)
{
    tensor *p = z->kept;
    for (int i = 0; i < p->rows; i++)
        for (int j = 0; j < p->cols; j++) /* z += -log(p(i, targets[i])) / rows */
            d(z->a, i, j) += z->dx[0] * (at(p, i, j) - (j == z->ids[i])) / p->rows;
}

/* ---- 5. Backpropagation ---- */

/* From the loss back to the first result, each operation adds to the gradients of its inputs. A
   tensor with several uses gets the sum of all, and has it before its own backward is called. */
static void backpropagate(tensor *loss)
{
    static void (*const backward[])(tensor *) = {
        add_backward,        relu_backward,      matmul_backward,       embedding_backward,
        layer_norm_backward, attention_backward, cross_entropy_backward};
    memset(gradients, 0, sizeof gradients);
    loss->dx[0] = 1; /* d loss / d loss */
    for (int i = (int)(loss - tape); i >= WEIGHTS; i--)
        if (tape[i].from != KEPT)
            backward[tape[i].from](&tape[i]);
}

/* ---- 6. The model ---- */

/* Uniform in [0, 1), the same on every machine (splitmix64). */
static double uniform(void)
{
    static uint64_t state = 1;
    uint64_t u = state += 0x9e3779b97f4a7c15;
    u = (u ^ u >> 30) * 0xbf58476d1ce4e5b9;
    u = (u ^ u >> 27) * 0x94d049bb133111eb;
    return (double)((u ^ u >> 31) >> 11) / 9007199254740992.0; /* 2^53 */
}

/* The weight of that name, which is made when it is first asked for. Gains begin at 1, others at
   random, so that results are about as large as inputs (Glorot and Bengio 2010). */
static tensor *weight(const char *part, const char *name, int rows, int cols)
{
    for (int i = 0; i < weights.tensors; i++)
        if (strcmp(tape[i].part, part) == 0 && strcmp(tape[i].name, name) == 0)
            return &tape[i];
    tensor *w = new_tensor(WEIGHT, rows, cols, NULL, NULL);
    w->part = part, w->name = name;
    for (int i = 0; i < rows * cols; i++)
        w->x[i] = rows == 1 ? 1 : sqrt(6.0 / (rows + cols)) * (2 * uniform() - 1);
    return w;
}

/* x + attention: to h = norm(x) itself, or to the memory, the encoder's output (cross-attention).
   The sum passes dz to x unchanged, past the attention: so a stack of layers can be trained. */
static tensor *attend(const char *part, tensor *x, tensor *memory, int causal)
{
    tensor *h = layer_norm(x, weight(part, "norm", 1, WIDTH)), *from = memory ? memory : h;
    tensor *q = matmul(h, weight(part, "query", WIDTH, WIDTH));
    tensor *k = matmul(from, weight(part, "key", WIDTH, WIDTH));
    tensor *v = matmul(from, weight(part, "value", WIDTH, WIDTH));
    tensor *y = attention(q, k, v, causal);
    attended = y->kept;
    return add(x, matmul(y, weight(part, "output", WIDTH, WIDTH)));
}

/* x + a network of two layers, which works on each row alone. */
static tensor *feed_forward(const char *part, tensor *x)
{
    tensor *h = layer_norm(x, weight(part, "norm", 1, WIDTH));
    h = relu(matmul(h, weight(part, "up", WIDTH, HIDDEN)));
    return add(x, matmul(h, weight(part, "down", HIDDEN, WIDTH)));
}

/* Symbols and their positions become vectors. */
static tensor *embed(const char *part, const int *ids)
{
    static int places[ROWS];
    for (int i = 0; i < ROWS; i++)
        places[i] = i % LENGTH;
    tensor *x = embedding(weight(part, "symbols", SYMBOLS, WIDTH), ids);
    return add(x, embedding(weight(part, "places", LENGTH, WIDTH), places));
}

static int source[ROWS];  /* what the encoder reads */
static int target[ROWS];  /* the same reversed */
static int written[ROWS]; /* what the decoder reads: START, and the target up to the last symbol */

static void draw_batch(void)
{
    for (int i = 0, place = 0; i < ROWS; i++, place = i % LENGTH)
        target[i - place + LENGTH - 1 - place] = source[i] = (int)(DIGITS * uniform());
    for (int i = 0; i < ROWS; i++)
        written[i] = i % LENGTH ? target[i - 1] : START;
}

/* The transformer of "Attention Is All You Need" (Vaswani et al. 2017), with one block a side,
   norms before the layers, and no biases: scores of what comes next. Clears the last results. */
static tensor *run_model(void)
{
    results = (struct region){WEIGHTS, WEIGHT_NUMBERS, TENSORS, NUMBERS};
    tensor *x = attend("encoder self", embed("encoder", source), NULL, 0);
    x = feed_forward("encoder feed", x);
    tensor *memory = layer_norm(x, weight("encoder", "last norm", 1, WIDTH));
    x = attend("decoder self", embed("decoder", written), NULL, 1);
    x = attend("decoder cross", x, memory, 0);
    x = feed_forward("decoder feed", x);
    x = layer_norm(x, weight("decoder", "last norm", 1, WIDTH));
    return matmul(x, weight("decoder", "scores", WIDTH, SYMBOLS));
}

static tensor *loss_of_batch(void)
{
    return cross_entropy(run_model(), target);
}

/* ---- 7. Adam ---- */

/* Kingma and Ba 2014. m and v are running means of the gradient and its square; the divisors make
   up for their start at 0. A weight moves by about the rate, however small its gradients are. */
static void adam(int step, double rate)
{
    static double m[WEIGHT_NUMBERS], v[WEIGHT_NUMBERS];
    const double early_m = 1 - pow(0.9, step), early_v = 1 - pow(0.98, step);
    for (int i = 0; i < weights.numbers; i++) {
        m[i] = 0.9 * m[i] + 0.1 * gradients[i];
        v[i] = 0.98 * v[i] + 0.02 * gradients[i] * gradients[i];
        numbers[i] -= rate * (m[i] / early_m) / (sqrt(v[i] / early_v) + 1e-9);
    }
}

/* ---- 8. The gradient check ---- */

/* Gradients can be measured: move a number by h, both ways, and see what the loss does. False where
   a relu has its kink in between: the slope is another on each side. */
static int measure(double *number, double *slope)
{
    const double h = 1e-5, before = *number;
    *number = before + h, sides = 0;
    const double up = loss_of_batch()->x[0];
    const unsigned above = sides;
    *number = before - h, sides = 0;
    *slope = (up - loss_of_batch()->x[0]) / (2 * h);
    *number = before;
    return sides == above;
}

static int gradients_are_right(void)
{
    double all = 0, size = 0, slope; /* sums of squares, which are NaN when a gradient is */
    int kinks = 0;
    draw_batch();
    backpropagate(loss_of_batch());
    printf("Gradient check: |backward - (loss(x + h) - loss(x - h)) / 2h|, for 4 of each weight\n");
    for (int w = 0; w < weights.tensors; w++) {
        double errors = 0;
        for (int n = 0; n < 4; n++) {
            const int i = (int)(uniform() * tape[w].rows * tape[w].cols);
            const int smooth = measure(&tape[w].x[i], &slope);
            const double dx = tape[w].dx[i], error = smooth ? dx - slope : 0 * dx;
            errors += error * error, size += dx * dx, kinks += !smooth;
        }
        all += errors;
        printf("%s  %s %-*s%.0e", w % 3 ? "" : "\n", tape[w].part, 20 - (int)strlen(tape[w].part),
               tape[w].name, sqrt(errors));
    }
    const double off = sqrt(all / size);
    printf("\n\nDivided by |backward|: %.0e: %s; %d left out, at kinks of relu.\n\n", off,
           off < 1e-7 ? "right" : "WRONG", kinks);
    return off < 1e-7;
}

/* ---- 9. Training, and what it has learned ---- */

static void train(void)
{
    printf("Training of %d weights; guessing 1 of 10 digits has a loss of %.3f\n", weights.numbers,
           log(DIGITS));
    for (int step = 1; step <= STEPS; step++) {
        draw_batch();
        tensor *loss = loss_of_batch();
        backpropagate(loss);
        adam(step, 0.003);
        if (step == 1 || step % 25 == 0)
            printf("  step %3d   loss %.4f\n", step, loss->x[0]);
    }
}

/* The decoder writes the digit with the highest score, reads it, and writes the next. The causal
   mask hides what stands in `written` behind it. Returns how many digits are right. */
static int write_digits(void)
{
    int right = 0;
    draw_batch();
    for (int place = 0; place < LENGTH; place++) {
        const tensor *scores = run_model();
        for (int i = place; i < ROWS; i += LENGTH) {
            int best = 0;
            for (int j = 1; j < SYMBOLS; j++)
                best = at(scores, i, j) > at(scores, i, best) ? j : best;
            right += best == target[i];
            if (place + 1 < LENGTH)
                written[i + 1] = best;
        }
    }
    return right;
}

/* Of the first sequence: a row for each digit to be written, a column for each digit read. */
static void draw_attention(int head)
{
    printf("Head %d of the decoder attends to:\n\n     ", head + 1);
    for (int j = 0; j < LENGTH; j++)
        printf(" %d", source[j]);
    for (int i = 0; i < LENGTH; i++) {
        printf("\n    %d", target[i]);
        for (int j = 0; j < LENGTH; j++)
            printf(" %c", " .:-=+*#%@"[(int)(9.99 * fmax(0, at(attended, i * HEADS + head, j)))]);
    }
    printf("\n\n");
}

int main(void)
{
    const int checked = gradients_are_right();
    train();
    const int right = write_digits();
    printf("\n%d of %d digits of new sequences are right.\n\n", right, ROWS);
    for (int head = 0; head < HEADS; head++)
        draw_attention(head);
    return checked && right >= 0.99 * ROWS ? 0 : 1;
}
