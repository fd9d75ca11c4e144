/*
 * What WCAG 2.2 AA asks for and a program can check: contrasts of texts and of controls, names and
 * roles, headings, sizes of targets, reflow, and the order of the tab key.
 */

/* In the page: contrasts, targets, headings, width. */
const inspect = () => {
    const problems = [];
    const channels = (colour) => {
        const [, kind, inside] = colour.match(/^(\w+)\((.*)\)$/);
        const parts = inside.match(/-?[\d.]+(e-?\d+)?/g).map(Number);
        const scale = kind === "color" ? 255 : 1; /* color(srgb 0.1 0.2 0.3 / 0.5) */
        return [...parts.slice(0, 3).map((x) => x * scale), parts[3] ?? 1];
    };
    const over = ([r, g, b, a], below) => [r, g, b].map((x, i) => a * x + (1 - a) * below[i]);
    const groundOf = (element) => {
        const layers = [];
        for (let e = element; e; e = e.parentElement)
            layers.push(channels(getComputedStyle(e).backgroundColor));
        return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255]);
    };
    const part = (x) => (x / 255 <= 0.04045 ? x / 255 / 12.92 : ((x / 255 + 0.055) / 1.055) ** 2.4);
    const light = (c) => 0.2126 * part(c[0]) + 0.7152 * part(c[1]) + 0.0722 * part(c[2]);
    const contrast = (x, y) =>
        (Math.max(light(x), light(y)) + 0.05) / (Math.min(light(x), light(y)) + 0.05);
    const shown = (e) =>
        e.checkVisibility() && !e.closest(".unseen, :disabled, noscript, .cards thead");
    const report = (e, what) =>
        problems.push(`${e.id || e.className.baseVal || e.className || e.tagName}: ${what}`);

    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const e = walker.currentNode.parentElement;
        if (!walker.currentNode.data.trim() || !shown(e) ||
            /SCRIPT|STYLE|TITLE|OPTION/i.test(e.tagName))
            continue;
        const style = getComputedStyle(e), svg = e.closest("svg");
        const ink = over(channels(svg ? style.fill : style.color), groundOf(e));
        const large = parseFloat(style.fontSize) >= 24 ||
                      (parseFloat(style.fontSize) >= 18.66 && style.fontWeight >= 700);
        const ratio = contrast(ink, groundOf(e));
        if (ratio < (large ? 3 : 4.5))
            report(
                e,
                `contrast ${ratio.toFixed(2)} of "${walker.currentNode.data.trim().slice(0, 20)}"`);
    }
    for (const e of document.querySelectorAll(
             "button, select, input:not([type=range]):not([type=checkbox])")) {
        if (!shown(e)) continue;
        const style = getComputedStyle(e), ground = groundOf(e.parentElement);
        const edge = contrast(over(channels(style.borderTopColor), ground), ground),
              fill = contrast(groundOf(e), ground);
        if (Math.max(edge, fill) < 3) report(e, `edge of contrast ${edge.toFixed(2)}`);
        const box = e.getBoundingClientRect();
        if (box.height < 24 || box.width < 24)
            report(e, `a target of ${box.width} x ${box.height}`);
    }
    let level = 0;
    for (const h of document.querySelectorAll("h1, h2, h3, h4")) {
        if (h.tagName[1] > level + 1) report(h, `a heading after level ${level}`);
        level = +h.tagName[1];
    }
    const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
    for (const id of ids.filter((x, i) => ids.indexOf(x) < i))
        problems.push(`two elements have the id ${id}`);
    if (document.querySelector("[tabindex]:not([tabindex='0']):not([tabindex='-1'])"))
        problems.push("a positive tabindex");
    if (!document.documentElement.lang) problems.push("no language");
    const wide = document.documentElement.scrollWidth;
    if (wide > innerWidth) problems.push(`the page is ${wide} pixels wide`);
    return problems;
};

/* Names and roles, as assistive technology gets them. */
const namesOf = async (page) => {
    const {nodes} = await page.tell("Accessibility.getFullAXTree", {});
    const named = [
        "button", "link", "textbox", "checkbox", "slider", "spinbutton", "combobox", "image",
        "gridcell", "grid", "meter", "region", "complementary", "heading", "searchbox"
    ];
    return nodes
        .filter((n) => !n.ignored && named.includes(n.role?.value) && !n.name?.value?.trim())
        .map((n) => `a ${n.role.value} without a name`);
};

export const problemsOf = async (page) => [...(await page.run(inspect)), ...(await namesOf(page))];

/* The tab key goes through all that can have the focus, in the order of the page, and shows where
 * it is. */
export const tabProblems = async (page) => {
    const problems = [];
    await page.value(
        "document.activeElement.blur(), window.getSelection().removeAllRanges(), scrollTo(0, 0)");
    await page.run(() => {
        document.body.tabIndex = -1;
        document.body.focus();
        document.body.removeAttribute("tabindex");
    });
    const all =
        await page.run(() => [...document.querySelectorAll(
                                  "a[href], button, input, select, summary, [tabindex='0']")]
                                 .filter((e) => !e.disabled && e.checkVisibility())
                                 .map((e) => (e.dataset.test = Math.random().toString(36))));
    for (const [i, wanted] of all.entries()) {
        await page.press("Tab");
        const [got, name, outlined] = await page.run(() => {
            const e = document.activeElement, style = getComputedStyle(e);
            return [
                e.dataset.test, e.id || e.textContent.slice(0, 20),
                style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2
            ];
        });
        if (got !== wanted) return [`tab ${i + 1} of ${all.length} is ${name}`];
        if (!outlined) problems.push(`${name}: the focus cannot be seen`);
    }
    return problems;
};
