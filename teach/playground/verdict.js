/* What happened in a race that has ended: a sentence for each model, with its numbers. */
const Verdict = (() => {
    const s = Address.state;
    const LEARNT = 0.9;
    const mean = (x) => x.reduce((sum, y) => sum + y, 0) / x.length;
    const scores = ({attentions}) => attentions.flatMap((o) => [...o.s]).filter(Number.isFinite);
    const list = (all) => all.join(", ").replace(/, ([^,]*)$/, " and $1");

    /* What a model that has not learnt writes: few digits, or one of them for all. */
    const writing = ({pairs}) => {
        const digits = (x) => x.replaceAll(" ", "");
        const all = pairs.map((p) => digits(p.output).slice(0, digits(p.target).length)).join("");
        const wanted = pairs.map((p) => digits(p.target)).join("").length;
        const count = (d) => all.split(d).length - 1;
        const most = [..."0123456789"].reduce((x, y) => (count(y) > count(x) ? y : x));
        if (all.length < wanted / 2) return `it writes ${all.length} of ${wanted} digits and stops`;
        return 3 * count(most) >= all.length &&
               `${count(most)} of the ${all.length} digits that it writes here are ${most}`;
    };
    const illness = (frame) => {
        const drift = largest(scores(frame));
        const saturated = mean(frame.attentions.flatMap((o) => o.saturated));
        return list([
            drift > 50 && `a score has drifted from 0 to ${short(drift)}`,
            saturated > 0.2 && `${percent(saturated)} of its rows are saturated`,
            frame.share < 0.5 && writing(frame),
        ].filter(Boolean));
    };
    const why = (rule) => {
        const {sumIsZero, shiftFree} = Library.rule.check(rule);
        return !sumIsZero ? "The ds of a row do not sum to 0, and nothing holds its scores"
               : shiftFree ? "Its ds sum to 0, and yet they are not the gradient"
                           : "Its ds sum to 0, but that is not enough: shifts of g change them";
    };
    const ofWrong = (frame, rule) => {
        if (frame.share >= LEARNT) return "This task is learnt all the same.";
        const found = illness(frame);
        return `${why(rule)}${found && `; ${found}`}.`;
    };
    /* Shares over 8 seeds at the rate of the race, from the table of the exhibit "Write your own backward". */
    const measured = () => {
        const rows = [...document.querySelectorAll("#measured tr")].map(
            (row) => [...row.cells].map((cell) => cell.textContent.replace(/ \(.*/, "")));
        return rows.find(([task, rate]) => task === ["copy", "reverse", "sort"][s.task] && rate === "0.01");
    };
    /* Whether no gradient is better than a wrong one. */
    const ofZero = () => {
        const [, , right, mistake, , , , zero] = measured();
        return "Queries and keys stay as they began; all else learns. Over 8 seeds of 600 steps that gets " +
            `${zero} % of digits right, the wrong gradient a(1 − a)g ${mistake} %, the correct one ${right} %: no ` +
            "gradient is better than the wrong one, and worse than the correct one.";
    };
    const beforeSabotage = (r) => r.frames.get(s.events.at(-1) - s.events.at(-1) % 10);
    const small = ({loss, attentions}) => `Its loss was ${short(loss)}, and g ` +
        `${short(largest(attentions.flatMap((o) => [...o.g])))} at most. That alone does not save a model: ` +
        "Adam divides each gradient by its usual size.";
    /* Of a model that was sabotaged after it had learnt, while the race goes on: nothing seems to happen. */
    const soFar = (r) => {
        const before = beforeSabotage(r);
        return before?.share >= LEARNT
            ? tag("p", {}, tag("strong", {}, "Sabotaged: "), small(before),
                  " It may survive; try step 50, before it has learnt.") : "";
    };
    const ofSabotaged = (r, end) => {
        const at = s.events.at(-1), before = beforeSabotage(r);
        const began = `${percent(before.share)} right at step ${at}, then sabotaged: now ` +
                      `${percent(end.share)}. `;
        if (end.share < LEARNT || before.share < LEARNT) return began + ofWrong(end, s.rule);
        return `${began}It survives. ${small(before)} But the learning rate falls to ` +
               `0 at step ${s.steps}. Sabotage it at step 50, or take 1,500 steps: then one larger ` +
               "loss can start the collapse.";
    };
    const text = ([right, wrong], isSabotaged) => {
        const [a, b] = [right, wrong].map((r) => r.latest);
        const known = Library.rule.check(s.rule).right;
        return [
            ["Correct gradient", isSabotaged       ? ofSabotaged(right, a)
                                 : s.events.length ? `sabotaged and repaired, ${percent(a.share)}.`
                                                   : `${percent(a.share)} of digits right.`],
            [Rules.name(s.rule), `${percent(b.share)} of digits right. ` +
                                 (known ? "It is the correct gradient."
                                  : Rules.name(s.rule).startsWith("0:") ? ofZero() : ofWrong(b, s.rule))],
        ].map(([name, said]) => tag("p", {}, tag("strong", {}, escaped(name) + ":"), " ", escaped(said)))
            .join("");
    };
    return {text, soFar};
})();
