"use strict";
/* Draws every chart from the specification beside it. Without this script the tables below the charts stand open. */
(() => {
  const tables = document.querySelectorAll("details.numbers");
  const content = (id) => JSON.parse(document.getElementById(id).textContent);
  const locale = { decimal: ".", thousands: "\u202f", grouping: [3], currency: ["", ""] };
  const options = { mode: "vega-lite", renderer: "svg", actions: false, ast: true, defaultStyle: false,
    config: content("chart-config"), formatLocale: locale };

  /* Rows that several pictures draw are in the page once, by column; a value that a row lacks is null. */
  const read = new Map();
  const rowsOf = (name) => {
    if (!read.has(name)) {
      const columns = Object.entries(content(name)).map(([key, column]) =>
        [key, Array.isArray(column) ? column : column.at.map((place) => column.of[place])]);
      read.set(name, columns[0][1].map((_, place) =>
        Object.fromEntries(columns.map(([key, values]) => [key, values[place]]).filter(([, value]) => value !== null))));
    }
    return read.get(name);
  };
  const namesIn = (part) => part === null || typeof part !== "object" ? []
    : [...(part.data?.name ? [part.data.name] : []), ...Object.values(part).flatMap(namesIn)];
  const draw = async (plot, chosen = []) => {
    const spec = content(plot.dataset.spec);
    spec.datasets = Object.fromEntries(namesIn(spec).map((name) => [name, name === "chosen" ? chosen : rowsOf(name)]));
    spec.description = plot.getAttribute("aria-label");
    spec.autosize = { type: "fit-x", contains: "padding" };
    const { view } = await vegaEmbed(plot, spec, options);
    view.addEventListener("click", (_, item) => {
      const detail = item?.datum?.case;
      if (detail !== undefined) plot.closest("figure").dispatchEvent(new CustomEvent("chosen", { detail }));
    });
    plot.classList.add("drawn");
    return view;
  };

  /* A picture of one case at a time, with its figures in a table, for whoever cannot point at it. */
  const made = (name, text, attributes = {}) => Object.assign(document.createElement(name), { textContent: text, ...attributes });
  const DIGITS = { minimumSignificantDigits: 5, maximumSignificantDigits: 5 };
  const LEFT_OUT = ["case", "kernel", "problem", "timer", "value"];
  const fill = (table, title, rows) => {
    const names = Object.keys(rows[0]).filter((name) => !LEFT_OUT.includes(name));
    const head = table.createTHead(), body = document.createElement("tbody");
    const className = (name) => name === "trial" ? "" : "number";
    head.replaceChildren();
    head.insertRow().append(...names.map((name) => made("th", name, { scope: "col", className: className(name) })));
    for (const row of rows) {
      const shown = (name) => name.endsWith("µs") ? row[name].toLocaleString("en", DIGITS).replaceAll(",", "\u202f") : row[name];
      const figures = names.map(shown);
      body.insertRow().append(made("th", figures[0], { scope: "row" }), ...figures.slice(1).map((figure) => made("td", figure)));
    }
    for (const old of table.tBodies) old.remove();
    table.append(body);
    table.caption.textContent = title;
  };
  const drawChosen = async (plot) => {
    const figure = plot.closest("figure"), id = plot.dataset.spec, select = document.getElementById(`${id}-case`);
    const names = [...figure.querySelectorAll(".plot:not([data-chosen])")].flatMap((each) => namesIn(content(each.dataset.spec)));
    const cases = new Map();
    for (const row of [...new Set(names)].flatMap(rowsOf)) cases.set(row.case, [...cases.get(row.case) ?? [], row]);
    for (const [number, [row]] of cases) {
      select.append(made("option", `${row.kernel}, ${row.problem}, ${row.timer}`, { value: number }));
    }
    select.value = plot.dataset.chosen;
    const rows = () => cases.get(Number(select.value)), table = document.getElementById(`${id}-table`);
    const view = await draw(plot, rows());
    const show = () => {
      fill(table, select.selectedOptions[0].text, rows());
      view.data("chosen", rows()).run();
    };
    select.addEventListener("change", show);
    figure.addEventListener("chosen", ({ detail }) => { select.value = detail; show(); });
    fill(table, select.selectedOptions[0].text, rows());
  };
  const fail = (plot, error) => {
    plot.textContent = "This chart could not be drawn; its numbers are in the table below.";
    for (const table of plot.closest("figure").querySelectorAll("details.numbers")) table.open = true;
    console.error(error);
  };
  /* At once, before the library is read, so that nothing jumps. */
  document.getElementById("no-script").remove();
  for (const table of tables) table.open = false;
  /* A picture has no width before its box is open. */
  const drawOpen = () => {
    for (const plot of document.querySelectorAll(".plot:not(.begun)")) {
      if (plot.closest("details:not([open])")) continue;
      plot.classList.add("begun");
      (plot.dataset.chosen === undefined ? draw : drawChosen)(plot).catch((error) => fail(plot, error));
    }
  };
  document.addEventListener("DOMContentLoaded", () => {
    drawOpen();
    for (const box of document.querySelectorAll("details")) box.addEventListener("toggle", drawOpen);
  });
  /* On paper nothing can be opened. */
  let closed = [];
  window.addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")];
    for (const each of closed) each.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const each of closed) each.open = false;
  });
})();
