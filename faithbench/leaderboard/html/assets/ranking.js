// Faithfulness over tables: places, who is tied with the first, and where controls would stand.

// What stands beside the rank: field, heading, what it means.
const BESIDE = [
  [
    "skill",
    "AOPC skill",
    "Mean over tables of (AOPC - random) / (best - random): 0 is random, 1 the best of a table",
  ],
  [
    "stability",
    "stability",
    "Mean over tables of the overlap with explanations of similar texts, above what chance gives; of explainers above the line",
  ],
  [
    "plausibility",
    "plausibility",
    "Mean skill over tables of the agreement with words that people marked: 0 is random",
  ],
  ["cost", "cost", "Mean forward passes per example; a backward pass counts as two"],
];

function drawRanking() {
  const { ranking } = board;
  replace(
    byId("findings"),
    board.findings.map((sentence) => make("li", {}, sentence)),
  );
  if (!ranking) {
    const why = "No table ranks anybody: a ranking needs explainers that have all of its metrics.";
    replace(byId("ranking-body"), make("p", { class: "note" }, why));
    return;
  }
  replace(
    byId("ranking-body"),
    rankingNote(ranking),
    rankingTable(ranking),
    rankingLegend(ranking),
  );
}

// A ranking over bundled samples alone says nothing of the real tasks.
const rankingNote = (ranking) =>
  ranking.tables.some((place) => board.tables[place].source !== "bundled") ? null : noteOfBundled();

function rankingTable(ranking) {
  const rows = ranking.rows.map((row, place) => ({ ...row, place: place + 1 }));
  const scale = rankScale(ranking);
  // Each control stands before the first explainer whose rank is not better than its own.
  const lines = [
    ...rows.filter((row) => wanted(row.label)).map((row) => [row.rank, 1, rankedRow(row, scale)]),
    ...ranking.controls.map((row) => [row.rank, 0, controlRow(row, scale)]),
  ].sort((one, two) => one[0] - two[0] || one[1] - two[1]);
  const below = ranking.below.filter((row) => wanted(row.label));
  const heads = [
    ["family", "text family-column", "Family of the explainer"],
    [
      "rank",
      "text",
      "1 plus, for each other explainer, the share of comparisons that it wins; with a 95% interval over tables",
    ],
    ["tables", "number", "Number of tables that the explainer was measured on"],
    [
      "against the first",
      "text",
      "Significantly worse than the first by AOPC on how many of its tables",
    ],
    ...BESIDE.map(([, head, title]) => [head, "number", title]),
  ];
  return make(
    "div",
    {
      class: "scroll whole-height",
      tabindex: "0",
      role: "region",
      "aria-label": "Ranking, scrolls",
    },
    make(
      "table",
      { class: "data", id: "ranking-table" },
      make("caption", { class: "unseen" }, "Explainers by faithfulness over tables"),
      make(
        "thead",
        {},
        make(
          "tr",
          {},
          make("th", { scope: "col" }, "explainer"),
          heads.map(([head, kind, title]) =>
            make("th", { scope: "col", class: kind, title }, head),
          ),
        ),
      ),
      make(
        "tbody",
        {},
        lines.map(([, , line]) => line),
      ),
      below.length
        ? make(
            "tbody",
            { class: "under-line" },
            shelfRow(
              "not better than random by AOPC on most of their tables: not ranked",
              heads.length + 1,
            ),
            below.map((row) =>
              rankRow(row, "below", "", make("td", { class: "text muted" }, "–"), ""),
            ),
          )
        : null,
    ),
  );
}

// A line across a table that says what stands under it.
const shelfRow = (text, columns) =>
  make(
    "tr",
    { class: "shelf" },
    make("th", { scope: "rowgroup", colspan: columns }, make("span", {}, text)),
  );

function rankedRow(row, scale) {
  return rankRow(row, "ranked", String(row.place), rankCell(row, scale), standing(row));
}

function controlRow(row, scale) {
  return rankRow(row, "control", "", rankCell(row, scale), "control: would stand here");
}

function rankRow(row, kind, place, rank, told) {
  return make(
    "tr",
    { class: kind, "data-explainer": row.label },
    make(
      "th",
      { scope: "row" },
      make(
        "span",
        { class: "placed" },
        make("span", { class: "place" }, place),
        make("span", {}, name(row.label), linkSign("ranking", row.label)),
      ),
    ),
    make(
      "td",
      { class: "text family-column muted small" },
      kind === "control" ? "" : (familyOf.get(row.label) ?? ""),
    ),
    rank,
    make("td", {}, String(row.tables)),
    make("td", { class: "text" }, told),
    BESIDE.map(([field]) => besideCell(row, field)),
  );
}

function besideCell(row, field) {
  if (field === "cost") return make("td", {}, short(row.cost));
  if (field === "stability") return make("td", {}, decimal(row.stability));
  const made = make("td", { class: "cell" }, decimal(row[field], 2));
  made.style.setProperty("--fill", `${100 * Math.min(1, Math.max(0, row[field] ?? 0))}%`);
  return made;
}

function standing(row) {
  const over =
    row.adjusted === null ? "" : `; over tables p = ${probability(row.adjusted)} after Holm`;
  const on = row.worseOn.map((place) => board.tables[place].id).join(", ");
  if (row.place === 1) return make("span", { class: "mark first-mark" }, "first");
  if (row.tied)
    return make(
      "span",
      {
        class: "mark",
        title: `${on ? `worse on ${on}` : "significantly worse on no table"}${over}`,
      },
      "tied with the first",
    );
  const worse = `worse on ${row.worseOn.length} of ${row.tables} ${row.tables === 1 ? "table" : "tables"}`;
  return make(
    "span",
    { class: "muted", title: `significantly worse on ${on || "no table alone"}${over}` },
    worse,
  );
}

// Ranks as a share of the track from the first rank to the last.
function rankScale(ranking) {
  const shown = [...ranking.rows, ...ranking.controls];
  const most = Math.max(...shown.flatMap((row) => [row.rank, row.ends[1] ?? 0]), 2);
  return (rank) => (100 * (rank - 1)) / (most - 1);
}

function rankCell(row, scale) {
  const [low, high] = row.ends;
  const track = make("span", { class: "track", "aria-hidden": "true" });
  if (low !== null) {
    const bar = make("span", { class: "span" });
    bar.style.left = `${scale(low)}%`;
    bar.style.width = `${scale(high) - scale(low)}%`;
    track.append(bar);
  }
  const dot = make("span", { class: "dot" });
  dot.style.left = `${scale(row.rank)}%`;
  track.append(dot);
  const interval = low === null ? "one table" : `${low.toFixed(1)} to ${high.toFixed(1)}`;
  return make(
    "td",
    {
      class: "text rank-cell",
      title: low === null ? "in fewer than two tables: no interval" : `95% interval ${interval}`,
    },
    make("span", { class: "rank" }, row.rank.toFixed(2)),
    track,
    make("span", { class: "half interval" }, interval),
  );
}

function rankingLegend(ranking) {
  const names = ranking.tables.flatMap((place, index) => [index ? ", " : "", tableLink(place)]);
  return [
    make("p", { class: "small muted wide" }, "Ranked over ", names, "."),
    make(
      "details",
      { open: innerWidth > 640 },
      make("summary", {}, "How this is ranked"),
      make(
        "p",
        { class: "small wide" },
        "Every two explainers are compared on the tables that they share, by three aspects of faithfulness, each counted once: comprehensiveness (does the prediction fall without the best tokens), sufficiency (does it stay with them alone) and sign (do tokens with negative scores speak against it). The rank is 1 plus, for each other explainer, the share of comparisons that it wins: lower is better. The bar is a 95% bootstrap interval over tables.",
      ),
      make(
        "p",
        { class: "small wide" },
        `Tied with the first is who is significantly worse neither over tables (signed ranks${ranking.leastP === null ? "" : `; ${ranking.tables.length} tables allow no p after Holm below ${probability(ranking.leastP)}`}) nor, by AOPC, on half of its own. Controls do not look at the model: they are drawn as dashed lines where they would stand, and have no place. The columns on the right are no part of the rank: plausibility is a skill too, 0 for random and 1 for the best; stability is the overlap with explanations of similar texts above what chance gives.`,
      ),
    ),
  ];
}

// The name of a table, which opens it.
const tableLink = (place, text = board.tables[place].id) =>
  make(
    "a",
    {
      href: `#results/${encodeURIComponent(board.tables[place].id)}`,
      onclick: (event) => {
        event.preventDefault();
        showResultsOf(place);
      },
    },
    make("bdi", {}, text),
  );
