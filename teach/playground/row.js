/* One row of softmax, forward and back. */
const Row = (() => {
    const s = Address.state, MOST_KEYS = 12;
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

    const printed = ({text}) => numeral(text);
    /* Columns behind the key: the name; and of those that are computed a name for ids, what is drawn
       of a row of the page, and whether there is a sum. */
    const columns = [
        ["score s"],
        ["weight a", "a", ({a}, most, i) => !s.mask[i] ? "blocked"
            : [share(a.number), " ", tag("span", {class: "number"}, printed(a))], true],
        ["upstream g"],
        ["g − avg", "centred", (row) => printed(row["g - avg"])],
        ["ds", "ds", ({ds}, most) => signed(ds.number, most, printed(ds)), true],
        ["difference", "difference", ({check, difference}) =>
            tag("span", {title: "central difference: " + printed(difference)},
                check.text === "ok" ? "✓" : check.text)],
        ["mistake", "mistake", ({mistake}) => printed(mistake), true],
    ];
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
        const {kept, slide} = inputs(i);
        const typed = {
            "score s": [tag("input", {...slide, "aria-label": `slide the score of key ${key(i)}`}),
                        field("score", i, "score", score)],
            "upstream g": field("upstream", i, "upstream gradient", s.upstream[i]),
        };
        return [
            rowHead(tag("label", {}, tag("input", {...kept, "aria-label": `keep key ${key(i)}`}), " ",
                        escaped(key(i)))),
            columns.map(([name, id]) => cellOf(name, typed[name] ?? "", {
                id: id && `${id}-${i}`,
                class: name === "score s" && "score"
            })),
        ];
    };

    /* While it is typed, a text may not be a number yet. */
    const typed = (input, changes) => {
        const x = +input.value;
        const ok = input.value.trim() !== "" && Number.isFinite(x) && Math.abs(x) <= 1e30;
        input.setAttribute("aria-invalid", String(!ok));
        $("row-error").textContent =
            ok ? "" : `${input.getAttribute("aria-label")}: type a number from −1e30 to 1e30; ` +
                          "the numbers are still those of the last one.";
        if (ok) edit(changes(x));
    };
    const connect = (i) => {
        $("kept-" + i).onchange = (e) => edit({mask: s.mask.with(i, +e.target.checked)});
        $("upstream-" + i).oninput = (e) => typed(e.target, (x) => ({upstream: s.upstream.with(i, x)}));
        $("score-" + i).oninput = (e) => typed(e.target, (x) => {
            $("slide-" + i).value = x;
            return {scores: s.scores.with(i, x)};
        });
        $("slide-" + i).oninput = (e) => {
            $("score-" + i).value = e.target.value;
            edit({scores: s.scores.with(i, +e.target.value)});
        };
    };
    const build = () => {
        $("row-error").textContent = "";
        const sums = [rowHead("sum"),
                      columns.map(([name, id, , summed]) => cellOf(name, "", {id: summed && `${id}-sum`}))];
        $("row-table").innerHTML = tableOf(["key", ...columns.map(([name]) => name)],
                                           [...s.scores.map(cells), sums], s.scores.length);
        range(s.scores.length).forEach(connect);
    };

    /* ---- what is computed ---- */

    const jacobianCell = (x, i, j, cell, left, most, text) => {
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
                           tag("title", {}, escaped(`∂a ${key(i)} / ∂s ${key(j)} = ${short(x)}`)));
        return s.scores.length > 5
                   ? square
                   : square + words(at.x + cell / 2, at.y + 0.6 * cell, "middle", text(x));
    };
    /* As many digits as fit a cell, whose title has three. */
    const brief = (x) => Math.abs(x) < 0.0005 ? (x === 0 ? "0" : "≈0")
                                              : numeral(x.toFixed(Math.abs(x) < 0.1 ? 3 : 2)).replace("0.", ".");
    const drawJacobian = () => {
        const J = Library.jacobian(options()), n = J.length;
        const left = 14 + 7 * Math.max(...range(n).map((i) => key(i).length));
        const cell = Math.min(48, 264 / n), most = Math.max(1e-9, largest(J.flat()));
        const {name, text} = scaled("Jacobian ∂a/∂s", J.flat()), few = text === short ? brief : text;
        const label = "Jacobian, a heat map; each row and column sums to 0";
        const rows = J.map((row, i) => [words(left - 6, 18 + (i + 0.6) * cell, "end", key(i)),
                                        words(left + (i + 0.5) * cell, 12, "middle", key(i)),
                                        row.map((x, j) => jacobianCell(x, i, j, cell, left, most, few)),
        ]);
        $("row-jacobian-caption").textContent = name;
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
    const connectJacobian = () => {
        $("row-jacobian").onpointerover = ({target}) => {
            const {i, j} = (target.closest("[data-i]") || {dataset: {}}).dataset;
            if (i !== undefined) read(+i, +j);
        };
        $("row-jacobian").onkeydown = (e) => {
            const by = arrows[e.key];
            if (!by) return;
            e.preventDefault();
            read(entry[0] + by[0], entry[1] + by[1]);
        };
    };

    /* "FORWARD  a = ..." begins with a word that is set in bold. */
    const paragraph = (text) => {
        const [, title, rest] = text.match(/^([A-Z]{3,})? *(.*)$/s);
        const name = title ? title[0] + title.slice(1).toLowerCase() + ". " : "";
        return tag("p", {}, tag("strong", {}, name), typeset(rest));
    };
    const draw = () => {
        const page = Library.explain("softmax", options()), {forward, backward} = page.tables;
        const rows = forward.map((row, i) => ({...row, ...backward[i]}));
        const most = largest(rows.map((row) => row.ds.number));
        const said = page.texts.filter((t) => /^(FORWARD|JACOBIAN|BACKWARD|The ds)/.test(t));
        for (const [, id, drawn, summed] of columns.filter(([, id]) => id)) {
            rows.forEach((row, i) => ($(`${id}-${i}`).innerHTML = [drawn(row, most, i)].flat().join("")));
            if (summed) $(id + "-sum").textContent = sumOf(rows.map((row) => row[id].number));
        }
        $("temperature-value").textContent = temperature().toFixed(2);
        $("row-say").innerHTML = said.map(paragraph).join("");
        $("row-command").textContent = command();
        drawJacobian();
        if ($("rule").value) Rules.draw();
    };

    /* ---- changes ---- */

    /* Changes of the state; the table is built anew where keys come or go. */
    const change = (changes, first = () => {}) => {
        Address.set(changes);
        first();
        draw();
    };
    /* What a reader changes in a row of the model is no longer that row. */
    const edit = (...changes) => {
        if (origin) $("row-origin").textContent = "Changed; it began as " + origin;
        change(...changes);
    };
    const forget = () => {
        names = null;
        origin = "";
        $("row-from").hidden = true;
    };
    const replace = (scores, upstream, mask = scores.map(() => 1)) => {
        $("temperature").value = 0;
        change({scores, upstream, mask, temperature: 0}, build);
    };
    const begin = (scores) => {
        forget();
        replace(scores, [...Address.own.upstream]);
    };
    const resize = (by) => {
        const n = s.scores.length + by;
        const of = (list, more) => (by > 0 ? [...list, more] : list.slice(0, n));
        if (n < 2 || n > MOST_KEYS) return;
        forget();
        change({scores: of(s.scores, 0), upstream: of(s.upstream, 0), mask: of(s.mask, 1)}, build);
    };

    /* A row of the model's attention: where it is from, and its keys. */
    const take = (from, keys, scores, upstream, mask) => {
        names = keys;
        origin = from;
        replace(scores, upstream, mask);
        $("row-from").hidden = false;
        $("row-origin").textContent = origin;
        turnTo("row");
    };
    const back = () => Race.goTo(s.drawer ? "drawer-back" : "play");

    const open = () => {
        s.temperature = Math.min(1, Math.max(-1, s.temperature));
        $("temperature").value = s.temperature;
        $("row-calm").onclick = () => begin([2, 1, 0.1, -1]);
        $("row-saturated").onclick = () => begin([16, 8, 0.8, -8]);
        $("row-masked").onclick = () => edit({mask: s.mask.map(() => 0)}, build);
        $("row-more").onclick = () => resize(1);
        $("row-less").onclick = () => resize(-1);
        $("row-raise").onclick = () =>
            edit({scores: s.scores.map((x) => +(x + 1).toPrecision(12))}, build);
        $("row-back").onclick = back;
        connectJacobian();
        $("temperature").oninput = (e) => edit({temperature: +e.target.value});
        build();
        draw();
    };
    return {open, take, options, key};
})();
