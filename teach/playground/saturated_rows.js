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
            colour: r.row.text ? "quiet" : "accent",
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
