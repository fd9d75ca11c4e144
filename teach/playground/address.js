/* The page's state in the address, behind the #: what differs from the beginning. */
const Address = (() => {
    const own = {
        /* panel 1 */
        scores: [2, 1, 0.1, -1],
        upstream: [1, 0, 0, -1],
        mask: [1, 1, 1, 1],
        temperature: 0, /* its logarithm, to base 10 */
        /* panel 2 */
        width: 6, /* of base 2 */
        scaled: 0,
        /* panel 3 */
        fscores: [1, 2, 5, 0.5, 3, -1],
        fvalues: [1, -1, 2, 0.5, 0, 4],
        block: 2,
        fstep: 0,
        /* panel 4 */
        task: 1,
        factor: 1,
        mistake: 0,
        seed: 1,
        steps: 600,
        attention: 2,
        pair: 0,
    };
    const state = structuredClone(own);

    const isList = (name) => Array.isArray(own[name]);
    const fits = (name, numbers) => {
        const counted = isList(name) ? numbers.length >= 2 && numbers.length <= 32
                                     : numbers.length === 1;
        return counted && numbers.every((x) => Number.isFinite(x) && Math.abs(x) <= 1e30);
    };

    /* Whatever does not fit is left as it is at the beginning. */
    const read = () => {
        for (const part of location.hash.slice(1).split("&")) {
            const [name, text] = part.split("=");
            const numbers = (text || "x").split(",").map(Number);
            if (Object.hasOwn(own, name) && fits(name, numbers))
                state[name] = isList(name) ? numbers : numbers[0];
        }
        const {scores, fscores} = state;
        if (state.upstream.length !== scores.length) state.upstream = scores.map(() => 0);
        if (state.mask.length !== scores.length) state.mask = scores.map(() => 1);
        if (state.fvalues.length !== fscores.length) state.fvalues = fscores.map((_, i) => i + 1);
        state.mask = state.mask.map((kept) => (kept ? 1 : 0));
    };

    const write = () => {
        const changed = Object.keys(own).filter((key) => String(state[key]) !== String(own[key]));
        const parts = changed.map((key) => `${key}=${state[key]}`);
        history.replaceState(null, "", "#" + parts.join("&"));
    };

    return {state, own, read, write};
})();
