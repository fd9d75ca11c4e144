/* The maps of attention of both racers: a row for each query, a column for each key, dark where the
   weight is large. A chosen cell opens its row in the drawer. */
const Maps = (() => {
    const s = Address.state, shapes = {};
    const id = (r, h, q, k) => `cell-${r}-${h}-${q}-${k}`;

    const build = (racer, seen) => {
        const cell = (h, q, k) => tag("td", {
            role: "gridcell",
            id: id(racer.index, h, q, k),
            tabindex: q + k ? -1 : 0,
            "data-r": racer.index,
            "data-h": h,
            "data-q": q,
            "data-k": k
        });
        const row = (h, name, q) =>
            tag("tr", {role: "row"}, tag("th", {scope: "row", role: "rowheader"}, escaped(name)),
                range(seen.keys.length).map((k) => cell(h, q, k)));
        const head = (h) =>
            tag("figure", {class: "head"}, tag("figcaption", {id: `caption-${racer.index}-${h}`}),
                tag("table",
                    {class: "map", role: "grid", "aria-labelledby": `caption-${racer.index}-${h}`},
                    tag("thead", {},
                        tag("tr", {role: "row"},
                            tag("th", {scope: "col", role: "columnheader", "aria-label": "query"}),
                            seen.keys.map((name) => tag("th", {
                                                        scope: "col",
                                                        role: "columnheader",
                                                        class: name.length > 2 && "long"
                                                    },
                                                        escaped(name))))),
                    tag("tbody", {}, seen.rows.map((name, q) => row(h, name, q)))));
        $(racer.id + "-maps").innerHTML = range(2).map(head).join("");
    };
    const isChosen = (racer, h, q) =>
        s.drawer && s.racer === racer.index && s.head === h && s.row === q;

    const draw = (racer, frame) => {
        const seen = frame.attentions[s.attention], n = seen.keys.length;
        const shape = seen.rows + "|" + seen.keys;
        if (shapes[racer.id] !== shape) build(racer, seen);
        shapes[racer.id] = shape;
        seen.a.forEach((a, i) => {
            const k = i % n, q = Math.floor(i / n) % seen.rows.length,
                  h = Math.floor(i / n / seen.rows.length);
            const td = $(id(racer.index, h, q, k)), level = a.toFixed(2);
            const name = `${seen.rows[q]} attends to ${seen.keys[k]}: ${short(a)}`;
            if (td.dataset.level !== level) { /* a style costs more than all else here */
                td.dataset.level = level;
                td.style.setProperty("--t", level);
            }
            td.title = name;
            td.setAttribute("aria-label", name);
            td.classList.toggle("chosen", Boolean(isChosen(racer, h, q)));
        });
        range(2).forEach((h) => {
            const saturated = percent(seen.saturated[h]);
            $(`caption-${racer.index}-${h}`).innerHTML = tag("span", {}, `head ${h + 1}: `) + `${saturated} saturated`;
        });
    };

    const focusCell = (r, h, q, k) => {
        const next = $(id(r, h, q, k));
        if (!next) return;
        for (const td of document.querySelectorAll(`td[data-r="${r}"][data-h="${h}"]`))
            td.tabIndex = -1;
        next.tabIndex = 0;
        next.focus({preventScroll: true});
    };
    const choose = ({dataset}) => Drawer.show(+dataset.r, +dataset.h, +dataset.q, +dataset.k);
    const pressed = (event) => {
        const td = event.target.closest("td[data-k]"), move = arrows[event.key];
        if (!td || !(move || event.key === "Enter" || event.key === " ")) return;
        event.preventDefault();
        if (move)
            focusCell(td.dataset.r, td.dataset.h, +td.dataset.q + move[0], +td.dataset.k + move[1]);
        else
            choose(td);
    };
    const open = () => {
        for (const name of ["right-maps", "wrong-maps"]) {
            $(name).onkeydown = pressed;
            $(name).onclick = (event) => {
                const td = event.target.closest("td[data-k]");
                if (td) choose(td);
            };
        }
    };
    return {open, draw, focusCell};
})();

/*
 * The drawer: one row of attention beside the training, with its numbers at the step that is shown,
 * and the flow of its gradient from key to key.
 */
const Drawer = (() => {
    const s = Address.state;
    const kinds = ["encoder", "decoder", "cross"];
    let cameFrom = null; /* the cell that was chosen */

    /* Of a head, the row with the largest ds. */
    const strongest = (seen) => {
        const n = seen.keys.length, at = s.head * seen.rows.length;
        const most = range(seen.rows.length)
                         .map((q) => largest(seen.ds.subarray((at + q) * n, (at + q + 1) * n)));
        return most.indexOf(Math.max(...most));
    };
    /* The numbers of the chosen row at a step, or at the one that is shown; null before there are
       any. */
    const chosen = (step = Race.state().now) => {
        const frame = Race.state().racers[s.racer].frames.get(step);
        const seen = frame?.attentions[s.attention];
        if (!seen) return null;
        const q = s.row < 0 ? strongest(seen) : Math.min(s.row, seen.rows.length - 1);
        const n = seen.keys.length;
        const at = s.head * seen.rows.length + q;
        const part = (name, i, width) =>
            Array.from(seen[name].subarray(i * width, (i + 1) * width));
        const row = (name) => part(name, at, n), vector = (name) => part(name, at, seen.size);
        const ofKey = (name, k) => part(name, s.head * n + k, seen.size);
        const kept = row("s").map((x) => x > -Infinity);
        const ds = row("ds"), right = row("right");
        const wrong = largest(ds.map((x, k) => x - right[k])) > 1e-9 * largest(right);
        const numbers = {s: row("s"), a: row("a"), g: row("g"), ds, right};
        const sums = {average: seen.average[at], sum: seen.sum[at]};
        return {step, frame, seen, q, n, kept, vector, ofKey, wrong, ...numbers, ...sums};
    };
    /* The last step, up to the one that is shown, at which this model had much to learn; that one, if there is none. */
    const MUCH = 0.3; /* a loss */
    const lastWithMuch = () => {
        const {racers, now} = Race.state(), {frames} = racers[s.racer];
        const all = [...frames.keys()].filter((x) => x <= now && frames.get(x).loss >= MUCH);
        return all.length === 0 ? now : Math.max(...all);
    };
    const where = (c) => `“${c.seen.rows[c.q]}” attends, row ${c.q + 1} of head ${s.head + 1}, ` +
                         `${kinds[s.attention]}-attention, step ${c.step}`;

    /* ---- numbers ---- */

    /* Columns: a name, numbers with one power of ten, and what is drawn of a number and its text. Scores
       are less their maximum, which softmax ignores. */
    const columns = (c) => {
        const most = Math.max(...c.s.filter((x) => x > -Infinity)), both = c.wrong ? [...c.ds, ...c.right] : c.ds;
        const ofDs = (x, text) => signed(x, largest(both), text), asText = (x, text) => text;
        const centred = c.g.map((x) => x - c.average), g = c.wrong ? c.g : [...c.g, ...centred];
        const all = [
            ["s − max", c.s.map((x) => x - most)],
            ["a", c.a, (x, text) => [share(x), " ", tag("span", {class: "number"}, text)]],
            ["g", c.g, asText, g],
            !c.wrong && ["g − avg", centred, asText, g],
            [c.wrong ? "ds here" : "ds", c.ds, ofDs, both],
            c.wrong && ["correct ds", c.right, ofDs, both],
        ];
        return all.filter(Boolean).map(([name, numbers, drawn = asText, scale = numbers]) => {
            const {name: title, text} = scaled(name, scale);
            const sum = /^a$|ds/.test(name) ? sumOf(numbers) : "";
            return {title, sum, cell: (k) => drawn(numbers[k], text(numbers[k]))};
        });
    };
    const table = (c) => {
        const all = columns(c), head = ["key", ...all.map((x) => x.title)];
        const cell = (x, i, k) => (c.kept[k] ? x.cell(k) : i === 0 ? "blocked" : "");
        const row = (k) => rowOf(head, escaped(c.seen.keys[k]), all.map((x, i) => cell(x, i, k)));
        const sums = rowOf(head, "sum", all.map((x) => x.sum));
        return tableOf(head, [...range(c.n).map(row), sums], c.n);
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
    /* −ds of each score, up where a larger score lowers the loss. No score takes this step: Adam moves
     * the parameters. */
    const stepBars = (c, kept, ds, most, X, width) => {
        const title = (k, step) => `−ds of the score of ${c.seen.keys[k]}: ${short(step)}`;
        return kept.map((k, i) => {
            const step = -ds[k], height = 44 * Math.abs(step) / Math.max(most, 1e-300);
            const box = {x: X(i) - width / 2, y: step > 0 ? 160 - height : 160, width, height};
            return [
                tag("circle", {class: "key", cx: X(i), cy: 106, r: Math.min(9, 0.75 * width)}),
                words(X(i), 110, "middle", c.seen.keys[k][0]),
                tag("rect", {...box, class: "step"}, tag("title", {}, escaped(title(k, step)))),
            ];
        });
    };
    const drawSteps = (id, label, c, kept, ds, most, W, arcs) => {
        const left = 60, X = (i) => left + ((W - left) / kept.length) * (i + 0.5);
        picture(id, label, W, 220, arcs ? [arrowTip("tip"), arcs(X)] : "",
                tag("line", {class: "axis", x1: 0, x2: W, y1: 160, y2: 160}),
                stepBars(c, kept, ds, most, X, Math.min(18, 0.6 * (W - left) / kept.length)),
                words(0, 128, "start", "rises ↑"), words(0, 198, "start", "falls ↓"));
    };
    /* Both pictures have one scale, unless it would hide the smaller ds. */
    const scales = (c) => {
        const all = [largest(c.right), largest(c.ds)], most = Math.max(...all);
        return Math.min(...all) * 20 < most ? all : [most, most];
    };
    /* Arrows stand for the correct ds alone: a wrong rule passes nothing from key to key. */
    const drawFlow = (c) => {
        const {kept, flow} = flows(c), W = c.wrong ? 205 : 400;
        const most = largest([...flow.flat(), 1e-300]), [ofRight, own] = scales(c);
        const arcs = (X) => flow.flatMap(
            (row, i) => row.map(
                (x, j) =>
                    x > 0.04 * most &&
                    arc(X, i, j, 0.6 + 5 * x / most,
                        `${c.seen.keys[kept[i]]} gives ${c.seen.keys[kept[j]]} ${short(x)}`)));
        drawSteps("drawer-flow", "the correct −ds of each score, and its flow from key to key", c,
                  kept, c.right, ofRight, W, arcs);
        $("drawer-wrong").hidden = !c.wrong;
        if (c.wrong)
            drawSteps("drawer-own", "−ds of each score by the rule of this model", c, kept, c.ds, own, W);
        $("drawer-caption").textContent =
            c.wrong ? "Correct −ds, which this model does not get" : "Who gives, who gains: −ds";
    };
    const proof = "Adding c to all scores changes the loss by c × (ds₁ + ds₂ + …). No weight " +
                  "changes, so the loss changes by 0: the sum is 0.";
    const say = (c) => {
        const {sum} = c, most = largest(c.ds), far = largest(c.s.filter((x) => x > -Infinity));
        const [ofRight, own] = scales(c);
        const zero = Math.abs(sum) < 1e-6 * most || most === 0;
        const all = [
            proof,
            zero ? "The ds of this row do sum to 0, up to rounding."
                 : `But here they sum to ${short(sum)}: a step along −ds moves all scores of ` +
                      `this row ${sum > 0 ? "down" : "up"} together.`,
            c.wrong
                ? "Arrows lead from keys with a high g to keys with a lower one: they belong to " +
                      "the correct ds." +
                      (ofRight === own ? "" : " Each picture has a scale of its own.")
                : "What one key loses, others gain: arrows lead from keys with a high g to keys " +
                      "with a lower one.",
            "−ds is the way down for each score. No score takes it: Adam moves the parameters, and " +
                "the scores follow.",
        ];
        if (c.wrong && far > 20) all.push(`A score of this row has drifted to ${short(far)}.`);
        if (most < 1e-6)
            all.push(c.frame.loss < 0.01
                         ? "The loss is nearly 0 here, and so is every gradient: move the " +
                               "slider above to about step 50 for larger ones."
                         : "Hardly any gradient passes this row, since it is saturated: choose " +
                               "another row or an earlier step for larger ones.");
        return all.map((text) => tag("p", {}, escaped(text))).join("");
    };

    const draw = () => {
        document.body.classList.toggle("with-drawer", Boolean(s.drawer));
        $("drawer").hidden = !s.drawer;
        const c = s.drawer && chosen();
        if (!c) return;
        $("drawer").className = s.racer ? "wrong" : "right";
        $("drawer-title").textContent = "One row, " + Race.nameOf(s.racer);
        $("drawer-where").textContent = where(c);
        $("drawer-step").textContent = `step ${c.step}`;
        $("drawer-table").innerHTML = table(c);
        drawFlow(c);
        $("drawer-say").innerHTML = say(c);
    };

    const show = (racer, head, row, key) => {
        cameFrom = [racer, head, row, key];
        Address.set({racer, head, row, drawer: 1});
        Race.draw();
        if (!Race.state().playing && chosen()?.frame.loss < 0.01) Race.scrub(lastWithMuch());
        $("drawer").scrollTop = 0;
        $("drawer").focus({preventScroll: true});
        if (coversPage()) $(`cell-${racer}-${head}-${row}-${key}`).scrollIntoView();
    };
    const close = () => {
        Address.set({drawer: 0});
        Race.draw();
    };
    /* On a narrow screen it covers the page, and so it closes before the page scrolls. */
    const coversPage = () => matchMedia("(max-width: 60rem)").matches;
    const makeRoom = () => {
        if (coversPage()) close();
    };
    /* Up and down lead to the rows before and after. */
    const move = (by) => {
        const c = chosen();
        if (!c) return;
        Address.set({row: Math.max(0, Math.min(c.seen.rows.length - 1, c.q + by))});
        cameFrom = [s.racer, s.head, s.row, cameFrom?.[3] ?? 0];
        Race.draw();
    };
    const back = () => {
        close();
        Maps.focusCell(...(cameFrom || [s.racer, s.head, s.row, 0]));
    };
    /* Its numbers in the panel below, where they can be changed. */
    const edit = () => {
        const c = chosen(), digits = (x) => +x.toPrecision(3);
        const most = Math.max(...c.s.filter((x) => x > -Infinity)); /* shifts change nothing */
        makeRoom();
        Row.take(where(c) + ", s − max", c.seen.keys, c.s.map((x, k) => (c.kept[k] ? digits(x - most) : 0)),
                 c.g.map(digits), c.kept.map(Number));
    };
    const open = () => {
        if (s.drawer) s.row = Math.max(0, s.row);
        s.attention = [0, 1, 2].includes(s.attention) ? s.attention : 2;
        $("drawer-back").onclick = back;
        $("drawer-edit").onclick = edit;
        $("drawer-follow").onclick = () => {
            Address.set({live: 1}); /* this row at this step, also without the drawer */
            makeRoom();
            turnTo("follow");
        };
        $("drawer").onkeydown = (e) => {
            if (e.key === "Escape") back();
            const [by] = arrows[e.key] || [0];
            if (e.target !== $("drawer") || by === 0) return;
            e.preventDefault();
            move(by);
        };
        Race.whenDrawn(draw);
    };
    return {open, show, back, chosen, lastWithMuch, where, table};
})();
