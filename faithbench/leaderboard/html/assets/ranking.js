// Mean ranks over tables: a table, and the critical-difference diagram.

let rankingShown = 0;

function drawRanking() {
  const titles = { overall: "all families but speed" };
  const select = byId("ranked");
  choices(
    select,
    board.rankings.map((ranking, place) => [place, titles[ranking.family] ?? ranking.family]),
    rankingShown,
  );
  select.onchange = () => {
    rankingShown = Number(select.value);
    drawRanking();
  };
  const ranking = board.rankings[rankingShown];
  if (!ranking || ranking.lines.length === 0) {
    replace(
      byId("ranking-body"),
      rankingNote(ranking),
      make(
        "p",
        { class: "note" },
        ranking?.reason || "No explainer is in all tables, so there is no ranking yet.",
      ),
    );
    return;
  }
  const lines = ranking.lines
    .map((line, place) => [place, ...line])
    .filter(([, label]) => wanted(label));
  replace(
    byId("ranking-body"),
    make("p", { class: "small muted" }, rankingTest(ranking)),
    make(
      "div",
      { class: "beside" },
      make("div", {}, rankingTable(ranking, lines)),
      make(
        "div",
        {},
        make("h3", {}, "Critical-difference diagram"),
        make(
          "p",
          { class: "small muted" },
          "A dot is a mean rank, the thin line its 95% interval. A bar on the right joins explainers whose mean ranks differ by less than the critical difference (CD): they are not significantly different (Nemenyi, .05).",
        ),
        differenceDiagram(ranking, lines),
      ),
    ),
    rankingBasis(ranking),
  );
}

function rankingTest(ranking) {
  return ranking.p === null
    ? ranking.reason
    : `Friedman's test over ${rankedTables(ranking).size} tables: p ${ranking.p < 0.001 ? "< .001" : `= ${probability(ranking.p)}`}` +
        `${ranking.cd === null ? "" : `; critical difference ${ranking.cd.toFixed(2)}`}.${ranking.reason ? ` ${ranking.reason}` : ""}`;
}

const rankedTables = (ranking) =>
  new Set(ranking.over.map((row) => row.slice(0, row.lastIndexOf("/"))));

// A ranking over bundled samples alone says nothing of the real tasks.
function rankingNote(ranking) {
  const ids = rankedTables(ranking);
  const real = board.tables.some((table) => ids.has(table.id) && table.source !== "bundled");
  return real ? null : noteOfBundled();
}

// What was ranked, and who could not be.
function rankingBasis(ranking) {
  const out = ranking.leftOut.length
    ? make(
        "details",
        {},
        make("summary", {}, `Not in all tables, and not ranked: ${ranking.leftOut.length}`),
        make("p", { class: "small" }, ranking.leftOut.join(", ")),
      )
    : null;
  return [
    out,
    make(
      "details",
      {},
      make(
        "summary",
        {},
        `Ranked on ${ranking.over.length} metrics of ${rankedTables(ranking).size} tables`,
      ),
      make("p", { class: "small" }, ranking.over.join(", ")),
    ),
  ];
}

function rankingTable(ranking, lines) {
  const letters = groupLetters(ranking);
  return plainTable(
    `Mean ranks, ${ranking.family}, best first`,
    ["explainer", "family", "mean rank", "95% interval", "ties"],
    lines.map(([place, label, rank, low, high]) => [
      make(
        "span",
        { class: place === 0 ? "top-tie" : null },
        make("span", { class: "mean" }, name(label)),
      ),
      familyOf.get(label) ?? "",
      make("b", {}, rank.toFixed(2)),
      low === null ? "–" : `${low.toFixed(2)} to ${high.toFixed(2)}`,
      letters[place] || "–",
    ]),
  );
}

const groupLetters = (ranking) =>
  ranking.lines.map((_, place) =>
    ranking.groups
      .map(([first, last], group) =>
        first <= place && place <= last ? String.fromCharCode(97 + (group % 26)) : "",
      )
      .join(""),
  );
