/* How Sphinx's search ranks what it finds: pages before functions, these before their parameters and members; and
   what is asked most leads to the page that answers it. */
const ANSWERS = [
    [/schedule|warm.?up|padding|weights? shape|shape of|freez/, 'how_to'],
    [/flash|online/, 'teach/lessons/09_online'],
    [/jacobian|softmax.*(backward|gradient)|(backward|gradient).*softmax/, 'teach/lessons/03_never_build_j'],
];
const asked = (new URLSearchParams(location.search).get('q') ?? '').toLowerCase();
const answers = ANSWERS.filter(([words]) => words.test(asked)).map(([, page]) => page);
const LESS = [[/parameter|member|enumerator/, 40], [/function|method|class|struct|enum|property|type/, 10]];

var Scorer = {
    score: ([page, , , description, score]) => score + (answers.includes(page) ? 100 : 0)
        - (description ? (LESS.find(([kind]) => kind.test(description))?.[1] ?? 0) : 0)
        + (/^(how_to|teach\/)/.test(page) ? 3 : 0),
    objNameMatch: 11,
    objPartialMatch: 6,
    objPrio: {0: 15, 1: 5, 2: -5},
    objPrioDefault: 0,
    title: 15,
    partialTitle: 7,
    term: 5,
    partialTerm: 2,
};
