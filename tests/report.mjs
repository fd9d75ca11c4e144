/* Zoom and smoothing of a report's curves in Chromium: node tests/report.mjs CHROMIUM PAGE
   SHORT. The log of PAGE has a loss each 10 steps up to 2,000, that of SHORT 4 in all. */
import fs from "node:fs";
import process from "node:process";
import {open} from "./playground/browser.mjs";
import {end, expect, expectEqual, expectPalette, test} from "./playground/test.mjs";

const [chromium, file, short] = process.argv.slice(2);
const page = await open(chromium, "file://" + file);
await page.until("document.getElementById('zoom')?.hidden === false");

/* Attributes `d` of paths of a class, in the file as C wrote it. */
const source = fs.readFileSync(file, "utf8");
const drawn = (kind) =>
    [...source.matchAll(RegExp(`class="${kind}" d="([^"]*)"`, "g"))].map((m) => m[1]);
const now = (kind) => page.value(
    `[...document.querySelectorAll('.${kind}')].map((path) => path.getAttribute('d'))`);
const numbers = (d) => d.split(/[ ML]/).filter(Boolean).map(Number);
const close = (a, b, off = 1e-4) => a.length === b.length && a.every((x, i) => Math.abs(x - b[i]) < off);
const set = (id, value) => page.value(`{const input = document.getElementById('${id}');
    input.value = ${value}; input.dispatchEvent(new Event('input'));}`);
const steps = () => page.value(`[...document.querySelectorAll('.chart')[0]
    .querySelectorAll('.step')].map((text) => text.textContent)`);
/* What axes say, and where, in per cent. */
const said = (axes) => [...axes.matchAll(/>([^<>]+)<\/text>/g)].map((m) => m[1]).join(" ");
const places = (axes) => [...axes.matchAll(/"([\d.]+)%"/g)].map((m) => Number(m[1]));
const frame = "document.querySelector('.frame').getBoundingClientRect()";

await test("the script draws the whole as the page has it", async () => {
    for (const kind of ["points", "mean"]) {
        const before = drawn(kind), after = await now(kind);
        expect(before.length > 0, `there is no ${kind}`);
        expectEqual(after.length, before.length, `paths of ${kind}`);
        before.forEach((d, i) =>
            expect(close(numbers(d), numbers(after[i])), `${kind} ${i} differs`));
    }
    const before = [...source.matchAll(/<g class="axes">\n([^]*?)<\/g>/g)].map((m) => m[1]);
    const after = await page.value(
        "[...document.querySelectorAll('.axes')].map((axes) => axes.innerHTML)");
    expectEqual(after.map(said), before.map(said), "labels");
    expect(before.at(-1).includes(">0.5</text>") && said(before.at(-1)).endsWith("0.5 1 2"),
           `norms from 0.4 to 3.9: ${said(before.at(-1))}`);
    before.forEach((axes, i) =>
        expect(close(places(axes), places(after[i]), 0.01), `places of labels ${i}`));
    expectEqual((await steps()).join(" "), "0 200 400 600 800 1,000 1,200 1,400 1,600 1,800 2,000",
                "labels");
});

/* Where points of the first curve are on the screen, as shares of the frame. */
const placed = (xs) => page.value(`{
    const box = ${frame}, path = document.querySelector('.points'), at = path.getScreenCTM();
    path.getAttribute('d').slice(1).split('L').map((point) => point.split(' ').map(Number))
        .filter(([x]) => x >= ${xs[0]} && x <= ${xs[1]}).map(([x, y]) => {
            const p = new DOMPoint(x, y).matrixTransform(at);
            return [(p.x - box.x) / box.width, (p.y - box.y) / box.height];
        })}`);

await test("numbers choose a range of steps for all charts", async () => {
    await set("from", 500);
    await set("to", 1000);
    const points = await placed([500, 1000]), ys = points.map(([, y]) => y);
    expectEqual(points.length, 51, "points of 10 steps from 500 to 1000");
    expect(points.flat().every((share) => share > -1e-3 && share < 1.001), "they are in the frame");
    expect(close([points[0][0], points.at(-1)[0]], [0, 1], 1e-3), "they fill the width");
    expect(close([Math.min(...ys), Math.max(...ys)], [0, 1], 1e-3), "they fill the height");
    expectEqual(await page.value("getComputedStyle(document.querySelector('.curves')).clipPath"),
                "inset(-4px)", "curves end at the frame");
    expectEqual((await steps()).join(" "), "500 600 700 800 900 1,000", "labels");
    await page.click("#all");
    const all = await placed([0, 2000]);
    expect(close([all[0][0], all.at(-1)[0]], [0.005, 1], 1e-3), "all is all");
});

await test("dragging over a chart chooses a range, a double click all", async () => {
    await page.value("document.querySelector('.chart').scrollIntoView()");
    const [x, y, width] = await page.value(`{const box = ${frame}; [box.x, box.y, box.width]}`);
    const at = (type, share, clickCount = 1) => page.tell("Input.dispatchMouseEvent",
        {type, x: x + share * width, y: y + 100, button: "left", clickCount});
    await at("mousePressed", 1 / 4);
    await at("mouseMoved", 1 / 2);
    await at("mouseReleased", 1 / 2);
    const range = await page.value("[from.value, to.value].map(Number)");
    expect(Math.abs(range[0] - 500) < 5 && Math.abs(range[1] - 1000) < 5, `from ${range}`);
    const said = await page.value("document.querySelector('.said-values').textContent");
    expect(/^training: [\d.]+ at step [\d,]+, held out: [\d.]+ at step [\d,]+$/.test(said), said);
    for (const count of [1, 2]) {
        await at("mousePressed", 0.4, count);
        await at("mouseReleased", 0.4, count);
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
    expect(close(numbers((await now("mean"))[0]), numbers((await now("points"))[0])),
           "without smoothing the mean is the points");
});

await test("the learning rate, which has no noise, is drawn as it is; the share of the mean is shown", async () => {
    await set("smoothing", 30);
    expectEqual(await page.value(`document.querySelector('[data-name=rate] .mean') === null`), true, "no mean");
    expectEqual(await page.value("smoothed.textContent"), "30 % of the points", "the share");
});


const show = (part) => page.value(`[...document.querySelectorAll('#tabs button')].find(
    (tab) => tab.textContent === '${part}').click()`);
const overflow = "document.documentElement.scrollWidth - innerWidth";

/* Texts of charts that are outside of the window, or over another text. */
const unreadable = () => page.value(`{
    const found = [], boxes = [...document.querySelectorAll('.chart text')].map((text) =>
        [text.textContent, text.getBoundingClientRect()]).filter(([, box]) => box.width > 0);
    boxes.forEach(([name, a], i) => {
        if (a.left < 0 || a.right > innerWidth) found.push(name + ' is outside');
        for (const [other, b] of boxes.slice(i + 1))
            if (a.left < b.right && b.left < a.right && a.top < b.bottom - 1 && b.top < a.bottom - 1)
                found.push(name + ' is over ' + other);
    });
    found}`);

await test("charts are as wide as the column, and a phone needs no scrolling across", async () => {
    await show("Curves");
    const [chart, column] = await page.value(
        "['.frame', '.part'].map((x) => document.querySelector(x).clientWidth)");
    expect(chart > 0.9 * column, `a chart of ${chart} in ${column}`);
    expectEqual(await unreadable(), [], "texts");
    await page.tell("Emulation.setDeviceMetricsOverride",
                    {width: 390, height: 844, deviceScaleFactor: 1, mobile: true});
    for (const part of ["Curves", "Attention", "Errors", "Check and tape", "Details"]) {
        await show(part);
        expect((await page.value(overflow)) <= 0, `${part} is too wide`);
    }
    await show("Curves");
    expectEqual(await unreadable(), [], "texts on a phone");
    expect((await page.value("document.querySelectorAll('.key text').length")) >= 6, "names of curves");
    await page.tell("Emulation.clearDeviceMetricsOverride", {});
});

await test("curves are below the tabs, which stay", async () => {
    await show("Curves");
    await page.value("scrollTo(0, document.querySelector('.frame').getBoundingClientRect().top + scrollY - 20)");
    const over = await page.value(`{const {x, y, width} = document.querySelector("#tabs").getBoundingClientRect();
        [0, .2, .4, .6, .8].map((share) => document.elementFromPoint(x + 20 + share * width, y + 20).closest("#tabs") !== null)}`);
    expect(over.every(Boolean), `tabs are on top: ${over}`);
    await page.value("scrollTo(0, 0)");
});

await test("on a phone a wide picture begins at its largest weight", async () => {
    await page.tell("Emulation.setDeviceMetricsOverride",
                    {width: 390, height: 844, deviceScaleFactor: 1, mobile: true});
    await show("Curves");
    await show("Attention");
    const off = await page.value(`{const [svg] = document.querySelectorAll(".wide > svg"),
        [most] = [...svg.querySelectorAll("path[opacity]")].sort((a, b) => b.getAttribute("opacity") - a.getAttribute("opacity")),
        box = most.getBoundingClientRect(); [box.left, box.right]}`);
    expect(off[1] > 0 && off[0] < 390, `the widest line is at ${off}`);
    await page.tell("Emulation.clearDeviceMetricsOverride", {});
});

await test("another part begins at its top, below the tabs", async () => {
    await show("Curves");
    await page.value("scrollTo(0, document.body.scrollHeight)");
    await show("Attention");
    const [tabs, heading] = await page.value(`["#tabs", ".part:not([hidden]) h2"].map(
        (x) => document.querySelector(x).getBoundingClientRect())
        .map(({top, bottom}, i) => i ? top : bottom)`);
    expect(heading >= tabs && heading < tabs + 200, `a heading at ${heading}, tabs to ${tabs}`);
    await page.value("scrollTo(0, 0)");
    await show("Curves");
    expectEqual(await page.value("scrollY"), 0, "what is not scrolled stays");
});

await test("each map has one line, and the rest is behind a word", async () => {
    await show("Attention");
    const lines = await page.value(`[...document.querySelectorAll(".maps figcaption")].map((x) => {
        const text = document.createRange();
        text.selectNodeContents(x);
        return new Set([...text.getClientRects()].map((box) => box.top)).size + (x.scrollWidth > x.clientWidth)})`);
    expectEqual([...new Set(lines)], [1], "lines of captions");
    const more = await page.value(`[...document.querySelectorAll("summary")].filter((x) => x.textContent.startsWith("More: "))
        .map((x) => x.parentNode.querySelectorAll("tr").length - 1)`);
    expectEqual(more, [2, 2, 2], "heads behind the words");
});

await test("on a phone each error is a card that is not cut off", async () => {
    await page.tell("Emulation.setDeviceMetricsOverride",
                    {width: 390, height: 844, deviceScaleFactor: 1, mobile: true});
    await show("Errors");
    const [right, ...tops] = await page.value(`{
        const cells = [...document.querySelectorAll(".errors > .wide tr:nth-child(2) td")],
              texts = [...document.querySelectorAll(".errors code")];
        [Math.max(...texts.map((x) => x.getBoundingClientRect().right)),
            ...cells.map((x) => x.getBoundingClientRect().top)]}`);
    expect(right <= 390, `a text up to ${right}`);
    expectEqual(new Set(tops).size, 4, "lines");
    await page.tell("Emulation.clearDeviceMetricsOverride", {});
});

await test("a key of shades is a line of its own", async () => {
    for (const width of [1280, 390]) {
        await page.tell("Emulation.setDeviceMetricsOverride",
                        {width, height: 844, deviceScaleFactor: 1, mobile: width < 500});
        const found = await page.value(`[...document.querySelectorAll(".shade")].map((x) =>
            [x.parentNode.textContent.replace(/[^a-z]/g, ""), x.parentNode.scrollWidth > innerWidth].join())`);
        expectEqual([...new Set(found)], [",false"], `keys at ${width}`);
    }
    await page.tell("Emulation.clearDeviceMetricsOverride", {});
});

await test("the tape has arrows that are seen at 100 %", async () => {
    await page.tell("Emulation.setDeviceMetricsOverride",
                    {width: 1280, height: 800, deviceScaleFactor: 1, mobile: false});
    await show("Check and tape");
    const [edges, tips, small] = await page.value(`{
        const tape = document.querySelector("svg.tape");
        tape.closest("details").open = true;
        const sizes = [...tape.querySelectorAll(".tip")].map((x) => x.getBoundingClientRect());
        [tape.querySelectorAll("path:not(.tip)").length, sizes.length,
            sizes.filter(({width, height}) => Math.min(width, height) < 9).length];
    }`);
    expect(edges > 40 && tips === edges && small === 0, `${tips} arrows of ${edges} edges, ${small} of them small`);
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

await test("the colours are those of the palette, light and dark", async () => {
    for (const value of ["light", "dark"]) {
        await page.tell("Emulation.setEmulatedMedia", {features: [{name: "prefers-color-scheme", value}]});
        await expectPalette(page, value === "dark");
    }
});

await test("a page whose curves have few points has no slider for their mean", async () => {
    const hidden = () => page.value("['smoothing', 'smoothed', 'from'].map((id) => "
        + "document.getElementById(id).offsetParent === null)");
    await show("Curves");
    expectEqual(await hidden(), [false, false, false], "many points");
    await page.go("file://" + short);
    await page.until(`location.pathname === "${short}" && document.getElementById('tabs')?.hidden === false`);
    expectEqual(await hidden(), [true, true, false], "few points");
});

await test("nothing goes wrong in the page", () => expectEqual(page.problems, [], "problems"));
await page.close();
end("report in Chromium");
