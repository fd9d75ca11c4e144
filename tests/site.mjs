/* Pages of the site in Chromium: node tests/site.mjs CHROMIUM SITE PAGE... */
import process from "node:process";
import {open} from "./playground/browser.mjs";
import {end, expect, expectEqual, test} from "./playground/test.mjs";

const [chromium, site, ...pages] = process.argv.slice(2);
const url = (name) => `file://${site}/${name}`;
const page = await open(chromium, url("index.html"), {width: 390, height: 844});
const loaded = (name) => page.until(
    `document.readyState === 'complete' && location.href.includes('${name}')`);

for (const name of pages)
    await test(`${name} fits a phone`, async () => {
        await page.go(url(name + ".html"));
        await loaded(name);
        const [width, wide] = await page.value(`[document.documentElement.scrollWidth,
            [...document.querySelectorAll('.article-container *')].filter((e) => e.getBoundingClientRect().right > 391 &&
                !e.closest('pre, table, .formula, .shown, .sig')).map((e) => e.outerHTML.slice(0, 80))]`);
        expect(width <= 390, `it is ${width} pixels wide`);
        expectEqual(wide.slice(0, 3), [], "what is wider");
    });

for (const [question, answer] of [["mask padding", "Mask padding"], ["attention weights shape", "their shape"],
                                  ["schedule", "learning-rate schedule"]])
    await test(`the search finds ${question}`, async () => {
        await page.go(url("search.html?q=" + encodeURIComponent(question)));
        await page.until(`document.querySelectorAll('#search-results li').length > 0 &&
            /matching|finished/.test(document.querySelector('#search-results').textContent)`);
        const found = await page.value(`[...document.querySelectorAll('#search-results li')].slice(0, 5)
            .map((li) => li.innerText.split('\\n')[0])`);
        expect(found.some((title) => title.includes(answer) || title.includes("How to")), found.join("; "));
    });

await test("no page writes an error", async () => expectEqual(page.problems, [], "problems"));
await page.close();
end("site");
