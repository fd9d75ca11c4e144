/* Zoom and smoothing of a report's curves in Chromium: node tests/report.mjs CHROMIUM PAGE. The log
   of PAGE has a loss each 10 steps up to 2,000. */
import fs from "node:fs";
import process from "node:process";
import {open} from "./playground/browser.mjs";
import {end, expect, expectEqual, test} from "./playground/test.mjs";

const [chromium, file] = process.argv.slice(2);
const page = await open(chromium, "file://" + file);
await page.until("document.getElementById('zoom')?.hidden === false");

/* Attributes `d` of paths of a class, in the file as C wrote it. */
const source = fs.readFileSync(file, "utf8");
const drawn = (kind) =>
    [...source.matchAll(RegExp(`class="${kind}" d="([^"]*)"`, "g"))].map((m) => m[1]);
const now = (kind) => page.value(
    `[...document.querySelectorAll('.${kind}')].map((path) => path.getAttribute('d'))`);
const numbers = (d) => d.split(/[ MLH]/).filter(Boolean).map(Number);
const close = (a, b) => a.length === b.length && a.every((x, i) => Math.abs(x - b[i]) < 0.05);
const set = (id, value) => page.value(`{const input = document.getElementById('${id}');
    input.value = ${value}; input.dispatchEvent(new Event('input'));}`);
const labels = () => page.value(`[...document.querySelectorAll('.chart')[0]
    .querySelectorAll('.axes text[text-anchor=middle]')].map((text) => text.textContent)`);

await test("the script draws the whole as the page has it", async () => {
    for (const kind of ["points", "mean", "level"]) {
        const before = drawn(kind), after = await now(kind);
        expect(before.length > 0, `there is no ${kind}`);
        expectEqual(after.length, before.length, `paths of ${kind}`);
        before.forEach((d, i) =>
            expect(close(numbers(d), numbers(after[i])), `${kind} ${i} differs`));
    }
    expectEqual((await labels()).join(" "), "0 200 400 600 800 1,000 1,200 1,400 1,600 1,800 2,000 step",
                "labels");
});

await test("numbers choose a range of steps for all charts", async () => {
    await set("from", 500);
    await set("to", 1000);
    const [first] = await now("points"), xs = numbers(first).filter((_, i) => i % 2 === 0);
    expectEqual(xs.length, 51, "points of 10 steps from 500 to 1000");
    expect(xs.every((x) => x >= 64 && x <= 610), "they are in the frame");
    expectEqual([xs[0], xs.at(-1)], [64, 610], "they fill the width");
    expectEqual((await labels()).join(" "), "500 600 700 800 900 1,000 step", "labels");
    await page.click("#all");
    expect(close(numbers((await now("points"))[0]), numbers(drawn("points")[0])), "all is all");
});

await test("dragging over a chart chooses a range, a double click all", async () => {
    await page.value("document.querySelector('.chart').scrollIntoView()");
    const [x, y, scale] = await page.value(`{
        const box = document.querySelector('.chart svg').getBoundingClientRect();
        [box.x, box.y, box.width / 760]}`);
    const at = (type, px, clickCount = 1) => page.tell("Input.dispatchMouseEvent",
        {type, x: x + px * scale, y: y + 100, button: "left", clickCount});
    await at("mousePressed", 64 + 546 / 4);
    await at("mouseMoved", 64 + 546 / 2);
    await at("mouseReleased", 64 + 546 / 2);
    const range = await page.value("[from.value, to.value].map(Number)");
    expect(Math.abs(range[0] - 507) < 10 && Math.abs(range[1] - 1005) < 10, `from ${range}`);
    const said = await page.value("document.querySelector('.said-values').textContent");
    expect(/^training: [\d.]+ at step [\d,]+, held out: [\d.]+ at step [\d,]+$/.test(said), said);
    for (const count of [1, 2]) {
        await at("mousePressed", 300, count);
        await at("mouseReleased", 300, count);
    }
    expectEqual(await page.value("[from.value, to.value]"), ["0", "2000"], "the range");
});

await test("smoothing can be changed and removed", async () => {
    const [usual] = await now("mean");
    await set("smoothing", 30);
    const [more] = await now("mean");
    const rise = (d) => numbers(d).filter((_, i) => i % 2).reduce(
        ([sum, last], y) => [sum + Math.abs(y - (last ?? y)), y], [0, undefined])[0];
    expect(rise(more) < rise(usual), "more smoothing is smoother");
    await set("smoothing", 0);
    expectEqual((await now("mean"))[0], "", "without smoothing there is no mean");
});

await test("the learning rate, which has no noise, is drawn as it is; the share of the mean is shown", async () => {
    await set("smoothing", 30);
    expectEqual(await page.value(`document.querySelector('[data-name=rate] .mean') === null`), true, "no mean");
    expectEqual(await page.value("smoothed.textContent"), "30 % of the points", "the share");
});


const show = (part) => page.value(`[...document.querySelectorAll('#tabs button')].find(
    (tab) => tab.textContent === '${part}').click()`);
const overflow = "document.documentElement.scrollWidth - innerWidth";

await test("charts are as wide as the column, and a phone needs no scrolling across", async () => {
    await show("Curves");
    const [chart, column] = await page.value(
        "['.chart svg', '.part'].map((x) => document.querySelector(x).clientWidth)");
    expectEqual(chart, column, "the width of a chart");
    await page.tell("Emulation.setDeviceMetricsOverride",
                    {width: 390, height: 844, deviceScaleFactor: 1, mobile: true});
    for (const part of ["Curves", "Attention", "Gradients", "Errors", "Check and tape", "Details"]) {
        await show(part);
        expect((await page.value(overflow)) <= 0, `${part} is too wide`);
    }
    await page.tell("Emulation.clearDeviceMetricsOverride", {});
});

await test("a map is small, and one that is chosen shows its symbols and numbers", async () => {
    await show("Attention");
    const map = "document.querySelector('.maps figure')";
    const look = () => page.value(`[${map}.clientWidth, ${map}.querySelector('th').clientHeight,
        parseFloat(getComputedStyle(${map}.querySelector('td[style]')).fontSize)]`);
    const [small, head, letters] = await look();
    expect(small < 200 && head === 0 && letters === 0, `${small}, ${head}, ${letters}`);
    await page.click(".maps figure");
    const [large, ...seen] = await look();
    expect(large > 2 * small && seen.every((x) => x > 8), `${large}, ${seen}`);
});

await test("nothing goes wrong in the page", () => expectEqual(page.problems, [], "problems"));
await page.close();
end("report in Chromium");
