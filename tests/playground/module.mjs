/*
 * The page's numbers, without a browser: module.mjs PLAYGROUND.WASM LOSSES SOFTBACK LESSON, where
 * LOSSES is playground-losses of a portable build, SOFTBACK the program, and LESSON the final
 * weights of lesson 11.
 */
import {execFileSync} from "node:child_process";
import fs from "node:fs";
import process from "node:process";

import {end, expect, expectEqual, test} from "./test.mjs";

const [, , wasm, losses, softback, lesson] = process.argv;
const source =
    fs.readFileSync(new URL("../../teach/playground/library.js", import.meta.url), "utf8");
const Library = new Function(source + "; return Library;")();
await Library.open(await WebAssembly.compile(fs.readFileSync(wasm)));

const run = (...words) =>
    execFileSync(words[0], words.slice(1), {encoding: "utf8", stdio: ["ignore", "pipe", "ignore"]});
const begin = (more) =>
    Library.training.begin({task: 1, seed: 1, factor: 1, rule: "", steps: 600, ...more});
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
            expectEqual(typeof row[c] === "number" ? +cell : cell, row[c],
                        `${topic}, ${name}, row ${r}, ${column}`);
        }));
    const texts = said.parts.map((p) => p.text).filter((t) => t && !t.startsWith("--reference"));
    expectEqual(own.texts, texts, `${topic}'s texts`);
};

await test("pages have the numbers of the terminal", () => {
    expectTables("softmax", {});
    expectTables("softmax", {
        scores: [20, 10, 1, -10, 3],
        upstream: [1, 0, 2, 0, -1],
        mask: [1, 1, 1, 1, 0],
        temperature: 2
    },
                 "--scores", "20,10,1,-10,3", "--upstream", "1,0,2,0,-1", "--mask", "1,1,1,1,0",
                 "--temperature", "2");
    expectTables("softmax", {scores: [1, 2], upstream: [1, 0], mask: [0, 0]}, "--scores", "1,2",
                 "--upstream", "1,0", "--mask", "0,0");
    expectTables("flash", {});
    expectTables("flash", {scores: [3, 1, 4, 1, 5], values: [1, 2, 3, 4, 5], block: 3}, "--scores",
                 "3,1,4,1,5", "--values", "1,2,3,4,5", "--block", "3");
    expectTables("saturated-rows", {width: 16}, "--width", "16");
    expectTables("saturated-rows", {});
});

await test("the Jacobian has the numbers of the terminal", () => {
    const J = Library.jacobian({scores: [2, 1, 0.1, -1]});
    const shown = Library.explain("softmax", {}).tables.jacobian;
    J.forEach((row, i) =>
                  row.forEach((x, j) => expect(Math.abs(x - shown[i]["by s_" + j].number) < 1e-15,
                                               `J ${i} ${j}`)));
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
    expect(message.includes("--upstream: there are 2 numbers, but 3 scores"),
           `the message is "${message}"`);
});

/* Rows of an array (heads, rows, width) of what was seen. */
const rowOf = (seen, name, head, row, width) => {
    const at = head * seen.rows.length + row;
    return Array.from(seen[name].subarray(at * width, (at + 1) * width));
};
const close = (x, y, scale, what) =>
    expect(Math.abs(x - y) <= 1e-5 * Math.abs(scale) + 1e-9, `${what}: ${x}, and ${y}`);
const total = (all) => all.reduce((x, y) => x + y, 0);
const dot = (x, y) => total(x.map((z, i) => z * y[i]));

/* Scores and g are those of the test below; here, weights, their gradients and differences of them. */
await test("what is seen of a row has the numbers of the page on its scores and g", () => {
    begin();
    train(100);
    const {attentions, pairs} = Library.training.look(0);
    const digits = [pairs[0].source, pairs[0].target].map((x) => x.split(" "));
    for (const [attention, seen] of attentions.entries()) {
        const n = seen.keys.length, of = (name) => rowOf(seen, name, 1, 4, n);
        const [s, a, g, ds] = ["s", "a", "g", "ds"].map(of), kept = s.map((x) => x > -Infinity);
        expectEqual(kept, kept.map((_, k) => attention !== 1 || k <= 4), "kept keys");
        expectEqual(seen.keys.filter((x) => /^\d$/.test(x)),
                    attention === 1 ? digits[1].slice(0, n - 1) : digits[0], "keys");
        const {forward, backward} = Library.explain("softmax", {
            scores: s.map((x, k) => (kept[k] ? x : 0)),
            upstream: g.map((x, k) => (kept[k] ? x : 0)),
            mask: kept.map(Number)
        }).tables;
        backward.forEach((r, k) => {
            close(a[k], forward[k].a.number, 1, "a");
            close(ds[k], r.ds.number, r.ds.number, "ds");
            expect(kept[k] || ds[k] === 0, "a blocked key has a gradient");
            close(r.ds.number, r.difference.number, r.ds.number, "difference");
        });
        close(total(ds), 0, Math.max(...ds.map(Math.abs)), "the sum of ds");
        close(seen.sum[seen.rows.length + 4], total(ds), 1e-3, "the sum of ds");
    }
});

await test("each gradient that is followed leads to the next", () => {
    const rule = "a * (1 - a) * g";
    for (const given of ["", rule]) {
        begin({rule: given});
        train(60);
        const sight = Library.training.look(3), seen = sight.attentions[2];
        const n = seen.keys.length, d = seen.size;
        for (const [head, row] of [[0, 2], [1, 5]]) {
            const ofKey = (name, k) =>
                Array.from(seen[name].subarray((head * n + k) * d, (head * n + k + 1) * d));
            const of = (name, width) => rowOf(seen, name, head, row, width);
            const dy = of("dy", d), q = of("q", d), dq = of("dq", d), ds = of("ds", n),
                  g = of("g", n), s = of("s", n);
            const norm = Math.sqrt(dot(dq, dq));
            for (let k = 0; k < n; k++) {
                close(g[k], dot(dy, ofKey("v", k)), g[k], "g = dy v");
                close(s[k], seen.scale * dot(q, ofKey("k", k)), s[k], "s = q k");
            }
            for (let e = 0; e < d; e++)
                close(dq[e], seen.scale * total(ds.map((x, k) => x * ofKey("k", k)[e])), norm,
                      "dq = ds k");
        }
        expectEqual(sight.pairs.length, 3, "pairs");
        const p = Array.from(sight.p.subarray(0, sight.symbols.length));
        close(total(p), 1, 1, "the sum of p");
    }
});

await test("flows are antisymmetric, and sum to ds", () => {
    const options =
        {scores: [2, 1, 0.1, -1], upstream: [1, 0, 0, -1], mask: [1, 0, 1, 1], temperature: 2};
    const flow = Library.flow(options), {backward} = Library.explain("softmax", options).tables;
    flow.forEach((row, i) => {
        row.forEach((x, j) => expectEqual(x, 0 - flow[j][i] + 0, "a flow and its opposite"));
        close(total(row), backward[i].ds.number, 1, "ds");
    });
});

const MISTAKE = "a * (1 - a) * g", RIGHT = "a * (g - sum(a * g))";

await test("a rule is read, and compared with the Jacobian", () => {
    const found = (text) => {
        const {right, sumIsZero, shiftFree, message} = Library.rule.check(text);
        return message || [right, sumIsZero, shiftFree].map(Number).join("");
    };
    const expected = {
        [RIGHT]: "111",
        "a*g - a*sum(g*a)": "111",
        "-a * (sum(a * g) - g)": "111",
        "a (g − avg)": "111",
        "a × (g − sum(a·g))": "111",
        "a(1 − a)g": "000",
        "a(1 − a)(g − avg)": "001",
        [MISTAKE]: "000",
        [`${MISTAKE} - mean(${MISTAKE})`]: "010",
        "a * (1 - a) * (g - sum(a * g))": "001",
        "a * (g - mean(g))": "001",
        "0": "011",
        "g": "000",
        "1e3 * a * (g - sum(a * g)) * 1e-3": "111",
        "a * 1e30 / 1e30": "001",
        "a * (g - max(g)) / n + abs(a) - sqrt(a * a) + min(exp(g)) - min(exp(g))": "001",
    };
    for (const [text, properties] of Object.entries(expected))
        expectEqual(found(text), properties, text);
    const refused = {
        "": "the text ends where",
        "a *": "the text ends where",
        "a b": '"b" at character 3',
        "alert(1)": '"alert(1)" at character 1',
        "sum a": '"a" at character 5, where "(" is expected',
        "(a": 'the text ends where ")" is expected',
        "1e": '"e" at character 2',
        "log(0 - 1)": "not finite for key 0",
        "a / 0": "(division by 0)",
        "sqrt(0 - a)": "(square root of a number below 0)",
        "1e99 * 1e99 * 1e99 * 1e99": "(a number beyond the range of floating point)",
        ["(".repeat(20) + "a"]: "more than 12 open brackets",
        ["a" +
         "+a".repeat(60)]: "it is too long",
        "a; g": '"; g" at character 2',
    };
    for (const [text, part] of Object.entries(refused))
        expect(found(text).includes(part), `${text}: ${found(text)}`);
    const options =
        {scores: [2, 1, 0.1, -1], upstream: [1, 0, 0, -1], mask: [1, 1, 0, 1], temperature: 2};
    const {backward} = Library.explain("softmax", options).tables;
    Library.rule.row(RIGHT, options)
        .forEach((x, i) => close(x, backward[i].ds.number, 1, "ds by the rule"));
    Library.rule.row(MISTAKE, options)
        .forEach((x, i) => close(x, backward[i].mistake.number, 1, "the mistake"));
});

await test("a rule that divides by a g of 0 is refused in that row only", () => {
    expectEqual(Library.rule.check("a / g").message, undefined, "random rows have no 0");
    const options = {scores: [1, 2], upstream: [1, 0], mask: [1, 1]};
    let said = "";
    try {
        Library.rule.row("a / g", options);
    } catch (error) {
        said = error.message;
    }
    expect(/not finite for key 1, where a = 0.731 and g = 0 \(division by 0\)/.test(said), said);
    expectEqual(Library.rule.tested(), {rows: 64, keys: 6}, "what a rule is tested with");
});

await test("a wrong rule has the results that the page describes", () => {
    const right = ["", MISTAKE, `${MISTAKE} - mean(${MISTAKE})`, "0"].map((rule) => {
        begin({rule});
        const all = train(600);
        expect(all.every(Number.isFinite), "a loss is not finite");
        return Library.training.share();
    });
    expect(right[0] >= 0.99, `the right one: ${right[0]}`);
    expect(right[1] <= 0.2 && right[2] <= 0.3, `the mistakes: ${right[1]}, ${right[2]}`);
    expect(right[3] >= 0.2 && right[3] <= 0.5, `with queries and keys frozen: ${right[3]}`);
});

/* The page says why: sums in another order are rounded in another way. */
await test("two forms of the correct rule differ by rounding alone, and learn", () => {
    const [own, other] = ["", RIGHT].map((rule) => {
        begin({rule});
        return train(300);
    });
    const apart = own.map((x, i) => Math.abs(x - other[i]));
    expectEqual(own[0], other[0], "the first loss");
    const near = Math.max(...apart.slice(0, 20)), far = Math.max(...apart);
    expect(near < 1e-3 && far > 1e-6, `the losses differ by ${near}, and later by ${far}`);
    expect(own.at(-1) < 0.1 && other.at(-1) < 0.1, `at the end: ${own.at(-1)}, ${other.at(-1)}`);
});

await test("a rule can change while a model trains", () => {
    const run = (changes) => {
        begin({steps: 60});
        for (let i = 0; i < 60; i++) {
            if (changes[i] !== undefined) Library.training.rule(changes[i]);
            Library.training.step();
        }
        return Library.training.fingerprint();
    };
    const straight = run({}), sabotaged = run({30: MISTAKE});
    expect(straight !== sabotaged, "the rule changed nothing");
    expectEqual(run({30: MISTAKE}), sabotaged, "the same again");
    expectEqual(
        run({30: MISTAKE, 31: ""}) !== straight, true, "one wrong step changes the weights");
});

await test("a large factor of the scores slows training", () => {
    begin({factor: 16, steps: 200});
    const loud = train(200).at(-1);
    begin({steps: 200});
    expect(loud > 1 && train(200).at(-1) < 0.2, `scores x 16: ${loud}`);
});

await test("wrong rules have the bits of a portable build", () => {
    for (const rule of [MISTAKE, "0"]) {
        begin({rule});
        train(100);
        const said = run(losses, "600", "100", "1", "1", rule).trim().split("\n");
        expectEqual(Library.training.fingerprint(), said.at(-1).split(" ")[1], "the weights");
    }
});

/* Steps a second of processor time: each racer has a core of its own. */
const rate = (rule) => {
    begin({rule});
    const used = process.cpuUsage();
    train(200);
    const {user, system} = process.cpuUsage(used);
    return Math.round(200e6 / (user + system));
};
console.log(`${rate("")} and, by a rule, ${rate(MISTAKE)} steps a second of processor time, ${
    fs.statSync(wasm).size >> 10} kB`);
end("module");
