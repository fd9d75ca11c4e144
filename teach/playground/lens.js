/* Panel 5: one row of the model's attention, with the numbers of its loss. */
const Lens = (() => {
    const columns = ["key", "s", "a", "g = dO v", "g - D", "ds", "difference"];

    const show = (page, place, sight) => {
        const rows = page.tables.row;
        const origin = `${page.title}, after step ${place.step}. ${page.texts[0]}`;
        const keys = rows.map((r) => r.key.text), kept = rows.map((r) => (r.s.text === "blocked" ? 0 : 1));
        const digits = (x) => +x.toPrecision(6); /* the command in panel 1 is to say the same */
        const scores = rows.map((r, i) => (kept[i] ? digits(r.s.number) : 0)), upstream = rows.map((r) => digits(r["g = dO v"].number));
        $("lens-title").textContent = origin;
        $("lens-table").innerHTML =
            `<thead><tr>${columns.map((c) => `<th scope="col">${escaped(c)}</th>`).join("")}</tr></thead><tbody>` +
            rows.map((r) => `<tr>${columns.map((c) => `<td class="${c === "ds" ? sign(r.ds.number) : ""}">${escaped(r[c].text)}</td>`).join("")}</tr>`).join("") + "</tbody>";
        $("lens-say").textContent = page.texts.slice(1).join(" ");
        const take = () => Row.take(origin, keys, scores, upstream, kept);
        $("lens-open").hidden = false;
        $("lens-open").onclick = take;
        take();
    };
    return { open: () => Training.whenChosen(show) };
})();
