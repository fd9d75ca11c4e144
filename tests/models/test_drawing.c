#include "tests/support/test.h"

static int count_of(const char *text, const char *what)
{
    int count = 0;
    for (; (text = strstr(text, what)); text++)
        count++;
    return count;
}

static const sb_initial half = {SB_INITIAL_CONSTANT, 0.5};

TEST(drawing, each_operation_on_a_path_to_the_loss_is_a_box, KNOWN_KERNELS)
{
    sb_parameters *set = KEPT(sb_parameters_new(1));
    sb_tensor *w = sb_parameters_add(set, "w", SB_SHAPE(4), half);
    TAPE(SB_RECORD);
    sb_tensor *x = test_leaf(SB_F32, 1, SB_SHAPE(3, 4));
    sb_exp(x); /* no path to the loss */
    sb_tensor *loss = sb_sum(sb_softmax(sb_multiply(x, w)), SB_ALL, false);
    char *svg = KEPT(sb_tape_draw(loss, SB_DRAW_SVG, set));
    cr_expect(count_of(svg, "<rect") == 3 && count_of(svg, "<path class=\"edge\"") == 2, "%s", svg);
    cr_expect(count_of(svg, "<path class=\"tip\"") == 2, "an edge has no arrow: %s", svg);
    cr_expect(strstr(svg, ">multiply</tspan> (3, 4)<") && strstr(svg, ">softmax</tspan> (3, 4)<"));
    cr_expect(strstr(svg, ">w</text>") && !strstr(svg, "exp"));
    cr_expect(strncmp(svg, "<svg ", 5) == 0 && strcmp(svg + strlen(svg) - 7, "</svg>\n") == 0);
}

/* d sum(2 x) / d(2 x) is 1 for each of 16 elements, so its norm is 4. */
TEST(drawing, norms_are_those_of_the_gradients)
{
    TAPE(SB_RECORD);
    sb_tensor *x = test_leaf(SB_F64, 1, SB_SHAPE(16));
    char *dot =
        KEPT(sb_tape_draw(sb_scale(sb_sum(sb_scale(x, 2), SB_ALL, false), 10), SB_DRAW_DOT, NULL));
    cr_expect(strstr(dot, "n0 [label=\"scale (16)\\n|dy| 40\"];"), "%s", dot);
    cr_expect(strstr(dot, "n1 [label=\"sum ()\\n|dy| 10\"];"), "%s", dot);
    cr_expect(strstr(dot, "n0 -> n1 [penwidth=6.00];"), "%s", dot);
    cr_expect(strstr(dot, "n1 -> n2 [penwidth=5.40];"), "%s", dot);
    cr_expect(sb_tensor_get(sb_tensor_grad(x), 3) == 20);
}

TEST(drawing, the_encoder_has_a_column_of_its_own)
{
    sb_parameters *set = KEPT(sb_parameters_new(1));
    sb_tensor *a = sb_parameters_add(set, "encoder.a", SB_SHAPE(2), half);
    sb_tensor *b = sb_parameters_add(set, "decoder.b", SB_SHAPE(2), half);
    TAPE(SB_RECORD);
    sb_tensor *memory = sb_multiply(sb_exp(test_leaf(SB_F32, 1, SB_SHAPE(2))), a);
    sb_tensor *y = sb_multiply(sb_exp(test_leaf(SB_F32, 2, SB_SHAPE(2))), b);
    char *svg = KEPT(sb_tape_draw(sb_sum(sb_add(memory, y), SB_ALL, false), SB_DRAW_SVG, set));
    cr_expect(count_of(svg, "class=\"c0\"") == 2 && count_of(svg, "class=\"c1\"") == 4, "%s", svg);
}

TEST(drawing, names_are_escaped, KNOWN_KERNELS)
{
    sb_parameters *set = KEPT(sb_parameters_new(1));
    sb_tensor *w = sb_parameters_add(set, "a<b>\"&\\", SB_SHAPE(2), half);
    for (int format = 0; format < 2; format++) {
        TAPE(SB_RECORD);
        char *text =
            KEPT(sb_tape_draw(sb_sum(sb_exp(w), SB_ALL, false), (sb_drawing_format)format, set));
        cr_expect(strstr(text, "a&#60;b&#62;&#34;&#38;&#92;") && !strstr(text, "a<b"), "%s", text);
    }
}

TEST(drawing, each_number_of_a_tensor_is_a_cell_in_which_it_is_written)
{
    const double numbers[] = {1, -0.5, 0, NAN, 0.25, 1};
    sb_tensor *t = KEPT(sb_tensor_from_doubles(SB_F64, SB_SHAPE(3, 1, 2), numbers));
    char *svg = KEPT(sb_tensor_draw(t));
    cr_expect(count_of(svg, "<rect") == 6 && count_of(svg, "class=\"less\"") == 1);
    cr_expect(strstr(svg, "class=\"less\" x=\"74\" y=\"16\" width=\"53\" height=\"23\" "
                          "fill-opacity=\"0.500\"><title>-0.5</title></rect>\n"
                          "<text class=\"\" x=\"101\" y=\"32\">-0.5</text>\n"
                          "<text class=\"index\" x=\"101\" y=\"12\">1</text>"),
              "%s", svg);
    cr_expect(strstr(svg, "class=\"odd\" x=\"212\" y=\"16\"") != NULL, "%s", svg);
    cr_expect(count_of(svg, "<text class=\"light\"") == 2 && count_of(svg, ">nan</text>") == 1);
    cr_expect(count_of(svg, "class=\"index\"") == 3 * (2 + 1));
    cr_expect(strstr(svg, "</style>") && count_of(svg, "{") == count_of(svg, ".sb-map "));
    cr_expect(strncmp(svg, "<svg ", 5) == 0 && strcmp(svg + strlen(svg) - 7, "</svg>\n") == 0);
}

TEST(drawing, a_large_tensor_has_small_cells_and_each_fifth_index)
{
    sb_tensor *t = KEPT(sb_tensor_zeros(SB_F32, SB_SHAPE(11, 13)));
    char *svg = KEPT(sb_tensor_draw(t));
    cr_expect(count_of(svg, "<rect") == 143 && count_of(svg, "width=\"13\"") == 143);
    cr_expect(count_of(svg, "<text") == 3 + 3 && count_of(svg, "class=\"index\"") == 3 + 3);
}

static bool draw_row(void *row)
{
    char *svg = sb_tensor_draw(row);
    sb_free(svg);
    return svg != NULL;
}

TEST(drawing, tensors_that_cannot_be_drawn_are_refused)
{
    sb_tensor *large = KEPT(sb_tensor_zeros(SB_F32, SB_SHAPE(65, 64)));
    REFUSED("tensor_draw: (65, 64) has 4160 numbers, more than 4096; draw a part of it",
            sb_tensor_draw(large));
    REFUSED("tensor_draw: t is NULL", sb_tensor_draw(NULL));
    sb_tensor *row = KEPT(sb_tensor_zeros(SB_F32, SB_SHAPE(4))),
              *empty = KEPT(sb_tensor_zeros(SB_F32, SB_SHAPE(3, 0)));
    cr_expect(test_each_allocation_fails(draw_row, row) >= 2 && draw_row(empty));
}
