/* Panel 3: the online softmax, block by block, and its backward. */
const Flash = (() => {
    const s = Address.state;
    const forwardColumns = ["block", "scores", "m", "rescale", "l", "o / l", "held"];
    const backwardColumns = ["j", "a = exp(s - m)/l", "g = do v", "recomputed", "stored", "check"];
    const BLOCK_MS = 700, KEY_MS = 150;
    let page, timer = null;

    const compute = () => {
        page = Library.explain("flash", {scores: s.fscores, values: s.fvalues, block: s.block});
        s.fstep = Math.min(s.fstep, last());
    };
    const blocks = () => page.tables.blocks;
    const last = () => blocks().length + s.fscores.length;
    const isForward = () => s.fstep <= blocks().length;
    const done = () => Math.min(s.fstep, blocks().length);
    const back = () => s.fstep - blocks().length;

    const drawCells = () => {
        const isNow = (i) => {
            const block = Math.floor(i / s.block);
            return isForward() ? done() > 0 && block === done() - 1 : i === back() - 1;
        };
        const isGone = (i) => isForward() && Math.floor(i / s.block) >= done();
        $("flash-cells").innerHTML =
            s.fscores
                .map((x, i) => {
                    const value = tag("small", {}, "v " + short(s.fvalues[i]));
                    const state = isNow(i) ? "now" : isGone(i) ? "gone" : false;
                    return tag("span", {class: state}, short(x), tag("br", {}), value);
                })
                .join("");
    };
    const drawTable = () => {
        const columns = isForward() ? forwardColumns : backwardColumns;
        const shown =
            isForward() ? blocks().slice(0, done()) : page.tables.backward.slice(0, back());
        const cells = (row) => columns.map((name) => tag("td", {}, typeset(row[name].text)));
        $("flash-table").innerHTML = tableOf(columns, shown.map(cells), shown.length - 1);
    };
    const drawMemory = () => {
        const held = done() > 0 ? blocks()[done() - 1].held.number : 0, whole = s.fscores.length;
        const all = [
            {name: "block by block", value: held},
            {name: "the whole row", value: whole, colour: "quiet"},
        ];
        bars("flash-memory", "numbers in memory", all, (x) => x / Math.max(whole, held));
        const passes = done() / blocks().length + (isForward() ? 0 : back() / whole);
        const reads = [
            {name: "block by block", value: passes, note: short(passes) + " of 2"},
            {
                name: "the whole row",
                value: isForward() ? passes : 1,
                colour: "quiet",
                note: isForward() ? short(passes) : "1, and the row stays stored"
            },
        ];
        bars("flash-passes", "how often each score is computed", reads, (x) => x / 2);
    };

    const place = () => {
        if (s.fstep === 0) return "before the first block";
        return isForward() ? `forward, block ${done() - 1} of ${blocks().length}`
                           : `backward, key ${back() - 1}`;
    };
    const draw = () => {
        const end = done() === blocks().length;
        drawCells();
        drawTable();
        drawMemory();
        $("flash-place").textContent = place();
        $("flash-say").innerHTML = typeset(page.texts[!isForward() ? 2 : end ? 1 : 0]);
        $("flash-command").textContent = `./softback explain flash --scores ${s.fscores.join()} ` +
                                         `--values ${s.fvalues.join()} --block ${s.block}`;
        $("flash-back").disabled = s.fstep === 0;
        $("flash-step").disabled = s.fstep === last();
        $("flash-play").textContent = timer ? "❚❚ pause" : "▶ play";
    };

    const change = (act) => {
        act();
        compute();
        draw();
        Address.write();
    };
    /* One step after the other, until somebody presses anything. */
    const rest = () => {
        clearTimeout(timer);
        timer = null;
    };
    const play = () => {
        if (timer) return change(rest);
        if (s.fstep === last()) s.fstep = 0;
        const tick = () => {
            timer = setTimeout(tick, isForward() ? BLOCK_MS : KEY_MS);
            change(() => (s.fstep < last() ? s.fstep++ : rest()));
        };
        tick();
    };
    const few = () => {
        $("flash-scores").value = "1, 2, 5, 0.5, 3, -1";
        $("flash-values").value = "1, -1, 2, 0.5, 0, 4";
        $("flash-block").value = 2;
        typed();
    };
    const mark = (id, ok) => $(id).setAttribute("aria-invalid", String(!ok));
    const listIn = (id) => $(id).value.split(/[ ,]+/).filter((w) => w !== "").map(Number);
    const areNumbers = (list) => list.every((x) => Number.isFinite(x) && Math.abs(x) < 1e6);

    /* Both lists are read together: while they do not fit, nothing is computed. */
    const typed = () => {
        const fscores = listIn("flash-scores"), fvalues = listIn("flash-values");
        const block = +$("flash-block").value, n = fscores.length;
        const fits = n >= 2 && n <= 32 && fvalues.length === n;
        const ok = fits && areNumbers(fscores) && areNumbers(fvalues);
        const whole = Number.isInteger(block) && block >= 1 && block <= 32;
        mark("flash-scores", ok);
        mark("flash-values", ok);
        mark("flash-block", whole);
        if (!ok)
            $("flash-place").textContent = "expected: 2 to 32 scores, and a value for each";
        else if (whole)
            change(() => Object.assign(s, {fscores, fvalues, block, fstep: 0}));
    };

    const open = () => {
        $("flash-scores").value = s.fscores.join(", ");
        $("flash-values").value = s.fvalues.join(", ");
        $("flash-block").value = s.block;
        for (const id of ["flash-scores", "flash-values", "flash-block"]) $(id).oninput = typed;
        const press = (act) => () => {
            rest();
            change(act);
        };
        $("flash-play").onclick = play;
        $("flash-few").onclick = press(few);
        $("flash-step").onclick = press(() => s.fstep++);
        $("flash-back").onclick = press(() => s.fstep--);
        $("flash-restart").onclick = press(() => (s.fstep = 0));
        compute();
        draw();
        onWidth("flash-memory", draw);
    };
    return {open};
})();
