// Vega-Lite in the page's own colours, without eval, with its own tooltip.

// Okabe and Ito's colours, which stay apart for colour-blind readers; shapes say the same again.
const HUES = [
  "#0072B2",
  "#E69F00",
  "#009E73",
  "#D55E00",
  "#CC79A7",
  "#56B4E9",
  "#8c8c8c",
  "#9a8700",
];
const DASHES = [
  [1, 0],
  [6, 3],
  [2, 2],
  [8, 3, 2, 3],
  [1, 0],
  [6, 3],
  [2, 2],
  [8, 3, 2, 3],
];
const SHAPES = [
  "circle",
  "square",
  "triangle-up",
  "diamond",
  "cross",
  "triangle-down",
  "triangle-right",
  "triangle-left",
];

const colour = (variable) =>
  getComputedStyle(document.documentElement).getPropertyValue(variable).trim();

function chartConfig() {
  const [ink, muted, line] = ["--ink", "--muted", "--line"].map(colour);
  const words = {
    labelColor: muted,
    titleColor: ink,
    labelFontSize: 12,
    titleFontSize: 12,
    titleFontWeight: 500,
  };
  return {
    background: null,
    font: getComputedStyle(document.body).fontFamily,
    view: { stroke: null },
    axis: {
      ...words,
      gridColor: line,
      domainColor: line,
      tickColor: line,
      labelLimit: 190,
      titlePadding: 8,
    },
    legend: {
      ...words,
      orient: "bottom",
      title: null,
      symbolSize: 90,
      labelLimit: 190,
      columns: innerWidth < 640 ? 2 : 6,
    },
    text: { color: ink, fontSize: 12 },
    rule: { color: ink },
  };
}

let waiting = [];
addEventListener("charts-ready", () => {
  waiting.forEach((draw) => draw());
  waiting = [];
});

// Put a chart with a spoken description and its numbers as a table into a section. The chart is a
// function of the width that there is for it.
function chart(description, spec, numbers) {
  // Vega gives the element it draws into a role and a name of its own.
  const canvas = make("div", { class: "canvas", "aria-hidden": "true" });
  const holder = make("div", { class: "chart", role: "img", "aria-label": description }, canvas);
  const draw = () =>
    holder.isConnected &&
    vegaEmbed(
      canvas,
      { ...spec(canvas.clientWidth), config: chartConfig() },
      {
        ast: true,
        renderer: "svg",
        actions: false,
        defaultStyle: false,
        tooltip: showTip,
      },
    ).then(() => performance.mark("first-chart"));
  requestAnimationFrame(() => (window.vegaEmbed ? draw() : waiting.push(draw)));
  return [
    holder,
    make("details", {}, make("summary", {}, "The chart's numbers as a table"), numbers),
  ];
}

function showTip(_, event, __, value) {
  const tip = byId("tip");
  tip.hidden = value === null || value === undefined || value === "";
  if (tip.hidden) return;
  replace(
    tip,
    String(value)
      .split("\n")
      .map((line) => make("span", {}, line)),
  );
  const left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8);
  const top =
    event.clientY + 18 + tip.offsetHeight > innerHeight
      ? event.clientY - tip.offsetHeight - 10
      : event.clientY + 18;
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${top}px`;
}

// A plain table; rows are lists whose first entry heads the row.
function plainTable(caption, heads, rows) {
  const isText = (cell) => typeof cell === "string" && /^[a-z]+$/.test(cell);
  const kind = (place) => (place === 0 ? null : isText(rows[0]?.[place]) ? "text" : "number");
  return make(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    make(
      "table",
      { class: "data" },
      make("caption", {}, caption),
      make(
        "thead",
        {},
        make(
          "tr",
          {},
          heads.map((head, place) => make("th", { scope: "col", class: kind(place) }, head)),
        ),
      ),
      make(
        "tbody",
        {},
        rows.map(([head, ...cells]) =>
          make(
            "tr",
            {},
            make("th", { scope: "row" }, head),
            cells.map((cell, place) => make("td", { class: kind(place + 1) }, cell)),
          ),
        ),
      ),
    ),
  );
}
