/* Follow one gradient: from the loss through one row of attention to the weights, stop by stop. */
const Follow = (() => {
    const s = Address.state;
    const norm = (x) => Math.sqrt(x.reduce((sum, y) => sum + y * y, 0));
    const formula = (text) => tag("p", {class: "formula"}, text);
    const row = (name, numbers, most, note) => tag("div", {class: "vector"}, tag("span", {}, name),
        strip(numbers, most, name), tag("span", {class: "note"}, note || "‖·‖ " + short(norm(numbers))));
    const para = (text) => tag("p", {}, text);
    const kept = (c) => range(c.n).filter((k) => c.kept[k]);

    /* Each stop: its name, and what there is to see. */
    const stops = [
        ["loss", (c) => {
            const n = c.frame.symbols.length, target = c.seen.rows[c.q], at = c.frame.symbols.indexOf(target);
            const p = Array.from(c.frame.p.subarray(c.q * n, (c.q + 1) * n));
            const all = s.attention === 0 ? "" : [
                para(`Position ${c.q + 1} must write “${escaped(target)}”, and gives it p = ${short(p[at])}. Its logits get p − y:`),
                row("p − y", p.map((x, i) => x - (i === at ? 1 : 0)), 1, escaped(c.frame.symbols.slice(3).join(" ")))];
            return [formula("loss = mean of −ln p(target) &nbsp; dz = p − y"),
                para(`The loss of this pair is ${short(c.frame.loss)}.`), all];
        }],
        ["output", (c) => [formula("y = Σ<sub>j</sub> a<sub>j</sub> v<sub>j</sub> &nbsp; dy arrives from the layers above"),
            para("The result of this row was y, with one number for each of the head’s dimensions. Backward brings dy, how the loss changes with each:"),
            row("dy", c.vector("dy"), largest(c.vector("dy")))]],
        ["V and A", (c) => {
            const dy = c.vector("dy"), most = largest(kept(c).flatMap((k) => c.a[k] * largest(dy)));
            return [formula("dv<sub>j</sub> += a<sub>j</sub> dy &nbsp; g<sub>j</sub> = dy · v<sub>j</sub>"),
                para("Each value gets its share a of dy. Each weight gets one number, g: how the loss changes if the row attends more to that key."),
                kept(c).map((k) => row(escaped(c.seen.keys[k]), dy.map((x) => c.a[k] * x), most,
                    `a ${short(c.a[k])}, g ${short(c.g[k])}`))];
        }],
        ["ds", (c) => {
            const {average, wrong} = c, most = largest(c.ds);
            const rule = wrong ? escaped(s.rule) : `a<sub>j</sub> (g<sub>j</sub> − avg), &nbsp; avg = Σ a g = ${short(average)}`;
            const note = (k) => (wrong ? `a ${short(c.a[k])}, g ${short(c.g[k])} → ${short(c.ds[k])}, right: ${short(c.right[k])}`
                : `${short(c.a[k])} × (${short(c.g[k])} − ${short(average)}) = ${short(c.ds[k])}`);
            return [formula(`ds<sub>j</sub> = ${rule}`),
                para("Through softmax: a weight can only grow if others shrink, so the right ds counts g against the average of its row."),
                kept(c).map((k) => tag("div", {class: "vector"}, tag("span", {}, escaped(c.seen.keys[k])), bar(c.ds[k], most),
                    tag("span", {class: "note"}, note(k))))];
        }],
        ["Q and K", (c) => {
            const dq = c.vector("dq"), q = c.vector("q");
            const parts = kept(c).map((k) => c.ofKey("k", k).map((x) => c.seen.scale * c.ds[k] * x));
            const most = largest(parts.flat());
            return [formula("dq = Σ<sub>j</sub> ds<sub>j</sub> k<sub>j</sub> / √d &nbsp; dk<sub>j</sub> += ds<sub>j</sub> q / √d"),
                para(`The query is pulled to keys whose score should rise. Its parts ds k / √d, and their sum; each key is moved along q (‖q‖ ${short(norm(q))}).`),
                kept(c).map((k, i) => row(escaped(c.seen.keys[k]), parts[i], most)),
                row("dq", dq, largest(dq))];
        }],
        ["weights", (c) => {
            const part = ["encoder.layers.0.self_attention", "decoder.layers.0.self_attention",
                "decoder.layers.0.cross_attention"][s.attention];
            const mine = c.frame.gradients.filter((g) => g.name.startsWith(part) && g.name.endsWith("weight"));
            const most = Math.max(...mine.map((g) => g.pair), 1e-30);
            return [formula("dW<sub>q</sub> = Σ over rows of dq xᵀ, &nbsp; and so for W<sub>k</sub>, W<sub>v</sub>"),
                para("All rows of both heads, summed: the norm of each gradient of this pair, and of a batch of 32."),
                mine.map((g) => tag("div", {class: "vector"}, tag("span", {}, escaped(g.name.slice(part.length + 1).replace(".weight", ""))),
                    share(g.pair / most), tag("span", {class: "note"}, `${short(g.pair)}, batch ${short(g.length)}`)))];
        }],
    ];

    const draw = () => {
        const c = Drawer.chosen();
        if (!c) return;
        $("follow-where").textContent = Drawer.where(c) + (c.wrong ? ", wrong gradient" : ", right gradient");
        $("follow-zoom").innerHTML = stops[s.stop][1](c).flat(3).join("");
        for (const [i, button] of [...$("follow-stops").children].entries()) {
            if (i === s.stop)
                button.setAttribute("aria-current", "step");
            else
                button.removeAttribute("aria-current");
        }
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
        $("follow-stops").innerHTML = stops.map(([name], i) => tag("button", {type: "button", "data-stop": i},
            `${i + 1} ${name}`)).join("");
        $("follow-stops").onclick = (e) => { if (e.target.dataset.stop) go(+e.target.dataset.stop); };
        $("follow-before").onclick = () => go(s.stop - 1);
        $("follow-next").onclick = () => go(s.stop + 1);
        Race.whenDrawn(draw);
    };
    return {open, goTo};
})();
