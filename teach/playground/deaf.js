/* Panel 2: how many rows hear a gradient. */
const Deaf = (() => {
    const s = Address.state, known = {};

    const draw = () => {
        const d = 2 ** s.width;
        const page = (known[d] ??= Library.explain("deaf", { width: d }));
        const column = s.scaled ? "over sqrt d" : "raw";
        const all = page.tables.rows.map((r) => ({
            name: (r.row.text ? r.row.text + ", " : "") + "‖J‖ from " + r["||J|| from"].text,
            value: r[column].number,
            note: r[column].text,
            colour: r.row.text ? "minus" : "plus",
        }));
        const most = Math.max(...page.tables.rows.flatMap((r) => [r.raw.number, r["over sqrt d"].number]));
        $("width-value").textContent = d;
        $("deaf-caption").textContent = `Rows by the size of their Jacobian, ${s.scaled ? "scores over √d" : "raw scores"}, d = ${d}`;
        bars("deaf-chart", $("deaf-caption").textContent, all, (x) => x / most);
        $("deaf-say").textContent = page.texts.at(-1);
        $("deaf-command").textContent = "./softback explain deaf --width " + d;
    };
    const change = (act) => {
        act();
        draw();
        Address.write();
    };
    const open = () => {
        s.width = Math.min(10, Math.max(1, Math.round(s.width)));
        $("width").value = s.width;
        $("scaled").checked = s.scaled;
        $("width").oninput = (e) => change(() => (s.width = +e.target.value));
        $("scaled").onchange = (e) => change(() => (s.scaled = e.target.checked ? 1 : 0));
        draw();
    };
    return { open };
})();
