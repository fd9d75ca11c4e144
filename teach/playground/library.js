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
    const need = (ok) => {
        if (!ok) throw Error(text(calls.message()));
    };

    /* The page that is open: its title, its paragraphs, and its tables by name, each with rows of
       cells by column. A cell is {text, number}: as the terminal shows it, and all its digits. */
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
        const all = {title: text(calls.page_name()), texts: [], tables: {}};
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

    const jacobian = (options) => {
        const apart = 32, n = options.scores.length;
        set(options);
        const at = calls.jacobian();
        need(at);
        const all = new Float64Array(calls.memory.buffer, at, apart * apart);
        return range(n).map((i) => Array.from(all.subarray(i * apart, i * apart + n)));
    };

    /* The results of training_look: the maps of each attention, and the gradient of each parameter. */
    const seen = (attention) => {
        const rows = calls.map_rows(attention), keys = calls.map_keys(attention), heads = range(2);
        const labels = (isKey, n) => range(n).map((i) => text(calls.label(attention, isKey, i)));
        const all = new Float64Array(calls.memory.buffer, calls.map(attention), 2 * rows * keys);
        const row = (head, r) => {
            const from = (head * rows + r) * keys;
            return Array.from(all.subarray(from, from + keys));
        };
        return {
            heads: heads.map((head) => range(rows).map((r) => row(head, r))),
            rows: labels(0, rows),
            keys: labels(1, keys),
            saturated: heads.map((head) => calls.head_saturated(attention, head)),
            evenness: heads.map((head) => calls.head_evenness(attention, head)),
        };
    };
    const gradient = (i) =>
        ({name: text(calls.parameter_name(i)), length: calls.parameter_gradient(i)});
    const sight = () =>
        ({maps: range(3).map(seen), gradients: range(calls.parameters()).map(gradient)});

    const training = {
        begin: (o) =>
            need(calls.training_begin(o.task, o.seed, o.factor, o.mistake, o.steps)),
        step: () => {
            const loss = calls.training_advance();
            need(!Number.isNaN(loss) || !text(calls.message()));
            return loss;
        },
        look: (pair) => {
            need(calls.training_look(pair));
            return sight();
        },
        row: (attention, head, row) => {
            need(calls.row_page(attention, head + 1, row + 1));
            return page();
        },
        share: () => calls.training_share(),
        fingerprint: () => text(calls.fingerprint()),
    };

    /* Nothing here reads or writes a file: what the C library imports for that always fails. */
    const open = async (bytes) => {
        const module = await WebAssembly.compile(bytes);
        const files = {};
        for (const {name} of WebAssembly.Module.imports(module)) files[name] = () => 52;
        calls = (await WebAssembly.instantiate(module, {wasi_snapshot_preview1: files})).exports;
    };

    return {open, explain, jacobian, training};
})();
