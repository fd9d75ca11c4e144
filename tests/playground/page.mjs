/*
 * The page in a browser: page.mjs CHROMIUM PAGE.HTML PICTURES LOSSES. It is used as a reader
 * would, with mouse and keyboard; PICTURES is a folder for screenshots.
 */
import {execFileSync} from "node:child_process";
import path from "node:path";
import process from "node:process";

import {open} from "./browser.mjs";
import {test, end, expect, expectEqual} from "./test.mjs";

const [, , chromium, file, pictures, losses] = process.argv;
const url = "file://" + path.resolve(file);

/* Opens the page, waits until it can be used, and checks for errors at the end. */
const visit = async (options, act) => {
    const page = await open(chromium, url + (options.hash || ""), options);
    const text = (id) => page.value(`document.getElementById(${JSON.stringify(id)}).textContent`);
    /* The same events as typing or sliding. */
    const put = (id, value, event) => {
        const field = document.getElementById(id);
        field.value = value;
        field.dispatchEvent(new Event(event, {bubbles: true}));
    };
    const set = (id, value, event = "input") => page.run(put, id, String(value), event);
    try {
        await page.until('document.body.dataset.state === "ready"');
        await page.until("Training.state().sight");
        await act(page, text, set);
        expect(
            !(await page.value("/NaN|undefined|Infinity/.test(document.body.innerText)")),
            "the page shows NaN, undefined or Infinity");
        expectEqual(page.problems, [], "errors of the browser");
    } finally {
        await page.close();
    }
};
const picture = (page, name) => page.picture(path.join(pictures, name + ".png"));

await test(
    "it opens from a file",
    () => visit({}, async (page, text) => {
        console.log(`ready after ${await page.value("document.body.dataset.milliseconds")} ms`);
        expectEqual(await text("a-0"), "0.6381", "the first weight");
        await picture(page, "light");
    }));

await test(
    "panel 1 uses scores, gradients, masks and the temperature",
    () => visit({}, async (page, text, set) => {
        await set("slide-0", 1);
        expectEqual(await page.value('$("score-0").value'), "1", "the score beside its slider");
        expectEqual(await text("a-0"), await text("a-1"), "the weights of equal scores");
        await set("upstream-3", 5);
        expect((await text("ds-3")).startsWith("0."), "the score of the better key grows");
        await page.click("#kept-3");
        expectEqual(await text("a-3"), "blocked", "a blocked key");
        expectEqual(await text("ds-3"), "0.0000", "its gradient");
        await set("temperature", 1);
        expectEqual(await text("temperature-value"), "10.00", "the temperature");
        await page.click("#row-masked");
        expect(
            (await text("row-say")).includes("by definition"), "a row without keys is explained");
        expectEqual(await text("ds-0"), "0.0000", "a gradient of an empty row");
        await page.click("#row-saturated");
        expect(+(await text("a-0")) > 0.999, "a saturated row");
        await page.click("#row-more");
        expectEqual(
            await page.value('document.querySelectorAll("#row-table tbody tr").length'), 5, "keys");
        await set("score-4", "");
        expectEqual(
            await page.value('$("score-4").getAttribute("aria-invalid")'), "true",
            "an empty field");
        expect(
            /--scores 16,8,0.8,-8,0 --upstream 1,0,0,-1,0$/.test(await text("row-command")),
            await text("row-command"));
    }));

await test(
    "panel 2 counts saturated rows",
    () => visit({}, async (page, text, set) => {
        expect(/Saturated: 3\d\.\d % raw, 0\.0 %/.test(await text("saturated-say")), await text("saturated-say"));
        await set("width", 4);
        expectEqual(await text("width-value"), "16", "d");
        expect(/Saturated: \d\.\d % raw/.test(await text("saturated-say")), await text("saturated-say"));
        await page.click("#scaled");
        expect((await text("saturated-caption")).includes("scores over √d"), "the caption");
    }));

await test(
    "panel 3 steps forward through blocks, backward, and forward again",
    () => visit({}, async (page, text, set) => {
        for (let i = 0; i < 3; i++) await page.click("#flash-step");
        expectEqual(await text("flash-place"), "forward, block 2 of 3", "the place");
        const end = await page.value(
            'document.querySelector("#flash-table tr.now td:nth-child(6)").textContent');
        const said = (await text("flash-say")).match(/o \/ l = (\S+)\. /)[1];
        expect(Math.abs(end - said) < 0.005, `o / l is ${end}, and in the text ${said}`);
        for (let i = 0; i < 6; i++) await page.click("#flash-step");
        expectEqual(await text("flash-place"), "backward, key 5", "the place");
        expect(await page.value('$("flash-step").disabled'), "there is a step after the last one");
        await page.click("#flash-back");
        expectEqual(await text("flash-place"), "backward, key 4", "the place");
        await set("flash-scores", "1, 2, x");
        expect((await text("flash-place")).includes("expected: 2 to 32"), "a text that is no number is refused");
        await set("flash-scores", "1 2 3");
        await set("flash-values", "4 5 6");
        await set("flash-block", 3);
        await page.click("#flash-step");
        expectEqual(await text("flash-place"), "forward, block 0 of 1", "the place");
        await page.click("#flash-restart");
        expectEqual(await text("flash-place"), "before the first block", "the place");
    }));

await test(
    "panel 4 trains, pauses and restarts; its losses have the bits of a portable build",
    () => visit({}, async (page, text) => {
        await page.click("#advance");
        await page.until("Training.state().run.step === 1");
        await page.click("#train");
        await page.until("Training.state().run.step > 20");
        await page.click("#train");
        await page.until("!Training.state().run.running");
        const paused = await page.value("Training.state().run.step");
        expectEqual(await text("train"), "train", "the button");
        await page.click("#train");
        await page.until("Training.state().run.step >= 600");
        expect(paused < 600, "it did not pause");
        console.log(await text("status"));
        const said = execFileSync(losses, ["600", "300"], {encoding: "utf8"});
        expectEqual(
            await page.value("Training.state().run.losses[299]"),
            +said.match(/step 300  loss (\S+)/)[1], "the loss of step 300");
        expect(
            (await text("status")).includes("100.0 % of the digits right"), await text("status"));
        await page.click("#restart");
        await page.until("Training.state().run.step === 0");
        expectEqual(await page.value("Training.state().before.length"), 1, "runs in the picture");
    }));

await test(
    "each gradient, task and factor trains",
    () => visit({}, async (page, text, set) => {
        const train = async (what) => {
            await page.until("Training.state().run.step === 0");
            await page.click("#train");
            await page.until("Training.state().run.step >= 30");
            await page.click("#train");
            await page.until("!Training.state().run.running");
            expect(!(await text("status")).includes("failed"), `${what}: ${await text("status")}`);
        };
        for (const mistake of [1, 2, 3]) {
            await set("mistake", mistake, "change");
            await train(`mistake ${mistake}`);
        }
        await picture(page, "runs");
        for (const task of [0, 2]) {
            await set("task", task, "change");
            await train(`task ${task}`);
        }
        await set("factor", 64, "change");
        await set("seed", 7, "change");
        await train("another seed");
        expectEqual(
            await page.value("location.hash"), "#task=2&factor=64&mistake=3&seed=7", "the address");
    }));

await test(
    "a cell of attention opens its row under the lens and in panel 1",
    () => visit({}, async (page, text) => {
        await page.click("#train");
        await page.until("Training.state().run.step > 60");
        await page.click('#maps td[data-h="1"][data-r="2"][data-k="5"]');
        await page.until('$("lens-title").textContent');
        expect(!(await page.value("Training.state().run.running")), "it did not pause training");
        expect(
            /^Row 3 of head 2, cross attention, layer 1, after step \d+/.test(
                await text("lens-title")),
            await text("lens-title"));
        expectEqual(
            await text("row-origin"), await text("lens-title"), "where panel 1's row is from");
        const rows = await page.run(() => {
            const all = [...document.querySelectorAll("#lens-table tbody tr")];
            return all.map((row) => [...row.children].map((cell) => cell.textContent));
        });
        expectEqual(rows.length, 8, "keys");
        const largest = Math.max(...rows.map((r) => Math.abs(+r[5])));
        const lastDigit = (number) => 10 ** -(number.split(".")[1] ?? "").length;
        for (const [i, row] of rows.entries()) {
            expectEqual(
                await page.value(
                    `document.querySelectorAll("#row-table tbody th")[${i}].textContent`),
                row[0], "a key");
            const own = await text("ds-" + i);
            expect(
                Math.abs(own - row[5]) <= 0.01 * largest + lastDigit(own) / 2,
                `ds ${i} is ${own}, under the lens ${row[5]}`);
        }
        for (const [i, kind] of [[0, "encoder"], [1, "decoder"]]) {
            await page.value(`(() => { $("attention").value = ${
                i}; $("attention").dispatchEvent(new Event("change")); })()`);
            await page.click('#maps td[data-h="0"][data-r="3"][data-k="1"]');
            await page.until(`$("lens-title").textContent.includes("${kind} attention")`);
        }
        await picture(page, "lens");
        const before = await text("pair-text");
        await page.click("#pair");
        await page.until(`$("pair-text").textContent !== ${JSON.stringify(before)}`);
    }));

await test("the address restores all settings, and invalid values in it are ignored", async () => {
    const hash =
        "#scores=3,2,1&upstream=0,1,0&mask=1,1,0&temperature=0.5&width=3&scaled=1&fscores=4,5" +
        "&fvalues=1,2&block=1&fstep=2&task=2&factor=4&mistake=2&seed=9&steps=200&attention=1&pair=3";
    await visit({hash}, async (page, text) => {
        expectEqual(await text("a-2"), "blocked", "the third key");
        expectEqual(await text("width-value"), "8", "d");
        expectEqual(await text("flash-place"), "forward, block 1 of 2", "panel 3");
        const fields = ["score-0", "task", "factor", "mistake", "seed", "steps", "attention"];
        expectEqual(
            await page.value(`${JSON.stringify(fields)}.map((id) => $(id).value)`),
            ["3", "2", "4", "2", "9", "200", "1"], "the fields");
        await page.value("Address.write()");
        expectEqual(await page.value("location.hash"), hash, "the address, written again");
    });
    await visit(
        {
            hash:
                "#scores=1,x&upstream=1&mask=&width=99&block=0&fstep=1e9&task=44" +
                "&factor=-1&mistake=8&seed=-3&steps=7&attention=6&pair=-2&constructor=1&=&&"
        },
        async (page, text) => {
            expectEqual(await text("a-0"), "0.6381", "the first weight");
            expect(!(await text("status")).includes("failed"), await text("status"));
        });
});

await test(
    "the page can be used with the keyboard alone",
    () => visit({}, async (page, text) => {
        const active = () => page.run(() => {
            const {id, dataset} = document.activeElement;
            return id || dataset.r + "," + dataset.k;
        });
        const tabTo = async (id) => {
            for (let i = 0; i < 80 && (await active()) !== id; i++) await page.press("Tab");
            expectEqual(await active(), id, "the focus");
        };
        await tabTo("kept-0");
        await page.press(" ");
        expectEqual(await text("a-0"), "blocked", "a key blocked with the space bar");
        await tabTo("slide-1");
        await page.press("ArrowRight");
        expectEqual(await page.value('$("score-1").value'), "1.1", "a score moved with an arrow");
        await tabTo("flash-step");
        await page.press("Enter");
        expectEqual(await text("flash-place"), "forward, block 0 of 3", "a step");
        await tabTo("advance");
        await page.press("Enter");
        await page.until("Training.state().run.step === 1");
        await tabTo("0,0");
        for (const key of ["ArrowDown", "ArrowDown", "ArrowRight"]) await page.press(key);
        expectEqual(await active(), "2,1", "the cell");
        await page.press("Enter");
        await page.until('$("lens-title").textContent.startsWith("Row 3 of head 1")');
        expectEqual(await active(), "row", "the focus goes to panel 1");
    }));

for (const [name, options] of [
         ["dark", {dark: true}], ["phone", {width: 390, height: 844}],
         ["phone-dark", {width: 390, height: 844, dark: true}]])
    await test(
        `it is readable: ${name}`,
        () => visit(options, async (page) => {
            await page.click("#train");
            await page.until("Training.state().run.step > 100");
            await page.click("#train");
            await page.until("!Training.state().run.running");
            const wide = await page.value("document.documentElement.scrollWidth");
            expect(wide <= (options.width || 1200), `the page is ${wide} pixels wide`);
            /* WCAG 2.1: the contrast of texts with their background is at least 4.5. */
            const contrast = await page.run(() => {
                const part = (x) => (x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
                const light = (colour) => {
                    const [r, g, b] = colour.match(/\d+/g).map((x) => part(x / 255));
                    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
                };
                const style = (selector) => getComputedStyle(document.querySelector(selector));
                const ground = light(style("body").backgroundColor);
                const ratios = ["body", "a", ".terminal", "th"].map((selector) => {
                    const ink = light(style(selector).color);
                    return (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05);
                });
                return Math.min(...ratios);
            });
            expect(contrast >= 4.5, `a contrast of ${contrast}`);
            await picture(page, name);
        }));

end("page");
