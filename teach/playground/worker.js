/* A racer: one instance of the library, which trains one model in the background. Each message is an
   order with a number; its answer has the same number, and what there is to draw. */

/* Trains so many steps, and looks. */
const train = ({count, counted}, pair) => {
    const begin = performance.now();
    const losses = Array.from({length: count}, () => Library.training.step());
    const spent = performance.now() - begin;
    const share = counted ? Library.training.share() : undefined;
    return {losses, spent, frame: {...Library.training.look(pair), share}};
};

const orders = {
    open: ({module}) => Library.open(module),
    begin: ({choice, pair}) => {
        Library.training.begin(choice);
        return {frame: Library.training.look(pair)};
    },
    share: () => ({share: Library.training.share()}),
    advance: ({parts, pair}) => ({parts: parts.map((part) => train(part, pair))}),
    look: ({pair}) => ({frame: Library.training.look(pair)}),
    rule: ({rule}) => Library.training.rule(rule),
    fingerprint: () => ({fingerprint: Library.training.fingerprint()}),
};

/* Orders are carried out one after the other; the first one opens the library. */
const carryOut = async ({id, order, ...more}) => {
    try {
        postMessage({id, ...(await orders[order](more))});
    } catch (error) {
        postMessage({id, failure: error.message});
    }
};
let queue = Promise.resolve();
onmessage = ({data}) => (queue = queue.then(() => carryOut(data)));
