/* Follow one gradient: from the loss through one row of attention to the parameters, stop by stop. */
const Follow = (() => {
    const s = Address.state;
    const norm = (x) => Math.sqrt(x.reduce((sum, y) => sum + y * y, 0));
    const formula = (text) => tag("p", {class: "formula"}, text);
    const para = (text) => tag("p", {}, text);
    /* Rows of a name, a picture, and a note. */
    const lines = (rows) => tag("table", {class: "vectors"}, rows.map(
        ([name, ...cells]) => tag("tr", {}, rowHead(name),
                                  cells.map((x) => tag("td", {}, x)))));
    const vector = (name, numbers, most, note = "‖·‖ " + short(norm(numbers))) =>
        [name, strip(numbers, most, name), note];
    /* Names below the cells of a strip, where there is room for them. */
    const names = (all) => tag("span", {class: "strip names"},
                               all.map((x) => tag("i", {}, x.length > 3 ? "" : escaped(x))));
    const keptKeys = (c) => range(c.n).filter((k) => c.kept[k]);
    const nameOf = (c, k) => escaped(c.seen.keys[k]);

    /* (p − y) / n of the symbol that the row must write; the encoder's rows write none. */
    const logits = (c) => {
        const {symbols, p} = c.frame, m = symbols.length, n = p.length / m, target = c.seen.rows[c.q];
        const at = symbols.indexOf(target), all = Array.from(p.subarray(c.q * m, (c.q + 1) * m));
        const gradient = all.map((x, i) => (x - (i === at ? 1 : 0)) / n);
        return [
            para(`Position ${c.q + 1} must write “${escaped(target)}”, and gives it p = ` +
                 `${short(all[at])}. Its logits (the scores of all symbols) get (p − y)&nbsp;/&nbsp;n, ` +
                 `where y is 1 for that symbol and 0 for the others, and n = ${n} is the number ` +
                 "of positions in the mean:"),
            lines([vector("dz", gradient, largest(gradient)), ["", names(symbols), ""]]),
        ];
    };
    const lossStop = (c) => [formula("loss = mean of −ln p(target) &nbsp; dz = (p − y) / n"),
                             para(`The loss of this pair is ${short(c.frame.loss)}.`),
                             s.attention === 0 ? "" : logits(c),
    ];

    const outputStop =
        (c) => [formula("o = Σ<sub>j</sub> a<sub>j</sub> v<sub>j</sub>"),
                para("The output of this row is o, a number for each of the head’s dimensions. " +
                     "Its gradient do, how the loss changes with each, comes from the layers " +
                     "after attention:"),
                lines([vector("do", c.vector("dy"), largest(c.vector("dy")))]),
    ];

    const valueStop = (c) => {
        const dy = c.vector("dy"), keys = keptKeys(c);
        const most = Math.max(...keys.map((k) => c.a[k])) * largest(dy);
        const part = (k) => vector(nameOf(c, k), dy.map((x) => c.a[k] * x), most,
                                   `a ${short(c.a[k])}, g ${short(c.g[k])}`);
        return [
            formula("dv<sub>j</sub> += a<sub>j</sub> do &nbsp; g<sub>j</sub> = do · v<sub>j</sub>"),
            para("Each value gets its share a of do. Each weight gets one number, g: how the " +
                 "loss changes if the row attends more to that key."),
            lines(keys.map(part)),
        ];
    };

    const scoreStop = (c) => [
        formula("ds<sub>j</sub> = " +
                (c.wrong ? tag("code", {}, escaped(s.rule))
                         : `a<sub>j</sub> (g<sub>j</sub> − avg), &nbsp; avg = Σ a g = ${
                               short(c.average)}`)),
        para("Through softmax: a weight can only grow if others shrink, so the correct ds " +
             "counts g against the average of its row."),
        tag("div", {class: "scroll"}, tag("table", {class: "cards"}, Drawer.table(c))),
    ];

    const queryStop = (c) => {
        const dq = c.vector("dq"), keys = keptKeys(c);
        const parts = keys.map((k) => c.ofKey("k", k).map((x) => c.seen.scale * c.ds[k] * x));
        const most = largest(parts.flat());
        return [
            formula("dq = Σ<sub>j</sub> ds<sub>j</sub> k<sub>j</sub> / √d &nbsp; " +
                    "dk<sub>j</sub> += ds<sub>j</sub> q / √d"),
            para("A step along −dq pulls the query to the keys whose scores should rise. The " +
                 "parts of dq are ds k / √d, one of each key; then their sum. Each key gets its " +
                 `ds times q, ‖q‖ = ${short(norm(c.vector("q")))}.`),
            lines([...keys.map((k, i) => vector(nameOf(c, k), parts[i], most)),
                   vector("dq", dq, largest(dq))]),
        ];
    };

    const modules = [
        "encoder.layers.0.self_attention.", "decoder.layers.0.self_attention.",
        "decoder.layers.0.cross_attention."
    ];
    const weightsOf = (c) => c.frame.gradients.filter(
        ({name}) => name.startsWith(modules[s.attention]) && name.endsWith("weight"));
    const weightStop = (c) => {
        const module = modules[s.attention], mine = weightsOf(c);
        const most = Math.max(...mine.map((g) => g.pair), 1e-30);
        const name = (g) => escaped(g.name.slice(module.length).replace(".weight", ""));
        return [
            formula("q = x W<sub>q</sub> &nbsp; dW<sub>q</sub> = Σ of xᵀ dq over rows, &nbsp; " +
                    "and so W<sub>k</sub>, W<sub>v</sub>"),
            para("All rows of both heads, summed: the norm of each gradient of this pair, and of " +
                 "a batch of 32."),
            lines(mine.map((g) => [name(g), share(g.pair / most),
                                   `${short(g.pair)}, batch ${short(g.length)}`])),
        ];
    };

    /* Name, what arrives there, its norm, and what is said of it. */
    const size = (name, x) => `‖${name}‖ ${short(norm(x))}`;
    const stops = [
        ["loss", "", (c) => short(c.frame.loss), lossStop],
        ["output o", "do", (c) => size("do", c.vector("dy")), outputStop],
        ["a and v", "g", (c) => size("g", c.g.filter((_, k) => c.kept[k])), valueStop],
        ["scores s", "ds", (c) => size("ds", c.ds), scoreStop],
        ["q and k", "dq", (c) => size("dq", c.vector("dq")), queryStop],
        ["parameters W", "dW", (c) => size("dW", weightsOf(c).map((g) => g.pair)), weightStop]
    ];

    /* ---- the path: boxes with arrows between them, in one row, or in two where there is no room ---- */

    const HIGH = 44;
    const layout = () => {
        const W = room("follow-stops", 900), perRow = W < 560 ? 3 : 6, gap = perRow === 6 ? 40 : 34;
        const wide = (W - 2 - gap * (perRow - 1)) / perRow, top = perRow === 6 ? 34 : 4;
        const x = (i) => 1 + (i % perRow) * (wide + gap);
        const y = (i) => top + Math.floor(i / perRow) * (HIGH + 40);
        return {W, H: y(5) + HIGH + 4, perRow, wide, x, y};
    };
    const link = (d, passed, x, y, name) =>
        [tag("path", {class: passed ? "link passed" : "link", d, "marker-end": "url(#follow-tip)"}),
         words(x, y, "middle", name)];
    const arrowTo = ({x, y, wide}, i) => {
        const from = x(i - 1) + wide, middle = y(i) + HIGH / 2, below = y(i - 1) + HIGH;
        if (y(i) === y(i - 1))
            return link(`M${from},${middle}H${x(i)}`, i <= s.stop, (from + x(i)) / 2, middle - 6,
                        stops[i][1]);
        return link(`M${from - 0.7 * wide},${below}L${x(i) + wide / 2},${y(i)}`, i <= s.stop,
                    (from + x(i)) / 2, y(i) - 8, stops[i][1]);
    };
    /* dv goes to its weights without the softmax. */
    const past = ({perRow, wide, x, y}) => {
        const from = x(2) + wide / 2, to = x(5) + wide / 2;
        return perRow === 6
                   ? link(`M${from},${y(2)}V16H${to}V${y(5)}`, false, (from + to) / 2, 11,
                          "dv: past the softmax")
                   : link(`M${from},${y(2) + HIGH}V${y(5)}`, false, to + 14, y(5) - 14, "dv");
    };
    const box = ({x, y, wide}, i, c) => {
        const [name, , size] = stops[i], middle = x(i) + wide / 2;
        return tag("g", {
            class: i < s.stop ? "stop passed" : "stop",
            role: "button",
            tabindex: 0,
            "data-stop": i,
            "aria-label": `stop ${i + 1} of ${stops.length}: ${name}, ${size(c)}`,
            "aria-current": i === s.stop && "step"
        },
                   tag("rect", {x: x(i), y: y(i), width: wide, height: HIGH, rx: 6}),
                   words(middle, y(i) + 18, "middle", name, {class: "name"}),
                   words(middle, y(i) + 35, "middle", size(c)));
    };
    const drawPath = (c) => {
        const at = layout(), chosen = document.activeElement?.dataset?.stop;
        const inside = [past(at), range(5).map((i) => arrowTo(at, i + 1)),
                        range(6).map((i) => box(at, i, c))];
        $("follow-stops").innerHTML =
            tag("svg", {viewBox: `0 0 ${at.W} ${at.H}`, role: "group", "aria-label": "path of the gradient"},
                arrowTip("follow-tip"), inside);
        if (chosen) $("follow-stops").querySelector(`[data-stop="${chosen}"]`).focus();
    };

    const isLive = () => Boolean(s.live || s.drawer);
    const draw = () => {
        const state = Race.state(), c = Drawer.chosen(isLive() ? state.now : Drawer.lastWithMuch());
        if (!c) return;
        const early = c.step < state.now ? " There the loss was large: later all gradients are small." : "";
        $("follow-where").textContent = `${Drawer.where(c)}, ${Race.nameOf(s.racer)}.${early}`;
        $("follow-live").checked = isLive();
        $("follow-live").disabled = Boolean(s.drawer);
        drawPath(c);
        $("follow-zoom").innerHTML = stops[s.stop][3](c).flat(3).join("");
        $("follow-before").disabled = s.stop === 0;
        $("follow-next").disabled = s.stop === stops.length - 1;
    };
    const go = (stop) => {
        Address.set({stop});
        draw();
    };
    const open = () => {
        $("follow-stops").onclick = (e) => {
            const stop = e.target.closest("[data-stop]");
            if (stop) go(+stop.dataset.stop);
        };
        $("follow-stops").onkeydown = (e) => {
            if (!e.target.dataset.stop || (e.key !== "Enter" && e.key !== " ")) return;
            e.preventDefault();
            go(+e.target.dataset.stop);
        };
        $("follow-live").onchange = (e) => {
            Address.set({live: +e.target.checked});
            draw();
        };
        $("follow-before").onclick = () => go(s.stop - 1);
        $("follow-next").onclick = () => go(s.stop + 1);
        Race.whenDrawn(draw);
        onWidth("follow-stops", draw);
    };
    return {open};
})();
