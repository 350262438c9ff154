// The table of results: sorted by a click on a heading, with the metrics of one's choice.

// `sort` is a metric, "" for names, or null for the table's own order, by place.
const results = {
  families: new Set(["faithfulness"]),
  off: new Set(),
  sort: null,
  ascending: false,
  skill: false,
  letters: true,
  intervals: true,
};

function showResultsOf(place) {
  state.section = "results";
  state.table = place;
  redraw();
  scrollTo(0, 0);
}

function drawResults() {
  const table = tableData();
  replace(byId("results-facts"), facts(), operatorLines());
  const names = [...new Set(table.columns.map((column) => column.family))];
  const inFamily = table.columns.filter((column) => results.families.has(column.family));
  const columns = inFamily.filter((column) => !results.off.has(column.metric));
  chips(
    "metric-families",
    names.map((family) =>
      chip(family, results.families.has(family), (on) => {
        toggle(results.families, family, on);
      }),
    ),
  );
  const shown = byId("cell-value");
  choices(
    shown,
    [
      ["value", "values"],
      ["skill", "skill: 0 is random, 1 the best"],
    ],
    results.skill ? "skill" : "value",
  );
  shown.onchange = () => {
    results.skill = shown.value === "skill";
    drawResults();
  };
  chips(
    "metrics",
    inFamily.map((column) =>
      chip(
        column.title,
        !results.off.has(column.metric),
        (on) => {
          toggle(results.off, column.metric, !on);
        },
        { title: summaryOf(column) },
      ),
    ),
  );
  chips("cell-parts", [
    chip("intervals", results.intervals, (on) => {
      results.intervals = on;
      drawResults();
    }),
    chip("letters of ties", results.letters, (on) => {
      results.letters = on;
      drawResults();
    }),
  ]);
  replace(
    byId("results-body"),
    columns.length
      ? [resultsTable(table, columns), powerLine(table, columns), meanings(columns), moreFacts()]
      : make("p", { class: "note" }, "No metric is chosen; choose a family above."),
  );
}

// The same examples erased in another way: how far the two orders agree, and the way there.
function operatorLines() {
  return board.operators
    .filter((pair) => pair.tables.includes(state.table))
    .map((pair) => {
      const here = pair.tables.indexOf(state.table);
      const [one, two] = [pair.operators[here], pair.operators[1 - here]];
      const best =
        pair.kendallBest === null ? "" : `, ${decimal(pair.kendallBest, 2)} over the ten best`;
      return make(
        "p",
        { class: "partner small wide" },
        `Erased by ${one}. The same examples erased by ${two}: `,
        tableLink(pair.tables[1 - here]),
        `. Kendall's tau of the two orders is ${decimal(pair.kendall, 2)} over ${pair.shared} explainers${best}. First by ${one}: `,
        name(pair.leaders[here].join(", ")),
        `; first by ${two}: `,
        name(pair.leaders[1 - here].join(", ")),
        ".",
      );
    });
}

function powerLine(table, columns) {
  if (!columns.some((column) => column.power)) return null;
  return make(
    "p",
    { class: "small muted wide" },
    `The last line is what ${table.facts.n} examples can tell apart: the smallest difference of two means that the tests find with a chance of 80%, after Holm, and the share of pairs above the line that differ by more.`,
  );
}

function toggle(set, value, on) {
  if (on) set.add(value);
  else set.delete(value);
  drawResults();
}

// Redrawing must not take the keyboard's place away.
function chips(id, made) {
  const field = byId(id);
  const at = [...field.querySelectorAll("input")].indexOf(document.activeElement);
  replace(field, field.querySelector("legend"), made);
  if (at >= 0) field.querySelectorAll("input")[at]?.focus();
}

// Where rows stand: sorting never lifts one over a line.
const SHELVES = [
  ["", (standing) => standing === "ranked" || standing === "incomplete"],
  ["not better than random by AOPC: not ranked", (standing) => standing === "below"],
  ["controls, for reference: never ranked", (standing) => standing === "control"],
];

function sortedRows(table, sorted) {
  const rows = table.entrants
    .map((_, place) => place)
    .filter((place) => isControl(table.entrants[place]) || wanted(table.entrants[place].label));
  const byName = (one, two) => (table.entrants[one].label < table.entrants[two].label ? -1 : 1);
  if (sorted) rows.sort(betterFirst(sorted));
  else if (results.sort === "") rows.sort(byName);
  if (results.ascending) rows.reverse();
  const missing = sorted
    ? (place) => (sorted.cells[place]?.[0] ?? null) === null
    : (place) => results.sort === null && table.entrants[place].place === null;
  return rows.sort((one, two) => missing(one) - missing(two));
}

function resultsTable(table, columns) {
  const sorted = columns.find((column) => column.metric === results.sort);
  if (!sorted && results.sort) results.sort = null;
  // A phone has no room for more than the place.
  const aspects = board.aspects
    .map((_, aspect) => aspect)
    .filter((aspect) => innerWidth >= 640 && rankedBy(table, aspect));
  const rows = sortedRows(table, sorted);
  const spans = [{ family: "rank", count: 1 + aspects.length }];
  for (const column of columns) {
    if (spans.at(-1).family === column.family) spans.at(-1).count += 1;
    else spans.push({ family: column.family, proxy: column.proxy, count: 1, first: column });
  }
  const starts = new Set(spans.slice(1).map((span) => span.first));
  const width = 2 + aspects.length + columns.length;
  return make(
    "div",
    {
      class: `scroll ${results.letters ? "" : "hide-letters"} ${results.intervals ? "" : "hide-intervals"}`,
      tabindex: "0",
      role: "region",
      "aria-label": "Results, scrolls",
    },
    make(
      "table",
      { class: "data", id: "results-table" },
      make("caption", { class: "unseen" }, `Results on ${table.facts.id}, by explainer and metric`),
      make(
        "thead",
        {},
        make(
          "tr",
          { class: "over" },
          make("td"),
          spans.map((span) =>
            make(
              "th",
              { scope: "colgroup", colspan: span.count },
              span.family,
              span.proxy ? [" ", badge("proxy", "Against rationales that no person marked")] : null,
            ),
          ),
        ),
        make(
          "tr",
          { class: "under" },
          sortHead("explainer", "", sorted, ""),
          sortHead("place", null, sorted, "number", "Rank by the mean of the ranks by aspects"),
          aspects.map((aspect) =>
            make(
              "th",
              {
                scope: "col",
                class: "number aspect",
                title: `Rank by ${board.aspects[aspect]}: ${rankedBy(table, aspect).title}`,
              },
              ASPECT_HEADS[board.aspects[aspect]] ?? board.aspects[aspect],
            ),
          ),
          columns.map((column) =>
            sortHead(
              `${column.title} ${ARROWS[column.better]}`,
              column.metric,
              sorted,
              `number ${starts.has(column) ? "first" : ""}`,
              summaryOf(column),
            ),
          ),
        ),
      ),
      SHELVES.map(([title, stands]) => {
        const here = rows.filter((place) => stands(table.entrants[place].standing));
        if (!here.length) return null;
        return make(
          "tbody",
          {
            class: title
              ? isControl(table.entrants[here[0]])
                ? "controls-shelf"
                : "under-line"
              : null,
          },
          title ? shelfRow(title, width) : null,
          here.map((place) =>
            make(
              "tr",
              {
                class: table.entrants[place].standing,
                "data-explainer": table.entrants[place].label,
              },
              rowHead(table.entrants[place]),
              rankCells(table.entrants[place], aspects),
              columns.map((column) => resultCell(column, place, starts.has(column))),
            ),
          ),
        );
      }),
      columns.some((column) => column.power)
        ? make(
            "tfoot",
            {},
            make(
              "tr",
              { id: "power" },
              make("th", { scope: "row" }, "smallest detectable difference"),
              make("td", { colspan: 1 + aspects.length }),
              columns.map((column) => powerCell(column, starts.has(column))),
            ),
          )
        : null,
    ),
  );
}

const ASPECT_HEADS = { comprehensiveness: "compr.", sufficiency: "suff.", sign: "sign" };
const rankedBy = (table, aspect) => table.columns.find((column) => column.aspect === aspect);

// A heading that sorts; it shows which way if the table is sorted by it.
function sortHead(text, key, sorted, kind, title) {
  const on = results.sort === key;
  // Names, places and what is better if lower come in ascending order first.
  const up = (!sorted || sorted.better === -1) !== results.ascending;
  const way = up ? "ascending" : "descending";
  return make(
    "th",
    { scope: "col", class: kind, "aria-sort": on ? way : null },
    make(
      "button",
      { class: "sort", type: "button", title, onclick: () => sortBy(key) },
      breakable(text),
      make("span", { class: "way", "aria-hidden": "true" }, on ? (up ? "▴" : "▾") : ""),
    ),
  );
}

// Long names of metrics may break between their parts; the arrow stays with the last.
function breakable(text) {
  const parts = text.length < 15 ? [text] : text.split(/(?<=[_:@=])/);
  return make(
    "span",
    { class: parts.length === 1 && text.length < 24 ? "unbroken" : null },
    parts.flatMap((part) => [make("wbr"), part.replace(/ (?=.$)/, "\u00a0")]),
  );
}

function sortBy(key) {
  results.ascending = results.sort === key ? !results.ascending : false;
  results.sort = key;
  drawResults();
  const button = byId("results-table").querySelector("th[aria-sort] .sort");
  button?.focus();
}

function meanings(columns) {
  return make(
    "details",
    {},
    make("summary", {}, "What these metrics mean"),
    make(
      "dl",
      { class: "meanings" },
      columns.flatMap((column) => [
        make("dt", {}, `${column.title} ${ARROWS[column.better]}`),
        make("dd", {}, summaryOf(column) || column.metric),
      ]),
    ),
  );
}
