/*
 * The picture of the live page in README.md, after 200 steps of the race:
 * node teach/playground/picture.mjs CHROMIUM PAGE.HTML PICTURE.PNG
 */
import path from "node:path";
import process from "node:process";

import {open} from "../../tests/playground/browser.mjs";

const [chromium, file, picture] = process.argv.slice(2);
const page = await open(chromium, "file://" + path.resolve(file), {height: 800});
await page.tell("Emulation.setScrollbarsHidden", {hidden: true});
await page.until("Race.state().step >= 200");
await page.click("#play");
await page.value("Race.settled().then(() => null)");
await page.value(`{
    const timeline = document.getElementById("timeline");
    timeline.value = 200;
    timeline.dispatchEvent(new Event("input", {bubbles: true}));
    scrollTo(0, 0);
}`);
await new Promise((done) => setTimeout(done, 1000)); /* cells change their colour slowly */
await page.picture(picture, {whole: false});
console.log(await page.value(`["right", "wrong"].map((name) =>
    name + " " + document.getElementById(name + "-share").textContent).join(", ")`));
await page.close();
