/* The library's calls, with texts and tables as objects. */
const Library = (() => {
    let calls;

    const text = (at) => {
        if (!at) return null;
        const bytes = new Uint8Array(calls.memory.buffer);
        let end = at;
        while (bytes[end]) end++;
        return new TextDecoder().decode(bytes.subarray(at, end));
    };
    const range = (n) => Array.from({length: n}, (_, i) => i);
    const message = () => text(calls.message());
    const need = (ok) => {
        if (!ok) throw Error(message());
    };

    /* The page that is open: its paragraphs, and its tables by name, each with rows of cells by
       column. A cell is {text, number}: as the terminal shows it, and all its digits. */
    const table = (part) => {
        const columns = range(calls.table_columns(part));
        const names = columns.map((c) => text(calls.column_name(part, c)));
        const cell = (r, c) =>
            ({text: text(calls.cell_text(part, r, c)), number: calls.cell_number(part, r, c)});
        const named = columns.filter((c) => names[c]); /* a bar has no name */
        return range(calls.table_rows(part))
            .map((r) => Object.fromEntries(named.map((c) => [names[c], cell(r, c)])));
    };
    const page = () => {
        const all = {texts: [], tables: {}};
        for (const part of range(calls.page_parts())) {
            const paragraph = text(calls.part_text(part));
            if (paragraph)
                all.texts.push(paragraph);
            else
                all.tables[text(calls.table_name(part))] = table(part);
        }
        return all;
    };

    const lists = ["scores", "upstream", "mask", "values"];
    const set = (options) => {
        calls.options_clear();
        calls.options_set(options.temperature || 0, options.block || 0, options.width || 0);
        lists.forEach((name, i) => (options[name] || []).forEach((x) => calls.options_add(i, x)));
    };

    /* The page of a topic of `softback explain`. */
    const explain = (topic, options) => {
        set(options);
        let i = 0;
        while (text(calls.topic_name(i)) !== topic) i++;
        need(calls.explain(i));
        return page();
    };

    /* A copy of n numbers. */
    const numbers = (at, n) => {
        need(at);
        return new Float64Array(calls.memory.buffer, at, n).slice();
    };
    /* An array of EXPLAIN_NUMBERS x EXPLAIN_NUMBERS numbers, of which n x n are used. */
    const square = (call) => (options) => {
        const apart = 32, n = options.scores.length;
        set(options);
        const all = numbers(calls[call](), apart * apart);
        return range(n).map((i) => Array.from(all.subarray(i * apart, i * apart + n)));
    };

    /* ---- rules for the gradient of softmax ---- */

    /* A rule may have the minus and the products of print. */
    const typed = (rule) => rule.replaceAll("−", "-").replaceAll(/[×·]/g, "*");
    const typeRule = (rule) => {
        const most = 255, at = calls.rule_text();
        const bytes = new Uint8Array(calls.memory.buffer, at, most + 1);
        bytes.fill(0);
        new TextEncoder().encodeInto(typed(rule || ""), bytes.subarray(0, most));
    };
    const rule = {
        typed,
        /* What a rule has in common with the Jacobian, or why it cannot be read. */
        check: (text) => {
            typeRule(text);
            if (!calls.rule_test()) return {message: message()};
            const [right, sumIsZero, shiftFree] = range(3).map((i) => calls.rule_is(i) !== 0);
            return {right, sumIsZero, shiftFree, error: calls.rule_error()};
        },
        tested: () => ({rows: calls.rule_test_rows(), keys: calls.rule_test_keys()}),
        row: (text, options) => {
            typeRule(text);
            set(options);
            return Array.from(numbers(calls.rule_row(), options.scores.length));
        },
    };

    /* ---- training ---- */

    const HEADS = 2;
    const byKey = ["s", "a", "g", "ds", "right"], byQuery = ["q", "dq", "dy"];
    const names = [...byKey, ...byQuery, "k", "v", "average", "sum"];

    /* <end> without its brackets. */
    const symbol = (at) => text(at).replace(/[<>]/g, "");

    /* One attention, forward and backward: see observation.h. */
    const seen = (attention) => {
        const rows = calls.seen_rows(attention), keys = calls.seen_keys(attention);
        const size = calls.seen_size(attention), scale = calls.seen_scale(attention);
        const isSum = (name) => name === "average" || name === "sum";
        const width = (name) => (byKey.includes(name) ? keys : isSum(name) ? 1 : size);
        const height = (name) => (/^[kv]$/.test(name) ? keys : rows);
        const array = (name, i) =>
            numbers(calls.seen(attention, i), HEADS * height(name) * width(name));
        const labels = (isKey, n) => range(n).map((i) => symbol(calls.label(attention, isKey, i)));
        return {
            rows: labels(0, rows),
            keys: labels(1, keys),
            size,
            scale,
            saturated: range(HEADS).map((head) => calls.head_saturated(attention, head)),
            ...Object.fromEntries(names.map((name, i) => [name, array(name, i)])),
        };
    };
    const gradient = (i) => ({
        name: text(calls.parameter_name(i)),
        length: calls.parameter_gradient(i),
        pair: calls.pair_gradient(i),
    });
    const pair = (i) => {
        const [source, target, output] = range(3).map((what) => text(calls.pair_text(i, what)));
        return {source, target, output};
    };
    const probabilities = (rows) => {
        const n = calls.seen_symbols();
        return {
            symbols: range(n).map((i) => symbol(calls.symbol_name(i))),
            p: numbers(calls.seen_probabilities(), rows * n),
        };
    };
    const sight = () => ({
        loss: calls.seen_loss(),
        pairs: range(3).map(pair),
        attentions: range(3).map(seen),
        gradients: range(calls.parameters()).map(gradient),
        ...probabilities(calls.seen_rows(2)),
    });

    const training = {
        begin: (o) => {
            typeRule(o.rule);
            need(calls.training_begin(o.task, o.seed, o.factor, o.steps, o.rate || 0));
        },
        rule: (text) => {
            typeRule(text);
            need(calls.training_rule());
        },
        step: () => {
            const loss = calls.training_advance();
            need(!Number.isNaN(loss) || !message());
            return loss;
        },
        look: (index) => {
            need(calls.training_look(index));
            return sight();
        },
        share: () => calls.training_share(),
        fingerprint: () => text(calls.fingerprint()),
    };

    /* Nothing here reads or writes a file: what the C library imports for that always fails. */
    const open = async (module) => {
        const files = {};
        for (const {name} of WebAssembly.Module.imports(module)) files[name] = () => 52;
        calls = (await WebAssembly.instantiate(module, {wasi_snapshot_preview1: files})).exports;
    };

    /* flow[i][j]: what score i passes to score j; a row sums to ds. */
    return {open, explain, jacobian: square("jacobian"), flow: square("flow"), rule, training};
})();
