/* Follow one gradient: from the loss through one row of attention to the weights, stop by stop. */
const Follow = (() => {
    const s = Address.state;
    const norm = (x) => Math.sqrt(x.reduce((sum, y) => sum + y * y, 0));
    const formula = (text) => tag("p", {class: "formula"}, text);
    const para = (text) => tag("p", {}, text);
    /* A line: a name, a picture, and a note. */
    const line = (name, picture, note) => tag("div", {class: "vector"}, tag("span", {}, name),
                                              picture, tag("span", {class: "note"}, note));
    const vector = (name, numbers, most, note = "‖·‖ " + short(norm(numbers))) =>
        line(name, strip(numbers, most, name), note);
    /* Names below the cells of a strip, where there is room for them. */
    const names = (all) => tag("span", {class: "strip names"},
                               all.map((x) => tag("i", {}, x.length > 3 ? "" : escaped(x))));
    const keptKeys = (c) => range(c.n).filter((k) => c.kept[k]);
    const nameOf = (c, k) => escaped(c.seen.keys[k]);

    /* p − y of the symbol that the row must write; the encoder's rows write none. */
    const logits = (c) => {
        const {symbols, p} = c.frame, n = symbols.length, target = c.seen.rows[c.q];
        const at = symbols.indexOf(target), all = Array.from(p.subarray(c.q * n, (c.q + 1) * n));
        const gradient = all.map((x, i) => x - (i === at ? 1 : 0));
        return [
            para(`Position ${c.q + 1} must write “${escaped(target)}”, and gives it p = ` +
                 `${short(all[at])}. Its logits (the scores of all symbols) get p − y, where y is ` +
                 "1 for that symbol and 0 for the others:"),
            vector("p − y", gradient, 1),
            line("", names(symbols), ""),
        ];
    };
    const lossStop = (c) => [formula("loss = mean of −ln p(target) &nbsp; dz = p − y"),
                             para(`The loss of this pair is ${short(c.frame.loss)}.`),
                             s.attention === 0 ? "" : logits(c),
    ];

    const outputStop =
        (c) => [formula(
                    "o = Σ<sub>j</sub> a<sub>j</sub> v<sub>j</sub> &nbsp; do arrives from above"),
                para("The output of this row is o, a number for each of the head’s dimensions. " +
                     "Backward brings do, how the loss changes with each:"),
                vector("do", c.vector("dy"), largest(c.vector("dy"))),
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
            keys.map(part),
        ];
    };

    const sums = (c) => {
        const zero = Math.abs(c.sum) < 1e-6 * largest(c.ds);
        return `a: 1, ds: ${short(zero ? 0 : c.sum)}${c.wrong ? ", correct: 0" : ""}`;
    };
    const scoreStop = (c) => {
        const {average, wrong} = c, most = largest(c.ds), ds = (k) => short(c.ds[k]);
        const right = `a<sub>j</sub> (g<sub>j</sub> − avg), &nbsp; avg = Σ a g = ${short(average)}`;
        const product = (k) =>
            `${short(c.a[k])} × (${short(c.g[k])} − ${short(average)}) = ${ds(k)}`;
        const mistake = (k) =>
            `a ${short(c.a[k])}, g ${short(c.g[k])} → ${ds(k)}, correct: ${short(c.right[k])}`;
        const note = wrong ? mistake : product;
        return [
            formula("ds<sub>j</sub> = " + (wrong ? escaped(s.rule) : right)),
            para("Through softmax: a weight can only grow if others shrink, so the correct ds " +
                 "counts g against the average of its row."),
            keptKeys(c).map((k) => line(nameOf(c, k), bar(c.ds[k], most), note(k))),
            line(tag("strong", {}, "sum"), "", tag("strong", {}, sums(c))),
        ];
    };

    const queryStop = (c) => {
        const dq = c.vector("dq"), keys = keptKeys(c);
        const parts = keys.map((k) => c.ofKey("k", k).map((x) => c.seen.scale * c.ds[k] * x));
        const most = largest(parts.flat());
        return [
            formula("dq = Σ<sub>j</sub> ds<sub>j</sub> k<sub>j</sub> / √d &nbsp; " +
                    "dk<sub>j</sub> += ds<sub>j</sub> q / √d"),
            para("The query is pulled to the keys whose scores should rise: its parts ds k / √d, " +
                 `and their sum. Each key is moved along q, ‖q‖ ${short(norm(c.vector("q")))}.`),
            keys.map((k, i) => vector(nameOf(c, k), parts[i], most)),
            vector("dq", dq, largest(dq)),
        ];
    };

    const modules = [
        "encoder.layers.0.self_attention.", "decoder.layers.0.self_attention.",
        "decoder.layers.0.cross_attention."
    ];
    const weightStop = (c) => {
        const module = modules[s.attention],
              isMine = (name) => name.startsWith(module) && name.endsWith("weight");
        const mine = c.frame.gradients.filter((g) => isMine(g.name));
        const most = Math.max(...mine.map((g) => g.pair), 1e-30);
        const name = (g) => escaped(g.name.slice(module.length).replace(".weight", ""));
        return [
            formula(
                "dW<sub>q</sub> = Σ of dq xᵀ over rows, &nbsp; and so W<sub>k</sub>, W<sub>v</sub>"),
            para("All rows of both heads, summed: the norm of each gradient of this pair, and of " +
                 "a batch of 32."),
            mine.map((g) => line(name(g), share(g.pair / most),
                                 `${short(g.pair)}, batch ${short(g.length)}`)),
        ];
    };

    const stops = [
        ["loss", lossStop], ["output", outputStop], ["V and A", valueStop], ["ds", scoreStop],
        ["Q and K", queryStop], ["weights", weightStop]
    ];

    const draw = () => {
        const c = Drawer.chosen();
        if (!c) return;
        $("follow-where").textContent = `${Drawer.where(c)}, ${Race.nameOf(s.racer)}.`;
        $("follow-zoom").innerHTML = stops[s.stop][1](c).flat(3).join("");
        for (const [i, button] of [...$("follow-stops").children].entries())
            button.toggleAttribute("aria-current", i === s.stop);
        $("follow-stops").children[s.stop].setAttribute("aria-current", "step");
        $("follow-before").disabled = s.stop === 0;
        $("follow-next").disabled = s.stop === stops.length - 1;
    };
    const go = (stop) => {
        s.stop = Math.max(0, Math.min(stops.length - 1, stop));
        Address.write();
        draw();
    };
    const goTo = () => {
        $("follow").focus();
        $("follow").scrollIntoView();
    };
    const open = () => {
        s.stop = Math.max(0, Math.min(stops.length - 1, Math.floor(s.stop)));
        $("follow-stops").innerHTML =
            stops
                .map(([name], i) =>
                         tag("button", {type: "button", "data-stop": i}, `${i + 1} ${name}`))
                .join("");
        $("follow-stops").onclick = (e) => {
            if (e.target.dataset.stop) go(+e.target.dataset.stop);
        };
        $("follow-before").onclick = () => go(s.stop - 1);
        $("follow-next").onclick = () => go(s.stop + 1);
        Race.whenDrawn(draw);
    };
    return {open, goTo};
})();
