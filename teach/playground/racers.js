/* The racers: two workers, each with an instance of the library of its own, which trains one model.
   An answer has the number of its order. */
const Racers = (() => {
    const racer = (id, index) =>
        ({index, id, losses: [], frames: new Map(), spent: 0, answers: new Map(), asked: 0});
    const all = ["right", "wrong"].map(racer);

    const ask = (racer, order, more) => new Promise((done, failed) => {
        racer.answers.set(++racer.asked, {done, failed});
        racer.worker.postMessage({id: racer.asked, order, ...more});
    });
    const askBoth = (order, more) => Promise.all(all.map((r) => ask(r, order, more(r))));
    const heard = (racer, {id, failure, ...answer}) => {
        const {done, failed} = racer.answers.get(id);
        racer.answers.delete(id);
        if (failure)
            failed(Error(failure));
        else
            done(answer);
    };

    /* Makes the workers, which start while the library is unpacked. */
    const hire = () => {
        const code = new Blob([$("worker").textContent], {type: "text/javascript"});
        const address = URL.createObjectURL(code);
        for (const r of all) {
            r.worker = new Worker(address);
            r.worker.onmessage = ({data}) => heard(r, data);
        }
    };
    return {all, ask, askBoth, hire};
})();
