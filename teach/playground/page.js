/* Everything is opened here. document.body.dataset.state is "ready" once the page can be used. */
const compiled = async (id) => {
    const {body} = await fetch("data:;base64," + $(id).textContent.replace(/\s/g, ""));
    const stream = body.pipeThrough(new DecompressionStream("gzip"));
    const headers = {"Content-Type": "application/wasm"};
    return WebAssembly.compileStreaming(new Response(stream, {headers}));
};

/* Milliseconds until the panels far below, one with large matrices, are opened: the race comes first. */
const LATER = 300;

/* Lessons lie beside this page's folder as Markdown, and on the site as pages. */
const linkLessons = () => {
    const isSite = location.pathname.endsWith("/live.html");
    for (const link of document.querySelectorAll("[data-lesson]"))
        link.href = isSite ? `teach/lessons/${link.dataset.lesson}.html` : `lessons/${link.dataset.lesson}.md`;
};

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
    linkLessons();
    document.body.dataset.milliseconds = (performance.now() - begin).toFixed(0);
    document.body.dataset.state = "ready";
    Race.start();
    setTimeout(() => {
        Flash.open();
        SaturatedRows.open();
        Teacher.turn();
    }, Address.state.panel > 0 ? 0 : LATER);
};

open().catch((error) => {
    document.body.dataset.state = "failed";
    const place = document.createElement("p");
    place.textContent = "This page could not start: " + error.message;
    document.querySelector("main").prepend(place);
});
