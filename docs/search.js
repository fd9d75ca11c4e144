/* How Sphinx's search ranks what it finds: sections of how-to whose titles have the words that were asked come first,
   then functions of that name, other such sections, pages, and last parameters and members. */
const ANSWERS = [ // words of a question that are in no title, and those of the title that answers it
    [/ignore.?index/, 'mask padding'],
    [/warm.?up|noam|decay|clip/, 'learning rate schedule'],
    [/flash|tiled/, 'online softmax'],
    [/jacobian|softmax.*(backward|gradient)|(backward|gradient).*softmax/, 'never build j'],
    [/gradient check|check.*gradient|gradcheck/, 'check the gradient of your own code'],
    [/accumulat|zero.?grad/, 'gradients are added'],
    [/\b(save|load|store|resume|export|checkpoint)(?!ing)/, 'save and load'],
    [/mixed precision|fp16|bfloat/, 'train in bf16'],
    [/(tie|tying|shared?).*(embed|weight)|(embed|weight).*(tie|tying)/, 'tie embeddings'],
    [/position/, 'choose positions'],
    [/beam|sampling|top.?[kp]\b|greedy|generat|inference|decoding|quanti[sz]/, 'beam search, or sample'],
    [/\bkv\b|k\/v|key.?value/, 'key value cache'],
    [/reproduc|determinis|\bseeds?\b/, 'same numbers again'],
    [/early.?stop|over.?fit|train.*(model|data)/, 'train on your own pairs'],
    [/token|bpe|byte.?pair|subword/, 'vocabulary'],
    [/mpi|ranks|distributed/, 'several machines'],
    [/cuda|nvidia/, 'on a gpu'],
    [/hugging|pretrained/, 'hugging face'],
    [/threads/, 'use all cores'],
    [/memory/, 'use long sequences'],
    [/custom (op|function)/, 'operation of your own'],
    [/custom (model|layer)/, 'model of your own'],
    [/\bnan\b|exception|error message/, 'see what failed'],
];
const QUESTION = ['can', 'get', 'make', 'set', 'use']; // and Sphinx's stopwords: how, do, I, the, ...
let question = '';
const LESS = [[/parameter|member|enumerator/, 40], [/method|property/, 20], [/function|class|struct|enum|type/, 10]];
const plain = (name) => name.toLowerCase().replace(/^sb_|^.*\./, '').replace(/[\s_]/g, ''); // "layer norm" is sb_layer_norm

var Scorer = {
    score: ([page, name, , description, score]) => score
        + (description && plain(name) === plain(question) ? 120 : 0)
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

/* Sections whose titles have most words of a question, in any order and form. */
function sections() {
    const stemmer = new Stemmer();
    const words = (text) => splitQuery(text.toLowerCase()).filter((word) => !QUESTION.includes(word) && !stopwords.has(word))
        .map((word) => stemmer.stemWord(word));
    const {alltitles, docnames, filenames, titles} = Search._index;
    const asked = [question, ...ANSWERS.filter(([said]) => said.test(question)).map(([, title]) => title)]
        .map(words).filter((some) => some.length);
    return Object.entries(alltitles).flatMap(([title, places]) => {
        const own = words(title), shared = (some) => some.filter((word) => own.includes(word)).length;
        const found = asked.map((some, i) => [shared(some) / some.length, shared(some) / own.length, i > 0])
            .filter(([share]) => share >= 0.5);
        return found.length === 0 ? [] : places.map(([file, id]) => {
            const page = docnames[file];
            const score = Math.max(...found.map(([asked, own, answers]) => 50 * asked + 50 * own
                + (asked === 1 && (answers || page === 'how_to' && own > 0.2) ? 100 : 0)));
            const name = id === null || titles[file] === title ? title : `${titles[file]} > ${title}`;
            return [page, name, id === null ? '' : '#' + id, null, score, filenames[file], 'title'];
        });
    });
}

queueMicrotask(() => { // once all of Sphinx's script has run
    const {_parseQuery, performTermsSearch} = Search;
    Search._parseQuery = (query) => {
        question = query.toLowerCase().trim().replace(/(\p{L})-(?=\p{L})/gu, '$1 '); // "learning-rate" finds what "learning rate" finds
        return _parseQuery(question);
    };
    Search.performTermsSearch = (...terms) => [...performTermsSearch(...terms), ...sections()];
});
