/* The library's calls, with texts and tables as objects. `answer` instantiates the module. */
const Library = (() => {
    let calls;

    const text = (at) => {
        if (!at) return null;
        const bytes = new Uint8Array(calls.memory.buffer);
        let end = at;
        while (bytes[end]) end++;
        return new TextDecoder().decode(bytes.subarray(at, end));
    };
    const range = (n) => Array.from({ length: n }, (_, i) => i);
    const need = (ok) => {
        if (!ok) throw Error(text(calls.message()));
    };

    /* The page that is open: its title, its paragraphs, and its tables by name, each with rows of
       cells by column. A cell is {text, number}: as the terminal shows it, and all of its digits. */
    const page = () => {
        const all = { title: text(calls.page_name()), texts: [], tables: {} };
        for (const i of range(calls.page_parts())) {
            if (calls.part_text(i)) {
                all.texts.push(text(calls.part_text(i)));
                continue;
            }
            const columns = range(calls.table_columns(i)).map((c) => text(calls.column_name(i, c)));
            all.tables[text(calls.table_name(i))] = range(calls.table_rows(i)).map((r) => {
                const row = {};
                columns.forEach((name, c) => {
                    if (name) /* a bar has none */
                        row[name] = { text: text(calls.cell_text(i, r, c)), number: calls.cell_number(i, r, c) };
                });
                return row;
            });
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

    /* What training_look saw. */
    const sight = () => ({
        maps: range(3).map((a) => {
            const rows = calls.map_rows(a), keys = calls.map_keys(a);
            const all = new Float64Array(calls.memory.buffer, calls.map(a), 2 * rows * keys);
            return {
                heads: range(2).map((h) =>
                    range(rows).map((r) => Array.from(all.subarray((h * rows + r) * keys, (h * rows + r + 1) * keys)))),
                rows: range(rows).map((r) => text(calls.label(a, 0, r))),
                keys: range(keys).map((k) => text(calls.label(a, 1, k))),
                deaf: range(2).map((h) => calls.head_deaf(a, h)),
                evenness: range(2).map((h) => calls.head_evenness(a, h)),
            };
        }),
        gradients: range(calls.parameters()).map((i) => ({ name: text(calls.parameter_name(i)), length: calls.parameter_gradient(i) })),
    });

    const training = {
        begin: (o) => need(calls.training_begin(o.task, o.seed, o.factor, o.mistake, o.steps)),
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

    /* Nothing on the page reads or writes a file: what the C library wants for that always fails. */
    const open = async (bytes) => {
        const module = await WebAssembly.compile(bytes);
        const files = {};
        for (const { name } of WebAssembly.Module.imports(module)) files[name] = () => 52;
        calls = (await WebAssembly.instantiate(module, { wasi_snapshot_preview1: files })).exports;
    };

    return { open, explain, jacobian, training };
})();
