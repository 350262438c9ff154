// The p-values of all pairs of a table, for one metric.

let testedMetric = null;

function drawTests() {
  const table = tableData();
  replace(byId("tests-facts"), bundledNote());
  const tested = table.columns.filter((column) => column.tests);
  const select = byId("tested");
  const column = tested.find((one) => one.metric === testedMetric) ?? tested[0];
  choices(
    select,
    tested.map((one, place) => [
      place,
      `${one.title} ${ARROWS[one.better]}${one.proxy ? " (proxy)" : ""}`,
    ]),
    tested.indexOf(column),
  );
  select.onchange = () => {
    testedMetric = tested[Number(select.value)].metric;
    drawTests();
  };
  if (!column) {
    replace(
      byId("tests-body"),
      make(
        "p",
        { class: "note" },
        "This table has no tests: it needs two explainers with values of six examples or more.",
      ),
    );
    return;
  }
  // Best first, but controls and those below the line last, as in the results.
  const shelf = (place) =>
    SHELVES.findIndex(([, stands]) => stands(table.entrants[place].standing));
  const order = visible(table).sort(betterFirst(column));
  order.sort((one, two) => shelf(one) - shelf(two));
  replace(
    byId("tests-body"),
    testsLegend(column),
    make(
      "p",
      { class: "small", id: "test-told", role: "status" },
      "A click on a cell tells its test.",
    ),
    matrix(table, column, order),
  );
}

function testsLegend(column) {
  const key = (kind, text) =>
    make(
      "span",
      { class: "matrix" },
      make("span", { class: `token ${kind} ${kind === "same" ? "" : "strong"}` }, "p"),
      ` ${text}`,
    );
  return make(
    "p",
    { class: "scale small" },
    key(
      "won",
      column.better
        ? "the row is significantly better (green)"
        : "the row is significantly higher (green)",
    ),
    key(
      "lost",
      column.better
        ? "the row is significantly worse (vermillion)"
        : "the row is significantly lower (vermillion)",
    ),
    key("same", "no significant difference"),
    make("span", { class: "muted" }, "strong colour: p < .001"),
    make("span", { class: "muted" }, `effect: from -1 to 1, ${effectSign(column)}`),
  );
}

const effectSign = (column) =>
  column.better ? "+ if the row is better" : "+ if the row is higher";

// Where the test of two explainers stands in the lists of all pairs.
function pairPlace(one, two, count) {
  const [i, j] = one < two ? [one, two] : [two, one];
  return i * count - (i * (i + 1)) / 2 + (j - i - 1);
}

function testOf(column, one, two, count) {
  const place = pairPlace(one, two, count);
  const { tests } = column;
  const [test, n, reason] = tests.other[place] ?? [tests.test, tests.n, tests.reason];
  const effect = tests.effect[place] === null ? null : (one < two ? 1 : -1) * tests.effect[place];
  return { p: tests.p[place], adjusted: tests.adjusted[place], effect, test, n, reason };
}

function matrix(table, column, order) {
  const label = (place) => table.entrants[place].label;
  return make(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": "Matrix of p-values, scrolls" },
    make(
      "table",
      { class: "data matrix", id: "matrix", onclick: tellTest },
      make(
        "caption",
        {},
        `p after Holm, ${column.title} on ${table.facts.id}; best first, then those below the line and controls`,
      ),
      make(
        "thead",
        {},
        make(
          "tr",
          {},
          make("th", { scope: "col" }, "row against column"),
          order.map((place) =>
            make("th", { scope: "col", title: label(place) }, make("span", {}, label(place))),
          ),
        ),
      ),
      make(
        "tbody",
        {},
        order.map((row) =>
          make(
            "tr",
            {},
            make("th", { scope: "row", title: label(row) }, name(label(row))),
            order.map((other) => matrixCell(column, row, other, table.entrants.length, label)),
          ),
        ),
      ),
    ),
  );
}

function matrixCell(column, row, other, count, label) {
  if (row === other) return make("td", { class: "self", "aria-label": "itself" });
  const test = testOf(column, row, other, count);
  if (test.adjusted === null) {
    return make(
      "td",
      { class: "same", title: `${label(row)} against ${label(other)}: no test. ${test.reason}` },
      "–",
    );
  }
  const kind = test.adjusted >= 0.05 ? "same" : test.effect > 0 ? "won" : "lost";
  const strong = test.adjusted < 0.001 ? "strong" : "";
  const sign = test.effect > 0 ? "+" : "";
  return make(
    "td",
    {
      class: `${kind} ${strong}`,
      title: `${label(row)} against ${label(other)}: ${test.test}, n = ${test.n}, p = ${test.p}, after Holm ${test.adjusted}, effect ${sign}${short(test.effect)} (${effectSign(column)})`,
    },
    probability(test.adjusted),
  );
}

// What a pointer sees by hovering, for fingers.
function tellTest(event) {
  const cell = event.target.closest("td[title]");
  if (cell) byId("test-told").textContent = cell.title;
}
