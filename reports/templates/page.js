"use strict";
/* Draws every chart from the specification beside it. Without this script the tables below the charts stand open. */
(() => {
  const tables = document.querySelectorAll("details.numbers");
  const config = JSON.parse(document.getElementById("chart-config").textContent);
  const options = { mode: "vega-lite", renderer: "svg", actions: false, ast: true, defaultStyle: false, config };
  const draw = async (plot) => {
    const spec = JSON.parse(document.getElementById(plot.dataset.spec).textContent);
    spec.description = plot.getAttribute("aria-label");
    spec.autosize = { type: "fit-x", contains: "padding" };
    await vegaEmbed(plot, spec, options);
    plot.classList.add("drawn");
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
      draw(plot).catch((error) => fail(plot, error));
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
