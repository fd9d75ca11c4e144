/* Panel 1: a row of softmax forward and back. */
const Row = (() => {
    const s = Address.state, MOST_KEYS = 12;
    const columns =
        ["key", "score s", "weight a", "upstream g", "g − avg", "ds", "difference", "mistake"];
    let names = null; /* of keys that came from a model */
    let origin = "";  /* of a row that came from a model */
    let entry = [0, 0]; /* of the Jacobian, that is read out */

    const key = (i) => (names ? names[i] : String(i));
    const temperature = () => 10 ** s.temperature;
    const options = () =>
        ({scores: s.scores, upstream: s.upstream, mask: s.mask, temperature: temperature()});
    const command = () => {
        const list = (numbers) => numbers.map((x) => plain(x)).join(",");
        const words = ["--scores", list(s.scores), "--upstream", list(s.upstream)];
        if (!s.mask.every((kept) => kept)) words.push("--mask", s.mask.join(","));
        if (s.temperature) words.push("--temperature", temperature());
        return "./softback explain softmax " + words.join(" ");
    };

    /* ---- the table ---- */

    const field = (id, i, label, value) => tag("input", {
        type: "number",
        step: "any",
        id: `${id}-${i}`,
        "aria-label": `${label} of key ${key(i)}`,
        value: plain(value, 4),
        "aria-describedby": "row-error",
    });
    const inputs = (i) => ({
        kept: {type: "checkbox", id: `kept-${i}`, checked: s.mask[i] !== 0},
        slide: {type: "range", id: `slide-${i}`, min: -20, max: 20, step: 0.1, value: s.scores[i]},
    });
    const cells = (score, i) => {
        const {kept, slide} = inputs(i), empty = (id, name) => cellOf(name, "", {id: `${id}-${i}`});
        return [
            tag("th", {scope: "row"},
                tag("label", {}, tag("input", {...kept, "aria-label": `keep key ${key(i)}`}), " ",
                    escaped(key(i)))),
            cellOf("score s",
                   [
                       tag("input", {...slide, "aria-label": `slide the score of key ${key(i)}`}),
                       field("score", i, "score", score)
                   ],
                   {class: "score"}),
            empty("a", "weight a"),
            cellOf("upstream g", field("upstream", i, "upstream gradient", s.upstream[i])),
            empty("centred", "g − avg"),
            empty("ds", "ds"),
            empty("difference", "difference"),
            empty("mistake", "mistake"),
        ];
    };

    /* While it is typed, a text may not be a number yet. */
    const typed = (input, set) => {
        const x = +input.value;
        const ok = input.value.trim() !== "" && Number.isFinite(x) && Math.abs(x) <= 1e30;
        input.setAttribute("aria-invalid", String(!ok));
        $("row-error").textContent =
            ok ? "" : `${input.getAttribute("aria-label")}: type a number from −1e30 to 1e30; ` +
                          "the numbers are still those of the last one.";
        if (ok) edit(() => set(x));
    };
    const connect = (i) => {
        $("kept-" + i).onchange = (e) => edit(() => (s.mask[i] = e.target.checked ? 1 : 0));
        $("upstream-" + i).oninput = (e) => typed(e.target, (x) => (s.upstream[i] = x));
        $("score-" + i).oninput = (e) => typed(e.target, (x) => {
            s.scores[i] = x;
            $("slide-" + i).value = x;
        });
        $("slide-" + i).oninput = (e) => edit(() => {
            s.scores[i] = +e.target.value;
            $("score-" + i).value = e.target.value;
        });
    };
    const build = () => {
        $("row-error").textContent = "";
        const sums = [
            tag("th", {scope: "row"}, "sum"), cellOf("score s", ""),
            cellOf("weight a", "", {id: "a-sum"}), cellOf("upstream g", ""), cellOf("g − avg", ""),
            cellOf("ds", "", {id: "ds-sum"}), cellOf("difference", ""),
            cellOf("mistake", "", {id: "mistake-sum"})
        ];
        $("row-table").innerHTML =
            tableOf(columns, [...s.scores.map(cells), sums], s.scores.length);
        range(s.scores.length).forEach(connect);
    };

    /* ---- what is computed ---- */

    const jacobianCell = (x, i, j, cell, left, most) => {
        const at = {x: left + j * cell, y: 18 + i * cell};
        const square = tag("rect", {
            ...at,
            width: cell - 1.5,
            height: cell - 1.5,
            fill: `var(--${x < 0 ? "minus" : "plus"})`,
            "fill-opacity": (0.5 * Math.abs(x) / most).toFixed(3),
            stroke: "var(--line)",
            "data-i": i,
            "data-j": j,
        },
                           tag("title", {}, escaped(`da ${key(i)} / ds ${key(j)} = ${short(x)}`)));
        return s.scores.length > 5
                   ? square
                   : square + words(at.x + cell / 2, at.y + 0.6 * cell, "middle", brief(x));
    };
    /* Two digits, and never 0 for what is not. */
    const brief = (x) => {
        if (x === 0) return "0";
        const digits = Math.abs(x) >= 0.1 ? 2 : Math.abs(x) >= 0.001 ? 3 : 0;
        return numeral(digits ? x.toFixed(digits) : x.toExponential(0)).replace("0.", ".");
    };
    const drawJacobian = () => {
        const J = Library.jacobian(options()), n = J.length;
        const left = 14 + 7 * Math.max(...range(n).map((i) => key(i).length));
        const cell = Math.min(48, 264 / n), most = Math.max(1e-9, largest(J.flat()));
        const label = "Jacobian, a heat map; each row and column sums to 0";
        const rows = J.map((row, i) => [words(left - 6, 18 + (i + 0.6) * cell, "end", key(i)),
                                        words(left + (i + 0.5) * cell, 12, "middle", key(i)),
                                        row.map((x, j) => jacobianCell(x, i, j, cell, left, most)),
        ]);
        picture("row-jacobian", label, left + n * cell + 2, 20 + n * cell, rows);
        read(0, 0);
    };
    /* The entry under the pointer, or that which the arrow keys chose. */
    const read = (i, j) => {
        const cells = [...$("row-jacobian").querySelectorAll("[data-i]")];
        const found = cells.find((c) => +c.dataset.i === i && +c.dataset.j === j);
        if (!found) return;
        for (const c of cells) c.classList.toggle("chosen", c === found);
        entry = [i, j];
        $("row-jacobian-read").textContent = found.textContent;
    };
    const moves = {ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0]};
    const connectJacobian = () => {
        $("row-jacobian").onpointerover = ({target}) => {
            const {i, j} = (target.closest("[data-i]") || {dataset: {}}).dataset;
            if (i !== undefined) read(+i, +j);
        };
        $("row-jacobian").onkeydown = (e) => {
            const by = moves[e.key];
            if (!by) return;
            e.preventDefault();
            read(entry[0] + by[0], entry[1] + by[1]);
        };
    };

    const printed = ({text}) => numeral(text);
    const drawRow = (forward, back, most, i) => {
        const ds = back.ds.number;
        $("a-" + i).innerHTML =
            s.mask[i] ? share(forward.a.number) + " " + tag("span", {class: "number"}, printed(forward.a))
                      : "blocked";
        $("centred-" + i).textContent = printed(back["g - avg"]);
        $("ds-" + i).innerHTML = signed(ds, most, printed(back.ds)).join("");
        $("difference-" + i).textContent = back.check.text === "ok" ? "✓" : back.check.text;
        $("difference-" + i).title = "central difference: " + printed(back.difference);
        $("mistake-" + i).textContent = printed(back.mistake);
    };
    const drawSums = (forward, backward) => {
        const sum = (rows, name) => sumOf(rows.map((row) => row[name].number));
        $("a-sum").textContent = sum(forward, "a");
        $("ds-sum").textContent = sum(backward, "ds");
        $("mistake-sum").textContent = sum(backward, "mistake");
    };
    /* "FORWARD  a = ..." begins with a word that is set in bold. */
    const paragraph = (text) => {
        const [, title, rest] = text.match(/^([A-Z]{3,})? *(.*)$/s);
        const name = title ? title[0] + title.slice(1).toLowerCase() + ". " : "";
        return tag("p", {}, tag("strong", {}, name), typeset(rest));
    };
    const draw = () => {
        const page = Library.explain("softmax", options()), {forward, backward} = page.tables;
        const most = largest(backward.map((r) => r.ds.number));
        const said = page.texts.filter((t) => /^(FORWARD|JACOBIAN|BACKWARD|The ds)/.test(t));
        backward.forEach((back, i) => drawRow(forward[i], back, most, i));
        drawSums(forward, backward);
        $("temperature-value").textContent = temperature().toFixed(2);
        $("row-say").innerHTML = said.map(paragraph).join("");
        $("row-command").textContent = command();
        drawJacobian();
        if ($("rule").value) Rules.draw();
    };

    /* ---- changes ---- */

    const change = (act) => {
        act();
        draw();
        Address.write();
    };
    /* What a reader changes in a row of the model is no longer that row. */
    const edit = (act) => {
        if (origin) $("row-origin").textContent = "Changed; it began as " + origin;
        change(act);
    };
    const forget = () => {
        names = null;
        origin = "";
        $("row-from").hidden = true;
    };
    const replace = (scores, upstream, mask = scores.map(() => 1)) => change(() => {
        Object.assign(s, {scores, upstream, mask, temperature: 0});
        $("temperature").value = 0;
        build();
    });
    const begin = (scores) => {
        forget();
        replace(scores, [...Address.own.upstream]);
    };
    const resize = (by) => {
        const n = s.scores.length + by, more = {scores: 0, upstream: 0, mask: 1};
        if (n < 2 || n > MOST_KEYS) return;
        forget();
        change(() => {
            for (const name of Object.keys(more))
                s[name] = by > 0 ? [...s[name], more[name]] : s[name].slice(0, n);
            build();
        });
    };

    /* A row of the model's attention: where it is from, and its keys. */
    const take = (from, keys, scores, upstream, mask) => {
        names = keys;
        origin = from;
        replace(scores, upstream, mask);
        $("row-from").hidden = false;
        $("row-origin").textContent = origin;
        $("row").focus();
        $("row").scrollIntoView();
    };
    const back = () => Race.goTo(s.drawer ? "drawer-back" : "play");

    const open = () => {
        s.temperature = Math.min(1, Math.max(-1, s.temperature));
        $("temperature").value = s.temperature;
        $("row-calm").onclick = () => begin([2, 1, 0.1, -1]);
        $("row-saturated").onclick = () => begin([16, 8, 0.8, -8]);
        $("row-masked").onclick = () => edit(() => {
            s.mask = s.mask.map(() => 0);
            build();
        });
        $("row-more").onclick = () => resize(1);
        $("row-less").onclick = () => resize(-1);
        $("row-raise").onclick = () => edit(() => {
            s.scores = s.scores.map((x) => +(x + 1).toPrecision(12));
            build();
        });
        $("row-back").onclick = back;
        connectJacobian();
        $("temperature").oninput = (e) => edit(() => (s.temperature = +e.target.value));
        build();
        draw();
    };
    return {open, take, options, key};
})();
