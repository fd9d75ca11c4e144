/* The maps of attention of both racers: a row for each query, a column for each key, dark where the
   weight is large. A chosen cell opens its row in the drawer. */
const Maps = (() => {
    const s = Address.state, shapes = {};
    const id = (r, h, q, k) => `cell-${r}-${h}-${q}-${k}`;

    const build = (racer, seen) => {
        const cell = (h, q, k) => tag("td", {
            role: "gridcell",
            id: id(racer.index, h, q, k),
            tabindex: q + k ? -1 : 0,
            "data-r": racer.index,
            "data-h": h,
            "data-q": q,
            "data-k": k
        });
        const row = (h, name, q) =>
            tag("tr", {role: "row"}, tag("th", {scope: "row", role: "rowheader"}, escaped(name)),
                range(seen.keys.length).map((k) => cell(h, q, k)));
        const head = (h) =>
            tag("figure", {class: "head"}, tag("figcaption", {id: `caption-${racer.index}-${h}`}),
                tag("table",
                    {class: "map", role: "grid", "aria-labelledby": `caption-${racer.index}-${h}`},
                    tag("thead", {},
                        tag("tr", {role: "row"},
                            tag("th", {scope: "col", role: "columnheader", "aria-label": "query"}),
                            seen.keys.map((name) => tag("th", {
                                                        scope: "col",
                                                        role: "columnheader",
                                                        class: name.length > 2 && "long"
                                                    },
                                                        escaped(name))))),
                    tag("tbody", {}, seen.rows.map((name, q) => row(h, name, q)))));
        $(racer.id + "-maps").innerHTML = range(2).map(head).join("");
    };
    const isChosen = (racer, h, q) =>
        s.drawer && s.racer === racer.index && s.head === h && s.row === q;

    const draw = (racer, frame) => {
        const seen = frame.attentions[s.attention], n = seen.keys.length;
        const shape = seen.rows + "|" + seen.keys;
        if (shapes[racer.id] !== shape) build(racer, seen);
        shapes[racer.id] = shape;
        seen.a.forEach((a, i) => {
            const k = i % n, q = Math.floor(i / n) % seen.rows.length,
                  h = Math.floor(i / n / seen.rows.length);
            const td = $(id(racer.index, h, q, k)), level = a.toFixed(2);
            const name = `${seen.rows[q]} attends to ${seen.keys[k]}: ${short(a)}`;
            if (td.dataset.level !== level) { /* a style costs more than all else here */
                td.dataset.level = level;
                td.style.setProperty("--t", level);
            }
            td.title = name;
            td.setAttribute("aria-label", name);
            td.classList.toggle("chosen", Boolean(isChosen(racer, h, q)));
        });
        range(2).forEach((h) => {
            const saturated = percent(seen.saturated[h]);
            $(`caption-${racer.index}-${h}`).textContent = `head ${h + 1}: ${saturated} saturated`;
        });
    };

    const focusCell = (r, h, q, k) => {
        const next = $(id(r, h, q, k));
        if (!next) return;
        for (const td of document.querySelectorAll(`td[data-r="${r}"][data-h="${h}"]`))
            td.tabIndex = -1;
        next.tabIndex = 0;
        next.focus({preventScroll: true});
    };
    const choose = ({dataset}) => Drawer.show(+dataset.r, +dataset.h, +dataset.q, +dataset.k);
    const pressed = (event) => {
        const td = event.target.closest("td[data-k]"), move = arrows[event.key];
        if (!td || !(move || event.key === "Enter" || event.key === " ")) return;
        event.preventDefault();
        if (move)
            focusCell(td.dataset.r, td.dataset.h, +td.dataset.q + move[0], +td.dataset.k + move[1]);
        else
            choose(td);
    };
    const open = () => {
        for (const name of ["right-maps", "wrong-maps"]) {
            $(name).onkeydown = pressed;
            $(name).onclick = (event) => {
                const td = event.target.closest("td[data-k]");
                if (td) choose(td);
            };
        }
    };
    return {open, draw, focusCell};
})();
