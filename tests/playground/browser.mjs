/* A headless Chromium, controlled through two pipes; needs only node. */
import {spawn} from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

/* Messages end with a zero byte. `send` answers with the result of its message. */
const connect = (to, from, onEvent) => {
    const waiting = new Map();
    let last = 0, rest = "";
    from.on("data", (bytes) => {
        const all = (rest + bytes).split("\0");
        rest = all.pop();
        for (const text of all) {
            const message = JSON.parse(text);
            if (!message.id) {
                onEvent(message);
                continue;
            }
            const {done, failed} = waiting.get(message.id);
            waiting.delete(message.id);
            if (message.error)
                failed(Error(message.error.message));
            else
                done(message.result);
        }
    });
    return (method, params = {}, sessionId = undefined) => new Promise((done, failed) => {
               waiting.set(++last, {done, failed});
               to.write(JSON.stringify({id: last, method, params, sessionId}) + "\0");
           });
};

/* Opens a page. `problems` collects errors and warnings of the page. */
export const open =
    async (program, url, {dark = false, still = false, width = 1280, height = 1000} = {}) => {
    const profile = fs.mkdtempSync(path.join(os.tmpdir(), "softback-browser-"));
    const flags = [
        "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
        "--user-data-dir=" + profile, "--remote-debugging-pipe", "about:blank"
    ];
    const child = spawn(program, flags, {stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"]});
    const problems = [];
    const send = connect(child.stdio[3], child.stdio[4], ({method, params}) => {
        if (method === "Runtime.exceptionThrown")
            problems.push(params.exceptionDetails.exception?.description ||
                          params.exceptionDetails.text);
        if (method === "Runtime.consoleAPICalled" && params.type !== "log")
            problems.push(params.args.map((a) => a.value).join(" "));
        if (method === "Log.entryAdded" && params.entry.level === "error")
            problems.push(params.entry.text);
    });
    const {targetId} = await send("Target.createTarget", {url: "about:blank"});
    const {sessionId} = await send("Target.attachToTarget", {targetId, flatten: true});
    const tell = (method, params) => send(method, params, sessionId);
    for (const domain of ["Runtime", "Page", "Log"]) await tell(domain + ".enable");
    await tell("Emulation.setDeviceMetricsOverride",
               {width, height, deviceScaleFactor: 1, mobile: width < 500});
    await tell("Emulation.setEmulatedMedia", {
        features: [
            {name: "prefers-color-scheme", value: dark ? "dark" : "light"},
            {name: "prefers-reduced-motion", value: still ? "reduce" : "no-preference"}
        ]
    });

    const page = {problems, tell};
    page.go = (to) => tell("Page.navigate", {url: to});
    page.value = async (expression) => {
        const answer =
            await tell("Runtime.evaluate", {expression, awaitPromise: true, returnByValue: true});
        if (answer.exceptionDetails)
            throw Error(answer.exceptionDetails.exception?.description || expression);
        return answer.result.value;
    };
    page.until = async (expression, ms = 60000) => {
        for (const begin = Date.now(); Date.now() - begin < ms; await sleep(50))
            if (await page.value(expression).catch(() => false)) return;
        throw Error(`timeout waiting for ${expression}; ${problems.join("; ")}`);
    };
    page.press = async (key, modifiers = 0) => {
        const codes = {
            Tab: 9,
            Enter: 13,
            Escape: 27,
            PageUp: 33,
            PageDown: 34,
            " ": 32,
            ArrowLeft: 37,
            ArrowUp: 38,
            ArrowRight: 39,
            ArrowDown: 40
        };
        const text = key === "Enter" ? "\r" : key.length === 1 ? key : undefined;
        const common = {
            key,
            code: key === " " ? "Space" : key,
            windowsVirtualKeyCode: codes[key] || key.toUpperCase().charCodeAt(0),
            modifiers
        };
        await tell("Input.dispatchKeyEvent", {type: "keyDown", text, ...common});
        await tell("Input.dispatchKeyEvent", {type: "keyUp", ...common});
    };
    /* Runs a function in the page, on arguments that JSON can represent. */
    page.run = (f, ...given) => page.value(`(${f})(${given.map((x) => JSON.stringify(x)).join()})`);
    const middle = (selector) => {
        const element = document.querySelector(selector);
        const {top, bottom} = element.getBoundingClientRect();
        if (top < 0 || bottom > innerHeight) element.scrollIntoView({block: "center"});
        const box = element.getBoundingClientRect();
        return [box.x + box.width / 2, box.y + box.height / 2];
    };
    page.click = async (selector) => {
        const [x, y] = await page.run(middle, selector), button = "left", clickCount = 1;
        for (const type of ["mouseMoved", "mousePressed", "mouseReleased"])
            await tell("Input.dispatchMouseEvent", {type, x, y, button, clickCount});
    };
    /* The whole page, or what can be seen of it. */
    page.picture = async (file, {whole = true} = {}) => {
        const {data} =
            await tell("Page.captureScreenshot", {format: "png", captureBeyondViewport: whole});
        fs.writeFileSync(file, Buffer.from(data, "base64"));
    };
    page.close = async () => {
        const ended = new Promise((done) => child.once("exit", done));
        await send("Browser.close").catch(() => null);
        await Promise.race([ended, sleep(10000)]);
        fs.rmSync(profile, {recursive: true, force: true, maxRetries: 20, retryDelay: 100});
    };
    await page.go(url);
    return page;
};
