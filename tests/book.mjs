/* The book on a phone and on a desk, in Chromium: node tests/book.mjs CHROMIUM PAGE. */
import process from "node:process";
import {open} from "./playground/browser.mjs";
import {end, expect, expectEqual, test} from "./playground/test.mjs";

const [chromium, file] = process.argv.slice(2);
for (const [width, height] of [[390, 844], [1280, 1000]]) {
    const page = await open(chromium, "file://" + file, {width, height});
    await page.until("document.readyState === 'complete'");
    await test(`at ${width} pixels, formulas, tables and code scroll in boxes of their own`, async () => {
        expect(await page.value("(({scrollWidth: all, clientWidth: seen}) => all <= seen)(document.documentElement)"),
               "the page scrolls sideways");
        const wide = await page.value(`[...document.querySelectorAll('main *')]
            .filter((x) => !x.closest('.formula, pre, table') && x.getBoundingClientRect().right > innerWidth)
            .map((x) => x.outerHTML.slice(0, 200))`);
        expectEqual(wide, [], "beyond the edge");
        expect(await page.value(`[...document.querySelectorAll('.formula')]
            .filter((x) => x.scrollHeight > x.clientHeight).length`) === 0, "a formula is cut off below");
    });
    await test(`at ${width} pixels, formulas are drawn`, async () => {
        expect(await page.value(`[...document.querySelectorAll('math')]
            .every((x) => x.getBoundingClientRect().width > 3)`), "a formula is empty");
        const [inline, display] = await page.value(`['inline', 'block'].map((kind) =>
            document.querySelectorAll('math[display=' + kind + ']').length)`);
        expect(inline > 200 && display >= 12, `${inline} formulas in lines, ${display} of their own`);
        expectEqual(page.problems, [], "what the page reports");
    });
    await page.close();
}
end("book");
