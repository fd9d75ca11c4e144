/* Everything is opened here. document.body.dataset.state is "ready" once the page can be used. */
const unpacked = async (id) => {
    const base64 = $(id).textContent.replace(/\s/g, "");
    const packed = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
};

const open = async () => {
    const begin = performance.now(), bytes = await unpacked("module");
    await Library.open(bytes);
    Address.read();
    Row.open();
    Rules.open();
    SaturatedRows.open();
    Flash.open();
    Maps.open();
    Drawer.open();
    Follow.open();
    await Race.open(bytes);
    Teacher.open();
    document.body.dataset.milliseconds = (performance.now() - begin).toFixed(0);
    document.body.dataset.state = "ready";
    Race.start();
};

open().catch((error) => {
    document.body.dataset.state = "failed";
    const place = document.createElement("p");
    place.textContent = "This page could not start: " + error.message;
    document.querySelector("main").prepend(place);
});
