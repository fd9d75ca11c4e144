/* Panel 1: a row of softmax forward and back. */
const Row = (() => {
    const s = Address.state;
    let names = null; /* of keys that came from a model */

    const temperature = () => 10 ** s.temperature;
    const options = () => ({ scores: s.scores, upstream: s.upstream, mask: s.mask, temperature: temperature() });
    const list = (numbers) => numbers.map((x) => plain(x)).join(",");
    const command = () =>
        `./softback explain softmax --scores ${list(s.scores)} --upstream ${list(s.upstream)}` +
        (s.mask.every((k) => k) ? "" : ` --mask ${s.mask.join(",")}`) + (s.temperature ? ` --temperature ${temperature()}` : "");

    const number = (id, label, value) => `<input type="number" step="any" id="${id}" aria-label="${label}" value="${plain(value, 4)}">`;
    const build = () => {
        const head = ["key", "kept", "score s", "", "weight a", "", "upstream g", "g − avg", "ds", "", "difference", "the mistake"];
        const rows = s.scores.map((score, i) => {
            const key = names ? names[i] : String(i), called = "of key " + key;
            return `<tr><th scope="row">${escaped(key)}</th>` +
                `<td><input type="checkbox" id="kept-${i}" aria-label="keep key ${escaped(key)}"${s.mask[i] ? " checked" : ""}></td>` +
                `<td class="score">${number("score-" + i, "score " + escaped(called), score)}</td>` +
                `<td class="score"><input type="range" id="slide-${i}" min="-20" max="20" step="0.1" value="${score}" aria-label="slide the score ${escaped(called)}"></td>` +
                `<td id="a-${i}"></td><td id="abar-${i}"></td>` +
                `<td>${number("upstream-" + i, "upstream gradient " + escaped(called), s.upstream[i])}</td>` +
                `<td id="centred-${i}"></td><td id="ds-${i}"></td><td id="dsbar-${i}"></td><td id="difference-${i}"></td><td id="mistake-${i}"></td></tr>`;
        });
        $("row-table").innerHTML =
            `<thead><tr>${head.map((h) => `<th scope="col">${h}</th>`).join("")}</tr></thead><tbody>${rows.join("")}</tbody>`;
        s.scores.forEach((_, i) => {
            $("kept-" + i).onchange = (e) => change(() => (s.mask[i] = e.target.checked ? 1 : 0));
            $("score-" + i).oninput = (e) => typed(e.target, (x) => { s.scores[i] = x; $("slide-" + i).value = x; });
            $("slide-" + i).oninput = (e) => change(() => { s.scores[i] = +e.target.value; $("score-" + i).value = e.target.value; });
            $("upstream-" + i).oninput = (e) => typed(e.target, (x) => (s.upstream[i] = x));
        });
    };

    /* A number that is being typed may be none yet. */
    const typed = (input, set) => {
        const ok = input.value.trim() !== "" && Number.isFinite(+input.value) && Math.abs(+input.value) <= 1e30;
        input.setAttribute("aria-invalid", String(!ok));
        if (ok) change(() => set(+input.value));
    };

    const jacobian = () => {
        const J = Library.jacobian(options()), n = J.length, cell = Math.min(44, 264 / n), left = 26, names_ = s.scores.map((_, i) => escaped(names ? names[i] : i));
        const largest = Math.max(1e-9, ...J.flat().map(Math.abs));
        const body = J.map((row, i) => `<text x="${left - 6}" y="${18 + (i + 0.6) * cell}" text-anchor="end">${names_[i]}</text><text x="${left + (i + 0.5) * cell}" y="12" text-anchor="middle">${names_[i]}</text>` +
            row.map((x, j) => {
                const strong = Math.abs(x) / largest, label = Math.abs(x) < 0.0005 ? "0" : x.toFixed(2).replace("0.", ".").replace(/^-?\.00$/, x < 0 ? "−0" : "0");
                return `<rect x="${left + j * cell}" y="${18 + i * cell}" width="${cell - 1.5}" height="${cell - 1.5}" fill="var(--${x < 0 ? "minus" : "plus"})" fill-opacity="${(0.9 * strong).toFixed(3)}" stroke="var(--line)"><title>da ${names_[i]} / ds ${names_[j]} = ${short(x)}</title></rect>` +
                    (n <= 8 ? `<text x="${left + (j + 0.5) * cell}" y="${18 + (i + 0.6) * cell}" text-anchor="middle"${strong > 0.55 ? ' style="fill:var(--on-colour)"' : ""}>${label}</text>` : "");
            }).join(""));
        $("row-jacobian").innerHTML = `<svg viewBox="0 0 ${left + n * cell + 2} ${20 + n * cell}" role="img" aria-label="Jacobian, a heat map; each row and column adds up to 0" style="max-width:22rem">${body.join("")}</svg>`;
    };

    const draw = () => {
        const page = Library.explain("softmax", options()), { forward, backward } = page.tables;
        const largest = Math.max(...backward.map((r) => Math.abs(r.ds.number)));
        $("temperature-value").textContent = temperature().toFixed(2);
        backward.forEach((r, i) => {
            const blocked = !s.mask[i];
            $("a-" + i).textContent = blocked ? "blocked" : forward[i].a.text;
            $("abar-" + i).innerHTML = share(forward[i].a.number);
            $("centred-" + i).textContent = r["g - avg"].text;
            $("ds-" + i).innerHTML = `<span class="${sign(r.ds.number)}">${r.ds.text}</span>`;
            $("dsbar-" + i).innerHTML = bar(r.ds.number, largest);
            $("difference-" + i).textContent = r.difference.text + (r.check.text === "ok" ? " ✓" : " " + r.check.text);
            $("mistake-" + i).textContent = r.mistake.text;
        });
        $("row-say").innerHTML = page.texts.filter((t) => /^(FORWARD|JACOBIAN|BACKWARD|The ds)/.test(t))
            .map((t) => `<p>${escaped(t).replace(/^([A-Z])([A-Z]+) +/, (_, first, rest) => `<strong>${first}${rest.toLowerCase()}.</strong> `)}</p>`).join("");
        $("row-command").textContent = command();
        jacobian();
    };

    const change = (act) => {
        act();
        draw();
        Address.write();
    };

    const forget = () => {
        names = null;
        $("row-origin").hidden = true;
    };
    const replace = (scores, upstream, mask) =>
        change(() => {
            Object.assign(s, { scores, upstream: upstream || scores.map((_, i) => (i ? 0 : 1)), mask: mask || scores.map(() => 1), temperature: 0 });
            $("temperature").value = 0;
            build();
        });
    const resize = (by) => {
        const n = s.scores.length + by;
        if (n < 2 || n > 12) return;
        forget();
        change(() => {
            for (const [name, more] of [["scores", 0], ["upstream", 0], ["mask", 1]]) s[name] = by > 0 ? [...s[name], more] : s[name].slice(0, n);
            build();
        });
    };

    /* A row of the model's attention: where it is from, and its keys. */
    const take = (origin, keys, scores, upstream, mask) => {
        names = keys;
        replace(scores, upstream, mask);
        $("row-origin").hidden = false;
        $("row-origin").textContent = origin;
        $("row").focus();
        $("row").scrollIntoView();
    };

    const open = () => {
        $("temperature").value = s.temperature;
        $("temperature").oninput = (e) => change(() => (s.temperature = +e.target.value));
        $("row-calm").onclick = () => { forget(); replace([2, 1, 0.1, -1], [1, 0, 0, -1]); };
        $("row-saturated").onclick = () => { forget(); replace([16, 8, 0.8, -8], [1, 0, 0, -1]); };
        $("row-masked").onclick = () => change(() => { s.mask = s.mask.map(() => 0); build(); });
        $("row-more").onclick = () => resize(1);
        $("row-less").onclick = () => resize(-1);
        build();
        draw();
    };
    return { open, take };
})();
