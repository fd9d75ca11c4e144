/* Training in the background, so that the page never waits. Each message is an order; each answer
   has what there is to draw. */
let wanted = null, steps = 0, pair = 0, running = false, spent = 0;

const MOST_OF_A_TICK = 60; /* ms of training between two reports to the page */

const report = (losses, more) => {
    const rate = (1000 * steps) / Math.max(spent, 1);
    postMessage({step: steps, losses, rate, running, ...Library.training.look(pair), ...more});
};
const result = () =>
    ({share: Library.training.share(), fingerprint: Library.training.fingerprint()});

const train = (most) => {
    const losses = [], begin = performance.now();
    do {
        losses.push(Library.training.step());
        steps++;
    } while (steps < most && performance.now() - begin < MOST_OF_A_TICK);
    spent += performance.now() - begin;
    return losses;
};

const tick = () => {
    if (!running) return;
    const before = steps, losses = train(wanted.steps);
    const passed50 = Math.floor(steps / 50) > Math.floor(before / 50);
    running = steps < wanted.steps;
    report(losses, !running ? result() : passed50 ? {share: Library.training.share()} : {});
    if (running) setTimeout(tick);
};

const orders = {
    begin: (choice) => {
        wanted = choice;
        steps = spent = 0;
        running = false;
        Library.training.begin(choice);
        report([]);
    },
    run: () => {
        if (running || steps >= wanted.steps) return;
        running = true;
        tick();
    },
    pause: () => {
        running = false;
        report([], result());
    },
    step: () => {
        running = false;
        if (steps < wanted.steps) report(train(steps + 1));
    },
    pair: (choice) => {
        pair = choice.pair;
        report([]);
    },
    row: ({attention, head, row}) => {
        running = false;
        report([], {row: Library.training.row(attention, head, row), place: {step: steps}});
    },
};

/* Orders are carried out one after the other; the first one opens the library. */
const carryOut = async (data) => {
    try {
        if (data.order === "open")
            await Library.open(data.bytes);
        else
            orders[data.order](data);
    } catch (error) {
        running = false;
        postMessage({failure: error.message});
    }
};
let queue = Promise.resolve();
onmessage = ({data}) => (queue = queue.then(() => carryOut(data)));
