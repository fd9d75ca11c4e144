/*
 * The drawer: one row of attention beside the training, with its numbers at the step that is shown,
 * and the flow of its gradient from key to key.
 */
const Drawer = (() => {
    const s = Address.state;
    const kinds = ["encoder", "decoder", "cross"];
    let cameFrom = null; /* the cell that was chosen */

    /* The numbers of the chosen row, at the step that is shown; null before there are any. */
    const chosen = () => {
        const frame = Race.state().frames[s.racer];
        const seen = frame?.attentions[s.attention];
        if (!seen) return null;
        const q = Math.min(s.row, seen.rows.length - 1), n = seen.keys.length;
        const at = s.head * seen.rows.length + q;
        const part = (name, i, width) =>
            Array.from(seen[name].subarray(i * width, (i + 1) * width));
        const row = (name) => part(name, at, n), vector = (name) => part(name, at, seen.size);
        const ofKey = (name, k) => part(name, s.head * n + k, seen.size);
        const kept = row("s").map((x) => x > -Infinity);
        const ds = row("ds"), right = row("right");
        const wrong = largest(ds.map((x, k) => x - right[k])) > 1e-9 * largest(right);
        return {
            frame,
            seen,
            q,
            n,
            kept,
            vector,
            ofKey,
            wrong,
            s: row("s"),
            a: row("a"),
            g: row("g"),
            ds,
            right,
            average: seen.average[at],
            sum: seen.sum[at]
        };
    };
    const where = (c) => `“${c.seen.rows[c.q]}” attends, row ${c.q + 1} of head ${s.head + 1}, ` +
                         `${kinds[s.attention]}-attention, step ${Race.state().now}`;

    /* ---- numbers ---- */

    const columns = (wrong) => ["key", "s", "a", "g",
                                ...(wrong ? ["ds it gets", "right ds"] : ["g − avg", "ds"])];
    const drawTable = (c, wrong) => {
        const names = columns(wrong);
        const most = largest([...c.ds, ...c.right]);
        const number = (x) => tag("span", {class: sign(x)}, short(x));
        const row = (k) => c.kept[k] ? [
            tag("th", {scope: "row"}, escaped(c.seen.keys[k])),
            cellOf("s", short(c.s[k])), cellOf("a", [share(c.a[k]), " ", tag("span", {}, short(c.a[k]))]),
            cellOf("g", short(c.g[k])),
            wrong ? "" : cellOf("g − avg", short(c.g[k] - c.average)),
            cellOf(wrong ? "ds it gets" : "ds", [bar(c.ds[k], most), " ", number(c.ds[k])]),
            wrong ? cellOf("right ds", number(c.right[k])) : "",
        ] : [tag("th", {scope: "row"}, escaped(c.seen.keys[k])), cellOf("s", "blocked"),
            names.slice(2).map((name) => cellOf(name, ""))];
        $("drawer-table").innerHTML = tableOf(names, range(c.n).map(row));
    };

    /* ---- flow: ds_i is the sum over j of a_i a_j (g_i − g_j), which j passes to i ---- */

    const flows = (c) => {
        const kept = range(c.n).filter((k) => c.kept[k]);
        const pick = (list) => kept.map((k) => list[k]);
        return {kept, flow: Library.flow({scores: pick(c.s), upstream: pick(c.g)})};
    };
    const arc = (X, from, to, width, title) => {
        const x0 = X(from), x1 = X(to), high = 14 + 13 * Math.sqrt(Math.abs(from - to) * 3);
        return tag("path", {
            class: "flow",
            d: `M${x0},96 Q${(x0 + x1) / 2},${96 - 2 * high} ${x1},96`,
            fill: "none",
            "stroke-width": width.toFixed(2),
            "marker-end": "url(#tip)"
        },
                   tag("title", {}, escaped(title)));
    };
    const tip = tag("defs", {},
                    tag("marker", {
                        id: "tip",
                        viewBox: "0 0 8 8",
                        refX: 7,
                        refY: 4,
                        markerWidth: 9,
                        markerHeight: 9,
                        markerUnits: "userSpaceOnUse",
                        orient: "auto"
                    },
                        tag("path", {class: "tip", d: "M0,0 L8,4 L0,8 z"})));
    const drawFlow = (c, wrong) => {
        const {kept, flow} = flows(c), n = kept.length, W = 400;
        const X = (i) => (W / n) * (i + 0.5);
        const most = largest([...flow.flat(), 1e-30]), lost = largest([...c.ds, ...c.right, 1e-30]);
        const arcs = flow.flatMap(
            (row, i) => row.map(
                (x, j) =>
                    x > 0.04 * most &&
                    arc(X, i, j, 0.6 + 5 * x / most,
                        `${c.seen.keys[kept[i]]} gives ${c.seen.keys[kept[j]]} ${short(x)}`)));
        const columns = kept.map((k, i) => {
            const gain = -c.ds[k], height = 44 * Math.abs(gain) / lost, leak = c.ds[k] - c.right[k];
            const leaks = wrong && Math.abs(leak) > 0.03 * lost;
            const y = gain > 0 ? 160 - height : 160;
            return [
                tag("circle", {class: "key", cx: X(i), cy: 106, r: 10}),
                words(X(i), 110, "middle", c.seen.keys[k]),
                tag("rect", {
                    x: X(i) - 9,
                    y,
                    width: 18,
                    height,
                    fill: `var(--${gain > 0 ? "plus" : "minus"})`
                },
                    tag("title", {}, escaped(`score of ${c.seen.keys[k]}: ${short(gain)}`))),
                leaks && tag("rect", {
                    class: "leak",
                    x: X(i) - 12,
                    width: 24,
                    y: -c.right[k] > 0 ? 160 - 44 * -c.right[k] / lost : 160,
                    height: 44 * Math.abs(c.right[k]) / lost
                }),
            ];
        });
        picture("drawer-flow", "flow of the gradient from key to key", W, 212, tip, arcs,
                tag("line", {class: "axis", x1: 0, x2: W, y1: 160, y2: 160}), columns,
                words(2, 126, "start", "rises ↑"), words(2, 206, "start", "falls ↓"));
    };
    const say = (c, wrong) => {
        const {sum} = c, most = largest(c.ds);
        const zero = Math.abs(sum) < 1e-6 * most || most === 0;
        const lead =
            "g says how the loss changes with each weight, ds how it changes with each score. " +
            "Raise all scores of this row by the same amount: no weight changes, so the loss does " +
            "not. That is why the right ds sum to 0. What the score of one key loses, others " +
            "gain: arrows lead from keys with a high g to keys with a lower one. ";
        if (zero) return lead + "The ds of this row do sum to 0.";
        const outline = wrong ? " Outlines are the right ds, bars those that this model gets." : "";
        return `${lead}But here they sum to ${short(sum)}: ${short(Math.abs(sum))} is ${
                   sum > 0 ? "taken from" : "given to"} ` +
               "this row, and no other key pays for it." + outline;
    };

    const draw = () => {
        document.body.classList.toggle("with-drawer", Boolean(s.drawer));
        $("drawer").hidden = !s.drawer;
        const c = s.drawer && chosen();
        if (!c) return;
        const {wrong} = c;
        $("drawer").className = s.racer ? "wrong" : "right";
        $("drawer-title").textContent =
            wrong ? "One row, wrong gradient" : "One row, right gradient";
        $("drawer-where").textContent = where(c);
        drawTable(c, wrong);
        drawFlow(c, wrong);
        $("drawer-say").textContent = say(c, wrong);
    };

    const show = (racer, head, row, key) => {
        cameFrom = [racer, head, row, key];
        Object.assign(s, {racer, head, row, drawer: 1});
        Address.write();
        Race.draw();
        $("drawer").focus({preventScroll: true});
    };
    const back = () => {
        s.drawer = 0;
        Address.write();
        Race.draw();
        Maps.focusCell(...(cameFrom || [s.racer, s.head, s.row, 0]));
    };
    /* Its numbers in the panel below, where they can be changed; six digits, as its command shows.
     */
    const edit = () => {
        const c = chosen(), digits = (x) => +x.toPrecision(6);
        Row.take(where(c), c.seen.keys, c.s.map((x, k) => (c.kept[k] ? digits(x) : 0)),
                 c.g.map(digits), c.kept.map(Number));
    };
    const open = () => {
        s.racer = s.racer ? 1 : 0;
        s.head = s.head ? 1 : 0;
        s.row = Math.max(0, Math.floor(s.row));
        s.attention = [0, 1, 2].includes(s.attention) ? s.attention : 2;
        $("drawer-back").onclick = back;
        $("drawer-edit").onclick = edit;
        $("drawer-follow").onclick = () => Follow.goTo();
        $("drawer").onkeydown = (e) => {
            if (e.key === "Escape") back();
        };
        Race.whenDrawn(draw);
    };
    return {open, show, back, chosen, where};
})();
