/* Write your own backward: a rule for ds, read by the library, checked at once, and trained beside
   the right one. Nothing that is typed here is run by the browser. */
const Rules = (() => {
    const s = Address.state;
    const RIGHT = "a * (g - sum(a * g))";
    const known = [
        ["the mistake, a(1 − a)g", "a * (1 - a) * g"],
        ["less its mean: ds sum to 0", "a * (1 - a) * g - mean(a * (1 - a) * g)"],
        ["g less its average: shifts of g cancel", "a * (1 - a) * (g - sum(a * g))"],
        ["both of these", "a * (1 - a) * (g - sum(a * g)) - mean(a * (1 - a) * (g - sum(a * g)))"],
        ["0: queries and keys frozen", "0"],
        ["a g: all of it", "a * g"],
        ["the right one", RIGHT],
    ];
    const name = (rule) => (known.find((k) => k[1] === rule) || ["your rule: " + rule])[0];

    const line = (ok, yes, no) =>
        tag("li", {class: ok ? "yes" : "no"}, ok ? "✓ " + yes : "✗ " + no);
    const properties =
        (found) => [line(found.right, "equals diag(a) − a aᵀ, times g",
                         `differs from diag(a) − a aᵀ, times g, by up to ${
                             short(found.error)} of the largest ds`),
                    line(found.sumIsZero, "ds sum to 0: shifts of the scores stay out",
                         "ds do not sum to 0: the scores of a row drift"),
                    line(found.shiftFree, "g + c gives the same ds: the weights always sum to 1",
                         "g + c changes ds, though the loss cannot tell"),
    ].join("");
    const drawRow = (rule) => {
        const options = Row.options(), ds = Library.rule.row(rule, options),
              right = Library.rule.row(RIGHT, options);
        const most = largest([...ds, ...right]);
        const number = (x) => [bar(x, most), " ", tag("span", {class: sign(x)}, short(x))];
        const rows =
            ds.map((x, i) => [tag("th", {scope: "row"}, escaped(Row.key(i))),
                              cellOf("your ds", number(x)), cellOf("right ds", number(right[i]))]);
        const total = (list) => list.reduce((x, y) => x + y, 0),
              sum = (x) => short(Math.abs(x) < 1e-12 ? 0 : x);
        rows.push([
            tag("th", {scope: "row"}, "sum"), cellOf("your ds", sum(total(ds))),
            cellOf("right ds", sum(total(right)))
        ]);
        $("rule-table").innerHTML = tableOf(["key", "your ds", "right ds"], rows);
    };
    const draw = () => {
        const rule = $("rule").value.trim(), found = Library.rule.check(rule);
        $("rule").setAttribute("aria-invalid", String(Boolean(found.message)));
        $("rule-train").disabled = Boolean(found.message);
        $("rule-properties").innerHTML =
            found.message ? tag("li", {class: "no"}, escaped(found.message)) : properties(found);
        $("rule-known").value = known.some((k) => k[1] === rule) ? rule : "";
        if (!found.message) drawRow(rule);
    };
    const train = () => {
        s.rule = $("rule").value.trim();
        Address.write();
        $("race").scrollIntoView();
        $("play").focus({preventScroll: true});
        return Race.restart();
    };
    const open = () => {
        if (Library.rule.check(s.rule).message) s.rule = Address.own.rule;
        const all = [["your own", ""], ...known];
        $("rule-known").innerHTML =
            all.map(([label, value]) => tag("option", {value}, escaped(label))).join("");
        $("rule").value = s.rule;
        $("rule").oninput = draw;
        $("rule").onkeydown = (e) => {
            if (e.key === "Enter" && !$("rule-train").disabled) train();
        };
        $("rule-known").onchange = (e) => {
            if (e.target.value) $("rule").value = e.target.value;
            draw();
        };
        $("rule-train").onclick = train;
        draw();
    };
    return {open, draw, name, RIGHT};
})();
