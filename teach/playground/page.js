/* Everything is opened here. document.body.dataset.state is "ready" once the page can be used. */
const compiled = async (id) => {
    const packed = atob($(id).textContent), bytes = new Uint8Array(packed.length);
    for (let i = 0; i < packed.length; i++) bytes[i] = packed.charCodeAt(i);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return WebAssembly.compile(await new Response(stream).arrayBuffer());
};

/* Milliseconds until the panel whose matrices take long is opened: the race comes first. */
const LATER = 300;

const open = async () => {
    const begin = performance.now();
    Racers.hire();
    const module = await compiled("module");
    Race.prepare(module); /* in the background, while the panels open here */
    await Library.open(module);
    Address.read();
    Row.open();
    Rules.open();
    const begun = Race.open(); /* both models are made meanwhile */
    Flash.open();
    Maps.open();
    Drawer.open();
    Follow.open();
    await begun;
    Teacher.open();
    document.body.dataset.milliseconds = (performance.now() - begin).toFixed(0);
    document.body.dataset.state = "ready";
    Race.start();
    setTimeout(SaturatedRows.open, LATER);
};

open().catch((error) => {
    document.body.dataset.state = "failed";
    const place = document.createElement("p");
    place.textContent = "This page could not start: " + error.message;
    document.querySelector("main").prepend(place);
});
