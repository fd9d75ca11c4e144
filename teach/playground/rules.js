/* Write your own backward: a rule for ds, read by the library, checked at once, and trained beside
   the correct one. Nothing that is typed here is run by the browser. */
const Rules = (() => {
    const s = Address.state;
    const RIGHT = "a * (g - sum(a * g))";
    const known = [
        ["The mistake, a(1 − a)g", "a * (1 - a) * g"],
        ["The mistake less its mean: ds sum to 0", "a * (1 - a) * g - mean(a * (1 - a) * g)"],
        ["The mistake with g − avg: shifts of g cancel", "a * (1 - a) * (g - sum(a * g))"],
        ["The mistake with both mended", "a * (1 - a) * (g - sum(a * g)) - mean(a * (1 - a) * (g - sum(a * g)))"],
        ["0: queries and keys frozen", "0"],
        ["a g, all of it", "a * g"],
        ["The correct one, a(g − avg)", RIGHT],
    ];
    /* Spaces mean nothing in a rule. */
    const plain = (x) =>
        Library.rule.typed(x).replaceAll(" ", "").replace(/\bavg\b/g, "sum(a*g)");
    const same = (x, y) => plain(x) === plain(y);
    const knownRule = (rule) => known.find((k) => same(k[1], rule));
    const name = (rule) => (knownRule(rule) || ["Your rule: " + rule])[0];
    /* What a model with this rule has: a correct or a wrong gradient. */
    const title = (rule) => {
        const kind = Library.rule.check(rule).right ? "correct gradient" : "wrong gradient";
        return knownRule(rule) ? kind : "your rule: " + kind;
    };

    /* Shares over 8 seeds of a task at a learning rate, from the table of this exhibit. */
    const measured = (...of) => {
        const rows = [...document.querySelectorAll("#measured tr")].map(
            (row) => [...row.cells].map((cell) => cell.textContent.replace(/ \(.*/, "")));
        return rows.find(([task, rate]) => task === of[0] && rate === of[1]);
    };
    /* What wrong rules keep, and their columns in that table. */
    const kept = [["m = a(1 − a)g", "neither", 3], ["m − mean(m)", "shifts of s", 4],
                  ["n = a(1 − a)(g − avg)", "shifts of g", 5], ["n − mean(n)", "both", 6], ["0", "both", 7]];
    const drawKept = () => {
        const rates = ["0.003", "0.01"], head = ["ds", "keeps", ...rates.map((rate) => "at " + rate)];
        const cell = (rate, i) => {
            const shares = ["copy", "reverse"].map((task) => parseInt(measured(task, rate)[i]));
            const least = Math.min(...shares);
            return `${least >= 99 ? "learns" : least > 50 ? "in part" : "no"}: ${shares.join(", ")} %`;
        };
        $("rule-kept").innerHTML =
            tableOf(head, kept.map(([rule, name, i]) => rowOf(head, tag("code", {}, rule),
                                                              [name, ...rates.map((rate) => cell(rate, i))])));
    };

    const line = (ok, yes, no) =>
        tag("li", {class: ok ? "yes" : "no"}, ok ? "✓ " + yes : "✗ " + no);
    const properties =
        (found) => [line(found.right, "equals diag(a) − a aᵀ, times g",
                         `differs from diag(a) − a aᵀ, times g, by up to ${
                             short(found.error)} of the largest ds`),
                    line(found.sumIsZero, "ds sum to 0: shifts of the scores stay out",
                         "ds do not sum to 0: the scores of a row drift"),
                    line(found.shiftFree, "g + c gives the same ds: the weights always sum to 1",
                         "g + c changes ds; it must not, since the weights always sum to 1"),
    ].join("");
    const drawRow = (rule) => {
        const options = Row.options(), ds = Library.rule.row(rule, options),
              right = Library.rule.row(RIGHT, options);
        const head = ["key", "your ds", "correct ds"], both = [ds, right], most = largest(both.flat());
        const row = (x, i) => rowOf(head, escaped(Row.key(i)), both.map((list) => signed(list[i], most)));
        const sums = rowOf(head, "sum", both.map((list) => tag("strong", {}, sumOf(list))));
        $("rule-table").innerHTML = tableOf(head, [...ds.map(row), sums]);
    };
    /* Its numbers in the row of exhibit 3, or why there are none. */
    const failureInRow = (rule) => {
        try {
            drawRow(rule);
            return "";
        } catch (error) {
            return error.message + ", in the row of exhibit 3";
        }
    };
    const rounding = " Trained, it learns as the library’s does. The losses are equal at first; later " +
                     "they differ, since sums in another order are rounded in another way.";
    const draw = () => {
        const rule = $("rule").value.trim(), found = Library.rule.check(rule);
        const failure = found.message || failureInRow(rule), {rows, keys} = Library.rule.tested();
        $("rule").setAttribute("aria-invalid", String(Boolean(failure)));
        $("rule-train").disabled = Boolean(failure);
        $("rule-properties").innerHTML =
            failure ? tag("li", {class: "no"}, escaped(failure)) : properties(found);
        $("rule-tested").textContent =
            failure ? "The numbers in grey are those of the rule before."
                    : `Tested with ${rows} random rows of ${keys} keys. The numbers are of the ` +
                          "row in exhibit 3." + (found.right ? rounding : "");
        $("rule-table").classList.toggle("old", Boolean(failure));
        $("rule-known").value = knownRule(rule)?.[1] ?? "";
    };
    const train = () => {
        Address.set({rule: $("rule").value.trim()});
        Race.goTo();
        return Race.restart();
    };
    const open = () => {
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
        drawKept();
        draw();
    };
    return {open, draw, name, title, measured, RIGHT};
})();
