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

for (const [lesson, exhibit] of [["02_everyone_pays", "row"], ["03_never_build_j", "row#upstream=0.5,-1,2,0.25"],
                                 ["09_online", "flash#fscores=1,2,5,0.5,3,-1&fvalues=1,-1,2,0.5,0,4&block=2"]])
    await test(`${lesson} has its exhibit, as high as it is`, async () => {
        await page.go(url(`teach/lessons/${lesson}.html`));
        await loaded(lesson);
        expectEqual(await page.value("document.querySelector('iframe').getAttribute('src')"),
                    "../../live.html?exhibit=" + exhibit, "its address");
        await page.value("document.querySelector('iframe').scrollIntoView({behavior: 'instant'})"); /* which loads it */
        await page.until("document.querySelector('iframe').offsetHeight === 323", 10000);
    });

const search = async (question) => {
    await page.go(url("search.html?q=" + encodeURIComponent(question)));
    await page.until(`document.querySelectorAll('#search-results li').length > 0 &&
        /matching|finished/.test(document.querySelector('#search-results').textContent)`);
    return page.value(`[...document.querySelectorAll('#search-results li')].slice(0, 5)
        .map((li) => li.innerText.split('\\n')[0] + ' ' + li.querySelector('a').getAttribute('href'))`);
};

for (const [question, answer] of [
    ["mask padding", "how_to.html#mask-padding"], ["padding mask", "how_to.html#mask-padding"],
    ["how do I mask padding?", "how_to.html#mask-padding"],
    ["attention weights shape", "how_to.html#get-attention-weights-and-their-shape"],
    ["learning rate schedule", "how_to.html#set-a-learning-rate-schedule"], ["schedule", "how_to.html#set-a-learning-rate-schedule"],
    ["freeze layers", "how_to.html#freeze-parameters"], ["gradient check", "how_to.html#check-the-gradient-of-your-own-code"],
    ["softmax", "#softmax"], ["sb_attention", "#c.sb_attention"],
    ["flash attention", "Online softmax"], ["softmax backward", "Never build J"],
    ["kv cache", "key-value-cache"], ["beam search", "beam-search"], ["top-k sampling", "beam-search"], ["save model", "#save-and-load"],
    ["label smoothing", "smooth-labels"], ["tied embeddings", "tie-embeddings"], ["learned positions", "choose-positions"],
    ["dropout", "#dropout"], ["layer norm", "#layer_norm"], ["multi head attention", "#MultiHeadAttention"],
    ["gradient clipping", "learning-rate-schedule"], ["early stopping", "train.html"], ["train a model", "train.html"],
    ["reproducible results", "same-numbers"], ["hugging face", "hugging-face"], ["cuda", "gpu.html"], ["bf16", "#train-in-bf16"]])
    await test(`the search finds ${question} first`, async () => {
        const found = await search(question);
        expect(found[0].includes(answer), found.join("; "));
    });

await test("the search finds the same with and without a hyphen", async () =>
    expectEqual(await search("learning-rate"), await search("learning rate"), "found"));

await test("the Python reference is pages to be read, each below 30,000 pixels", async () => {
    await page.tell("Emulation.setDeviceMetricsOverride", {width: 1280, height: 900, deviceScaleFactor: 1, mobile: false});
    for (const group of ["ops", "tensor", "autograd", "nn", "models"]) {
        await page.go(url(`reference/python_${group}.html`));
        await loaded(`python_${group}`);
        const height = await page.value("document.documentElement.scrollHeight");
        expect(height < 30000, `${group} has ${height} pixels`);
    }
});

await test("no page writes an error", async () => expectEqual(page.problems, [], "problems"));
await page.close();
end("site");
