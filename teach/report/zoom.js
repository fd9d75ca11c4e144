/*
 * Comfort for the charts of a page: a range of steps for all of them, by two numbers or by dragging
 * over one; the share of a curve's points that its mean is over; and the values under the pointer.
 * chart.c draws the same for the whole range.
 */
{
    const tools = document.getElementById('zoom');
    const [from, to, all, smoothing] =
        ['from', 'to', 'all', 'smoothing'].map((id) => document.getElementById(id));
    const numbers = (text) => text.split(' ').map(Number);

    /* The curves of a chart, with their points as values: logarithms where its scale is. */
    const read = (box) => {
        const [left, top, width, height] = numbers(box.dataset.frame);
        const x = numbers(box.dataset.x), y = numbers(box.dataset.y);
        const value = ([px, py]) => [
            x[0] + (px - left) / width * (x[1] - x[0]),
            y[0] + (top + height - py) / height * (y[1] - y[0])];
        const curves = [...box.querySelectorAll('.curve')].map((group) => {
            const path = group.querySelector('.points');
            const points = path.getAttribute('d').split(/[ML]/).slice(1).map(numbers).map(value);
            const marks = [...group.querySelectorAll('circle')];
            return {group, path, points, marks, name: group.dataset.name};
        });
        const level = box.querySelector('.level');
        const levelAt =
            level && value([left, Number(/^M\S+ ([^H]+)/.exec(level.getAttribute('d'))[1])])[1];
        const said = document.createElement('p');
        said.className = 'said-values';
        box.append(said);
        return {box, left, top, width, height, x, y, curves, level, levelAt, said,
            svg: box.querySelector('svg'), logarithmic: 'logarithmic' in box.dataset};
    };
    const charts = [...document.querySelectorAll('.chart')].map(read);
    const whole = [Math.min(...charts.map(({x}) => x[0])), Math.max(...charts.map(({x}) => x[1]))];

    /* The mean of y over the points near each, `half` on both sides; fewer at the ends. */
    const mean = (points, half) => {
        const sums = [0];
        for (const [, y] of points) sums.push(sums.at(-1) + y);
        return points.map(([x], i) => {
            const first = Math.max(0, i - half), end = Math.min(points.length, i + half + 1);
            return [x, (sums[end] - sums[first]) / (end - first)];
        });
    };

    /* 1, 2 or 5 times a power of ten, so that about n of them fill the range. */
    const roundStep = (range, n) => {
        const power = 10 ** Math.floor(Math.log10(range / n)), rest = range / n / power;
        return power * (rest < 1.5 ? 1 : rest < 3.5 ? 2 : rest < 7.5 ? 5 : 10);
    };
    const evenTicks = (span, step) => {
        const found = [];
        for (let k = Math.ceil(span[0] / step - 1e-9); k <= span[1] / step + 1e-9; k++)
            found.push(k * step);
        return found;
    };
    /* Of logarithms: powers of ten; over less than two of them 1, 2 and 5 times these; and over
       less than one even steps of the values themselves. */
    const logarithmicTicks = (span) => {
        const size = span[1] - span[0], inside = (t) => t >= span[0] && t <= span[1];
        if (size > 2) return evenTicks(span, Math.ceil(size / 6));
        const [low, high] = span.map((t) => 10 ** t);
        if (size < 1) return evenTicks([low, high], roundStep(high - low, 4)).map(Math.log10);
        return evenTicks([Math.floor(span[0]), span[1]], 1)
            .flatMap((power) => [1, 2, 5].map((t) => power + Math.log10(t))).filter(inside);
    };
    /* As html.c has numbers. */
    const number = (x) => x !== 0 && Math.abs(x) < 1e-4 ?
        x.toExponential().replace(/e-(\d+)$/, (_, power) =>
            '\u00b710\u207b' + [...power].map((digit) => '\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079'[digit]).join('')).replace(/^1\u00b7/, '') :
        (x || 0).toLocaleString('en', {maximumSignificantDigits: 10});
    const shown = (chart, y) => number(Number((chart.logarithmic ? 10 ** y : y).toPrecision(3)));

    const drawAxes = (chart, x, y, place) => {
        const bottom = chart.top + chart.height, right = chart.left + chart.width;
        const text = (px, py, anchor, what) =>
            `<text x="${px}" y="${py}" text-anchor="${anchor}">${what}</text>`;
        const below = evenTicks(x, roundStep(x[1] - x[0], 6)).map((t) =>
            text(place([t, 0])[0], bottom + 18, 'middle', number(t)));
        const rises =
            chart.logarithmic ? logarithmicTicks(y) : evenTicks(y, roundStep(y[1] - y[0], 4));
        const beside = rises.map((t) => {
            const at = place([0, t])[1];
            return `<path d="M${chart.left} ${at}H${right}" stroke="var(--line)"/>` +
                text(chart.left - 8, at + 4, 'end', shown(chart, t));
        });
        chart.box.querySelector('.axes').innerHTML = [...below, ...beside,
            text((chart.left + right) / 2, bottom + 34, 'middle', 'step')].join('');
    };

    const drawCurve = (curve, range, place, share) => {
        const {group, points, path, marks} = curve;
        const inside = ([x]) => x >= range[0] && x <= range[1];
        const line = (list) => list.filter(inside).map(place).map(([x, y], i) =>
            `${i ? 'L' : 'M'}${x.toFixed(2)} ${y.toFixed(2)}`).join('');
        const half = marks.length || group.dataset.exact ? 0 : Math.floor(share * points.length / 2);
        let smooth = group.querySelector('.mean');
        if (half > 0 && !smooth) {
            smooth = document.createElementNS('http://www.w3.org/2000/svg', 'path');
            smooth.setAttribute('class', 'mean');
            path.parentNode.after(smooth);
        }
        path.setAttribute('d', line(points));
        path.parentNode.setAttribute('opacity', half > 0 ? 0.4 : 1);
        path.parentNode.setAttribute('stroke-width', half > 0 ? 1 : 1.8);
        smooth?.setAttribute('d', half > 0 ? line(mean(points, half)) : '');
        marks.forEach((mark, i) => {
            const [x, y] = place(points[i]);
            mark.setAttribute('cx', x);
            mark.setAttribute('cy', y);
            mark.setAttribute('visibility', inside(points[i]) ? 'visible' : 'hidden');
        });
    };

    /* The span of what a range shows; that of the page for the whole range. */
    const spanOf = (chart, range) => {
        if (range[0] <= chart.x[0] && range[1] >= chart.x[1]) return chart.y;
        const seen = chart.curves.flatMap(({points}) =>
            points.filter(([x]) => x >= range[0] && x <= range[1]));
        const low = Math.min(...seen.map(([, y]) => y)), high = Math.max(...seen.map(([, y]) => y));
        return low < high ? [low, high] : seen.length ? [low - 0.5, low + 0.5] : chart.y;
    };

    const draw = (chart, range, share) => {
        const {left, top, width, height, level, levelAt} = chart;
        const x = [Math.max(range[0], chart.x[0]), Math.min(range[1], chart.x[1])];
        const y = spanOf(chart, range);
        if (!(x[0] < x[1])) return;
        const place = (point) => [
            left + (point[0] - x[0]) / (x[1] - x[0]) * width,
            top + height - (point[1] - y[0]) / (y[1] - y[0]) * height];
        drawAxes(chart, x, y, place);
        for (const curve of chart.curves) drawCurve(curve, x, place, share);
        level?.setAttribute('d', levelAt < y[0] || levelAt > y[1] ? '' :
            `M${left} ${place([0, levelAt])[1]}H${left + width}`);
        chart.shown = x;
    };

    const drawAll = () => {
        const range = [Number(from.value), Number(to.value)];
        if (!(range[0] < range[1])) return;
        document.getElementById('smoothed').textContent = `${smoothing.value} % of the points`;
        for (const chart of charts) draw(chart, range, smoothing.value / 100);
        all.disabled = range[0] === whole[0] && range[1] === whole[1];
    };
    const zoom = (range) => {
        [from.value, to.value] = range.map(Math.round);
        drawAll();
    };

    /* Where on a chart's steps the pointer is. */
    const stepAt = (chart, event) => {
        const box = chart.svg.getBoundingClientRect();
        const x = (event.clientX - box.left) * chart.svg.viewBox.baseVal.width / box.width;
        const share = Math.min(1, Math.max(0, (x - chart.left) / chart.width));
        return chart.shown[0] + share * (chart.shown[1] - chart.shown[0]);
    };
    const say = (chart, step) => {
        const near = (points) => points.reduce((best, p) =>
            Math.abs(p[0] - step) < Math.abs(best[0] - step) ? p : best);
        chart.said.textContent = chart.curves.map(({name, points}) => {
            const [x, y] = near(points);
            return `${name}: ${shown(chart, y)} at step ${number(Math.round(x))}`;
        }).join(', ');
    };
    for (const chart of charts) {
        let began = null;
        chart.svg.addEventListener('pointerdown', (event) => {
            if (event.pointerType !== 'mouse' || event.button !== 0) return;
            began = stepAt(chart, event);
            chart.svg.setPointerCapture(event.pointerId);
            event.preventDefault();
        });
        chart.svg.addEventListener('pointermove', (event) => say(chart, stepAt(chart, event)));
        chart.svg.addEventListener('pointerup', (event) => {
            const range = [began, stepAt(chart, event)].sort((a, b) => a - b);
            const least = 0.02 * (chart.shown[1] - chart.shown[0]);
            if (began !== null && range[1] - range[0] > least) zoom(range);
            began = null;
        });
        chart.svg.addEventListener('dblclick', () => zoom(whole));
    }
    for (const input of [from, to, smoothing]) input.addEventListener('input', drawAll);
    all.addEventListener('click', () => zoom(whole));
    if (charts.length) {
        tools.hidden = false;
        zoom(whole);
    }
}
