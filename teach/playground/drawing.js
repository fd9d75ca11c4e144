/* Small pictures: numbers as texts, bars, and charts as SVG. */
const $ = (id) => document.getElementById(id);
const range = (n) => Array.from({ length: n }, (_, i) => i);

const escaped = (text) => String(text).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
const sign = (x) => (x > 0 ? "plus" : x < 0 ? "minus" : "");
/* As it stands in a field or a command. */
const plain = (x, digits) => {
    const rounded = digits ? +x.toPrecision(digits) : x;
    return x !== 0 && Math.abs(x) < 0.001 ? rounded.toExponential() : String(rounded);
};
const short = (x) => (!Number.isFinite(x) ? "–" : x !== 0 && Math.abs(x) < 0.001 ? x.toExponential(1) : String(+x.toPrecision(3)));

/* A signed bar about a middle line. */
const bar = (x, largest, width = 84) => {
    const middle = width / 2, length = largest > 0 ? Math.min(1, Math.abs(x) / largest) * (middle - 1) : 0;
    return `<svg class="bar" width="${width}" height="12" viewBox="0 0 ${width} 12" aria-hidden="true">` +
        `<line class="axis" x1="${middle}" x2="${middle}" y1="0" y2="12"/>` +
        `<rect x="${x < 0 ? middle - length : middle}" y="2" width="${length}" height="8" fill="var(--${x < 0 ? "minus" : "plus"})"/></svg>`;
};

/* A bar from 0 to 1. */
const share = (x, width = 60) =>
    `<svg class="bar" width="${width}" height="12" viewBox="0 0 ${width} 12" aria-hidden="true">` +
    `<rect x="0.5" y="2.5" width="${width - 1}" height="7" fill="none" class="axis"/><rect y="2" width="${width * Math.min(1, x)}" height="8" fill="var(--plus)"/></svg>`;

/* Pictures are as wide as their place, within reason, so that letters keep their size. */
const room = (id) => Math.max(280, Math.min(640, $(id).clientWidth));

/* Named bars, one below the other, in a place: [{name, value, colour, note}], by a scale from value to
   0 .. 1. */
const bars = (id, label, all, scale) => {
    const height = 17, left = 7 * Math.max(...all.map((b) => b.name.length)) + 8, width = Math.max(left + 120, room(id));
    const body = all.map(({ name, value, colour, note }, i) => {
        const length = Math.max(0, Math.min(1, scale(value))) * (width - left - 62), y = i * height;
        return `<text x="${left - 6}" y="${y + 12}" text-anchor="end">${escaped(name)}</text>` +
            `<rect x="${left}" y="${y + 3}" width="${length}" height="11" fill="var(--${colour || "plus"})"/>` +
            `<text x="${left + length + 5}" y="${y + 12}">${escaped(note === undefined ? short(value) : note)}</text>`;
    });
    $(id).innerHTML = `<svg viewBox="0 0 ${width} ${all.length * height}" role="img" aria-label="${escaped(label)}">${body.join("")}</svg>`;
};

/* Curves over steps with a logarithmic y axis: [{points: [[x, y], ...], dashes, colour}], and a level. */
const curves = (id, label, all, lastX, level) => {
    const W = room(id), H = 260, left = 46, bottom = 22;
    const values = all.flatMap((c) => c.points.map((p) => p[1])).concat(level.value);
    const top = Math.max(1, Math.ceil(Math.log10(Math.max(...values)))), low = Math.max(-5, Math.min(-1, Math.floor(Math.log10(Math.min(...values)))));
    const X = (x) => left + (x / lastX) * (W - left - 10);
    const Y = (y) => 8 + ((top - Math.log10(Math.max(y, 10 ** low))) / (top - low)) * (H - 8 - bottom);
    const lines = range(top - low + 1).map((i) => {
        const y = Y(10 ** (low + i));
        return `<line class="axis" x1="${left}" x2="${W - 10}" y1="${y}" y2="${y}"/><text x="${left - 5}" y="${y + 4}" text-anchor="end">${short(10 ** (low + i))}</text>`;
    });
    const paths = all.map((c) => `<polyline fill="none" stroke="var(--${c.colour})" stroke-width="${c.dashes ? 1.2 : 1.8}" stroke-dasharray="${c.dashes || ""}" points="${c.points.map((p) => X(p[0]).toFixed(1) + "," + Y(p[1]).toFixed(1)).join(" ")}"/>`);
    const guess = `<line x1="${left}" x2="${W - 10}" y1="${Y(level.value)}" y2="${Y(level.value)}" stroke="var(--minus)" stroke-dasharray="3 3"/><text x="${W - 12}" y="${Y(level.value) - 4}" text-anchor="end">${escaped(level.name)}</text>`;
    $(id).innerHTML = `<svg viewBox="0 0 ${W} ${H}" role="img" aria-label="${escaped(label)}">${lines.join("")}${guess}${paths.join("")}` +
        `<text x="${left}" y="${H - 5}">step 0</text><text x="${W - 10}" y="${H - 5}" text-anchor="end">step ${lastX}</text></svg>`;
};
