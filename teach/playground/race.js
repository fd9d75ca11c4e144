/* The racers: two workers, each with an instance of the library of its own, which trains one model.
   An answer has the number of its order. */
const Racers = (() => {
    const racer = (id, index) =>
        ({index, id, losses: [], frames: new Map(), spent: 0, answers: new Map(), asked: 0});
    const all = ["right", "wrong"].map(racer);

    const ask = (racer, order, more) => new Promise((done, failed) => {
        racer.answers.set(++racer.asked, {done, failed});
        racer.worker.postMessage({id: racer.asked, order, ...more});
    });
    const askBoth = (order, more) => Promise.all(all.map((r) => ask(r, order, more(r))));
    const heard = (racer, {id, failure, ...answer}) => {
        const {done, failed} = racer.answers.get(id);
        racer.answers.delete(id);
        if (failure)
            failed(Error(failure));
        else
            done(answer);
    };

    /* Makes the workers, which start while the library is unpacked. */
    const hire = () => {
        const code = new Blob([$("worker").textContent], {type: "text/javascript"});
        const address = URL.createObjectURL(code);
        for (const r of all) {
            r.worker = new Worker(address);
            r.worker.onmessage = ({data}) => heard(r, data);
        }
    };
    return {all, ask, askBoth, hire};
})();

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
    const saturation = ({attentions}) => mean(attentions.flatMap((o) => o.saturated));
    const illness = (frame, control) => {
        const drift = largest(scores(frame)), saturated = saturation(frame);
        return list([
            drift > 50 && `a score has drifted to ${short(drift)}` +
                (control ? ` (the largest of the correct model is ${short(largest(scores(control)))})` : ""),
            saturated > 0.2 && `${percent(saturated)} of the rows of all its attentions are saturated`,
            frame.share < 0.5 && writing(frame),
        ].filter(Boolean));
    };
    const why = (rule) => {
        const {sumIsZero, shiftFree} = Library.rule.check(rule);
        return !sumIsZero ? "The ds of a row do not sum to 0: they also push the mean of its scores, which softmax ignores"
               : shiftFree ? "Its ds sum to 0, and yet they are not the gradient"
                           : "Its ds sum to 0, so they do not push the mean of a row’s scores; but shifts of g " +
                                 "change them, and do not change the gradient";
    };
    const ofRight = (frame) => {
        const saturated = saturation(frame);
        return `${percent(frame.share)} of digits right.` +
               (frame.share < LEARNT && saturated > 0.2
                    ? ` ${percent(saturated)} of the rows of all its attentions are saturated, so hardly any gradient passes: the ` +
                          "gradient is correct, and yet too small. Adam does not help: it scales the sum over all rows, in " +
                          "which a saturated row counts for nothing." : "");
    };
    const ofWrong = (frame, rule, control) => {
        if (frame.share >= LEARNT) return "This task is learnt all the same.";
        const found = illness(frame, control);
        return `${why(rule)}${found && `; ${found}`}.`;
    };
    /* Whether no gradient is better than a wrong one. */
    const ofZero = () => {
        const [, , right, mistake, , , , zero] = Rules.measured(["copy", "reverse", "sort"][s.task], "0.01");
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
        const collapsed = r.latest.loss > 1;
        return before?.share >= LEARNT
            ? tag("p", {}, tag("strong", {}, "Sabotaged: "), small(before),
                  collapsed ? ` It has collapsed: its loss is ${short(r.latest.loss)} now.`
                            : " It may survive; try step 50, before it has learnt.") : "";
    };
    const ofSabotaged = (r, end) => {
        const at = s.events.at(-1), before = beforeSabotage(r);
        const began = `${percent(before.share)} right at step ${at}, then sabotaged: now ` +
                      `${percent(end.share)}. `;
        if (end.share < LEARNT || before.share < LEARNT) return began + ofWrong(end, s.rule);
        return `${began}It survives. ${small(before)} But the learning rate falls to 0 at step ${s.steps}: ` +
               "sabotaged at step 50, or with 1,500 steps, one larger loss can start the collapse.";
    };
    const text = ([right, wrong], isSabotaged) => {
        const [a, b] = [right, wrong].map((r) => r.latest);
        const known = Library.rule.check(s.rule).right;
        const said = [
            ["Correct gradient", isSabotaged       ? ofSabotaged(right, a)
                                 : s.events.length ? "sabotaged and repaired: " + ofRight(a)
                                                   : ofRight(a)],
            [Rules.name(s.rule), `${percent(b.share)} of digits right. ` +
                                 (known ? "It is the correct gradient."
                                  : Rules.name(s.rule).startsWith("0:") ? ofZero() : ofWrong(b, s.rule, s.events.length ? null : a))],
        ];
        const isAsked = s.teacher && (s.events.length || s.factor !== 1); /* of the model on the left alone */
        return said.slice(0, isAsked ? 1 : 2)
            .map(([name, x]) => tag("p", {}, tag("strong", {}, escaped(name) + ":"), " ", escaped(x)))
            .join("");
    };
    return {text, soFar};
})();

/*
 * The race: two models that differ in the gradient of softmax train side by side. Every tenth step
 * is kept, so that time can be scrubbed.
 */
const Race = (() => {
    const s = Address.state;
    const EVERY = 10;
    /* The least loss without the input: eight digits of ten, and the end, whose place is known. Sorted ones have fewer
     * orders: 8 ln 10 less the mean of ln(8!/(n0! ... n9!)), of which digit d occurs nd times. */
    const withoutInput = () => (s.task === 2 ? 1.0675 : 8 / 9 * Math.log(10));
    const USUAL = 50; /* the step to sabotage at, where no other is chosen */
    /* At full speed an order takes about as many milliseconds, and is drawn once. */
    const ORDER = 200, MOST_STOPS = 10;
    const SPEEDS = [{stride: 1, wait: 250}, {stride: EVERY, wait: 150}, {stride: EVERY, wait: 0}];
    const tasks = ["copy them", "write them backwards", "sort them"];
    const racers = Racers.all, {ask, askBoth} = Racers;
    let step = 0, playing = false, shown = -1, earlier = [], listeners = [], told = "";
    let turn = 0, busy = Promise.resolve(), isDue = false;

    const rules = () => [isSabotaged(step) ? s.rule : "", s.rule];
    const isSabotaged = (at) => s.events.filter((x) => x <= at).length % 2 === 1;

    /* The gradient of a racer at a step, in words. */
    const nameOf = (r, at) =>
        r.index === 1 ? Rules.title(s.rule)
                      : "correct gradient" + (isSabotaged(at) ? ", sabotaged" : "");

    /* What changes the racers happens one after the other, so that both are always at the same
     * step. */
    const inOrder = (act) => {
        const next = busy.then(act);
        busy = next.catch(() => {});
        return next;
    };
    const failed = (error) => {
        playing = false;
        drawControls();
        $("race-status").textContent =
            `training failed: ${error.message}; choose another rule or a smaller score factor`;
        $("race-status").className = "no";
    };

    /* ---- time ---- */

    /* The steps of the frames, in order; and the kept step at or before a step. */
    const kept = () => [...racers[0].frames.keys()];
    const keptBefore = (at) => kept().reduce((best, x) => (x <= at && x > best ? x : best), 0);
    const now = () => (shown < 0 ? step : keptBefore(shown));

    /* Keeps what the racers saw at the present step. */
    const keep = (answers) => {
        racers.forEach((r, i) => {
            const {losses = [], spent = 0, frame} = answers[i];
            const last = r.frames.get(step - losses.length) || r.latest;
            r.losses.push(...losses);
            r.spent += spent;
            if (r.latestStep % EVERY !== 0) r.frames.delete(r.latestStep);
            frame.share ??= last?.share;
            r.frames.set(step, frame);
            r.latest = frame;
            r.latestStep = step;
        });
    };
    const makeModels = () => inOrder(async () => {
        const {task, factor, seed, steps} = s;
        step = 0;
        shown = -1;
        for (const r of racers)
            Object.assign(r, {losses: [], frames: new Map(), spent: 0, latestStep: 0});
        keep(await askBoth("begin", (r) => ({
                                        choice: {task, factor, seed, steps, rule: rules()[r.index]},
                                        pair: s.pair,
                                    })));
        draw();
    });

    /* The shares of digits that are right at step 0, which take as long as all else at the start. */
    const count = () => inOrder(async () => {
        const answers = await askBoth("share", () => ({}));
        racers.forEach((r, i) => (r.frames.get(0).share = answers[i].share));
        draw();
    });
    const begin = async () => {
        await makeModels();
        count().catch(failed);
    };

    /* The next stops: kept steps, up to an event, where the rule changes, or to the end. */
    const nextStops = (stride, end, most) => {
        const last = Math.min(end, ...s.events.filter((x) => x > step));
        const stops = range(most).map((i) => (Math.floor(step / stride) + 1 + i) * stride);
        return [...stops.filter((x) => x < last), last].slice(0, most);
    };
    const advance = (stride, end, most = 1) => inOrder(async () => {
        if (step >= end) return;
        const stops = nextStops(stride, end, most);
        const parts = stops.map((to, i) => ({
                                    count: to - (stops[i - 1] ?? step),
                                    counted: to % (2 * EVERY) === 0 || to === end
                                }));
        const answers = await askBoth("advance", () => ({parts, pair: s.pair}));
        stops.forEach((to, i) => {
            step = to;
            keep(answers.map((a) => a.parts[i]));
        });
        if (s.events.includes(step)) await applyRule();
    });
    /* The frame of this step is looked at again: its ds are those of the new rule. */
    const applyRule = async () => {
        const [r] = racers;
        await ask(r, "rule", {rule: rules()[0]});
        const {frame} = await ask(r, "look", {pair: s.pair});
        frame.share = r.latest.share;
        r.frames.set(step, frame);
        r.latest = frame;
    };

    const slowest = () => Math.max(...racers.map((r) => r.spent));
    const stopsOfAnOrder = () => {
        const stop = EVERY * slowest() / step; /* milliseconds; not a number at first */
        return Math.min(MOST_STOPS, Math.max(1, Math.floor(ORDER / stop) || 1));
    };
    const pause = (ms) => new Promise((done) => setTimeout(done, ms));
    /* Trains on until somebody stops it, up to step `end`. */
    const run = async (end = s.steps, speed = SPEEDS[s.speed]) => {
        if (playing || step >= end) return;
        const mine = ++turn;
        playing = true;
        shown = -1;
        Address.set({at: end < s.steps ? end : -1}); /* where it will stop */
        drawControls();
        while (mine === turn && step < end) {
            const begun = performance.now();
            await advance(speed.stride, end, speed.wait ? 1 : stopsOfAnOrder());
            drawSoon();
            if (speed.wait) await pause(Math.max(0, speed.wait - (performance.now() - begun)));
        }
        if (mine !== turn) return;
        playing = false;
        nameStep();
        draw();
    };
    /* A race that does not run shows a step, which the address names. */
    const nameStep = () => Address.set({at: now()});
    const stop = () => {
        turn++;
        playing = false;
        nameStep();
        inOrder(async () => { /* the step that is under way ends first */
            if (!playing) nameStep();
        });
        drawControls();
    };

    /* ---- what is drawn ---- */

    /* At most 300 points of a curve, from the mean of as many steps. */
    const thinned = (losses) => {
        const part = Math.max(1, Math.ceil(losses.length / 300)), points = [];
        for (let i = 0; i < losses.length; i += part) {
            const some = losses.slice(i, i + part);
            points.push([i + (some.length + 1) / 2, some.reduce((x, y) => x + y) / some.length]);
        }
        return points;
    };
    const spans = () => range(Math.ceil(s.events.length / 2))
                            .map((i) => [Math.min(s.events[2 * i], s.steps),
                                         Math.min(s.events[2 * i + 1] ?? step, s.steps)])
                            .filter(([from, to]) => to > from);
    const drawLoss = () => {
        const names =
            ["Correct gradient" + (s.events.length ? ", sabotaged where shaded" : ""), Rules.name(s.rule)];
        const all = [
            ...racers.map((r, i) => ({points: thinned(r.losses), series: i, name: names[i]})), ...earlier
        ];
        const why = widthOf("loss") < 480 || s.task === 2 ? "" : "8/9 ln 10 = "; /* where there is room */
        const label = `loss of each step: correct gradient ${short(racers[0].losses.at(-1))}, ` +
                      `${Rules.title(s.rule)} ${short(racers[1].losses.at(-1))}, ` +
                      `after ${step} steps`;
        curves("loss", label, {all, lastX: s.steps, level: withoutInput(), spans: spans(), at: now()});
        const dashes = tag("line", {x1: 0, x2: 34, y1: 6, y2: 6, stroke: "var(--quiet)", "stroke-dasharray": "3 3"});
        $("legend").innerHTML =
            all.map((c) => tag("span", {}, sample(c.series), " ", escaped(c.name))).join(" ") + " " +
            tag("span", {}, small(34, dashes), ` Without the input: ${why}${withoutInput().toFixed(2)}`);
    };
    const readOut = (at) => {
        const loss = (r) => short(r.losses[Math.max(0, at - 1)]);
        return at > 0 ? `step ${at}: loss ${loss(racers[0])} correct gradient, ` +
                            `${loss(racers[1])} ${Rules.title(s.rule)}`
                      : "step 0";
    };

    /* A digit that is right is bold, a wrong one struck out; some models never end. */
    const digits =
        ({target, output}) => [...output.slice(0, target.length)]
                                  .map((c, i) => {
                                      if (c === " ") return "";
                                      const right = c === target[i];
                                      return tag(right ? "b" : "s", {class: right ? "hit" : "miss"},
                                                 escaped(c));
                                  })
                                  .join("") +
                              (output.length > target.length ? "…" : "");
    const sentence = (pair) => tag(
        "li", {}, tag("span", {class: "source"}, escaped(pair.source.replaceAll(" ", ""))), " → ",
        tag("span", {class: "output", "aria-label": "writes " + pair.output}, digits(pair) || "…"));
    const drawRacer = (r) => {
        const frame = r.frames.get(now());
        const sabotaged = r.index === 0 && isSabotaged(now());
        $(r.id + "-share").textContent = frame.share === undefined ? "…" : percent(frame.share);
        $(r.id + "-meter").value = frame.share ?? 0;
        $(r.id + "-texts").innerHTML = frame.pairs.map(sentence).join("");
        $(r.id + "-rule").textContent = r.index === 0 ? (sabotaged ? s.rule : Rules.RIGHT) : s.rule;
        $(r.id + "-title").textContent = nameOf(r, now());
        $(r.id).classList.toggle("sabotaged", sabotaged);
        Maps.draw(r, frame);
    };
    const drawControls = () => {
        const bad = isRepair(), ended = step >= s.steps, spent = slowest();
        const event = s.events.find((at) => at > step);
        $("play").textContent =
            playing ? "❚❚ pause" : "▶ " + (ended ? "run again" : step === 0 ? "start" : "go on");
        $("sabotage").textContent = bad ? "repair the sabotaged one" : "sabotage the correct one";
        $("sabotage").classList.toggle("danger", !bad);
        $("step").disabled = playing || ended;
        for (const id of ["timeline", "drawer-timeline"]) {
            $(id).max = s.steps;
            $(id).value = now();
            $(id).setAttribute("aria-valuetext", "step " + now());
        }
        $("sabotage-at").max = s.steps - 1;
        $("sabotage-at").placeholder = now() < s.steps ? "now" : USUAL;
        $("sabotage-at").disabled = bad;
        const said = ended               ? Verdict.text(racers, isSabotaged(step)) + Teacher.next()
                   : isSabotaged(step) ? Verdict.soFar(racers[0])
                                       : "";
        $("race-say").hidden = !said;
        if (said !== told) $("race-say").innerHTML = told = said;
        $("race-status").className = "";
        $("race-status").textContent =
            `step ${now()} of ${s.steps}` + (now() < step ? `, trained to ${step}` : "") +
            (event ? `, ${isSabotaged(event) ? "sabotage" : "repair"} at ${event}` : "") +
            (step && spent ? ` · ${(1000 * step / spent).toFixed(0)} steps/s` : "");
    };
    const draw = () => {
        if (!racers[0].frames.has(now())) return;
        drawControls();
        drawLoss();
        racers.forEach(drawRacer);
        for (const act of listeners) act();
    };

    /* Draws when the browser does next, while the racers train on. */
    const drawSoon = () => {
        if (isDue) return;
        isDue = true;
        requestAnimationFrame(() => {
            isDue = false;
            draw();
        });
    };

    /* ---- what the reader does ---- */

    const restart = async ({clean = true, keepCurve = true} = {}) => {
        const points = thinned(racers[1].losses), name = racers[1].name;
        const series = earlier[0]?.series === 2 ? 3 : 2; /* an earlier run keeps its colour */
        if (keepCurve && points.length > 20 && name && name !== Rules.name(s.rule))
            earlier = [{points, name: "Earlier: " + name, series}, ...earlier].slice(0, 2);
        racers[1].name = Rules.name(s.rule);
        stop();
        Address.set({at: -1, events: clean ? [] : s.events});
        await begin();
    };
    const guarded = (act) => (...given) => Promise.resolve(act(...given)).catch(failed);
    const play = async () => {
        if (playing) return stop();
        if (step >= s.steps) await restart();
        return run();
    };
    /* The step to sabotage at: that of the field, or the one that is shown; after the end the usual
       one. A step of the past is trained up to again. */
    const isRepair = () => now() < s.steps && isSabotaged(now());
    const sabotage = async () => {
        const typed = $("sabotage-at").value, repair = isRepair(), ended = now() >= s.steps;
        const field = Math.max(0, Math.min(s.steps - 1, Math.floor(+typed)));
        if (typed) $("sabotage-at").value = field;
        const wanted = typed && !repair ? field : ended ? USUAL : shown < 0 ? null : now();
        let isPast = false;
        await inOrder(async () => {
            const at = wanted ?? step, again = s.events.at(-1) === at;
            const earlier = ended || typed && !repair ? [] : s.events.filter((x) => x < at);
            Address.set({events: again && !ended ? earlier : [...earlier, at]});
            isPast = at < step;
            if (at === step) await applyRule();
            draw();
        });
        if (isPast) await restart({clean: false, keepCurve: false});
        if (!playing) await run();
    };
    const scrub = (at) => {
        stop();
        shown = keptBefore(at) === step ? -1 : keptBefore(at);
        nameStep();
        draw();
    };
    /* What is kept was seen with the digits before: the same steps are trained again, to the bit. */
    const anotherPair = async () => {
        const end = step, at = now(), goesOn = playing;
        s.pair++;
        await restart({clean: false, keepCurve: false});
        await run(end, SPEEDS.at(-1));
        if (goesOn && step === end) return run();
        if (at < end && step === end) scrub(at);
    };

    const fields = ["task", "factor", "seed", "steps"];
    const changed = guarded(() => {
        Address.set(Object.fromEntries(fields.map((id) => [id, +$(id).value])));
        $("seed").value = s.seed;
        earlier = [];
        $("task-words").textContent = tasks[s.task];
        return restart({keepCurve: false}).then(() => run());
    });
    /* The values in the address, where a field allows them. */
    const restore = () => {
        for (const id of [...fields, "speed", "attention"]) {
            $(id).value = s[id];
            if ($(id).value === "") $(id).value = s[id] = Address.own[id];
        }
        $("task-words").textContent = tasks[s.task];
        racers[1].name = Rules.name(s.rule);
    };
    const pointed = (event) => {
        const box = $("loss").getBoundingClientRect(), {left, right} = curvesRoom();
        const at =
            Math.round((event.clientX - box.x - left) / (box.width - left - right) * s.steps);
        return Math.max(0, Math.min(racers[0].losses.length, at));
    };
    const connect = () => {
        for (const id of fields) $(id).onchange = changed;
        $("play").onclick = guarded(play);
        $("step").onclick = guarded(() => {
            shown = -1;
            return advance(1, s.steps).then(nameStep).then(draw);
        });
        $("restart").onclick = guarded(async () => {
            await restart();
            return run();
        });
        $("sabotage").onclick = guarded(sabotage);
        $("pair").onclick = guarded(anotherPair);
        $("speed").onchange = (e) => {
            Address.set({speed: +e.target.value});
            if (!playing) return;
            stop();
            guarded(run)();
        };
        $("attention").onchange = (e) => {
            Address.set({attention: +e.target.value});
            draw();
        };
        for (const id of ["timeline", "drawer-timeline"])
            $(id).oninput = (e) => scrub(+e.target.value);
        $("loss").onpointermove = (e) => ($("loss-read").textContent = readOut(pointed(e)));
        $("loss").onpointerleave = () => ($("loss-read").textContent = "");
        $("loss").onclick = (e) => scrub(pointed(e));
        onWidth("loss", draw);
    };

    /* An address that names a step is trained up to it at once; otherwise the race begins by
       itself, unless the reader wants no motion. */
    const start = async () => {
        const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
        if (s.at >= 0)
            await run(Math.min(s.at, s.steps), {stride: EVERY, wait: 0});
        else if (!still && !(s.teacher && s.scene >= 0))
            await run();
    };
    /* Gives the library to the racers. */
    const prepare = (module) => askBoth("open", () => ({module})).catch(failed);
    const open = async () => {
        restore();
        connect();
        await begin();
    };
    /* Its row of controls at the top of the screen. */
    const goTo = (id = "play") => {
        $("race-controls").scrollIntoView();
        $(id).focus({preventScroll: true});
    };
    const state = () => ({
        racers,
        step,
        playing,
        now: now(),
        frames: racers.map((r) => r.frames.get(now()))
    });
    return {
        prepare,
        open,
        start: guarded(start),
        state,
        goTo,
        nameOf: (index) => nameOf(racers[index], now()),
        stop,
        draw,
        run: guarded(run),
        restart: guarded(async (options) => {
            await restart(options);
            return run();
        }),
        settled: () => busy,
        scrub,
        whenDrawn: (act) => listeners.push(act)
    };
})();
