/* Cells show whole per cents, which also set their shade, by --share in the page's style; the
   largest of a row is bold. The step is in the address, so that a link keeps it. */
{
    const box = document.getElementById('steps'), slider = document.getElementById('step');
    const said = [...box.querySelectorAll('.said span')];
    const rows = [...box.querySelectorAll('tr[data-weights]')].map(row => ({
        weights: row.dataset.weights.split(' '), cells: [...row.querySelectorAll('td')]}));
    const show = () => {
        const step = slider.value - 1;
        for (const {weights, cells} of rows) {
            const now = cells.map((cell, j) => Number(weights[step * cells.length + j]));
            cells.forEach((cell, j) => {
                cell.textContent = now[j] || '';
                cell.style.setProperty('--share', now[j] + '%');
                cell.classList.toggle('most', now[j] === Math.max(...now));
            });
        }
        said.forEach((symbol, i) => {
            symbol.className = i < step ? '' : i === step ? 'now' : 'later';
        });
        const text = `${step + 1} of ${said.length}: it writes ${said[step].textContent}`;
        box.querySelector('output').textContent = text;
        slider.setAttribute('aria-valuetext', text);
    };
    slider.addEventListener('input', () => {
        history.replaceState(null, '', '#step=' + slider.value);
        show();
    });
    slider.value = (/^#step=(\d+)$/.exec(location.hash) || [0, 1])[1];
    show();
    box.hidden = false;
}
