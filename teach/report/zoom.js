/*
 * Comfort for the charts of a page: a range of steps for all of them, by two numbers or by dragging
 * over one; the share of a curve's points that its mean is over; and the values under the pointer.
 * chart.c draws curves in units of their steps and values, downward, so that a range is a viewBox;
 * the ticks of an axis are chosen as there.
 */
{
    const [tools, from, to, all, smoothing, smoothed] =
        ['zoom', 'from', 'to', 'all', 'smoothing', 'smoothed'].map(
            (id) => document.getElementById(id));

    /* The curves of a chart, with their points as values: logarithms where its scale is. */
    const read = (box) => {
        const plot = box.querySelector('.curves'), said = document.createElement('p');
        const [left, top, width, height] = plot.getAttribute('viewBox').split(' ').map(Number);
        const curves = [...box.querySelectorAll('.curve')].map((group) => ({
            name: group.dataset.name,
            mean: group.querySelector('.mean'),
            points: group.querySelector('.points').getAttribute('d').slice(1).split('L').map(
                (point) => point.split(' ').map((x, i) => i ? -x : Number(x)))}));
        said.className = 'said-values';
        box.append(said);
        return {plot, curves, said, frame: plot.parentNode, axes: box.querySelector('.axes'),
            x: [left, left + width], y: [-(top + height), -top],
            logarithmic: 'logarithmic' in box.dataset};
    };
    const charts = [...document.querySelectorAll('.chart')].map(read);
    const whole = [Math.min(...charts.map(({x}) => x[0])), Math.max(...charts.map(({x}) => x[1]))];

    /* A line through the mean of y over the points near each, `half` on both sides; fewer at the
       ends. */
    const mean = (points, half) => {
        const sums = [0];
        for (const [, y] of points) sums.push(sums.at(-1) + y);
        return 'M' + points.map(([x], i) => {
            const first = Math.max(0, i - half), end = Math.min(points.length, i + half + 1);
            return `${x} ${(sums[first] - sums[end]) / (end - first)}`;
        }).join('L');
    };

    /* 1, 2 or 5 times a power of ten, so that about n of them fill the range. */
    const roundStep = ([low, high], n) => {
        const size = (high - low) / n, power = 10 ** Math.floor(Math.log10(size)), rest = size / power;
        return power * (rest < 1.5 ? 1 : rest < 3.5 ? 2 : rest < 7.5 ? 5 : 10);
    };
    /* Of logarithms: powers of ten; over less than two of them 1, 2 and 5 times these; and where
       that makes less than three, even steps of the values themselves. */
    const logarithmicTicks = ([low, high]) => {
        const size = high - low, values = [10 ** low, 10 ** high];
        if (size > 2) return evenTicks([low, high], Math.ceil(size / 6));
        const ticks = evenTicks([Math.floor(low), high], 1)
            .flatMap((power) => [1, 2, 5].map((t) => power + Math.log10(t)))
            .filter((t) => t >= low && t <= high);
        return ticks.length >= 3 ? ticks
                                 : evenTicks(values, roundStep(values, 4)).map(Math.log10);
    };
    const shown = (chart, y) => axisLabel(Number((chart.logarithmic ? 10 ** y : y).toPrecision(3)));

    const drawAxes = (chart, x, y) => {
        const place = (t, [low, high]) => 100 * (t - low) / (high - low);
        const below = evenTicks(x, roundStep(x, 6)).map((t) => `<text class="step" x="${
            place(t, x)}%" y="100%" dy="20" text-anchor="middle">${axisLabel(t)}</text>`);
        const rises = chart.logarithmic ? logarithmicTicks(y) : evenTicks(y, roundStep(y, 4));
        const beside = rises.map((t) => {
            const at = 100 - place(t, y) + '%';
            return `<line x2="100%" y1="${at}" y2="${at}" stroke="var(--line)"/><text x="-8" y="${
                at}" dy="4" text-anchor="end">${shown(chart, t)}</text>`;
        });
        chart.axes.innerHTML = [...below, ...beside].join('');
    };

    /* The span of the points in a range; all of the chart where there are none. */
    const spanOf = (chart, [first, last]) => {
        const seen = chart.curves.flatMap(({points}) =>
            points.filter(([x]) => x >= first && x <= last).map(([, y]) => y));
        const low = Math.min(...seen), high = Math.max(...seen);
        return low < high ? [low, high] : seen.length ? [low - 0.5, low + 0.5] : chart.y;
    };
    const draw = (chart, range, share) => {
        const x = [Math.max(range[0], chart.x[0]), Math.min(range[1], chart.x[1])];
        if (!(x[0] < x[1])) return;
        const y = x[0] > chart.x[0] || x[1] < chart.x[1] ? spanOf(chart, x) : chart.y;
        chart.shown = x;
        chart.plot.setAttribute('viewBox', `${x[0]} ${-y[1]} ${x[1] - x[0]} ${y[1] - y[0]}`);
        drawAxes(chart, x, y);
        for (const {points, mean: path} of chart.curves)
            path?.setAttribute('d', mean(points, Math.floor(share * points.length / 2)));
    };
    const drawAll = () => {
        const range = [Number(from.value), Number(to.value)];
        if (!(range[0] < range[1])) return;
        smoothed.textContent = `${smoothing.value} % of the points`;
        for (const chart of charts) draw(chart, range, smoothing.value / 100);
        all.disabled = range[0] === whole[0] && range[1] === whole[1];
    };
    const zoom = (range) => {
        [from.value, to.value] = range.map(Math.round);
        drawAll();
    };

    /* Where on a chart's steps the pointer is. */
    const stepAt = ({frame, shown: [first, last]}, event) => {
        const {x, width} = frame.getBoundingClientRect();
        return first + Math.min(1, Math.max(0, (event.clientX - x) / width)) * (last - first);
    };
    const say = (chart, step) => {
        const near = (points) => points.reduce((best, p) =>
            Math.abs(p[0] - step) < Math.abs(best[0] - step) ? p : best);
        chart.said.textContent = chart.curves.map(({name, points}) => {
            const [x, y] = near(points);
            return `${name}: ${shown(chart, y)} at step ${axisLabel(Math.round(x))}`;
        }).join(', ');
    };
    for (const chart of charts) {
        let began = null;
        chart.frame.addEventListener('pointerdown', (event) => {
            if (event.pointerType !== 'mouse' || event.button !== 0) return;
            began = stepAt(chart, event);
            chart.frame.setPointerCapture(event.pointerId);
            event.preventDefault();
        });
        chart.frame.addEventListener('pointermove', (event) => say(chart, stepAt(chart, event)));
        chart.frame.addEventListener('pointerup', (event) => {
            const range = [began, stepAt(chart, event)].sort((a, b) => a - b);
            const least = 0.02 * (chart.shown[1] - chart.shown[0]);
            if (began !== null && range[1] - range[0] > least) zoom(range);
            began = null;
        });
        chart.frame.addEventListener('dblclick', () => zoom(whole));
    }
    for (const input of [from, to, smoothing]) input.addEventListener('input', drawAll);
    all.addEventListener('click', () => zoom(whole));
    if (charts.length) {
        tools.hidden = false;
        smoothing.parentNode.hidden = smoothed.hidden = !charts.some(({curves}) => curves.some(
            (curve) => curve.mean && smoothing.value / 100 * curve.points.length >= 2));
        zoom(whole);
    }
}
