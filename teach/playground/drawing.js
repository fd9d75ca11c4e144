/* Elements as texts of HTML and SVG, tables, bars and charts. */
const $ = (id) => document.getElementById(id);
const range = (n) => Array.from({length: n}, (_, i) => i);
/* Rows and columns by which the arrow keys move. */
const arrows = {ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0]};
/* Shows the exhibit of a heading from its top, and gives the heading the focus. */
const showExhibit = (id) => $(id).closest("section").scrollIntoView();
const turnTo = (id) => {
    $(id).focus({preventScroll: true});
    showExhibit(id);
};
const largest = (numbers) => numbers.reduce((most, x) => Math.max(most, Math.abs(x)), 0);

const letters = {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    "\"": "&quot;"
};
const escaped = (text) => String(text).replace(/[&<>"]/g, (c) => letters[c]);

/* ---- numbers and texts, with the signs of print ---- */

/* A text of the terminal, as HTML with the signs of print. */
const typeset = (text) => escaped(text)
                              .replaceAll("+-", "±")
                              .replaceAll("sqrt d", "√d")
                              .replace(/\d[\d.]*e[-+]\d+/g, numeral)
                              .replace(/(^|[ (])-(?=[ \d])/g, "$1−")
                              .replace(/\bsum of /g, "Σ ")
                              .replace(/\bdelta\b/g, "δ")
                              .replaceAll("||", "‖")
                              .replace(/ ([−+/]) /g, "\u00a0$1\u00a0") /* formulas hold together */
                              .replace(/ = (?=[−\d])/g, "\u00a0=\u00a0")
                              .replace(/\b([a-z]) \(/g, "$1\u00a0(")
                              .replace(/\b(d?[a-z])_(\w+)/g, "$1<sub>$2</sub>");

/* <name ...>inside</name>. An attribute that is false or undefined is left out, one that is true
   has no value; what is inside is HTML already. */
const tag = (name, attributes, ...inside) => {
    const given = Object.entries(attributes).filter(([, x]) => x !== false && x !== undefined);
    const all = given.map(([key, x]) => (x === true ? ` ${key}` : ` ${key}="${escaped(x)}"`));
    const end = name === "input" || name === "br" ? "" : `</${name}>`;
    return `<${name}${all.join("")}>${inside.flat(4).filter((x) => x !== false).join("")}${end}`;
};

const sign = (x) => (x > 0 ? "plus" : x < 0 ? "minus" : "");

/* Three digits; "–" for what is no number. */
const short = (x) => {
    if (!Number.isFinite(x)) return "–";
    return numeral(x !== 0 && Math.abs(x) < 0.001 ? x.toExponential(1) : String(+x.toPrecision(3)));
};
/* Numbers of a column with one power of ten, so that small ones can be compared: {name, text}. */
const scaled = (name, numbers) => {
    const most = largest(numbers.filter(Number.isFinite));
    if (most === 0 || most >= 0.001) return {name, text: short};
    const power = Math.floor(Math.log10(most));
    const text = (x) => {
        const part = (x / 10 ** power).toFixed(2);
        return +part ? numeral(part) : x === 0 ? "0" : "≈0";
    };
    return {name: `${name} · 10${raised(power)}`, text};
};
const percent = (x) => (100 * x).toFixed(0) + " %";
const total = (list) => list.reduce((x, y) => x + y, 0);
/* What rounding leaves of a sum of 0 is 0. */
const sumOf = (list) => short(Math.abs(total(list)) < 1e-6 * largest(list) ? 0 : total(list));

/* As it stands in a field or a command. */
const plain = (x, digits) => {
    const rounded = digits ? +x.toPrecision(digits) : x;
    return x !== 0 && Math.abs(x) < 0.001 ? rounded.toExponential() : String(rounded);
};

/* ---- tables ---- */

/* Rows of cells as HTML; `now` is the one to be marked. On a narrow screen a row becomes a card,
   and each cell shows the name of its column. */
const tableOf = (head, rows, now = -1) =>
    [tag("thead", {}, tag("tr", {}, head.map((name) => tag("th", {scope: "col"}, typeset(name))))),
     tag("tbody", {}, rows.map((row, i) => tag("tr", {class: i === now && "now"}, row))),
].join("");
const cellOf = (column, inside, more) => tag("td", {"data-name": column, ...more}, inside);
const rowHead = (inside) => tag("th", {scope: "row"}, inside);
/* A row of a table with this head: what begins it, and a cell for each further column. */
const rowOf = ([, ...columns], name, cells) =>
    [rowHead(name), cells.map((cell, i) => cellOf(columns[i], cell))];

/* ---- bars ---- */

const small = (width, ...inside) => tag("svg", {
    class: "bar",
    width,
    height: 12,
    viewBox: `0 0 ${width} 12`,
    preserveAspectRatio: "none",
    "aria-hidden": "true"
},
                                        inside);

/* A signed bar about a middle line. */
const bar = (x, most) => {
    const middle = 36, room = middle - 1;
    const width = most > 0 ? Math.min(1, Math.abs(x) / most) * room : 0;
    const fill = `var(--${x < 0 ? "minus" : "plus"})`;
    return small(2 * middle, tag("line", {class: "axis", x1: middle, x2: middle, y1: 0, y2: 12}),
                 tag("rect", {x: x < 0 ? middle - width : middle, y: 2, width, height: 8, fill}));
};

/* A signed bar and its number. Both have a width of their own, so that the middle lines of a column
   stand below each other. */
const signed = (x, most, text = short(x)) =>
    [bar(x, most), " ", tag("span", {class: "number signed " + (text === "0" ? "" : sign(x))}, text)];

/* A bar from 0 to 1. */
const share = (x) => {
    const frame = {class: "axis", x: 0.5, y: 2.5, width: 47, height: 7, fill: "none"};
    const filled = {y: 2, width: 48 * Math.min(1, x), height: 8, fill: "var(--quiet)"};
    return small(48, tag("rect", frame), tag("rect", filled));
};

/* Numbers as a strip of coloured cells; the number is its title. */
const strip = (numbers, most, name) => {
    const cell = (x, i) => tag("i", {
        class: sign(x),
        style: `--t:${(most > 0 ? Math.abs(x) / most : 0).toFixed(3)}`,
        title: `${name} ${i}: ${short(x)}`,
    });
    return tag("span", {
        class: "strip",
        role: "img",
        "aria-label": `${name}: ${[...numbers].map(short).join(", ")}`
    },
               [...numbers].map(cell));
};

/* ---- charts ---- */

/* Widths of places, measured once: to ask after each change makes the browser lay out the page. */
const widths = new Map();
const widthOf = (id) => {
    if (!widths.has(id)) widths.set(id, $(id).clientWidth);
    return widths.get(id);
};
/* As wide as their place, within reason, so that letters keep their size. */
const room = (id, most = 640) => Math.max(280, Math.min(most, widthOf(id)));

/* Draws again whenever the width of an element changes, not only that of the window. */
const onWidth = (id, act) => {
    let width = widthOf(id);
    new ResizeObserver(() => {
        if ($(id).clientWidth === width) return;
        width = $(id).clientWidth;
        widths.clear();
        act();
    }).observe($(id));
};

const picture = (id, label, width, height, ...inside) => {
    const box = {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label};
    $(id).innerHTML = tag("svg", box, inside);
};
const words = (x, y, anchor, text, more) =>
    tag("text", {x, y, "text-anchor": anchor, ...more}, escaped(text));

/* The tip of arrows, for their marker-end: url(#id). */
const arrowTip = (id) => tag("defs", {}, tag("marker", {
                                 id,
                                 viewBox: "0 0 8 8",
                                 refX: 7,
                                 refY: 4,
                                 markerWidth: 8,
                                 markerHeight: 8,
                                 markerUnits: "userSpaceOnUse",
                                 orient: "auto"
                             },
                                         tag("path", {class: "tip", d: "M0,0 L8,4 L0,8 z"})));

/* Named bars, one below the other: [{name, value, colour, note}], by a scale from value to 0 .. 1.
 */
const bars = (id, label, all, scale) => {
    const letter = parseFloat(getComputedStyle($(id)).getPropertyValue("--letter")), height = 1.4 * letter;
    const left = 0.61 * letter * Math.max(...all.map((b) => b.name.length)) + 8;
    const width = Math.max(left + 120, room(id));
    const line = ({name, value, colour, note}, i) => {
        const y = i * height, long = Math.max(0, Math.min(1, scale(value))) * (width - left - 4.5 * letter);
        const fill = `var(--${colour || "blue"})`;
        return [
            words(left - 6, y + letter, "end", name),
            tag("rect", {x: left, y: y + 0.2 * letter, width: long, height: letter, fill}),
            words(left + long + 5, y + letter, "start", note === undefined ? short(value) : note),
        ];
    };
    picture(id, label, width, all.length * height, all.map(line));
};

/* The four series of a chart: a colour and its dashes, as in chart.c. */
const series = [
    {colour: "blue", dashes: undefined}, {colour: "orange", dashes: "6 3"},
    {colour: "green", dashes: "2 3"}, {colour: "violet", dashes: "8 3 2 3"}
];
const sample = (i) => {
    const {colour, dashes} = series[i];
    const line = {x1: 0, x2: 34, y1: 6, y2: 6, stroke: `var(--${colour})`, "stroke-width": 3};
    return small(34, tag("line", {...line, "stroke-dasharray": dashes}));
};

/* Losses over steps with a logarithmic y axis. `all` are up to four {points: [[x, y], ...], name,
   series}; `level` is a value across; `spans` are shaded [from, to]; `at` is the step that is shown.
   Its plot reaches from the longest label, 0.0001, to 10 pixels from the right edge, as the timeline below it,
   whose style has the same margins. */
const curvesRoom = () => {
    const letter = parseFloat(getComputedStyle($("loss")).getPropertyValue("--letter"));
    return {letter, left: 3.7 * letter + 8, right: 10, bottom: letter + 4};
};
const curves = (id, label, {all, lastX, level, spans, at}) => {
    const W = room(id, 1400);
    const H = Math.max(130, Math.min(260, innerHeight / (innerHeight < 800 ? 5.5 : 4.5), innerWidth / 2.4) | 0);
    const {letter, left, right: after, bottom} = curvesRoom(), right = W - after;
    const values =
        all.flatMap((c) => c.points.map((p) => p[1])).filter((y) => y > 0).concat(level);
    const top = Math.max(1, Math.ceil(Math.log10(Math.max(...values))));
    const low = Math.max(-5, Math.min(-1, Math.floor(Math.log10(Math.min(...values)))));
    const X = (x) => left + (x / lastX) * (right - left);
    const Y = (y) => {
        const share = (top - Math.log10(Math.max(y, 10 ** low))) / (top - low);
        return 8 + share * (H - 8 - bottom);
    };
    const across = (y, more) => tag("line", {x1: left, x2: right, y1: Y(y), y2: Y(y), ...more});
    const every = Math.ceil(1.2 * letter * (top - low) / (H - 8 - bottom)); /* labels do not overlap */
    const scale = evenTicks([low, top], 1).map((t) => {
        const y = 10 ** t, label = words(left - 5, Y(y) + 0.3 * letter, "end", axisLabel(y));
        return [across(y, {class: "axis"}), (top - t) % every === 0 && label];
    });
    const lines = all.map(
        (c) => tag("polyline", {
            fill: "none",
            stroke: `var(--${series[c.series].colour})`,
            "stroke-width": 2.2,
            "stroke-dasharray": series[c.series].dashes,
            points: c.points.map((p) => X(p[0]).toFixed(1) + "," + Y(p[1]).toFixed(1)).join(" "),
        }));
    const shade = spans.map(([from, to]) => tag("rect", {
                                class: "sabotaged",
                                x: X(from),
                                y: 8,
                                width: Math.max(2, X(to) - X(from)),
                                height: H - 8 - bottom
                            }));
    picture(id, label, W, H, shade, scale,
            across(level, {stroke: "var(--quiet)", "stroke-dasharray": "3 3"}),
            lines,
            at >= 0 && tag("line", {class: "cursor", x1: X(at), x2: X(at), y1: 4, y2: H - bottom}),
            words(left, H - 4, "start", "step 0"), words(right, H - 4, "end", "step " + lastX));
};
