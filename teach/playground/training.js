/* Panel 4: a model that trains in a worker, and what is shown of it. */
const Training = (() => {
    const s = Address.state;
    const KEPT_RUNS = 4, GUESSING = Math.log(11); /* ten digits and the end */
    const dashes = ["6 3", "2 3", "9 3 2 3", "1 2"];
    let worker, sight = null, chosen = null, listener = () => {};
    let run = null, before = [];

    const order = (what, more) => worker.postMessage({order: what, ...more});
    const nameOf = (choice) => {
        const words = [$("task").selectedOptions[0].text, $("mistake").selectedOptions[0].text];
        if (choice.factor !== 1) words.push("scores × " + choice.factor);
        if (choice.seed !== 1) words.push("seed " + choice.seed);
        return words.join(", ");
    };
    const begin = () => {
        const {task, factor, mistake, seed, steps} = s;
        if (run && run.losses.length) before = [run, ...before].slice(0, KEPT_RUNS);
        run = {name: nameOf(s), losses: [], running: false};
        chosen = null;
        order("begin", {task, factor, mistake, seed, steps});
        order("pair", {pair: s.pair});
        $("right-lines").hidden = mistake !== 0;
        $("wrong-lines").hidden = mistake === 0;
    };

    /* ---- curves and bars ---- */

    /* At most 300 points of a curve, from the mean of as many steps. */
    const thinned = (losses) => {
        const part = Math.max(1, Math.ceil(losses.length / 300)), points = [];
        for (let i = 0; i < losses.length; i += part) {
            const some = losses.slice(i, i + part);
            points.push([i + (some.length + 1) / 2, some.reduce((x, y) => x + y) / some.length]);
        }
        return points;
    };
    const sample = (colour, dash) => {
        const line = {x1: 0, x2: 34, y1: 4, y2: 4, stroke: `var(--${colour})`};
        return tag("svg", {class: "bar", width: 34, height: 8, "aria-hidden": "true"},
            tag("line", {...line, "stroke-width": 2, "stroke-dasharray": dash}));
    };
    const drawLoss = () => {
        const old = before.map(
            (r, i) => ({points: thinned(r.losses), dashes: dashes[i], colour: "quiet"}));
        const all = [...old, {points: thinned(run.losses), colour: "plus"}];
        const longest = Math.max(s.steps, ...before.map((r) => r.losses.length));
        const level = {value: GUESSING, name: "guessing: ln 11"};
        curves("loss", "loss of each step", all, longest, level);
        $("legend").innerHTML = [
            sample("plus") + " " + escaped(run.name),
            ...before.map((r, i) => sample("quiet", dashes[i]) + " " + escaped(r.name)),
        ].join("<br>");
    };
    const drawStatus = ({step, rate}) => {
        const words = [`step ${step} of ${s.steps}`];
        if (run.losses.length) words.push("loss " + short(run.losses.at(-1)));
        if (run.share !== undefined)
            words.push((100 * run.share).toFixed(1) + " % of the digits right");
        if (step) words.push(rate.toFixed(0) + " steps/s");
        if (step && run.fingerprint) words.push("weights " + run.fingerprint);
        $("status").textContent = words.join(", ");
        $("train").textContent = run.running ? "pause" : "train";
        $("train").disabled = !run.running && step >= s.steps;
        $("advance").disabled = step >= s.steps;
    };
    const drawGradients = () => {
        const title = (name) => name.replace(/\.weight$/, "")
                                    .replace(".layers.0", "")
                                    .replace("_attention", "")
                                    .replace(/[._]/g, " ");
        const isAsked = (name) => /(query|key)\.weight$/.test(name);
        const all = sight.gradients.filter((g) => g.name.endsWith(".weight")).map((g) => ({
            name: title(g.name),
            value: g.length,
            colour: isAsked(g.name) ? "minus" : "plus",
        }));
        const label = "norm of each parameter's gradient; queries and keys, which only softmax " +
            "backward reaches, in the second colour";
        bars("gradients", label, all, (x) => (Math.log10(x + 1e-12) + 7) / 8);
    };

    /* ---- maps of attention ---- */

    const isChosen = (head, row) => chosen && chosen.attention === s.attention &&
        chosen.head === head && chosen.row === row;
    const cell = (map, h, r, k) => {
        const a = map.heads[h][r][k];
        const pair = `“${map.rows[r]}” attends to “${map.keys[k]}”`;
        const title = `head ${h + 1}, ${pair}: ${short(a)}`;
        const data = {"data-h": h, "data-r": r, "data-k": k, tabindex: r + k ? -1 : 0};
        const more = {role: "gridcell", "aria-label": title, title};
        return tag("td", {...data, ...more, class: isChosen(h, r) && "chosen"},
            tag("i", {style: `opacity:${a.toFixed(3)}`}));
    };
    const headMap = (map, h) => {
        const saturated = (100 * map.saturated[h]).toFixed(0), even = short(map.evenness[h]);
        const rows = map.rows.map((name, r) => [
            tag("th", {scope: "row"}, escaped(name)),
            map.keys.map((_, k) => cell(map, h, r, k)),
        ]);
        const grid = {class: "map", role: "grid", "aria-label": `weights of head ${h + 1}`};
        return tag("figure", {},
            tag("figcaption", {},
                `Head ${h + 1}: ${saturated} % of its rows saturated, evenness ${even}`),
            tag("table", grid, tableOf(["", ...map.keys], rows)));
    };
    const cellAt = (h, r, k) =>
        document.querySelector(`#maps td[data-h="${h}"][data-r="${r}"][data-k="${k}"]`);
    const focusCell = (h, r, k) => {
        const next = cellAt(h, r, k);
        if (!next) return;
        for (const td of document.querySelectorAll(`#maps td[data-h="${h}"]`)) td.tabIndex = -1;
        next.tabIndex = 0;
        next.focus({preventScroll: true});
    };
    const drawMaps = () => {
        const map = sight.maps[s.attention], cross = sight.maps[2];
        const focused = document.activeElement.closest("#maps td");
        $("maps").innerHTML = range(2).map((h) => headMap(map, h)).join("");
        if (focused) focusCell(focused.dataset.h, focused.dataset.r, focused.dataset.k);
        $("pair-text").textContent =
            `reads ${cross.keys.join(" ")}, must write ${cross.rows.slice(0, -1).join(" ")}`;
    };

    const choose = (td) => {
        chosen = {attention: s.attention, head: +td.dataset.h, row: +td.dataset.r};
        order("row", chosen);
    };
    const moves = {ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0]};
    const pressed = (event) => {
        const td = event.target.closest("td"), move = moves[event.key];
        if (!td || !(move || event.key === "Enter" || event.key === " ")) return;
        event.preventDefault();
        if (move)
            focusCell(td.dataset.h, +td.dataset.r + move[0], +td.dataset.k + move[1]);
        else
            choose(td);
    };

    /* ---- the worker's answers, and controls ---- */

    const heard = ({data}) => {
        if (data.failure) {
            $("status").textContent = "training failed: " + data.failure;
            return;
        }
        const {running, step, fingerprint, share = run.share} = data;
        Object.assign(run, {running, step, fingerprint, share});
        run.losses.push(...data.losses);
        sight = data;
        drawStatus(data);
        drawLoss();
        drawGradients();
        drawMaps();
        if (data.row) listener(data.row, data.place);
    };

    const fields = ["task", "factor", "mistake", "seed", "steps"];
    const changed = () => {
        for (const id of fields) s[id] = +$(id).value;
        s.seed = Math.min(1e6, Math.max(0, Math.floor(s.seed) || 0));
        Address.write();
        begin();
    };
    /* The values in the address, where a field allows them. */
    const restore = () => {
        for (const id of fields) {
            $(id).value = s[id];
            if ($(id).value === "") $(id).value = s[id] = Address.own[id];
        }
        s.seed = Math.min(1e6, Math.max(0, Math.floor(s.seed)));
        s.attention = [0, 1, 2].includes(s.attention) ? s.attention : 2;
        s.pair = Math.max(0, Math.floor(s.pair));
        $("seed").value = s.seed;
        $("attention").value = s.attention;
    };
    const connect = () => {
        for (const id of fields) $(id).onchange = changed;
        $("train").onclick = () => order(run.running ? "pause" : "run");
        $("advance").onclick = () => order("step");
        $("restart").onclick = begin;
        $("attention").onchange = (e) => {
            s.attention = +e.target.value;
            Address.write();
            drawMaps();
        };
        $("pair").onclick = () => {
            s.pair++;
            Address.write();
            order("pair", {pair: s.pair});
        };
        $("maps").onkeydown = pressed;
        $("maps").onclick = (e) => {
            const td = e.target.closest("td");
            if (td) choose(td);
        };
    };
    const open = (bytes) => {
        const code = new Blob([$("worker").textContent], {type: "text/javascript"});
        restore();
        worker = new Worker(URL.createObjectURL(code));
        worker.onmessage = heard;
        order("open", {bytes});
        begin();
        connect();
    };
    const state = () => ({run, before, sight, chosen});
    return {open, state, whenChosen: (act) => (listener = act)};
})();
