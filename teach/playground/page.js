/* Teacher mode: large type, and scenes that open with one press. */
const Teacher = (() => {
    const s = Address.state;
    const panels = ["race", "follow", "own", "row", "saturated", "flash"];
    const scenes = [
        ["The race", {}, "How far does the wrong gradient get, and what goes wrong?"],
        ["Sabotage at 50", {events: [50]},
         "At step 50 the model that learns gets the wrong gradient. Does it go on to learn?"],
        ["Wrong, ds sum to 0", {rule: "a * (1 - a) * g - mean(a * (1 - a) * g)"},
         "The mistake less its mean: its ds sum to 0. Is that enough to learn?"],
        ["No gradient", {rule: "0"},
         "Queries and keys stay as they began. All else learns. Is that better than a wrong gradient?"],
        ["Scores × 16", {factor: 16}, "Large scores saturate rows. Does the correct gradient still learn?"],
        ["One row", {at: 40, drawer: 1, row: 3},
         "One row with its numbers. Why must the ds sum to 0?"],
        ["In blocks", {panel: 5, fstep: 0},
         "The online softmax reads eight blocks of four keys. What does it hold in memory?"],
        ["Sabotage at 300", {events: [300]},
         "At step 300 the model has learnt. Does a wrong gradient still harm it, and why (not)?"],
    ];
    const header = document.querySelector("header");
    let early = null; /* a key that is pressed while the page loads */
    document.onkeydown = (e) => (early = e);
    /* The height of the header, where it stays in view. */
    const measure = () => {
        const height = getComputedStyle(header).position === "sticky" ? header.offsetHeight : 0;
        document.documentElement.style.setProperty("--head", height + "px");
    };
    /* A scene with a row has it alone: its numbers, and beside them the answer. */
    const setType = () => {
        document.body.classList.toggle("teacher", Boolean(s.teacher));
        const isAlone = Boolean(s.teacher && s.drawer && scenes[s.scene]?.[1].drawer);
        document.body.classList.toggle("row-alone", isAlone);
        if (!isAlone) $("drawer-answer").open = true;
    };
    const draw = () => {
        setType();
        $("teacher").setAttribute("aria-pressed", String(Boolean(s.teacher)));
        $("scenes").hidden = !s.teacher;
        $("scene-caption").hidden = !s.teacher && s.scene < 0;
        ask();
        measure();
    };
    /* The question of the scene, which a class votes on before it sees the answer. */
    const ask = () => {
        setType();
        const isRow = document.body.matches(".row-alone"), inBlocks = s.panel === 5;
        const begins = inBlocks ? s.fstep === 0 : isRow ? !$("drawer-answer").open : s.at < 0 && Race.state().step === 0;
        const waits = s.teacher && s.scene >= 0 && begins;
        $("flash").closest("section").classList.toggle("asked", Boolean(waits && inBlocks));
        $("scene-caption").textContent =
            (scenes[s.scene]?.[2] ?? "") + (waits ? " Vote, then press the space bar." : "");
    };
    /* A scene is an address: the page opens anew with it, from its top. */
    const show = (scene) => {
        const [, changes] = scenes[scene], {teacher} = s;
        Address.set({...structuredClone(Address.own), ...changes, teacher, scene});
        history.scrollRestoration = "manual";
        location.reload();
    };
    /* A scene in an address that does not name its changes. */
    const begin = () => {
        s.scene = scenes[s.scene] ? s.scene : s.teacher ? 0 : -1; /* a question comes before any answer */
        for (const [name, value] of Object.entries(scenes[s.scene]?.[1] ?? {}))
            if (String(s[name]) === String(Address.own[name])) s[name] = structuredClone(value);
        setType(); /* before anything is drawn */
    };
    const button = (i) => tag("button", {
        type: "button",
        "data-scene": i,
        "aria-pressed": String(i === s.scene)
    },
                              tag("kbd", {}, i + 1, " "), escaped(scenes[i][0]));
    const pressed = (e) => {
        const chosen = e.target.closest("[data-scene]");
        if (chosen) show(+chosen.dataset.scene);
    };
    /* A digit is a scene, and arrows and the keys of a presenter lead to the next and the previous one, except
       where they are typed, or scroll. */
    const turns = {ArrowRight: 1, PageDown: 1, ArrowLeft: -1, PageUp: -1};
    const keyed = (e) => {
        const isUsed = e.ctrlKey || e.altKey || e.metaKey || e.defaultPrevented;
        if (!s.teacher || isUsed || e.target.closest("input, select, .scroll, pre")) return;
        const scene = turns[e.key] ? s.scene + turns[e.key] : e.key - 1;
        const starts = e.key === " " && s.scene >= 0 && !e.target.closest("button, summary, a");
        if (starts || scenes[scene]) e.preventDefault();
        if (starts) starter().click();
        else if (scenes[scene]) show(scene);
    };
    /* What the space bar presses, wherever the focus is: it starts a scene, or opens its answer. */
    const starter = () => document.body.matches(".row-alone")
                              ? $("drawer-answer").firstElementChild
                              : $(panels[s.panel]).closest("section").querySelector("button.main");
    /* What to try after a race, except in teacher mode, which has all scenes at its top. */
    const next = () => s.teacher ? "" : tag("p", {class: "controls"}, "Next: ", [1, 2, 3].map(button));
    const open = () => {
        $("scenes").innerHTML = scenes.map((_, i) => button(i)).join("");
        $("scenes").onclick = $("race-say").onclick = pressed;
        document.onkeydown = keyed;
        window.onhashchange = () => location.reload(); /* another address was typed, or pasted */
        new ResizeObserver(measure).observe(header);
        $("teacher").onclick = () => {
            Address.set({teacher: +!s.teacher});
            if (s.teacher && s.scene < 0) return show(0);
            draw();
            Race.draw();
        };
        draw();
        $("contents").onclick = (e) => {
            const link = e.target.closest("a");
            if (!link) return;
            e.preventDefault(); /* which would forget the rest of the address */
            Address.set({panel: +link.hash.split("=")[1]});
            turnTo(panels[s.panel]);
        };
        Race.whenDrawn(ask);
        const answer = $("drawer-answer");
        answer.open = !document.body.matches(".row-alone");
        answer.ontoggle = ask;
        if (s.scene >= 0) starter().focus({preventScroll: true});
        ask();
        if (early) keyed(early);
    };
    /* The panel that the address names, once all panels below have their heights. */
    const turn = () => s.panel > 0 && showExhibit(panels[s.panel]);
    return {begin, open, turn, next, ask};
})();

/* Everything is opened here. document.body.dataset.state is "ready" once the page can be used. */
const compiled = async (id) => {
    const {body} = await fetch("data:;base64," + $(id).textContent.replace(/\s/g, ""));
    const stream = body.pipeThrough(new DecompressionStream("gzip"));
    const headers = {"Content-Type": "application/wasm"};
    return WebAssembly.compileStreaming(new Response(stream, {headers}));
};

/* Milliseconds until the panels far below, one with large matrices, are opened: the race comes first. */
const LATER = 300;

const open = async () => {
    const begin = performance.now();
    Racers.hire();
    ["loss", "follow-stops"].forEach(widthOf);
    const module = await compiled("module");
    Race.prepare(module); /* in the background, while the panels open here */
    await Library.open(module);
    Address.read();
    Teacher.begin();
    Row.open();
    Rules.open();
    const begun = Race.open(); /* both models are made meanwhile */
    Maps.open();
    Drawer.open();
    Follow.open();
    await begun;
    Teacher.open();
    document.body.dataset.milliseconds = (performance.now() - begin).toFixed(0);
    document.body.dataset.state = "ready";
    Race.start();
    setTimeout(() => {
        Flash.open(Teacher.ask);
        SaturatedRows.open();
        Teacher.turn();
    }, Address.state.panel > 0 ? 0 : LATER);
};

/* Exhibits that need no race can stand alone in a frame of another page, playground.html?exhibit=row. That page
   gets the height, since a frame has a height of its own. */
const exhibits = {row: Row, saturated: SaturatedRows, flash: Flash};
const alone = new URLSearchParams(location.search).get("exhibit");
const openAlone = async () => {
    document.body.className = "alone";
    $(alone).closest("section").classList.add("chosen");
    await Library.open(await compiled("module"));
    Address.read();
    exhibits[alone].open();
    document.body.dataset.state = "ready";
    const tell = () => parent.postMessage({height: document.body.offsetHeight}, "*");
    new ResizeObserver(tell).observe(document.body);
};

(Object.hasOwn(exhibits, alone) ? openAlone : open)().catch((error) => {
    document.body.dataset.state = "failed";
    const place = document.createElement("p");
    place.textContent = "This page could not start: " + error.message;
    document.querySelector("main").prepend(place);
});
