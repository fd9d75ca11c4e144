/* The page's state in the address, behind the #: what differs from the beginning. */
const Address = (() => {
    const own = {
        scores: [2, 1, 0.1, -1], upstream: [1, 0, 0, -1], mask: [1, 1, 1, 1], temperature: 0,
        width: 6, scaled: 0,
        fscores: [1, 2, 5, 0.5, 3, -1], fvalues: [1, -1, 2, 0.5, 0, 4], block: 2, fstep: 0,
        task: 1, factor: 1, mistake: 0, seed: 1, steps: 600, attention: 2, pair: 0,
    };
    const state = structuredClone(own);

    const numbers = (text) => text.split(",").map(Number);
    const fits = (name, value) =>
        Array.isArray(own[name])
            ? value.length >= 2 && value.length <= 32 && value.every(Number.isFinite)
            : value.length === 1 && Number.isFinite(value[0]);

    /* Whatever does not fit is left as it is at the beginning. */
    const read = () => {
        for (const part of location.hash.slice(1).split("&")) {
            const [name, text] = part.split("=");
            if (!(name in own) || text === undefined || !fits(name, numbers(text))) continue;
            state[name] = Array.isArray(own[name]) ? numbers(text) : numbers(text)[0];
        }
        for (const name of ["upstream", "mask"]) if (state[name].length !== state.scores.length) state[name] = state.scores.map(() => (name === "mask" ? 1 : 0));
        if (state.fvalues.length !== state.fscores.length) state.fvalues = state.fscores.map((_, i) => i + 1);
    };

    const write = () => {
        const parts = Object.keys(own).filter((name) => String(state[name]) !== String(own[name])).map((name) => name + "=" + state[name]);
        history.replaceState(null, "", "#" + parts.join("&"));
    };

    return { state, own, read, write };
})();
