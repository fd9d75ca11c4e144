/* How many rows are saturated. */
const SaturatedRows = (() => {
    const s = Address.state, known = {};

    const draw = () => {
        const d = 2 ** s.width, column = s.scaled ? "over sqrt d" : "raw";
        const page = (known[d] ??= Library.explain("saturated-rows", {width: d}));
        const {rows} = page.tables;
        const most = Math.max(...rows.flatMap((r) => [r.raw.number, r["over sqrt d"].number]));
        const from = rows.map((r) => numeral(r["||J|| from"].text));
        const bins = rows.map((r, i) => ({
            name: from[i] + " to " + (from[i + 1] ?? 1),
            value: r[column].number,
            note: r[column].text,
            colour: r.row.text ? "quiet" : "blue",
        }));
        const scores = s.scaled ? "scores over √d" : "raw scores";
        const caption = `Rows by ‖J‖, ${scores}, d = ${d}; saturated ones in grey`;
        $("width-value").textContent = d;
        $("saturated-caption").textContent = caption;
        $("saturated-say").innerHTML = typeset(page.texts.at(-1));
        $("saturated-command").textContent = "./softback explain saturated-rows --width " + d;
        bars("saturated-chart", caption, bins, (x) => x / most);
    };
    const change = (changes) => {
        Address.set(changes);
        draw();
    };
    const open = () => {
        $("width").value = s.width;
        $("scaled").checked = s.scaled;
        $("width").oninput = (e) => change({width: +e.target.value});
        $("scaled").onchange = (e) => change({scaled: +e.target.checked});
        draw();
        onWidth("saturated-chart", draw);
    };
    return {open};
})();

/* The online softmax, block by block, and its backward. */
const Flash = (() => {
    const s = Address.state;
    const forwardColumns = ["block", "scores", "m", "rescale", "l", "o / l", "held"];
    const backwardColumns = ["j", "a = exp(s - m)/l", "g = dy v", "recomputed", "stored", "check"];
    const BLOCK_MS = 700, KEY_MS = 150;
    let page, timer = null, drawn = () => {};

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
                .map((x, i) => tag("span", {class: isNow(i) ? "now" : isGone(i) && "gone"}, short(x),
                                   tag("br", {}), tag("small", {}, "v " + short(s.fvalues[i]))))
                .join("");
    };
    const drawTable = () => {
        const columns = isForward() ? forwardColumns : backwardColumns;
        const shown =
            isForward() ? blocks().slice(0, done()) : page.tables.backward.slice(0, back());
        const cells = (row) => columns.map((name) => tag("td", {}, typeset(row[name].text)));
        const rows = shown.slice(s.teacher ? -5 : 0); /* what a projector has room for */
        $("flash-table").innerHTML = tableOf(columns, rows.map(cells), rows.length - 1);
    };
    const drawMemory = () => {
        const held = done() > 0 ? blocks()[done() - 1].held.number : 0, whole = s.fscores.length;
        const passes = done() / blocks().length + (isForward() ? 0 : back() / whole);
        const compare = (id, label, online, stored, most) =>
            bars(id, label, [{name: "block by block", ...online},
                             {name: "the whole row", colour: "quiet", ...stored}], (x) => x / most);
        compare("flash-memory", "numbers in memory", {value: held}, {value: whole}, Math.max(whole, held));
        compare("flash-passes", "how often each score is computed",
                {value: passes, note: passes === 1 ? "once" : `${short(passes)} times`},
                isForward() ? {value: passes} : {value: 1, note: "1, row stored"}, 2);
    };

    const place = () => {
        if (s.fstep === 0) return "before the first block";
        return isForward() ? `forward, block ${done()} of ${blocks().length}`
                           : `backward, j = ${back() - 1}`;
    };
    /* What the last block did to the sums before it. */
    const rescaled = () => {
        const [before, block] = blocks().slice(done() - 2, done()), m = before.m.text, to = block.m.text;
        const what = m === to ? `m stays ${m}, so l and o are not rescaled`
                              : `m rises from ${m} to ${to}, so l and o are multiplied by exp(${m} - ` +
                                    `${to.replace(/^-.*/, "($&)")}) = ${block.rescale.text}`;
        return tag("strong", {}, typeset(`Block ${done()}: ${what}.`)) + " ";
    };
    const draw = () => {
        const end = done() === blocks().length;
        drawCells();
        drawTable();
        drawMemory();
        $("flash-place").textContent = place();
        const held = `It holds ${s.block + 3} numbers, for a row of any length: the scores of a block, m, l and o.`;
        $("flash-say").innerHTML = (isForward() && done() > 1 ? rescaled() : "") +
                                    (isForward() && end ? tag("strong", {}, held) + " " : "") +
                                    typeset(page.texts[!isForward() ? 2 : end ? 1 : 0]);
        $("flash-command").textContent = `./softback explain flash --scores ${s.fscores.join()} ` +
                                         `--values ${s.fvalues.join()} --block ${s.block}`;
        drawn();
        $("flash-back").disabled = s.fstep === 0;
        $("flash-step").disabled = s.fstep === last();
        $("flash-play").textContent = timer ? "❚❚ pause" : "▶ play";
    };

    const change = (changes) => {
        Address.set(changes);
        compute();
        draw();
    };
    const rest = () => {
        clearTimeout(timer);
        timer = null;
    };
    const goTo = (fstep) => {
        rest();
        change({fstep});
    };
    /* One step after the other, until somebody presses or types anything. */
    const tick = (begins) => {
        const voted = s.teacher && !begins && s.fstep === blocks().length; /* a class looks at the end of forward */
        if (s.fstep === last() || voted) return goTo(s.fstep);
        timer = setTimeout(tick, isForward() ? BLOCK_MS : KEY_MS);
        change({fstep: s.fstep + 1});
    };
    const play = () => {
        if (timer) return goTo(s.fstep);
        if (s.fstep === last()) s.fstep = 0;
        tick(true);
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
        rest();
        const fits = n >= 2 && n <= 32 && fvalues.length === n;
        const ok = fits && areNumbers(fscores) && areNumbers(fvalues);
        const whole = Number.isInteger(block) && block >= 1 && block <= 32;
        mark("flash-scores", ok);
        mark("flash-values", ok);
        mark("flash-block", whole);
        if (!ok)
            $("flash-place").textContent = "expected: 2 to 32 scores, and a value for each";
        else if (whole)
            change({fscores, fvalues, block, fstep: 0});
    };

    const open = (whenDrawn = drawn) => {
        drawn = whenDrawn;
        $("flash-scores").value = s.fscores.join(", ");
        $("flash-values").value = s.fvalues.join(", ");
        $("flash-block").value = s.block;
        for (const id of ["flash-scores", "flash-values", "flash-block"]) $(id).oninput = typed;
        $("flash-play").onclick = play;
        $("flash-few").onclick = few;
        $("flash-step").onclick = () => goTo(s.fstep + 1);
        $("flash-back").onclick = () => goTo(s.fstep - 1);
        $("flash-restart").onclick = () => goTo(0);
        compute();
        draw();
        onWidth("flash-memory", draw);
    };
    return {open};
})();
