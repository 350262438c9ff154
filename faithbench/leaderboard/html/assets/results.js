// The table of results: sorted by a click on a heading, with the metrics of one's choice.

const results = {
  families: new Set(["faithfulness"]),
  off: new Set(),
  sort: null,
  ascending: false,
  letters: true,
  intervals: true,
};

function drawResults() {
  const table = tableData();
  replace(byId("results-facts"), facts());
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
  chips(
    "metrics",
    inFamily.map((column) =>
      chip(
        column.title,
        !results.off.has(column.metric),
        (on) => {
          toggle(results.off, column.metric, !on);
        },
        { title: column.summary },
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
      ? [resultsTable(table, columns), meanings(columns), moreFacts()]
      : make("p", { class: "note" }, "No metric is chosen; choose a family above."),
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

function resultsTable(table, columns) {
  const sorted =
    columns.find((column) => column.metric === results.sort) ??
    (results.sort === "" ? null : (columns.find((column) => column.better) ?? columns[0]));
  const rows = visible(table);
  const byName = (one, two) => (table.entrants[one].label < table.entrants[two].label ? -1 : 1);
  rows.sort(sorted ? betterFirst(sorted) : byName);
  if (results.ascending) rows.reverse();
  if (sorted)
    rows.sort((one, two) => (sorted.cells[one]?.[0] == null) - (sorted.cells[two]?.[0] == null));
  const spans = [];
  for (const column of columns) {
    if (spans.at(-1)?.family === column.family) spans.at(-1).count += 1;
    else spans.push({ family: column.family, proxy: column.proxy, count: 1, first: column });
  }
  const starts = new Set(spans.slice(1).map((span) => span.first));
  const way =
    (sorted && (sorted.better === -1) === !results.ascending) || (!sorted && !results.ascending)
      ? "ascending"
      : "descending";
  const head = (text, metric, column) =>
    make(
      "th",
      {
        scope: "col",
        class: `${column ? "number" : ""} ${starts.has(column) ? "first" : ""}`,
        "aria-sort": (sorted?.metric ?? "") === metric ? way : null,
      },
      make(
        "button",
        {
          class: "sort",
          type: "button",
          title: column?.summary,
          onclick: () => sortBy(metric, sorted),
        },
        breakable(text),
        make(
          "span",
          { class: "way", "aria-hidden": "true" },
          (sorted?.metric ?? "") === metric ? (way === "ascending" ? "▴" : "▾") : "",
        ),
      ),
    );
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
          head("explainer", "", null),
          columns.map((column) =>
            head(`${column.title} ${ARROWS[column.better]}`, column.metric, column),
          ),
        ),
      ),
      make(
        "tbody",
        {},
        rows.map((place) =>
          make(
            "tr",
            {},
            rowHead(table.entrants[place]),
            columns.map((column) => resultCell(column, place, starts.has(column))),
          ),
        ),
      ),
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

function sortBy(metric, sorted) {
  results.ascending = (sorted?.metric ?? "") === metric ? !results.ascending : false;
  results.sort = metric;
  drawResults();
  const button = byId("results-table").querySelector("th[aria-sort] .sort");
  button?.focus();
}

function meanings(columns) {
  return make(
    "details",
    { open: innerWidth > 640 },
    make("summary", {}, "What these metrics mean"),
    make(
      "dl",
      { class: "meanings" },
      columns.flatMap((column) => [
        make("dt", {}, `${column.title} ${ARROWS[column.better]}`),
        make("dd", {}, column.summary || `${column.metric}, version ${column.version}`),
      ]),
    ),
  );
}
