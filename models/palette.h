/*
 * The colours of pages and pictures, by name, light and dark: reports, drawings and the live page,
 * whose teach/playground/assemble.sh reads these rows. Blue, orange, green and violet are the first
 * four curves of a chart; blue is also what is above 0, orange what is below, in pictures of one
 * colour scale.
 */
#ifndef SOFTBACK_MODELS_PALETTE_H
#define SOFTBACK_MODELS_PALETTE_H

/* clang-format off */
#define PALETTE_PICTURES(colour)           \
    colour("ground", "#fff", "#121212")    \
    colour("ink", "#1a1a1a", "#eee")       \
    colour("quiet", "#57606a", "#a3adba")  \
    colour("line", "#8888", "#8888")       \
    colour("blue", "#1f77b4", "#58a6e0")   \
    colour("orange", "#b84e00", "#ff9d4d") \
    colour("green", "#2e7d32", "#7bc47f")  \
    colour("violet", "#7b3fbf", "#c39bff")

#define PALETTE_PAGES(colour)              \
    PALETTE_PICTURES(colour)               \
    colour("card", "#f6f8fa", "#1c2229")   \
    colour("edge", "#7d8793", "#7d8793")   \
    colour("bad", "#b3261e", "#ff9a92")    \
    colour("plus", "#1a6b2f", "#63d17f")   \
    colour("minus", "#a11d6f", "#ff86c8")

#define PALETTE_LIGHT(name, light, dark) "--" name ":" light ";"
#define PALETTE_DARK(name, light, dark) "--" name ":" dark ";"

/* Rules of CSS that give these names to what is selected. */
#define PALETTE_CSS(selector, colours)                                                             \
    selector "{" colours(PALETTE_LIGHT) "}\n"                                                      \
    "@media(prefers-color-scheme:dark){" selector "{" colours(PALETTE_DARK) "}}\n"
/* clang-format on */

#endif
