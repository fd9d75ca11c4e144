/*
 * The page's numbers, without a browser: module.mjs PLAYGROUND.WASM LOSSES SOFTBACK LESSON, where
 * LOSSES is playground-losses of a portable build, SOFTBACK the program, and LESSON the final weights
 * of lesson 11.
 */
import {execFileSync} from "node:child_process";
import fs from "node:fs";
import process from "node:process";

import {test, end, expect, expectEqual} from "./test.mjs";

const [, , wasm, losses, softback, lesson] = process.argv;
const source =
    fs.readFileSync(new URL("../../teach/playground/library.js", import.meta.url), "utf8");
const Library = new Function(source + "; return Library;")();
await Library.open(fs.readFileSync(wasm));

const run = (...words) =>
    execFileSync(words[0], words.slice(1), {encoding: "utf8", stdio: ["ignore", "pipe", "ignore"]});
const begin = (more) =>
    Library.training.begin({task: 1, seed: 1, factor: 1, mistake: 0, steps: 600, ...more});
const train = (steps) => Array.from({length: steps}, () => Library.training.step());

await test("300 steps have the bits of a portable build", () => {
    begin();
    const own = train(300), said = run(losses, "600", "300").trim().split("\n");
    for (const step of [100, 200, 300]) {
        const line = said.find((l) => l.startsWith(`step ${step} `));
        expectEqual(own[step - 1], +line.split(" ").at(-1), `the loss of step ${step}`);
    }
    expectEqual(Library.training.share(), +said.at(-2).split(" ")[1], "the share of right digits");
    expectEqual(Library.training.fingerprint(), said.at(-1).split(" ")[1], "the weights");
});

await test("drawing does not change training", () => {
    const ends = [false, true].map((looks) => {
        begin({steps: 40});
        for (let i = 0; i < 20; i++) {
            Library.training.step();
            if (looks) {
                Library.training.look(i);
                Library.training.row(2, 0, 3);
                Library.training.share();
            }
        }
        return Library.training.fingerprint();
    });
    expectEqual(ends[1], ends[0], "the weights");
});

await test("lesson 11 ends with the same weights as the page", () => {
    begin({steps: 200});
    train(200);
    expectEqual(Library.training.fingerprint(), lesson, "the weights");
});

/* The tables of a page equal the terminal's JSON, which has the numbers of its text. */
const expectTables = (topic, options, ...words) => {
    const own = Library.explain(topic, options),
          said = JSON.parse(run(softback, "explain", topic, ...words, "--json"));
    const tables = said.parts.filter((p) => p.table).map((p) => p.table);
    expect(tables.length > 0, `${topic} has no tables`);
    for (const {name, columns, rows} of tables)
        rows.forEach((row, r) => columns.forEach((column, c) => {
            const cell = own.tables[name][r][column].text;
            expectEqual(
                typeof row[c] === "number" ? +cell : cell, row[c],
                `${topic}, ${name}, row ${r}, ${column}`);
        }));
    expectEqual(own.texts, said.parts.filter((p) => p.text).map((p) => p.text), `${topic}'s texts`);
};

await test("pages have the numbers of the terminal", () => {
    expectTables("softmax", {});
    expectTables(
        "softmax", {
            scores: [20, 10, 1, -10, 3],
            upstream: [1, 0, 2, 0, -1],
            mask: [1, 1, 1, 1, 0],
            temperature: 2
        },
        "--scores", "20,10,1,-10,3", "--upstream", "1,0,2,0,-1", "--mask", "1,1,1,1,0",
        "--temperature", "2");
    expectTables(
        "softmax", {scores: [1, 2], upstream: [1, 0], mask: [0, 0]}, "--scores", "1,2",
        "--upstream", "1,0", "--mask", "0,0");
    expectTables("flash", {});
    expectTables(
        "flash", {scores: [3, 1, 4, 1, 5], values: [1, 2, 3, 4, 5], block: 3}, "--scores",
        "3,1,4,1,5", "--values", "1,2,3,4,5", "--block", "3");
    expectTables("saturated-rows", {width: 16}, "--width", "16");
    expectTables("saturated-rows", {});
    for (const topic of ["mask", "cross-entropy", "saturation", "positions", "attention", "tape"])
        expectTables(topic, {});
});

await test("the Jacobian has the numbers of the terminal", () => {
    const J = Library.jacobian({scores: [2, 1, 0.1, -1]});
    const shown = Library.explain("softmax", {}).tables.jacobian;
    J.forEach(
        (row, i) => row.forEach(
            (x, j) => expect(Math.abs(x - shown[i]["by s_" + j].number) < 1e-15, `J ${i} ${j}`)));
    for (const row of J)
        expect(Math.abs(row.reduce((a, b) => a + b)) < 1e-12, "a row does not sum to 0");
});

await test("invalid options give a message", () => {
    let message = "";
    try {
        Library.explain("softmax", {scores: [1, 2, 3], upstream: [1, 0]});
    } catch (error) {
        message = error.message;
    }
    expect(
        message.includes("--upstream: there are 2 numbers, but 3 scores"),
        `the message is "${message}"`);
});

await test("a row under the lens has the numbers of the model's step", () => {
    begin();
    train(100);
    const sight = Library.training.look(0);
    for (const attention of [0, 1, 2]) {
        const map = sight.maps[attention];
        const page = Library.training.row(attention, 1, 4), rows = page.tables.row;
        expectEqual(rows.map((r) => r.key.text), map.keys, "the keys");
        rows.forEach((r, k) => {
            expect(
                Math.abs(r.a.number - map.heads[1][4][k]) < 1e-6,
                `a of key ${k}: ${r.a.number}, in the map ${map.heads[1][4][k]}`);
            const kept = r.s.text !== "blocked";
            expect(kept || r.ds.number === 0, "a blocked key has a gradient");
            expect(
                Math.abs(r.ds.number - r.difference.number) <= 1e-6 * Math.abs(r.ds.number) + 1e-11,
                `ds ${r.ds.number}, difference ${r.difference.number}`);
        });
        expect(
            Math.abs(rows.reduce((x, r) => x + r.ds.number, 0)) < 1e-12, "ds do not sum to 0");
    }
});

await test("wrong gradients have the results that the page describes", () => {
    const right = [0, 1, 2, 3].map((mistake) => {
        begin({mistake});
        const all = train(600);
        expect(all.every(Number.isFinite), "a loss is not finite");
        return Library.training.share();
    });
    expect(right[0] >= 0.99, `the right one: ${right[0]}`);
    expect(right[1] <= 0.2 && right[2] <= 0.2, `the mistakes: ${right[1]}, ${right[2]}`);
    expect(right[3] >= 0.2 && right[3] <= 0.5, `with queries and keys frozen: ${right[3]}`);
});

await test("a large factor of the scores slows training", () => {
    begin({factor: 16, steps: 200});
    const loud = train(200).at(-1);
    begin({steps: 200});
    expect(loud > 1 && train(200).at(-1) < 0.2, `scores x 16: ${loud}`);
});

await test("wrong gradients have the bits of a portable build", () => {
    for (const mistake of [1, 2, 3]) {
        begin({mistake});
        train(100);
        const said = run(losses, "600", "100", "1", "1", String(mistake)).trim().split("\n");
        expectEqual(Library.training.fingerprint(), said.at(-1).split(" ")[1], "the weights");
    }
});

const used = process.cpuUsage();
begin();
train(200);
const {user, system} = process.cpuUsage(used);
console.log(`${Math.round(200e6 / (user + system))} steps a second of processor time, ${
    fs.statSync(wasm).size >> 10} kB`);
end("module");
