/*
 * The page in a browser: page.mjs CHROMIUM PAGE.HTML PICTURES LOSSES. It is used as a reader
 * would, with mouse and keyboard; PICTURES is a folder for screenshots.
 */
import {execFileSync} from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import process from "node:process";

import {problemsOf, tabProblems} from "./accessibility.mjs";
import {open} from "./browser.mjs";
import {end, expect, expectEqual, expectPalette, test} from "./test.mjs";

const [, , chromium, file, pictures, losses] = process.argv;
const url = "file://" + path.resolve(file);

/* Opens the page, waits until it can be used, and checks for errors at the end. */
const visit = async (options, act) => {
    const page = await open(chromium, (options.from ?? url) + (options.hash || ""), options);
    const text = (id) => page.value(`document.getElementById(${JSON.stringify(id)}).textContent`);
    /* The same events as typing or sliding. */
    const put = (id, value, event) => {
        const field = document.getElementById(id);
        field.value = value;
        field.dispatchEvent(new Event(event, {bubbles: true}));
    };
    const set = (id, value, event = "input") => page.run(put, id, String(value), event);
    try {
        await page.until('document.body.dataset.state === "ready" && $("saturated-say").textContent');
        await act(page, text, set);
        expect(!(await page.value("/NaN|undefined|Infinity/.test(document.body.innerText)")),
               "the page shows NaN, undefined or Infinity");
        const [wide, room] = await page.value("[document.documentElement.scrollWidth, innerWidth]");
        expect(wide <= room, `the page is ${wide} pixels wide, the window ${room}`);
        expectEqual(page.problems, [], "errors of the browser");
    } finally {
        await page.close();
    }
};
/* A number as the page prints it: −1.5·10⁻⁴, 42,000. */
const numberOf = (text) => +text.replaceAll("−", "-").replaceAll(",", "")
                                .replace(/·?10([⁻⁰¹²³⁴-⁹]+)/, (all, power, at) => (at && all[0] === "·" ? "e" : "1e") +
                                    [...power].map((c) => "-0123456789"["⁻⁰¹²³⁴⁵⁶⁷⁸⁹".indexOf(c)]).join(""));
const picture = (page, name) => page.picture(path.join(pictures, name + ".png"));

/* Right away at step 0, and nothing moves. */
const still = {
    still: true
};
const idle = "!Race.state().playing";
/* The address changes before the page is loaded anew; a page marks its scene when it opens. */
const sceneBegins = (page, scene) => page.until('document.body.dataset.state === "ready"' +
    ` && document.querySelector('#scenes [data-scene="${scene}"][aria-pressed=true]')`);

await test(
    "it opens from a file, and the race begins by itself",
    () => visit({height: 800}, async (page, text) => {
        console.log(`ready after ${await page.value("document.body.dataset.milliseconds")} ms`);
        await page.until("Race.state().step >= 40");
        const seen = await page.run(
            () => ["play", "sabotage", "right-maps", "wrong-maps", "loss", "timeline"].filter(
                (id) => {
                    const box = document.getElementById(id).getBoundingClientRect();
                    return box.top >= 0 && box.bottom <= innerHeight;
                }));
        expectEqual(seen.length, 6, `the race is not on the first screen: ${seen}`);
        for (let i = 0; i < 2; i++) await page.press("Tab");
        expectEqual(await page.value("document.activeElement.id"), "play", "the second tab");
        await page.press("Enter");
        await page.until(idle);
        expect((await text("play")).includes("go on"), await text("play"));
        await picture(page, "light");
    }));

await test(
    "one row uses scores, gradients, masks and the temperature",
    () => visit(still, async (page, text, set) => {
        const weights = () => Promise.all([0, 1, 2, 3].map((i) => text("a-" + i)));
        const before = await weights();
        await page.click("#row-raise");
        expectEqual(await page.value('$("score-0").value'), "3", "a raised score");
        expectEqual(await weights(), before, "the weights of raised scores");
        await page.click("#row-calm");
        await set("slide-0", 1);
        expectEqual(await page.value('$("score-0").value'), "1", "the score beside its slider");
        expectEqual(await text("a-0"), await text("a-1"), "the weights of equal scores");
        await set("upstream-3", 5);
        expect((await text("ds-3")).trim().startsWith("0."), "the score of the better key grows");
        await page.click("#kept-3");
        expectEqual(await text("a-3"), "blocked", "a blocked key");
        expectEqual((await text("ds-3")).trim(), "0.0000", "its gradient");
        await set("temperature", 1);
        expectEqual(await text("temperature-value"), "10.00", "the temperature");
        await page.click("#row-masked");
        expect(
            (await text("row-say")).includes("by definition"), "a row without keys is explained");
        expectEqual((await text("ds-0")).trim(), "0.0000", "a gradient of an empty row");
        await page.click("#row-saturated");
        expect(+(await text("a-0")).trim() > 0.999, "a saturated row");
        expectEqual([await text("row-jacobian-caption"), (await text("row-jacobian")).includes("3.35")],
                    ["Jacobian ∂a/∂s · 10⁻⁴", true], "small entries of the Jacobian");
        await page.click("#row-calm");
        expect((await text("row-jacobian")).includes("−.003") ||
                   (await text("row-jacobian")).includes("−.007"),
               "small entries are shown");
        await page.click("#row-saturated");
        await page.click("#row-more");
        expectEqual(await page.value('document.querySelectorAll("#row-table tbody tr").length'), 6,
                    "keys, and their sum");
        await set("score-4", "");
        expectEqual(await page.value('$("score-4").getAttribute("aria-invalid")'), "true",
                    "an empty field");
        expect(/--scores 16,8,0.8,-8,0 --upstream 2,0,1,-1,0$/.test(await text("row-command")),
               await text("row-command"));
    }));

await test(
    "it counts saturated rows",
    () => visit(still, async (page, text, set) => {
        expect(/Saturated: 3\d\.\d ± \d\.\d % raw, 0\.0 ± .* over √d/.test(await text("saturated-say")),
               await text("saturated-say"));
        await set("width", 4);
        expectEqual(await text("width-value"), "16", "d");
        expect(/Saturated: \d\.\d ± \d\.\d % raw/.test(await text("saturated-say")),
               await text("saturated-say"));
        await page.click("#scaled");
        expect((await text("saturated-caption")).includes("scores over √d"), "the caption");
    }));

await test("what the page says has the signs of print",
           () => visit({...still, hash: "#at=40&steps=40&stop=3"}, async (page, text) => {
               await page.until(`Race.state().step >= 40 && ${idle}`);
               const ids = ["row-say", "saturated-say", "flash-say", "flash-table", "drawer-table",
                            "follow-zoom", "race-say", "row-table", "rule-table"];
               for (let i = 0; i < 4; i++) {
                   for (const id of ids) {
                       const said = await text(id);
                       const leak = said.match(/(^|\s)-\d|\+-|sqrt|−\s*−|\|\||\bd?[a-z]_[a-z\d]| - |\bdelta\b/);
                       expect(!leak, `${id}: "${leak}" in: ${said}`);
                   }
                   await page.click("#flash-step");
               }
           }));

await test(
    "flash attention steps forward through blocks, backward, and forward again",
    () => visit(still, async (page, text, set) => {
        expectEqual(await text("flash-place"), "forward, block 1 of 8", "the place");
        await page.click("#flash-few");
        for (let i = 0; i < 3; i++) await page.click("#flash-step");
        expectEqual(await text("flash-place"), "forward, block 3 of 3", "the place");
        const end = await page.value(
            'document.querySelector("#flash-table tr.now td:nth-child(6)").textContent');
        expect((await text("flash-say")).startsWith("Block 3: m stays 5, so l and o are not rescaled."),
               await text("flash-say"));
        const said = (await text("flash-say")).match(/o.\/.l.=.(\S+)\. /)[1];
        expect(Math.abs(end - said) < 0.005, `o / l is ${end}, and in the text ${said}`);
        for (let i = 0; i < 6; i++) await page.click("#flash-step");
        expectEqual(await text("flash-place"), "backward, j = 5", "the place");
        expect(await page.value('$("flash-step").disabled'), "there is a step after the last one");
        await page.click("#flash-back");
        expectEqual(await text("flash-place"), "backward, j = 4", "the place");
        await set("flash-scores", "1, 2, x");
        expect((await text("flash-place")).includes("expected: 2 to 32"),
               "a text that is no number is refused");
        await set("flash-scores", "1 2 3");
        await set("flash-values", "4 5 6");
        await set("flash-block", 3);
        await page.click("#flash-step");
        expectEqual(await text("flash-place"), "forward, block 1 of 1", "the place");
        await page.click("#flash-restart");
        expectEqual(await text("flash-place"), "before the first block", "the place");
        await set("flash-scores", Array(32).fill(1).join());
        await set("flash-values", Array(32).fill(1).join());
        await set("flash-block", 4);
        await page.click("#flash-play");
        await page.until('$("flash-place").textContent === "forward, block 4 of 8"');
        await page.click("#flash-play");
        const paused = await text("flash-place");
        expect(/forward, block \d of 8/.test(paused), paused);
        expect((await text("flash-passes")).includes("times"), "the passes");
    }));

const MISTAKE = "a * (1 - a) * g";
const native = (taken, rule = "") => {
    const said = execFileSync(losses, ["600", String(taken), "1", "1", rule], {encoding: "utf8"});
    return +said.match(new RegExp(`step ${taken}  loss (\\S+)`))[1];
};
const trainTo = async (page, step) => {
    await page.run((to) => { Race.run(to, {stride: 10, wait: 0}); }, step);
    await page.until(`Race.state().step >= ${step} && ${idle}`);
};
/* Until what was asked of the racers is done. */
const settled = (page) => page.value("Race.settled().then(() => true)");
const lossOf = (page, racer, step) =>
    page.value(`Race.state().racers[${racer}].losses[${step - 1}]`);

await test(
    "both racers have the bits of a portable build, and time can be scrubbed",
    () => visit(still, async (page, text, set) => {
        expectEqual(await page.value("Race.state().step"), 0, "with reduced motion it waits");
        await page.click("#step");
        await page.until("Race.state().step === 1");
        await trainTo(page, 100);
        expectEqual(await lossOf(page, 0, 100), native(100), "the right loss");
        expectEqual(await lossOf(page, 1, 100), native(100, MISTAKE), "the wrong loss");
        const map = () => page.value('$("cell-0-0-2-3").getAttribute("aria-label")');
        const late = await map();
        await set("timeline", 40);
        expect((await text("race-status")).startsWith("step 40 of 600, trained to 100"),
               await text("race-status"));
        expect((await map()) !== late, "the map did not follow");
        expect((await page.value("location.hash")).includes("at=40"), "the address");
        const kept = await page.value("Race.state().frames[0].attentions[2].a[19]");
        expect(Math.abs(numberOf((await map()).split(": ")[1]) - kept) < 0.001,
               "the cell has the weight of that step");
        await set("timeline", 100);
        expectEqual(await map(), late, "the newest step");
        const [x, y] = await page.run(() => {
            const box = $("loss").getBoundingClientRect();
            return [box.x + box.width / 3, box.y + 50];
        });
        await page.tell("Input.dispatchMouseEvent", {type: "mouseMoved", x, y});
        await page.until('/step \\d+: loss .* correct gradient, .* wrong gradient/.test($("loss-read").textContent)');
        await page.click("#pair");
        await page.until('Race.state().frames[0].pairs[0].source !== "7 9 8 8 9 1 5 7"');
        await page.click("#restart");
        await page.until("Race.state().playing && Race.state().step > 0");
        await page.click("#play");
        await page.until(idle);
    }));

await test("sabotage and repair change the right racer, and the address repeats them", async () => {
    let hash = "", loss = 0;
    await visit(still, async (page, text, set) => {
        await set("speed", 2, "change");
        await trainTo(page, 60);
        await page.click("#sabotage");
        await page.until("Race.state().step >= 100");
        expectEqual(await text("sabotage"), "repair the sabotaged one", "the button");
        expect(await page.value('$("right").classList.contains("sabotaged")'), "the card");
        await page.click("#sabotage");
        await page.until('$("sabotage").textContent === "sabotage the correct one"');
        await page.click("#play");
        await settled(page);
        hash = await page.value("location.hash");
        loss = await lossOf(page, 0, 110);
        expect(/events=60,\d+/.test(hash), hash);
        expect((await text("legend")).includes("sabotaged where shaded"), "the legend");
        expect(
            await page.value('Boolean(document.querySelector("#loss .sabotaged"))'), "the shade");
        await picture(page, "sabotaged");
    });
    await visit({...still, hash: hash + "&at=110"}, async (page) => {
        await page.until(`Race.state().step >= 110 && ${idle}`);
        expectEqual(await lossOf(page, 0, 110), loss, "the loss, repeated");
    });
});

await test(
    "each task, factor and seed trains",
    () => visit(still, async (page, text, set) => {
        for (const [id, value] of [["task", 0], ["task", 2], ["factor", 64], ["seed", 7]]) {
            await set(id, value, "change");
            await settled(page);
            await page.until("Race.state().playing && Race.state().step >= 20");
            expect(!(await text("race-status")).includes("failed"), await text("race-status"));
        }
        await page.click("#play");
        await settled(page);
        const step = await page.value("Race.state().step");
        expectEqual(await page.value("location.hash"), `#task=2&factor=64&seed=7&at=${step}`,
                    "the address");
        expectEqual(await text("task-words"), "sort them", "the words");
    }));

/* Rows of a table as texts. */
const rowsOf = (page, id) =>
    page.run((name) => [...document.querySelectorAll(`#${name} tbody tr`)].map(
                 (row) => [...row.children].map((cell) => cell.textContent.trim())),
             id);

await test(
    "a cell opens its row in place, with the library's numbers, and back returns",
    () => visit(still, async (page, text, set) => {
        await trainTo(page, 60);
        await page.click("#cell-0-1-2-5");
        expect(!(await page.value('$("drawer").hidden')), "the drawer is closed");
        const place = await page.value("scrollY");
        expectEqual(await page.value("document.activeElement.id"), "drawer", "the focus");
        expect(/^“1” attends, row 3 of head 2, cross-attention, step 60/.test(
                   await text("drawer-where")),
               await text("drawer-where"));
        /* The same model in the page's own instance, and the page of \`softback explain\` on its row. */
        const said = await page.run(() => {
            Library.training.begin({task: 1, seed: 1, factor: 1, rule: "", steps: 600});
            for (let i = 0; i < 60; i++) Library.training.step();
            const seen = Library.training.look(0).attentions[2], n = seen.keys.length;
            const at = (seen.rows.length + 2) * n;
            const [scores, upstream] = ["s", "g"].map((x) => Array.from(seen[x].subarray(at, at + n)));
            const {forward, backward} = Library.explain("softmax", {scores, upstream}).tables;
            return forward.map((row, k) => ({...row, ...backward[k]}));
        });
        const rows = await rowsOf(page, "drawer-table");
        expectEqual(rows.length, 9, "keys, and their sum");
        expectEqual([rows[8][0], rows[8][2], rows[8][5]], ["sum", "1", "0"], "the sums");
        const most = Math.max(...said.map((r) => r.s.number));
        for (const r of said) r.s.number -= most;
        const names = ["s", "a", "g", "g - avg", "ds"];
        rows.slice(0, 8).forEach((row, i) => names.forEach((name, c) => {
            const wanted = said[i][name].number, got = numberOf(row[c + 1]);
            expect(Math.abs(got - wanted) <= 0.006 * Math.abs(wanted) + 1e-5,
                   `row ${i}, ${name}: ${got}, and ${wanted}`);
        }));
        expect((await text("drawer-say")).includes("No weight changes, so the loss changes by 0"),
               await text("drawer-say"));
        expect((await text("drawer-say")).includes("The ds of this row do sum to 0, up to rounding."),
               await text("drawer-say"));
        await set("timeline", 30);
        expect((await text("drawer-where")).includes("step 30"), "the drawer follows the timeline");
        await picture(page, "drawer");
        await page.press("Escape");
        expectEqual(
            await page.value("document.activeElement.id"), "cell-0-1-2-5", "the focus is back");
        expectEqual(await page.value("scrollY"), place, "the place");
        await page.click("#cell-1-0-3-4");
        expectEqual(await text("drawer-title"), "One row, wrong gradient", "the title");
        expect(/here they sum to/.test(await text("drawer-say")), await text("drawer-say"));
        await page.click("#drawer-edit");
        expect(
            (await text("row-origin")).startsWith("“9” attends, row 4"), await text("row-origin"));
        await set("score-0", "1.5");
        expect((await text("row-origin")).startsWith("Changed; it began as “9”"),
               await text("row-origin"));
        await page.click("#row-back");
        expectEqual(
            await page.value("document.activeElement.id"), "drawer-back", "back at the drawer");
        for (const kind of ["encoder", "decoder"]) {
            await set("attention", kind === "encoder" ? 0 : 1, "change");
            expect((await text("drawer-where")).includes(kind), await text("drawer-where"));
        }
    }));

await test(
    "one gradient can be followed from the loss to the weights",
    () => visit({...still, hash: "#at=20&row=2"}, async (page, text) => {
        await page.until(`Race.state().step >= 20 && ${idle}`);
        const seen = [await text("follow-zoom")];
        for (let i = 0; i < 5; i++) {
            await page.click("#follow-next");
            seen.push(await text("follow-zoom"));
        }
        for (const [i, part] of ["(p − y) / n", "Its gradient do", "g1", "avg = Σ", "dq = Σ", "dWq"].entries())
            expect(seen[i].replaceAll("j", "1").includes(part.replaceAll("j", "1")),
                   `stop ${i + 1}: ${seen[i].slice(0, 80)}`);
        expect(await page.value('$("follow-next").disabled'), "there is a stop after the last one");
        expect(/A step along −dq pulls the query to the keys whose scores should rise/.test(seen[4]), seen[4]);
        expect(seen[5].includes("dWq = Σ of xᵀ dq"), seen[5]);
        const boxes = await page.value(`[...document.querySelectorAll("#follow-stops .stop")].map((x) => x.textContent)`);
        const norms = await page.value(`((c, norm) => [norm(c.vector("dy")), norm(c.g), norm(c.ds), norm(c.vector("dq"))])(
            Drawer.chosen(), (x) => Math.sqrt(x.reduce((sum, y) => sum + y * y, 0)))`);
        norms.forEach((x, i) => expect(Math.abs(numberOf(boxes[i + 1].split("‖ ")[1]) / x - 1) < 0.02,
                                       `${boxes[i + 1]}, and a norm of ${x}`));
        await page.click('#follow-stops [data-stop="2"]');
        expectEqual(await text("follow-zoom"), seen[2], "the third stop");
        expect((await page.value("location.hash")).includes("stop=2"), "the address");
    }));

await test("a rule of the reader's own is checked and trained",
           () => visit(still, async (page, text, set) => {
               const found = () =>
                   page.value('[...$("rule-properties").children].map((x) => x.className)');
               expectEqual(await found(), ["no", "no", "no"], "the mistake");
               await set("rule", "a*g - a*sum(a*g)");
               expectEqual(await found(), ["yes", "yes", "yes"], "the right one");
               expect((await text("rule-tested")).includes("rounded in another way"),
                      await text("rule-tested"));
               await set("rule", "a * (g − avg)");
               expectEqual(await found(), ["yes", "yes", "yes"], "as the page writes it");
               expectEqual(await page.value('$("rule-known").value'), "a * (g - sum(a * g))",
                           "the known rule, as the page writes it");
               await set("rule", "alert(1)");
               expect((await text("rule-properties")).includes('"alert(1)" at character 1'),
                      await text("rule-properties"));
               expect(await page.value('$("rule-train").disabled'), "it can be trained");
               await set("rule", "a * (g - mean(g))");
               expectEqual(await found(), ["no", "no", "yes"], "the mean of g");
               await page.click("#rule-train");
               await page.until("Race.state().step >= 20");
               expectEqual(await text("wrong-rule"), "a * (g - mean(g))", "the racer");
               expect(
                   (await page.value("location.hash")).includes("rule=a%20*%20(g%20-%20mean(g))"),
                   await page.value("location.hash"));
               await page.click("#play");
               await page.until(idle);
               await page.until("Race.state().step >= 20");
           }));

await test("a table says what a wrong rule must keep to learn, with measured shares",
           () => visit(still, async (page) => expectEqual(await rowsOf(page, "rule-kept"), [
               ["m = a(1 − a)g", "neither", "no: 14, 13 %", "no: 12, 13 %"],
               ["m − mean(m)", "shifts of s", "no: 20, 15 %", "no: 15, 14 %"],
               ["n = a(1 − a)(g − avg)", "shifts of g", "in part: 77, 79 %", "no: 20, 20 %"],
               ["n − mean(n)", "both", "learns: 100, 100 %", "no: 25, 24 %"],
               ["0", "both", "no: 26, 24 %", "no: 26, 25 %"]], "rows")));

await test("the address restores all settings, and invalid values in it are ignored", async () => {
    const hash =
        "#task=2&factor=4&seed=9&steps=200&rule=a%20*%20g&speed=2&pair=3&at=20&attention=1&racer=1" +
        "&head=1&row=3&drawer=1&stop=2&scores=3,2,1&upstream=0,1,0&mask=1,1,0&temperature=0.5&width=3" +
        "&scaled=1&fscores=4,5&fvalues=1,2&block=1&fstep=2&teacher=1";
    await visit({...still, hash}, async (page, text) => {
        await page.until(`Race.state().step >= 20 && ${idle}`);
        expectEqual(await text("a-2"), "blocked", "the third key");
        expectEqual(await text("width-value"), "8", "d");
        expectEqual(await text("flash-place"), "forward, block 2 of 2", "flash attention");
        expect((await text("drawer-where")).includes("row 4 of head 2, decoder-attention, step 20"),
               await text("drawer-where"));
        const fields = ["score-0", "task", "factor", "seed", "steps", "attention", "rule"];
        expectEqual(await page.value(`${JSON.stringify(fields)}.map((id) => $(id).value)`),
                    ["3", "2", "4", "9", "200", "1", "a * g"], "the fields");
        expect(!(await page.value('$("scenes").hidden')), "the scenes of teacher mode");
    });
    await visit({
        ...still,
        hash:
            "#scores=1,x&upstream=1&mask=&width=99&block=0&fstep=1e9&task=44&factor=-1&rule=%3Cb%3E" +
                "&seed=-3&steps=7&attention=6&pair=-2&events=x&row=99&head=5&stop=77&constructor=1&%=%&=&&"
    },
                async (page, text) => {
                    expectEqual((await text("a-0")).trim(), "0.6381", "the first weight");
                    expect(
                        !(await text("race-status")).includes("failed"), await text("race-status"));
                    expectEqual(await text("wrong-rule"), MISTAKE, "the rule");
                });
});

await test(
    "teacher mode has large type, and scenes",
    () => visit(still, async (page, text) => {
        await page.click("#teacher");
        await sceneBegins(page, 0); /* whose question comes before any answer */
        expect(await page.value('parseFloat(getComputedStyle(document.body).fontSize) > 20'),
               "the type");
        await page.click('#scenes [data-scene="5"]');
        await page.until(
            'document.body.dataset.state === "ready" && Race.state().step >= 40 && !$("drawer").hidden');
        expect(
            (await text("drawer-where")).includes("row 4 of head 1"), await text("drawer-where"));
        await picture(page, "teacher");
    }));

await test("the page can be used with the keyboard alone",
           () => visit(still, async (page, text) => {
               const active = () => page.value("document.activeElement.id");
               const tabTo = async (id) => {
                   for (let i = 0; i < 80 && (await active()) !== id; i++) await page.press("Tab");
                   expectEqual(await active(), id, "the focus");
               };
               await tabTo("step");
               await page.press("Enter");
               await page.until("Race.state().step === 1");
               await tabTo("cell-0-0-0-0");
               for (const key of ["ArrowDown", "ArrowDown", "ArrowRight"]) await page.press(key);
               expectEqual(await active(), "cell-0-0-2-1", "the cell");
               await page.press("Enter");
               expect(!(await page.value('$("drawer").hidden')), "the drawer is closed");
               await tabTo("drawer-back");
               await page.press("Enter");
               expectEqual(await active(), "cell-0-0-2-1", "the cell again");
               await tabTo("timeline");
               await tabTo("follow-next");
               await page.press("Enter");
               expect((await text("follow-zoom")).includes("do"), "the second stop");
               await tabTo("kept-0");
               await page.press(" ");
               expectEqual(await text("a-0"), "blocked", "a key blocked with the space bar");
               await tabTo("slide-1");
               await page.press("ArrowRight");
               expectEqual(
                   await page.value('$("score-1").value'), "1.1", "a score moved with an arrow");
               await tabTo("flash-step");
               await page.press("Enter");
               expectEqual(await text("flash-place"), "forward, block 2 of 8", "a step");
           }));

for (const [name, options] of [["light", {}], ["dark", {dark: true}],
                               ["phone", {width: 390, height: 844}],
                               ["phone-dark", {width: 390, height: 844, dark: true}]])
    await test(
        `it is accessible: ${name}`,
        () => visit(
            {...still, ...options, hash: "#at=30&drawer=1&events=20&stop=3"}, async (page) => {
                await page.until(`Race.state().step >= 30 && ${idle}`);
                expectEqual(await problemsOf(page), [], "problems");
                await expectPalette(page, options.dark);
                await picture(page, name + "-drawer");
                await page.press("Escape");
                await page.value("Drawer.back()");
                expectEqual(await problemsOf(page), [], "problems without the drawer");
                expectEqual(await tabProblems(page), [], "problems of the tab order");
                await picture(page, name);
            }));

await test("on a phone, a slider and its effect are seen together",
           () => visit({...still, width: 390, height: 844}, async (page) => {
               const seen = await page.run(() => {
                   $("slide-0").scrollIntoView({block: "center"});
                   return ["slide-0", "a-0", "ds-0"].every((id) => {
                       const {top, bottom, left, right} = $(id).getBoundingClientRect();
                       return top >= 0 && bottom <= innerHeight && left >= 0 && right <= innerWidth;
                   });
               });
               expect(seen, "a slider without its weight and gradient");
           }));

/* ---- what a reader who had never seen the page stumbled over ---- */

const phone = {width: 390, height: 844};
const inView = (page, ...ids) =>
    page.run((names) => names.every((id) => {
        const {top, bottom} = document.getElementById(id).getBoundingClientRect();
        return top >= 0 && bottom <= innerHeight;
    }),
             ids);

await test("on a phone, the drawer closes before its buttons scroll the page",
           () => visit({...still, ...phone, hash: "#at=200&drawer=1"}, async (page, text) => {
               await page.until(`Race.state().step >= 200 && ${idle}`);
               await page.click("#drawer-edit");
               expect(await page.value('$("drawer").hidden'), "it covers the row");
               await page.value("Drawer.show(0, 0, 1, 1)");
               await page.click("#drawer-follow");
               expect(await page.value('$("drawer").hidden'), "it covers the stops");
               expect((await text("follow-where")).includes("row 2 of head 1, cross-attention, step 200"),
                      await text("follow-where"));
           }));

await test("on a phone, the loss and both racers are on the first screen",
           () => visit({...still, ...phone, hash: "#at=40&steps=40"}, async (page) => {
               await page.until(`Race.state().step >= 40 && ${idle}`);
               expect(await inView(page, "play", "loss", "timeline", "right-share", "wrong-share"),
                      "the loss or a racer is below the first screen");
               const [one, two] = await page.run(
                   () => ["right-share", "wrong-share"].map((id) => {
                       const {top, bottom, left} = $(id).getBoundingClientRect();
                       return {top, bottom, left};
                   }));
               const tops = await page.value('[...document.querySelectorAll(".maps")].map((x) => Math.round(x.getBoundingClientRect().top))');
               expectEqual(tops[0], tops[1], "the tops of both models' maps");
               expect(one.left < two.left && one.bottom <= 844 && two.bottom <= 844,
                      JSON.stringify([one, two]));
           }));

for (const hash of ["#at=200&steps=200", "#at=200&steps=200&teacher=1&scene=3", "#at=200&steps=200&drawer=1",
                    "#at=600&teacher=1&scene=7"])
    await test(`on a projector of 1280 x 720, the race and its loss are on the first screen, in large letters: ${hash}`,
               () => visit({...still, height: 720, hash}, async (page, text) => {
                   await page.until(`Race.state().step >= 200 && ${idle} && !$("race-say").hidden`);
                   const ids = ["play", "right-maps", "wrong-maps", "loss", "legend", "timeline"];
                   const hidden = [];
                   for (const id of ids)
                       if (!await inView(page, id)) hidden.push(id);
                   expectEqual(hidden, [], "below the first screen");
                   const top = await page.run(() => document.getElementById("race-say").getBoundingClientRect().top);
                   expect(top < 600 || hash.includes("drawer"), `the verdict begins at ${top}`);
                   expect(!hash.includes("teacher") || await inView(page, "race-say"), "the answer is cut off");
                   const tops = await page.value('[...document.querySelectorAll(".map")].map((x) => Math.round(x.getBoundingClientRect().top))');
                   expect(hash.includes("drawer") || new Set(tops).size === 1, `maps begin at ${tops}`);
                   if (hash.includes("scene=3"))
                       expect(/stay as they began.* 25 ± 1 %.* 13 ± 1 %.* 100 ± 0 %: no gradient is better than the wrong one/.test(
                                  await text("race-say")),
                              await text("race-say"));
                   const small = await page.run(
                       () => [...document.querySelectorAll("svg text")]
                                 .filter((e) => e.checkVisibility())
                                 .map((e) => parseFloat(getComputedStyle(e).fontSize) * e.getScreenCTM().a)
                                 .filter((x) => x < 13));
                   expectEqual(small, [], "pixels of small letters");
                   await picture(page, "projector" + hash.length);
               }));

for (const [options, least] of [[{}, 14], [{...phone}, 12], [{height: 720, hash: "&teacher=1"}, 18]])
    await test(`all labels of the loss are in its chart at the end, in letters of ${least} pixels`,
               () => visit({...still, ...options, hash: "#at=600" + (options.hash ?? "")}, async (page) => {
                   await page.until(`Race.state().step >= 600 && ${idle}`);
                   const cut = await page.value(`[...$("loss").querySelectorAll("text")]
                       .filter((x) => x.getBBox().x < 0).map((x) => x.textContent)`);
                   expectEqual(cut, [], "labels that begin outside of the chart");
                   const [labels, letters] = await page.value(`[$("loss").textContent,
                       parseFloat(getComputedStyle($("loss").querySelector("text")).fontSize)]`);
                   expect(/0\.0001|10⁻⁵/.test(labels), labels);
                   expectEqual(letters, least, "the size of letters");
                   const [chart, slider] = await page.value(`[$("loss").querySelector(".axis").getBoundingClientRect(),
                       $("timeline").getBoundingClientRect()].map((x) => [x.left, x.right])`);
                   expect(Math.abs(chart[0] - slider[0] - 10) <= 3 && Math.abs(slider[1] - chart[1] - 6) <= 3,
                          `the chart from ${chart}, the timeline from ${slider}`);
               }));

await test("the axis of the loss has numbers as a report has",
           () => visit(still, async (page) => expectEqual(
               await page.value('[...$("loss").querySelectorAll("[text-anchor=end]")].slice(0, 3).map((x) => x.textContent)'),
               ["0.1", "1", "10"], "labels")));

await test("the loss is drawn anew when its place changes its width, and is as wide as it",
           () => visit({...still, hash: "#at=20"}, async (page) => {
               await page.until(`Race.state().step >= 20 && ${idle}`);
               const fits = '$("loss").firstChild.viewBox.baseVal.width === $("loss").clientWidth';
               await page.until(fits, 2000);
               await page.value("Drawer.show(0, 0, 1, 1)");
               await page.until(fits, 2000);
               await page.value("Drawer.back()");
               await page.until(fits, 2000);
           }));

await test("titles say whose gradient is correct",
           () => visit({...still, hash: "#rule=a*(g-sum(a*g))"}, async (page, text, set) => {
               expectEqual(await text("wrong-title"), "correct gradient", "a known rule");
               expectEqual(await page.value('$("rule-known").value'), "a * (g - sum(a * g))",
                           "the known rule, with other spaces");
               await set("rule", "a*g - a*sum(a*g)");
               await page.click("#rule-train");
               await page.until("Race.state().step >= 10");
               expectEqual(await text("wrong-title"), "your rule: correct gradient", "my rule");
               expect(await inView(page, "play", "sabotage", "race-status"),
                      "the controls are off screen");
               await page.click("#sabotage");
               await page.until('$("right").classList.contains("sabotaged")');
               expectEqual(
                   await text("right-title"), "correct gradient, sabotaged", "the sabotaged one");
               await page.click("#play");
               await page.until(idle);
           }));

await test("a rule that is not finite says for which key and why, and cannot be trained",
           () => visit(still, async (page, text, set) => {
               await set("rule", "a/0");
               expect(/not finite for key 0.*division by 0/.test(await text("rule-properties")),
                      await text("rule-properties"));
               expect(await page.value('$("rule-train").disabled'), "it can be trained");
               expect(await page.value('$("rule-table").classList.contains("old")'),
                      "the numbers of the rule before look new");
               await set("rule", "a / g");
               expect((await text("rule-properties")).includes("in the row of exhibit 3"),
                      await text("rule-properties"));
               await set("rule", "a * g");
               expect(!(await page.value('$("rule-table").classList.contains("old")')), "old");
               expect((await text("rule-tested")).includes("64 random rows of 6 keys"),
                      await text("rule-tested"));
           }));

await test("the address names the step of a race that is paused, and keeps it",
           () => visit({hash: "#at=120"}, async (page, text) => {
               await page.until(`Race.state().step >= 120 && ${idle}`);
               expect((await page.value("location.hash")).includes("at=120"), "it is lost");
               await page.click("#play");
               await page.until("Race.state().step >= 140");
               expect(!(await page.value("location.hash")).includes("at="), "it stays");
               await page.click("#play");
               await settled(page);
               const step = await page.value("Race.state().step");
               expect((await page.value("location.hash")).includes(`at=${step}`), "it is missing");
               await page.click("#step");
               await page.until(`location.hash.includes("at=${step + 1}")`);
           }));

await test("texts of the Jacobian do not overlap: many keys have colours, and a read-out",
           () => visit(still, async (page, text) => {
               const texts = '$("row-jacobian").querySelectorAll("text").length';
               expectEqual(await page.value(texts), 4 * 4 + 8, "numbers of 4 keys");
               await page.click("#row-more");
               await page.click("#row-more");
               expectEqual(await page.value(texts), 12, "numbers of 6 keys");
               await page.value('$("row-jacobian").focus()');
               await page.press("ArrowRight");
               expect((await text("row-jacobian-read")).startsWith("∂a 0 / ∂s 1 = "),
                      await text("row-jacobian-read"));
           }));

await test("rows show their sums",
           () => visit({...still, hash: "#at=20&stop=3"}, async (page, text) => {
               await page.until(`Race.state().step >= 20 && ${idle}`);
               expectEqual([await text("a-sum"), await text("ds-sum")], ["1", "0"], "the sums");
               expect((await text("follow-zoom")).includes("sum10"),
                      await text("follow-zoom"));
           }));

await test("the middle lines of bars stand below each other",
           () => visit({...still, hash: "#at=40&drawer=1&racer=1&row=3"}, async (page) => {
               await page.until(`Race.state().step >= 40 && ${idle}`);
               for (const id of ["drawer-table", "rule-table", "row-table"]) {
                   const places = await page.run(
                       (name) => [...new Set([...document.querySelectorAll(`#${name} .bar .axis[x1]`)]
                                                 .map((e) => Math.round(e.getBoundingClientRect().x)))],
                       id);
                   expect(places.length <= (id === "row-table" ? 1 : 2), `${id}: ${places}`);
               }
           }));

await test("small numbers of the drawer share a power of ten, and arrow keys change the row",
           () => visit({...still, hash: "#at=600&drawer=1"}, async (page, text) => {
               await page.until(`Race.state().step >= 600 && ${idle}`);
               const head = await page.run(
                   () => [...document.querySelectorAll("#drawer-table thead th")].map(
                       (e) => e.textContent));
               expect(head.some((name) => /^ds · 10⁻/.test(name)), head.join());
               expectEqual(await text("play"), "▶ run again", "the button at the end");
               expect((await text("drawer-say")).includes("about step 50"), "no advice");
               await page.value('$("drawer").focus()');
               await page.press("ArrowDown");
               expect((await text("drawer-where")).includes("row 2 of"), await text("drawer-where"));
           }));

await test("a wrong row says that its scores have drifted, and arrows belong to the correct ds",
           () => visit({...still, hash: "#at=200&drawer=1&racer=1&row=3"}, async (page, text) => {
               await page.until(`Race.state().step >= 200 && ${idle}`);
               expect(/drifted to \d/.test(await text("drawer-say")), await text("drawer-say"));
               const [one, other] = await page.value(`["drawer-flow", "drawer-own"].map((id) =>
                   Math.max(...[...$(id).querySelectorAll("rect.step")].map((x) => +x.getAttribute("height"))))`);
               const {ds, right} = await page.value("(({ds, right}) => ({ds, right}))(Drawer.chosen())");
               const sizes = [right, ds].map((x) => Math.max(...x.map(Math.abs))), own = / scale of its own/;
               expect(own.test(await text("drawer-say")) === Math.max(...sizes) > 20 * Math.min(...sizes), "scales");
               if (!own.test(await text("drawer-say")))
                   expect(Math.abs(one / other / (sizes[0] / sizes[1]) - 1) < 0.01, `${one} and ${other}: ${sizes}`);
               expect(!(await page.value('$("drawer-wrong").hidden')), "no picture of its own");
               const captions = (await text("drawer-caption")) + (await text("drawer-wrong"));
               expect(captions.includes("which this model does not get") &&
                          !captions.includes("step taken"),
                      captions);
               expect((await text("drawer-say")).includes("No score takes it: Adam moves"),
                      await text("drawer-say"));
               expectEqual(await page.value('$("drawer-own").querySelectorAll(".flow").length'), 0,
                           "arrows of a wrong rule");
               await picture(page, "drifted");
           }));

await test("a bad address and a bad number get a sentence",
           () => visit({...still, hash: "#scores=1,x&task=2"}, async (page, text, set) => {
               expect((await text("address-refused")).includes("scores=1,x"),
                      await text("address-refused"));
               await set("score-0", "1e300");
               expect((await text("row-error")).includes("a number from −1e30 to 1e30"),
                      await text("row-error"));
               await set("score-0", "1");
               expectEqual(await text("row-error"), "", "the sentence after a good number");
           }));

await test("a scene in an address has its changes, unless the address names others",
           () => visit({...still, hash: "#scene=3&teacher=1"}, async (page, text) => {
               expectEqual(await text("wrong-rule"), "0", "the rule");
           }));

await test("a scene of teacher mode waits until the class has voted",
           () => visit({hash: "#scene=1&teacher=1"}, async (page, text) => {
               expect((await text("scene-caption")).endsWith("Vote, then press the space bar."),
                      await text("scene-caption"));
               expect(await page.value("Race.state().step === 0 && !Race.state().playing"), "it runs");
               await page.value("document.activeElement.blur()"); /* wherever the focus is */
               await page.press(" ");
               await page.until("Race.state().step >= 10");
               await page.click("#play");
               await page.until(idle);
               expect((await text("scene-caption")).endsWith("go on to learn?"), await text("scene-caption"));
           }));

await test("arrows and the keys of a presenter turn to the next and the previous scene, except in a field",
           () => visit({...still, hash: "#scene=1&teacher=1"}, async (page) => {
               for (const [key, scene] of [["ArrowRight", 2], ["PageDown", 3], ["PageUp", 2], ["ArrowLeft", 1], ["ArrowLeft", 0]]) {
                   await page.press(key);
                   await sceneBegins(page, scene);
               }
               await page.press("ArrowLeft");
               await page.value('$("sabotage-at").focus()');
               await page.press("ArrowRight");
               expect((await page.value("location.hash")).includes("scene=0"), "it turned");
           }));

/* Of each scene of teacher mode, what must be seen besides its question when it begins. */
const race = ["#play", "#right-maps", "#wrong-maps"];
const scenes = [race, race, race, race, race, ["#drawer-table tr:last-child td:last-child"],
                ["#flash-play", "#flash-cells"], race];
for (const [width, height] of [[1280, 720], [1366, 768], [1920, 1080]])
    await test(`on a projector of ${width} x ${height}, the keys 1 to 8 choose scenes; each is seen with its question, and no table is cut off`,
               () => visit({...still, width, height, hash: "#teacher=1"}, async (page) => {
                   const unseen = (...shown) => page.run((all) => all.filter((x) => {
                       const {top, bottom, left, right} = document.querySelector(x).getBoundingClientRect();
                       const over = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
                       return bottom > innerHeight || !over?.closest(x) && !document.querySelector(x).contains(over);
                   }), shown);
                   const tops = await page.value(`[...document.querySelectorAll("#scenes button")].map((x) => x.getBoundingClientRect().top)`);
                   expect(Math.max(...tops) - Math.min(...tops) < 9, `rows of buttons, which begin at ${tops}`);
                   const cutOff = () => page.run(
                       () => [...document.querySelectorAll("table")]
                                 .filter((x) => x.checkVisibility() && x.scrollWidth > x.parentNode.clientWidth)
                                 .map((x) => `${x.id || x.className}: ${x.scrollWidth} of ${x.parentNode.clientWidth}`));
                   for (const [i, shown] of scenes.entries()) {
                       await page.press(String(i + 1));
                       await sceneBegins(page, i);
                       await page.until(`$("saturated-say").textContent && ${idle}`);
                       expectEqual(await unseen("#scene-caption", `[data-scene="${i}"]`, ...shown), [], `scene ${i + 1}: not seen`);
                       expectEqual(await cutOff(), [], `scene ${i + 1}: tables that are cut off`);
                   }
               }));

for (const [width, height] of [[1280, 720], [1920, 1080]]) {
    await test(`on a projector of ${width} x ${height}, the space bar shows the answer of a row, in view and large`,
               () => visit({...still, width, height, hash: "#teacher=1&scene=5"}, async (page, text) => {
                   await page.until(`Race.state().step >= 40 && ${idle}`);
                   expect(!(await page.value('$("drawer-say").checkVisibility()')), "the answer before the vote");
                   expect((await text("scene-caption")).endsWith("Vote, then press the space bar."), await text("scene-caption"));
                   await page.press(" ");
                   await page.until('$("drawer-say").checkVisibility()');
                   const [bottom, size] = await page.value(`(([p]) => [p.nextElementSibling.getBoundingClientRect().bottom,
                       parseFloat(getComputedStyle(p).fontSize)])($("drawer-say").children)`);
                   expect(bottom < height && size > 18, `the answer ends at ${bottom}, in letters of ${size} pixels`);
                   await page.until('$("scene-caption").textContent.endsWith("ds sum to 0?")'); /* toggle comes later */
               }));
    await test(`on a projector of ${width} x ${height}, the answer after a race is in view and large`,
               () => visit({...still, width, height, hash: "#teacher=1&scene=7&at=600"}, async (page) => {
                   await page.until(`Race.state().step >= 600 && ${idle}`);
                   const [bottom, size] = await page.value(`((x) => [x.getBoundingClientRect().bottom,
                       parseFloat(getComputedStyle(x).fontSize)])($("race-say"))`);
                   expect(bottom <= height && size >= 20, `the answer ends at ${bottom}, in letters of ${size} pixels`);
               }));
}

await test("in teacher mode, memory is shown after the vote, and the blocks stop at the end of forward",
           () => visit({...still, hash: "#teacher=1&scene=6"}, async (page, text) => {
               await page.until('$("flash-place").textContent');
               const shown = () => page.value('getComputedStyle(document.querySelector("#flash-memory svg")).visibility');
               expectEqual([await shown(), (await text("scene-caption")).endsWith("Vote, then press the space bar.")],
                           ["hidden", true], "before the vote");
               await page.click("#flash-play");
               expectEqual(await shown(), "visible", "after it");
               await page.until('$("flash-play").textContent.includes("play")');
               expectEqual(await text("flash-place"), "forward, block 8 of 8", "where it stops");
               await page.click("#flash-play");
               await page.until('$("flash-place").textContent.startsWith("backward")');
               await page.click("#flash-play");
           }));

await test("a scene of teacher mode is marked and explained, and the space bar starts it",
           () => visit({...still, hash: "#teacher=1"}, async (page, text) => {
               expect((await text("scene-caption")).startsWith("How far does"), "the first scene");
               expect(await page.value("Race.state().step === 0 && !Race.state().playing"), "it runs before the vote");
               await page.value('document.querySelector("[data-scene=\'3\']").click()');
               await sceneBegins(page, 3);
               expectEqual(await page.value("document.activeElement.id"), "play", "the focus");
               expectEqual(await page.value(`document.querySelector("[data-scene='3']").getAttribute("aria-pressed")`),
                           "true", "the selected scene");
               expect((await text("scene-caption")).includes("Queries and keys stay"),
                      await text("scene-caption"));
           }));

await test("a key that is pressed while the page loads chooses a scene, too", async () => {
    const page = await open(chromium, url + "#teacher=1", still);
    await page.until('document.onkeydown');
    await page.press("3");
    await sceneBegins(page, 2);
    await page.close();
});

await test("another address opens another page", () => visit({...still, hash: "#steps=200"}, async (page) => {
               await page.value('location.hash = "#task=2"');
               await page.until('document.body.dataset.state === "ready" && Address.state.task === 2');
           }));

await test("the level without the input is that of the task", async () => {
    for (const [task, level] of [[1, "8/9 ln 10 = 2.05"], [2, "1.07"]])
        await visit({...still, hash: `#task=${task}`}, async (page, text) => {
            expect((await text("legend")).endsWith(`Without the input: ${level}`), await text("legend"));
        });
});

for (const width of [1280, 1366, 1536])
    await test(`in a window ${width} wide, the drawer shows all columns of a wrong row`,
               () => visit({...still, width, height: 768, hash: "#at=100&steps=200&drawer=1&racer=1&row=3"}, async (page) => {
                   await page.until(`Race.state().step >= 100 && ${idle}`);
                   const [wide, room] = await page.value('((x) => [x.scrollWidth, x.parentNode.clientWidth])(document.querySelector("#drawer-table"))');
                   expect(wide > 300 && wide <= room, `${wide} of ${room} pixels`);
               }));

await test("after the race, a sentence tells what happened, with its numbers",
           () => visit({...still, hash: "#at=180&steps=200&speed=2"}, async (page, text) => {
               await page.until(`Race.state().step >= 180 && ${idle}`);
               expect(await page.value('$("race-say").hidden'), "a sentence before the end");
               await page.click("#play");
               await page.until(`Race.state().step >= 200 && ${idle}`);
               const said = await text("race-say"), {frames} = await page.value(
                   `({frames: Race.state().racers.map((r) => r.latest.share)})`);
               const parts = said.match(/Correct gradient: (\d+) % of digits right.*The mistake, .*: (\d+) % of digits right/);
               expectEqual(parts?.slice(1).map(Number), frames.map((x) => Math.round(100 * x)), said);
               const drift = await page.value(`Math.max(...Race.state().racers[1].latest.attentions
                   .flatMap((o) => [...o.s]).filter(Number.isFinite).map(Math.abs))`);
               expect(Math.abs(numberOf(said.match(/drifted to ([\d,.]*\d)/)[1]) / drift - 1) < 0.01, said);
               expect(/ds of a row do not sum to 0.*\d+ % of the rows of all its attentions are saturated/.test(said), said);
               expect(/digits that it writes here are \d|it writes \d+ of 24 digits and stops/.test(said), said);
           }));

await test("where the correct gradient does not learn, a sentence says why",
           () => visit({...still, hash: "#factor=16&at=200&steps=200"}, async (page, text) => {
               await page.until(`Race.state().step >= 200 && ${idle}`);
               const said = await text("race-say"), saturated = await page.value(`((all) => total(all) / all.length)(
                   Race.state().racers[0].latest.attentions.flatMap((o) => [...o.saturated]))`);
               const [, found] = said.match(/^Correct gradient: \d\d? % of digits right. (\d+) % of the rows of all its attentions are saturated, so hardly any/) ?? [];
               expectEqual(+found, Math.round(100 * saturated), said);
           }));

await test("sabotage after learning is survived, and the page says why",
           () => visit({...still, hash: "#at=600&events=300"}, async (page, text) => {
               await page.until(`Race.state().step >= 600 && ${idle}`);
               expectEqual(await text("right-share"), "100 %", "the share");
               const said = await text("race-say");
               expect(/100 % right at step 300, then sabotaged: now 100 %. It survives. Its loss was (0.0|\d\S*10⁻⁴)/
                          .test(said) && /rate falls to 0 at step 600/.test(said) && /step 50/.test(said), said);
               await picture(page, "survived");
               await page.click("#sabotage"); /* at the usual step, which is proposed */
               await page.until('location.hash.includes("events=50") && Race.state().step >= 60');
               await page.click("#play");
               await settled(page);
           }));

await test("a model that is sabotaged after it has learnt is explained while the race goes on",
           () => visit({...still, hash: "#at=210&events=200"}, async (page, text) => {
               await page.until(`Race.state().step >= 210 && ${idle}`);
               expect(/^Sabotaged: Its loss was \S+, and g \S+ at most.*Adam divides/.test(await text("race-say")),
                      await text("race-say"));
           }));

await test("the step of the sabotage can be chosen, by its number or on the timeline",
           () => visit({...still, hash: "#at=100&steps=200&speed=2"}, async (page, text, set) => {
               await page.until(`Race.state().step >= 100 && ${idle}`);
               const before = await lossOf(page, 0, 20);
               await set("sabotage-at", 20);
               await page.click("#sabotage");
               await page.until(`Race.state().step >= 200 && ${idle}`);
               expect((await page.value("location.hash")).includes("events=20"), "the address");
               expectEqual(await lossOf(page, 0, 20), before, "the loss before it");
               expect(/Correct gradient: \d+ % right at step 20, then sabotaged: now \d\d? %. The ds/.test(
                          await text("race-say")),
                      await text("race-say"));
               await set("sabotage-at", "");
               await set("timeline", 10);
               await page.click("#sabotage");
               await page.until('location.hash.includes("events=10") && Race.state().playing');
               await page.click("#play");
               await settled(page);
           }));

await test("the drawer has the timeline, and other digits keep the history",
           () => visit({...still, ...phone, hash: "#at=60&drawer=1"}, async (page, text, set) => {
               await page.until(`Race.state().step >= 60 && ${idle}`);
               expect(await inView(page, "drawer-timeline"), "the slider is off the screen");
               await set("drawer-timeline", 30);
               expect((await text("drawer-where")).endsWith("step 30"), await text("drawer-where"));
               expectEqual([await text("drawer-step"), await page.value('$("timeline").value')],
                           ["step 30", "30"], "both sliders");
               const before = await lossOf(page, 1, 60), source = await text("right-texts");
               await page.run(() => document.getElementById("pair").click());
               await page.until(`Race.state().step === 60 && Race.state().now === 30 && ${idle}`);
               expectEqual(await lossOf(page, 1, 60), before, "the loss of the same steps");
               expect((await text("right-texts")) !== source, "the digits are the same");
               expectEqual(await page.value("[...Race.state().racers[0].frames.keys()].length"), 7,
                           "kept steps");
           }));

await test("a gradient is followed at a step where there is something to see",
           () => visit({...still, hash: "#at=200"}, async (page, text) => {
               await page.until(`Race.state().step >= 200 && ${idle}`);
               const loss = () => page.value('+document.querySelector("#follow-stops .stop text:last-of-type").textContent');
               expect((await loss()) >= 0.3, `a loss of ${await loss()}`);
               expect(!(await text("follow-where")).includes("step 200"), await text("follow-where"));
               await page.value('document.querySelector("#follow-stops [data-stop=\'3\']").focus()');
               await page.press("Enter");
               expectEqual(await page.value('document.activeElement.getAttribute("aria-current")'),
                           "step", "the stop with the focus");
               await page.click("#follow-live");
               expect((await text("follow-where")).includes("step 200"), await text("follow-where"));
           }));

await test("a seed and a step out of range are replaced by the nearest",
           () => visit({...still, hash: "#seed=-5&at=20"}, async (page, text, set) => {
               await page.until(`Race.state().step >= 20 && ${idle}`);
               expectEqual(await page.value('$("seed").value'), "0", "the seed of the address");
               for (const [typed, used] of [["1e99", "1000000"], ["", "0"], ["7", "7"]]) {
                   await set("seed", typed, "change");
                   expectEqual(await page.value('$("seed").value'), used, `the seed "${typed}"`);
               }
               await page.click("#play");
               await settled(page);
               await set("sabotage-at", "9999");
               await page.click("#sabotage");
               expectEqual(await page.value('$("sabotage-at").value'), "599", "the step");
               await page.click("#play");
               await settled(page);
           }));

await test("a row of the model can be changed: its fields are whole, and the table fits",
           () => visit({...still, hash: "#at=60&drawer=1&racer=1&row=3"}, async (page) => {
               await page.until(`Race.state().step >= 60 && ${idle}`);
               await page.click("#drawer-edit");
               const cut = await page.value(`[...document.querySelectorAll("#row-table input[type=number]")]
                   .filter((x) => x.scrollWidth > x.clientWidth).map((x) => x.value)`);
               expectEqual(cut, [], "clipped fields");
               const [wide, room] = await page.value(
                   '[$("row-table").scrollWidth, $("row-table").parentNode.clientWidth]');
               expect(wide <= room, `the table is ${wide} pixels wide, its place ${room}`);
               await page.value('$("row").scrollIntoView()');
               await picture(page, "changed");
           }));

await test("a page that lies alone has no dead link: it names lessons, and they exist", async () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), "softback-alone-"));
    try {
        fs.copyFileSync(file, path.join(folder, "playground.html"));
        await visit({...still, from: "file://" + path.join(folder, "playground.html")}, async (page, text) => {
            const links = await page.value('[...document.querySelectorAll("[href], [src]")].map((x) => x.href ?? x.src)');
            expect(links.length >= 5, `${links.length} links`);
            expectEqual(links.filter((x) => !x.includes("playground.html#panel=")), [], "links that leave the page");
            const lessons = await page.value('[...document.querySelectorAll("[data-lesson]")].map((x) => x.dataset.lesson)');
            expect(lessons.length >= 6 && lessons.every((x) => fs.existsSync(`teach/lessons/${x}.md`)), lessons.join());
            expect((await text("lessons")).includes("teach/lessons/09_online.md"), await text("lessons"));
        });
    } finally {
        fs.rmSync(folder, {recursive: true});
    }
});

await test("after a race, what can be tried next is a scene",
           () => visit({...still, hash: "#at=200&steps=200&speed=2"}, async (page, text) => {
               await page.until(`Race.state().step >= 200 && ${idle}`);
               await page.click("#race-say [data-scene='2']");
               await sceneBegins(page, 2);
               expect((await text("wrong-rule")).includes("mean("), await text("wrong-rule"));
               expect((await text("scene-caption")).includes("Is that enough"), await text("scene-caption"));
           }));

await test("the table of contents leads to an exhibit and keeps the address",
           () => visit({...still, hash: "#seed=3"}, async (page) => {
               await page.click("#contents li:nth-child(4) a");
               expect(await inView(page, "saturated", "width"), "the exhibit is not in view");
               expectEqual(await page.value("location.hash"), "#seed=3&panel=4", "the address");
           }));

for (const panel of [1, 2, 3, 4, 5])
    await test(`an address with panel ${panel} shows that exhibit from its top`,
               () => visit({...still, hash: `#panel=${panel}`}, async (page) => {
                   const [top, numeral, isEnd] = await page.run((i) => {
                       const exhibit = document.querySelectorAll(".exhibit")[i - 1];
                       const tops = [exhibit, exhibit.querySelector("h2")].map((x) => x.getBoundingClientRect().top);
                       return [...tops, scrollY + innerHeight >= document.body.scrollHeight - 1];
                   }, panel);
                   expect(top >= 0 && (top <= 16 || isEnd && await inView(page, "flash-command")),
                          `it begins at ${top}, its numeral at ${numeral}`);
                   expect(numeral > top, `the numeral begins at ${numeral}`);
               }));

for (const [id, shown, hash] of [["row", "row-table", "upstream=0.5,-1,2,0.25"], ["flash", "flash-table", "block=2"],
                                 ["saturated", "saturated-say", ""]])
    await test(`the exhibit "${id}" stands alone in a frame of another page`, async () => {
        const page = await open(chromium, `${url}?exhibit=${id}#${hash}`, {width: 700, height: 500});
        await page.until('document.body.dataset.state === "ready"');
        const seen = await page.value(`[...document.querySelectorAll("header, nav, section, footer, .plaque")]
            .filter((x) => x.checkVisibility()).map((x) => x.getAttribute("aria-labelledby"))`);
        expectEqual(seen, [id], "what is visible");
        expect(await page.value(`$("${shown}").textContent.length > 40 && $("${shown}").parentNode.scrollWidth <= innerWidth`),
               "the exhibit");
        const told = await page.value(`new Promise((done) => {
            addEventListener("message", ({data}) => done(data.height));
            document.body.append(document.createElement("hr"));
        })`);
        expectEqual(told, await page.value("document.body.offsetHeight"), "the height that it tells");
        if (id === "row") {
            expectEqual(await page.value('$("ds-1").innerText.trim()'), "−0.3012", "ds of the address");
            await page.click("#row-raise");
            await page.click("#row-more");
            expectEqual(await page.value('document.querySelectorAll("#row-table tbody tr").length'), 6, "keys, and their sum");
        }
        expectEqual(page.problems, [], "errors of the browser");
        await page.close();
    });

end("page");
