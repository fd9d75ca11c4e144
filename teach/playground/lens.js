/* Panel 5: one row of the model's attention, with the numbers of its loss. */
const Lens = (() => {
    const columns = ["key", "s", "a", "g = dO v", "g - D", "ds", "difference"];

    const cell = (row, column) =>
        tag("td", {class: column === "ds" && sign(row.ds.number)}, escaped(row[column].text));

    /* The row in panel 1, with six digits of each number, so that its command shows the same. */
    const take = (origin, rows) => {
        const digits = (x) => +x.toPrecision(6);
        const kept = rows.map((r) => (r.s.text === "blocked" ? 0 : 1));
        Row.take(
            origin, rows.map((r) => r.key.text),
            rows.map((r, i) => (kept[i] ? digits(r.s.number) : 0)),
            rows.map((r) => digits(r["g = dO v"].number)), kept);
    };

    const show = (page, place) => {
        const rows = page.tables.row;
        const origin = `${page.title}, after step ${place.step}. ${page.texts[0]}`;
        $("lens-title").textContent = origin;
        $("lens-table").innerHTML =
            tableOf(columns, rows.map((row) => columns.map((column) => cell(row, column))));
        $("lens-say").textContent = page.texts.slice(1).join(" ");
        $("lens-open").hidden = false;
        $("lens-open").onclick = () => take(origin, rows);
        take(origin, rows);
    };
    return {open: () => Training.whenChosen(show)};
})();
