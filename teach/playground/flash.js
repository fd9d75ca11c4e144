/* Panel 3: the online softmax, block by block, and back. */
const Flash = (() => {
    const s = Address.state;
    let page;

    const compute = () => {
        page = Library.explain("flash", { scores: s.fscores, values: s.fvalues, block: s.block });
        s.fstep = Math.min(s.fstep, last());
    };
    const blocks = () => page.tables.blocks;
    const last = () => blocks().length + s.fscores.length;
    const blockOf = (i) => Math.floor(i / s.block);

    const table = (rows, columns, shown) => {
        const head = columns.map((c) => `<th scope="col">${escaped(c)}</th>`).join("");
        const body = rows.slice(0, shown).map((r, i) => `<tr${i === shown - 1 ? ' class="now"' : ""}>${columns.map((c) => `<td>${escaped(r[c].text)}</td>`).join("")}</tr>`);
        return `<thead><tr>${head}</tr></thead><tbody>${body.join("")}</tbody>`;
    };
    const forward = () => s.fstep <= blocks().length;

    const draw = () => {
        const done = Math.min(s.fstep, blocks().length), back = s.fstep - blocks().length;
        const now = (i) => (forward() ? done > 0 && blockOf(i) === done - 1 : i === back - 1);
        const gone = (i) => forward() && blockOf(i) >= done;
        $("flash-cells").innerHTML = s.fscores.map((x, i) => `<span class="${now(i) ? "now" : gone(i) ? "gone" : ""}">${short(x)}<br><small>v ${short(s.fvalues[i])}</small></span>`).join("");
        $("flash-place").textContent = s.fstep === 0 ? "before the first block" : forward() ? `forward, block ${done - 1} of ${blocks().length}` : `backward, key ${back - 1}`;
        $("flash-table").innerHTML = forward()
            ? table(blocks(), ["block", "scores", "m", "rescale", "l", "o / l", "held"], done)
            : table(page.tables.backward, ["j", "a = exp(s - m)/l", "g = do v", "recomputed", "stored", "check"], back);
        $("flash-say").textContent = page.texts[forward() ? (done === blocks().length ? 1 : 0) : 2];
        const held = done > 0 ? blocks()[done - 1].held.number : 0, whole = s.fscores.length;
        bars("flash-memory", "numbers held at a time", [{ name: "block by block", value: held }, { name: "the whole row", value: whole, colour: "minus" }], (x) => x / Math.max(whole, held));
        $("flash-command").textContent = `./softback explain flash --scores ${s.fscores.join(",")} --values ${s.fvalues.join(",")} --block ${s.block}`;
        $("flash-back").disabled = s.fstep === 0;
        $("flash-step").disabled = s.fstep === last();
    };
    const change = (act) => {
        act();
        compute();
        draw();
        Address.write();
    };
    const list = (text) => text.split(/[ ,]+/).filter((w) => w !== "").map(Number);

    /* Both lists at once: as long as they do not fit together, nothing is computed. */
    const typed = () => {
        const scores = list($("flash-scores").value), values = list($("flash-values").value), block = +$("flash-block").value;
        const ok = scores.length >= 2 && scores.length <= 32 && values.length === scores.length && [...scores, ...values].every((x) => Number.isFinite(x) && Math.abs(x) < 1e6);
        const fits = Number.isInteger(block) && block >= 1 && block <= 32;
        $("flash-scores").setAttribute("aria-invalid", String(!ok));
        $("flash-values").setAttribute("aria-invalid", String(!ok));
        $("flash-block").setAttribute("aria-invalid", String(!fits));
        if (!ok) $("flash-place").textContent = "2 to 32 scores, and a value for each, are wanted";
        if (ok && fits) change(() => Object.assign(s, { fscores: scores, fvalues: values, block, fstep: 0 }));
    };

    const open = () => {
        s.block = Math.min(32, Math.max(1, Math.round(s.block)));
        s.fstep = Math.max(0, Math.round(s.fstep));
        $("flash-scores").value = s.fscores.join(", ");
        $("flash-values").value = s.fvalues.join(", ");
        $("flash-block").value = s.block;
        for (const id of ["flash-scores", "flash-values", "flash-block"]) $(id).oninput = typed;
        $("flash-step").onclick = () => change(() => s.fstep++);
        $("flash-back").onclick = () => change(() => s.fstep--);
        $("flash-restart").onclick = () => change(() => (s.fstep = 0));
        compute();
        draw();
    };
    return { open };
})();
