/* Runs tests one after the other; a failed one prints what was expected, and the next one runs. */
import fs from "node:fs";
import process from "node:process";

let passed = 0, failed = 0;

export const expect = (ok, what) => {
    if (!ok) throw Error(what);
};
export const expectEqual = (got, wanted, what) => expect(
    JSON.stringify(got) === JSON.stringify(wanted),
    `${what}: ${JSON.stringify(got)}, not ${JSON.stringify(wanted)}`);

export const test = async (name, body) => {
    try {
        await body();
        passed++;
    } catch (error) {
        failed++;
        console.log(`FAIL ${name}: ${error.message}`);
    }
};

/* The names of models/palette.h are a page's colours, light or dark. */
export const expectPalette = async (page, dark) => {
    const rows = [...fs.readFileSync("models/palette.h", "utf8").matchAll(/colour\("([^"]*)", "([^"]*)", "([^"]*)"\)/g)];
    const names = rows.map((row) => row[1]);
    const got = await page.value(`${JSON.stringify(names)}.map((name) =>
        getComputedStyle(document.documentElement).getPropertyValue("--" + name))`);
    expect(rows.length > 8, "no palette");
    expectEqual(got, rows.map((row) => row[dark ? 3 : 2]), names.join());
};

export const end = (what) => {
    console.log(`${what}: ${passed} passed, ${failed} failed`);
    process.exitCode = failed ? 1 : 0;
};
