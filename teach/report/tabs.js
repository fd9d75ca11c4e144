/* The part that the address names is shown, otherwise the first; the slider over decoding steps is
   in the part on attention. What is wider than the window begins at its largest weight. */
{
    const weight = (x) => x.getAttribute('opacity') ?? x.textContent / 100;
    const centre = (wide) => {
        const [most] = [...wide.querySelectorAll('.most, path[opacity]')].sort((a, b) => weight(b) - weight(a));
        if (!most || wide.scrollLeft) return;
        const at = most.getBoundingClientRect(), box = wide.getBoundingClientRect();
        wide.scrollLeft = at.left + at.width / 2 - box.left - box.width / 2;
    };
    const bar = document.getElementById('tabs'), parts = [...document.querySelectorAll('.part')];
    const show = (name) => {
        for (const part of parts) part.hidden = part.dataset.name !== name;
        for (const tab of bar.children)
            tab.setAttribute('aria-pressed', tab.textContent === name);
        document.querySelectorAll('.part:not([hidden]) .wide').forEach(centre);
    };
    for (const part of parts) {
        const tab = document.createElement('button');
        tab.textContent = part.dataset.name;
        tab.addEventListener('click', () => {
            history.replaceState(null, '', '#part=' + encodeURIComponent(tab.textContent));
            show(tab.textContent);
            const over = part.getBoundingClientRect().top - bar.getBoundingClientRect().bottom;
            if (over < 0) scrollBy(0, over); /* the part begins below the sticky tabs */
        });
        bar.append(tab);
    }
    bar.hidden = false;
    const named = parts.find(
        (part) => location.hash === '#part=' + encodeURIComponent(part.dataset.name));
    show(/^#step=/.test(location.hash) ? 'Attention' : (named ?? parts[0]).dataset.name);
    addEventListener('beforeprint', () => parts.forEach((part) => (part.hidden = false)));
}
