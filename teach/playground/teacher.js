/* Teacher mode: large type, and scenes that open with one press. */
const Teacher = (() => {
    const s = Address.state;
    const panels = ["race", "follow", "own", "row", "saturated", "flash"];
    const scenes = [
        ["The race", {}],
        ["Collapse at step 300", {events: [300], speed: 1}],
        ["Sum 0 alone", {rule: "a * (1 - a) * g - mean(a * (1 - a) * g)"}],
        ["Frozen", {rule: "0"}],
        ["Scores × 16", {factor: 16}],
        ["A row at step 100", {at: 100, drawer: 1, row: 3}],
        [
            "32 keys, in blocks", {
                fscores: range(32).map((i) => +(4 * Math.sin(i * i)).toFixed(2)),
                fvalues: range(32).map((i) => +Math.cos(3 * i).toFixed(2)),
                block: 4,
                panel: 5
            }
        ],
    ];
    const draw = () => {
        document.body.classList.toggle("teacher", Boolean(s.teacher));
        $("teacher").setAttribute("aria-pressed", String(Boolean(s.teacher)));
        $("scenes").hidden = !s.teacher;
    };
    /* A scene is an address: the page opens anew with it. */
    const show = ([, changes]) => {
        Object.assign(s, structuredClone(Address.own), changes, {teacher: 1});
        Address.write();
        location.reload();
    };
    const open = () => {
        $("scenes").innerHTML =
            scenes
                .map(([name], i) => tag("button", {type: "button", "data-scene": i}, escaped(name)))
                .join("");
        $("scenes").onclick = (e) => {
            if (e.target.dataset.scene) show(scenes[e.target.dataset.scene]);
        };
        $("teacher").onclick = () => {
            s.teacher = s.teacher ? 0 : 1;
            Address.write();
            draw();
            Race.draw();
        };
        draw();
        if (s.panel > 0) $(panels[s.panel])?.scrollIntoView();
    };
    return {open};
})();
