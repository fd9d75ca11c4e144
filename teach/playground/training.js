/* Panel 4: a model that learns beside the page, and what is seen of it. */
const Training = (() => {
    const s = Address.state;
    const KEPT_RUNS = 4, GUESSING = Math.log(11); /* ten digits and the end */
    const dashes = ["6 3", "2 3", "9 3 2 3", "1 2"];
    let worker, sight = null, chosen = null, listener = () => {};
    let run = null, before = [];

    const name = () => `${$("task").selectedOptions[0].text}, ${$("mistake").selectedOptions[0].text}${s.factor === 1 ? "" : ", scores × " + s.factor}${s.seed === 1 ? "" : ", seed " + s.seed}`;
    const order = (what, more) => worker.postMessage({ order: what, ...more });

    const begin = () => {
        if (run && run.losses.length) before = [run, ...before].slice(0, KEPT_RUNS);
        run = { name: name(), losses: [], share: undefined, fingerprint: undefined, running: false };
        chosen = null;
        order("begin", { task: s.task, factor: s.factor, mistake: s.mistake, seed: s.seed, steps: s.steps });
        order("pair", { pair: s.pair });
        $("right-lines").hidden = s.mistake !== 0;
        $("wrong-lines").hidden = s.mistake === 0;
    };

    /* ---- drawing ---- */

    /* At most 300 points of a curve, from the mean of as many steps. */
    const thinned = (losses) => {
        const part = Math.max(1, Math.ceil(losses.length / 300)), points = [];
        for (let i = 0; i < losses.length; i += part) {
            const some = losses.slice(i, i + part);
            points.push([i + (some.length + 1) / 2, some.reduce((x, y) => x + y, 0) / some.length]);
        }
        return points;
    };
    const drawLoss = () => {
        const all = before.map((r, i) => ({ points: thinned(r.losses), dashes: dashes[i], colour: "quiet" }));
        all.push({ points: thinned(run.losses), colour: "plus" });
        const longest = Math.max(s.steps, ...before.map((r) => r.losses.length));
        curves("loss", "loss of each step", all, longest, { value: GUESSING, name: "guessing: ln 11" });
        const line = (r, i) => `<svg class="bar" width="34" height="8" aria-hidden="true"><line x1="0" x2="34" y1="4" y2="4" stroke="var(--${i < 0 ? "plus" : "quiet"})" stroke-width="2" stroke-dasharray="${i < 0 ? "" : dashes[i]}"/></svg> ${escaped(r.name)}`;
        $("legend").innerHTML = [line(run, -1), ...before.map(line)].join("<br>");
    };
    const drawStatus = (d) => {
        const loss = run.losses.at(-1);
        $("status").textContent = `step ${d.step} of ${s.steps}` + (loss === undefined ? "" : `, loss ${short(loss)}`) +
            (run.share === undefined ? "" : `, ${(100 * run.share).toFixed(1)} % of the digits right`) +
            (d.step ? `, ${d.rate.toFixed(0)} steps/s` : "") + (run.fingerprint && d.step ? `, weights ${run.fingerprint}` : "");
        $("train").textContent = run.running ? "pause" : "train";
        $("train").disabled = !run.running && d.step >= s.steps;
        $("advance").disabled = d.step >= s.steps;
    };
    const drawGradients = () => {
        const all = sight.gradients.filter((g) => g.name.endsWith(".weight")).map((g) => ({
            name: g.name.replace(/\.weight$/, "").replace(".layers.0", "").replace("_attention", "").replace(/[._]/g, " "),
            value: g.length,
            colour: /(query|key)\.weight$/.test(g.name) ? "minus" : "plus",
        }));
        bars("gradients", "length of each parameter's gradient; queries and keys, which only softmax backward reaches, in the second colour", all, (x) => (Math.log10(x + 1e-12) + 7) / 8);
    };

    const cell = (map, h, r, k) => {
        const a = map.heads[h][r][k], is = chosen && chosen.attention === s.attention && chosen.head === h && chosen.row === r;
        const label = `head ${h + 1}, “${map.rows[r]}” looks at “${map.keys[k]}”: ${short(a)}`;
        return `<td data-h="${h}" data-r="${r}" data-k="${k}" tabindex="${r === 0 && k === 0 ? 0 : -1}" role="gridcell" aria-label="${escaped(label)}" title="${escaped(label)}"${is ? ' class="chosen"' : ""}><i style="opacity:${a.toFixed(3)}"></i></td>`;
    };
    const drawMaps = () => {
        const map = sight.maps[s.attention], focused = document.activeElement.closest?.("#maps td");
        const at = focused && [focused.dataset.h, focused.dataset.r, focused.dataset.k];
        $("maps").innerHTML = range(2).map((h) =>
            `<figure><figcaption>Head ${h + 1}: ${(100 * map.deaf[h]).toFixed(0)} % of its rows deaf, evenness ${short(map.evenness[h])}</figcaption>` +
            `<table class="map" role="grid" aria-label="weights of head ${h + 1}"><thead><tr><th></th>${map.keys.map((k) => `<th scope="col">${escaped(k)}</th>`).join("")}</tr></thead><tbody>` +
            map.rows.map((name_, r) => `<tr><th scope="row">${escaped(name_)}</th>${map.keys.map((_, k) => cell(map, h, r, k)).join("")}</tr>`).join("") +
            `</tbody></table></figure>`).join("");
        if (at) focusCell(...at);
        const cross = sight.maps[2];
        $("pair-text").textContent = `reads ${cross.keys.join(" ")}, is to write ${cross.rows.slice(0, -1).join(" ")}`;
    };

    const focusCell = (h, r, k) => {
        const next = document.querySelector(`#maps td[data-h="${h}"][data-r="${r}"][data-k="${k}"]`);
        if (!next) return;
        document.querySelectorAll(`#maps td[data-h="${h}"]`).forEach((td) => (td.tabIndex = -1));
        next.tabIndex = 0;
        next.focus({ preventScroll: true });
    };
    const moves = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
    const pressed = (event) => {
        const td = event.target.closest("td");
        if (!td) return;
        const { h, r, k } = td.dataset, move = moves[event.key];
        if (move) focusCell(h, +r + move[0], +k + move[1]);
        else if (event.key === "Enter" || event.key === " ") choose(td);
        else return;
        event.preventDefault();
    };
    const choose = (td) => {
        chosen = { attention: s.attention, head: +td.dataset.h, row: +td.dataset.r };
        order("row", chosen);
    };

    const heard = ({ data }) => {
        if (data.failure) {
            $("status").textContent = "training failed: " + data.failure;
            return;
        }
        run.losses.push(...data.losses);
        run.running = data.running;
        run.step = data.step;
        if (data.share !== undefined) run.share = data.share;
        run.fingerprint = data.fingerprint;
        sight = data;
        drawStatus(data);
        drawLoss();
        drawGradients();
        drawMaps();
        if (data.row) listener(data.row, data.place, sight);
    };

    /* ---- controls ---- */

    const fields = { task: "task", factor: "factor", mistake: "mistake", seed: "seed", steps: "steps" };
    const changed = () => {
        for (const [id, key] of Object.entries(fields)) s[key] = +$(id).value;
        s.seed = Math.min(1e6, Math.max(0, Math.floor(s.seed) || 0));
        Address.write();
        begin();
    };
    const restore = () => {
        for (const [id, key] of Object.entries(fields)) {
            $(id).value = s[key];
            if ($(id).value === "") $(id).value = s[key] = Address.own[key];
        }
        s.attention = [0, 1, 2].includes(s.attention) ? s.attention : 2;
        s.pair = Math.max(0, Math.floor(s.pair));
        $("attention").value = s.attention;
    };

    const open = (bytes) => {
        restore();
        worker = new Worker(URL.createObjectURL(new Blob([$("worker").textContent], { type: "text/javascript" })));
        worker.onmessage = heard;
        order("open", { bytes });
        begin();
        for (const id of Object.keys(fields)) $(id).onchange = changed;
        $("train").onclick = () => order(run.running ? "pause" : "run");
        $("advance").onclick = () => order("step");
        $("restart").onclick = () => begin();
        $("attention").onchange = (e) => { s.attention = +e.target.value; Address.write(); drawMaps(); };
        $("pair").onclick = () => { s.pair++; Address.write(); order("pair", { pair: s.pair }); };
        $("maps").onclick = (e) => e.target.closest("td") && choose(e.target.closest("td"));
        $("maps").onkeydown = pressed;
    };
    return { open, whenChosen: (f) => (listener = f), state: () => ({ run, before, sight, chosen }) };
})();
