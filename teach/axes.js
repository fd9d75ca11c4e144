/* Numbers and ticks on axes, of reports and of the live page; chart.c has the same ticks in C, and
   includes these bytes: all are ASCII. */
const raised = (n) =>
    [...String(n)].map((d) => "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"["-0123456789".indexOf(d)]).join("");

/* A number as C or JavaScript writes it, as print does: 1e+04 is 10,000, and 1.5e-05 has a raised -5. */
const numeral = (text) => {
    const [, minus, digits, power] = text.match(/^([-\u2212]?)([\d.]+)(?:e([-+]?\d+))?$/) || [];
    if (digits === undefined) return text;
    const far = +(power ?? 0), isPlain = far >= 0 && far < 7;
    const [whole, rest] = (isPlain ? String(digits * 10 ** far) : digits).split(".");
    const printed = isPlain && !power && +digits < 1000 ? digits
                  : whole.replace(/(?=(\d{3})+$)\B/g, ",") + (rest ? "." + rest : "");
    return (minus && "\u2212") + (isPlain ? printed : (digits === "1" ? "" : printed + "\u00b7") + "10" + raised(far));
};

/* As html.c prints numbers. */
const axisLabel = (x) =>
    numeral(x !== 0 && Math.abs(x) < 1e-4 ? x.toExponential() : String(+(x || 0).toPrecision(10)));

/* The multiples of a step in a range. */
const evenTicks = ([low, high], step) => {
    const found = [];
    for (let k = Math.ceil(low / step - 1e-9); k <= high / step + 1e-9; k++) found.push(k * step);
    return found;
};
