// A line of the results: who it is, its ranks, and each mean with its interval, ties and skill.

function rowHead(entrant) {
  const seeds = entrant.seeds > 1 ? `mean over ${entrant.seeds} seeds` : "";
  const about = [
    entrant.from,
    ...entrant.settings,
    seeds,
    entrant.submission ? `submitted: ${entrant.submission}` : "",
  ];
  return make(
    "th",
    { scope: "row", title: about.filter(Boolean).join("; ") },
    name(entrant.label),
    linkSign("results", entrant.label),
    make("span", { class: "family-tag" }, entrant.family),
  );
}

// A place in the table, and the ranks by aspects that it is made of.
function rankCells(entrant, aspects) {
  if (entrant.place === null) return [make("td"), ...aspects.map(() => make("td"))];
  return [
    make("td", { class: "place-cell" }, short(entrant.place)),
    ...aspects.map((aspect) => make("td", { class: "muted" }, short(entrant.aspects[aspect]))),
  ];
}

function resultCell(column, place, first) {
  const cell = column.cells[place];
  const edge = first ? "first" : "";
  if (!cell || cell[0] === null) {
    return make(
      "td",
      {
        class: `muted ${edge}`,
        title: cell ? `no value; ${cell[4]} examples skipped` : "not measured",
      },
      "–",
    );
  }
  const [mean, low, high, n, skipped, letters, rank, skill] = cell;
  const speed = column.family === "speed";
  const value = speed ? amount(column.metric, mean) : decimal(mean);
  const interval = low === null ? "" : `95% interval ${short(low)} to ${short(high)}; `;
  const half =
    low === null || results.skill
      ? null
      : make(
          "span",
          { class: "half" },
          `±${speed ? short((high - low) / 2) : decimal((high - low) / 2)}`,
        );
  const told = skill === null ? "" : `; skill ${decimal(skill, 2)}`;
  const made = make(
    "td",
    {
      class: `cell ${edge} ${rank ? "top-tie" : ""}`,
      title: `${column.title} ${short(mean)}; ${interval}n = ${n}${skipped ? `, ${skipped} skipped` : ""}${told}${rank === 2 ? "; the best" : rank ? "; not significantly worse than the best" : ""}`,
    },
    make("span", { class: "mean" }, results.skill ? decimal(skill, 2) : value),
    make(
      "span",
      { class: "beneath" },
      half,
      letters && !speed ? [" ", make("span", { class: "letters" }, letters)] : null,
      skipped && !speed ? [" ", make("span", {}, `${skipped} skipped`)] : null,
    ),
  );
  made.style.setProperty("--fill", `${share(column, mean)}%`);
  return made;
}

// What the examples of a column can tell apart.
function powerCell(column, first) {
  const edge = first ? "first" : "";
  if (!column.power) return make("td", { class: edge });
  const [detectable, separated] = column.power;
  const share = `${Math.round(100 * separated)}%`;
  return make(
    "td",
    { class: edge, title: `${share} of the pairs of explainers above the line differ by more` },
    short(detectable),
    make("span", { class: "pairs" }, `${share} of pairs`),
  );
}

// Where a mean lies between the column's worst (0) and best (100).
function share(column, mean) {
  if (!column.better) return 0;
  if (!column.range) {
    const means = column.cells.map((cell) => cell?.[0] ?? null).filter((value) => value !== null);
    const place = column.family === "speed" ? (value) => Math.log(value + 1e-4) : (value) => value;
    column.range = { place, low: place(Math.min(...means)), high: place(Math.max(...means)) };
  }
  const { place, low, high } = column.range;
  if (high === low) return 0;
  const at = (place(mean) - low) / (high - low);
  return Math.round(100 * (column.better > 0 ? at : 1 - at));
}
