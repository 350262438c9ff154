// Mean probability against the share of tokens erased, one line per explainer.

const MOST_CURVES = 8;
let curveLabels = null;

function drawCurves() {
  const table = tableData();
  replace(byId("curves-facts"), bundledNote());
  const drawn = visible(table).filter((place) => table.entrants[place].curve.length);
  curveLabels ??= firstCurves(table, drawn);
  const chosen = drawn
    .filter((place) => curveLabels.has(table.entrants[place].label))
    .slice(0, MOST_CURVES);
  chips(
    "curve-choice",
    drawn.map((place) => {
      const { label } = table.entrants[place];
      const on = chosen.includes(place);
      return chip(
        label,
        on,
        (now) => {
          if (now) curveLabels.add(label);
          else curveLabels.delete(label);
          drawCurves();
        },
        { disabled: !on && chosen.length >= MOST_CURVES },
      );
    }),
  );
  replace(
    byId("curves-body"),
    drawn.length
      ? curveChart(table, drawn, chosen)
      : make("p", { class: "note" }, "No explainer that is shown has a curve in this table."),
  );
}

// The first four of the table, and what chance does.
function firstCurves(table, drawn) {
  const chance = drawn.find((place) => table.entrants[place].label === "random");
  return new Set(
    [...drawn.slice(0, 4), ...(chance === undefined ? [] : [chance])].map(
      (place) => table.entrants[place].label,
    ),
  );
}

function curveChart(table, drawn, chosen) {
  const points = (places) =>
    places.flatMap((place) =>
      table.entrants[place].curve.map((value, step) => ({
        label: table.entrants[place].label,
        erased: step * 10,
        value,
        tip: `${table.entrants[place].label}\n${step * 10}% erased: probability ${decimal(value)}`,
      })),
    );
  const axes = {
    x: {
      field: "erased",
      type: "quantitative",
      axis: { title: "erased tokens, most important first (%)", values: [0, 20, 40, 60, 80] },
      scale: { domain: [0, 90] },
    },
    y: {
      field: "value",
      type: "quantitative",
      axis: { title: "mean probability of the prediction" },
      scale: { domain: [0, 1] },
    },
    tooltip: { field: "tip" },
  };
  const labels = chosen.map((place) => table.entrants[place].label);
  const scale = (range) => ({ scale: { domain: labels, range: range.slice(0, labels.length) } });
  const identity = (range) => ({
    field: "label",
    type: "nominal",
    sort: null,
    legend: { title: null },
    ...scale(range),
  });
  const spec = {
    width: "container",
    height: innerWidth < 640 ? 280 : 400,
    autosize: { type: "fit-x", contains: "padding" },
    layer: [
      {
        data: { values: points(drawn.filter((place) => !chosen.includes(place))) },
        mark: { type: "line", color: colour("--muted"), opacity: 0.3, strokeWidth: 1.2 },
        encoding: { ...axes, detail: { field: "label" } },
      },
      {
        data: { values: points(chosen) },
        mark: { type: "line", strokeWidth: 2.4 },
        encoding: { ...axes, color: identity(HUES), strokeDash: identity(DASHES) },
      },
      {
        data: { values: points(chosen) },
        mark: { type: "point", filled: true, size: 55, opacity: 1 },
        encoding: { ...axes, color: identity(HUES), shape: identity(SHAPES) },
      },
    ],
  };
  return chart(
    `Line chart: mean probability of the prediction against the share of erased tokens, for ${drawn.length} explainers.`,
    () => spec,
    plainTable(
      "Mean probability with so many percent of the tokens erased",
      ["explainer", ...Array.from({ length: 10 }, (_, step) => `${step * 10}%`)],
      drawn.map((place) => [
        name(table.entrants[place].label),
        ...table.entrants[place].curve.map((value) => decimal(value)),
      ]),
    ),
  );
}
