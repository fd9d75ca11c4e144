/* The page's state in the address, behind the #: what differs from the beginning. */
const Address = (() => {
    const MISTAKE = "a * (1 - a) * g";
    const own = {
        /* the race */
        task: 1,
        factor: 1,
        seed: 1,
        steps: 600,
        rule: MISTAKE, /* of the wrong racer */
        events: [],    /* steps at which the right racer is sabotaged, repaired, sabotaged ... */
        speed: 1,
        pair: 0,
        at: -1, /* the step that is shown; -1: the newest */
        /* the cell that was chosen, and whether its drawer is open */
        attention: 2,
        racer: 0,
        head: 0,
        row: -1, /* -1: the one with the largest gradient */
        drawer: 0,
        stop: 0, /* of "follow one gradient" */
        live: 0, /* whether that has the step which the race shows */
        /* one row */
        scores: [2, 1, 0.1, -1],
        upstream: [2, 0, 1, -1], /* a mean that is not 0: shifts of g can be seen */
        mask: [1, 1, 1, 1],
        temperature: 0, /* its logarithm, to base 10 */
        /* saturated rows */
        width: 6, /* of base 2 */
        scaled: 0,
        /* flash attention */
        fscores: range(32).map((i) => +(4 * Math.sin(i * i)).toFixed(2)),
        fvalues: range(32).map((i) => +Math.cos(3 * i).toFixed(2)),
        block: 4,
        fstep: 1, /* so that the table has a row */
        teacher: 0,
        scene: -1, /* of teacher mode */
        panel: 0, /* the one that is opened: 0 is the first */
    };
    /* The whole numbers of the state, and their least and largest values. */
    const bounds = {
        seed: [0, 1e6],
        pair: [0, 1e6],
        racer: [0, 1],
        head: [0, 1],
        row: [-1, 1e6],
        stop: [0, 5],
        width: [1, 10],
        block: [1, 32],
        fstep: [0, 1e6],
        panel: [0, 5],
    };
    const state = structuredClone(own);
    const clip = () => {
        for (const [name, [least, most]] of Object.entries(bounds))
            state[name] = Math.min(most, Math.max(least, Math.round(state[name]) || 0));
    };

    const isList = (name) => Array.isArray(own[name]);
    const fits = (name, numbers) => {
        const few = name === "events" ? 1 : 2;
        const counted = isList(name) ? numbers.length >= few && numbers.length <= 32
                                     : numbers.length === 1;
        return counted && numbers.every((x) => Number.isFinite(x) && Math.abs(x) <= 1e30);
    };
    const decoded = (text) => {
        try {
            return decodeURIComponent(text);
        } catch {
            return "";
        }
    };

    /* Whatever does not fit is left as it is at the beginning. */
    const take = (name, text) => {
        if (name === "rule") {
            const ok = text && text.length <= 200 && !Library.rule.check(text).message;
            if (ok) state.rule = text;
            return ok;
        }
        const numbers = (text || "x").split(",").map(Number);
        const ok = Object.hasOwn(own, name) && fits(name, numbers);
        if (ok) state[name] = isList(name) ? numbers : numbers[0];
        return ok;
    };
    const refused = []; /* parts of the address that do not fit */
    const read = () => {
        for (const part of location.hash.slice(1).split("&").filter(Boolean)) {
            const [name, text] = part.split("=");
            if (!take(name, decoded(text || ""))) refused.push(part.slice(0, 40));
        }
        $("address-refused").hidden = refused.length === 0;
        $("address-refused").textContent =
            `The address has what this page cannot read: ${refused.join(", ")}. The page shows ` +
            "its own values instead.";
        const {scores, fscores} = state;
        if (state.upstream.length !== scores.length) state.upstream = scores.map(() => 0);
        if (state.mask.length !== scores.length) state.mask = scores.map(() => 1);
        if (state.fvalues.length !== fscores.length) state.fvalues = fscores.map((_, i) => i + 1);
        clip();
        state.mask = state.mask.map((kept) => (kept ? 1 : 0));
        state.events = state.events.map(Math.round).filter((x) => x >= 0).sort((x, y) => x - y);
    };

    /* Changes the state, and names it in the address. */
    const set = (changes) => {
        Object.assign(state, changes);
        clip();
        const changed = Object.keys(own).filter((key) => String(state[key]) !== String(own[key]));
        const value = (key) => (key === "rule" ? encodeURIComponent(state[key]) : state[key]);
        const parts = changed.map((key) => `${key}=${value(key)}`);
        history.replaceState(null, "", "#" + parts.join("&"));
    };

    return {state, own, read, set};
})();
