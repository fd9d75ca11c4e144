/* Runs tests one after the other; a failed one prints what was expected, and the next one runs. */
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

export const end = (what) => {
    console.log(`${what}: ${passed} passed, ${failed} failed`);
    process.exitCode = failed ? 1 : 0;
};
