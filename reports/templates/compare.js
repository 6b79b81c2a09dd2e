"use strict";
/* Filters and orders the map, and draws a cell's trials when it is opened. Without this script the map is a table. */
(() => {
  const $ = (id) => document.getElementById(id);
  const map = $("map"), body = map.tBodies[0], form = $("controls"), dialog = $("detail");
  const plain = (text) => text.toLowerCase().replaceAll("×", "x").replace(/\s+/g, " ");
  const numbers = (text) => text.split(" ").filter(Boolean).map(Number);
  const rows = [...body.rows].map((row) => ({
    row, facets: numbers(row.dataset.facets), places: numbers(row.dataset.places),
    words: numbers(row.dataset.words), text: plain(row.textContent),
  }));
  const cellsOf = (row) => [...row.querySelectorAll(".cell")];
  const shownRows = () => [...body.rows].filter((row) => row.dataset.case !== undefined && !row.hidden);

  /* Filter and order. */
  const pressed = () => [...form.querySelectorAll("[aria-pressed=true]")].map((chip) => Number(chip.dataset.word));
  const filter = () => {
    const words = pressed(), terms = plain($("search").value).split(" ").filter(Boolean);
    const wanted = [...form.querySelectorAll("[data-facet]")]
      .filter((select) => select.value !== "")
      .map((select) => [Number(select.dataset.facet), Number(select.value)]);
    let shown = 0;
    for (const each of rows) {
      const fits = wanted.every(([facet, value]) => each.facets[facet] === value)
        && (!words.length || words.some((word) => each.words.includes(word)))
        && terms.every((term) => each.text.includes(term));
      each.row.hidden = !fits;
      shown += fits;
    }
    for (const group of body.querySelectorAll(".group")) {
      let next = group.nextElementSibling;
      while (next && next.hidden) next = next.nextElementSibling;
      group.hidden = !next || next.classList.contains("group");
    }
    $("shown").textContent = shown === rows.length ? `all ${shown} cases` : `${shown} of ${rows.length} cases`;
    rove(map.querySelector("[tabindex='0']:not([hidden] *)") ?? cellsOf(shownRows()[0] ?? body)[0]);
  };
  const order = () => {
    const place = Number($("order").value), grouped = place === Number($("order").dataset.grouped);
    for (const group of body.querySelectorAll(".group")) group.remove();
    map.classList.toggle("grouped", grouped);
    let last = null;
    for (const each of [...rows].sort((a, b) => a.places[place] - b.places[place])) {
      const problem = each.row.querySelector(".problem").textContent;
      if (grouped && problem !== last) body.append(groupRow(problem));
      last = problem;
      body.append(each.row);
    }
    filter();
  };
  const groupRow = (problem) => {
    const row = made("tr", { class: "group" });
    const head = made("th", { scope: "rowgroup", colspan: map.tHead.rows[0].cells.length });
    head.append(made("span", {}, problem));
    row.append(head);
    return row;
  };
  const made = (name, attributes = {}, text = null) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== null) element.textContent = text;
    return element;
  };

  /* What scrolls into view must not come to lie below the head or the first column, which stay. */
  const makeRoom = () => {
    const corner = map.tHead.rows[0].cells[0];
    $("map-box").style.scrollPadding = `${corner.offsetHeight}px 0 0 ${corner.offsetWidth}px`;
  };

  /* One cell is in the tab order; arrow keys move from it. */
  const rove = (cell) => {
    for (const each of map.querySelectorAll("[tabindex='0']")) each.tabIndex = -1;
    if (cell) cell.tabIndex = 0;
  };
  const moved = (cell, down, right) => {
    const shown = shownRows(), row = cell.closest("tr"), cells = cellsOf(row);
    const y = Math.min(shown.length - 1, Math.max(0, shown.indexOf(row) + down));
    const x = Math.min(cells.length - 1, Math.max(0, cells.indexOf(cell) + right));
    return shown.length ? cellsOf(shown[y])[x] : cell;
  };
  const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
    PageUp: [-10, 0], PageDown: [10, 0], Home: [0, -Infinity], End: [0, Infinity] };
  const step = (event, from, go) => {
    const by = STEPS[event.key];
    if (!by || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    go(moved(from, ...by));
  };
  map.addEventListener("keydown", (event) => {
    const cell = event.target.closest(".cell");
    if (!cell) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      open(cell);
    }
    step(event, cell, (next) => { rove(next); next.focus(); });
  });
  body.addEventListener("click", (event) => {
    const row = event.target.closest("tr[data-case]");
    if (!row || String(getSelection())) return;
    const cell = event.target.closest(".cell") ?? (map.classList.contains("single") ? cellsOf(row)[0] : null);
    if (cell) open(cell);
  });

  /* A cell's detail. */
  let data = null, opened = null;
  const open = (cell) => {
    data ??= JSON.parse($("data").textContent);
    opened = cell;
    rove(cell);
    const row = cell.closest("tr"), run = cellsOf(row).indexOf(cell);
    $("detail-title").textContent = row.cells[0].innerText.trim().replace(/\s+/g, " ");
    if (!dialog.open) dialog.showModal();
    fill(data.cases[Number(row.dataset.case)], run);
    dialog.scrollTop = 0;
  };
  dialog.addEventListener("close", () => opened?.focus());
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog || event.target.closest(".close")) dialog.close();
    const [what, by] = event.target.dataset.step?.split(" ") ?? [];
    if (what) open(moved(opened, what === "case" ? Number(by) : 0, what === "run" ? Number(by) : 0));
  });
  dialog.addEventListener("keydown", (event) => {
    if (event.key.startsWith("Arrow")) step(event, opened, open);
  });
  const fill = (found, run) => {
    const box = $("detail-body"), change = found.changes[run];
    box.replaceChildren();
    if (change) {
      const [word, said, remarks] = change;
      const line = made("p", { class: "verdict" });
      line.append(made("strong", {}, data.texts[word]), ` ${said}`);
      box.append(line);
      if (remarks.length) {
        const list = made("ul", { class: "remarks" });
        for (const remark of remarks) list.append(made("li", {}, data.texts[remark]));
        box.append(list);
      }
    } else box.append(made("p", {}, "Neither the base nor this run has the case."));
    const sides = [["base", found.sides[0], data.runs[0]], ["new", found.sides[run + 1], data.runs[run + 1]]];
    strips(box, sides.filter(([, side]) => side?.trials.length).map(([name, side]) => ({ name, ...side })));
    box.append(facts(sides));
  };
  const facts = (sides) => {
    const table = made("table", { class: "facts-table" }), head = table.createTHead().insertRow();
    head.append(made("td"));
    for (const [name, , [label, id, when]] of sides) {
      const cell = made("th", { scope: "col" }, `${name}: ${label}`);
      cell.append(made("span", { class: "note" }, `${when}, ${id}`));
      head.append(cell);
    }
    const values = sides.map(([, side]) => {
      const by = new Map();
      for (const [what, value] of side?.facts ?? []) by.set(what, [...(by.get(what) ?? []), data.texts[value]]);
      return by;
    });
    const content = table.createTBody();
    for (const what of new Set(values.flatMap((by) => [...by.keys()]))) {
      const row = content.insertRow();
      row.append(made("th", { scope: "row" }, data.texts[what]));
      for (const by of values) row.append(made("td", {}, by.get(what)?.join("; ") ?? "–"));
    }
    if (!sides[0][1] || !sides[1][1]) {
      const row = content.insertRow();
      row.append(made("th", { scope: "row" }, "in the run"));
      for (const [, side] of sides) row.append(made("td", {}, side ? "yes" : "no"));
    }
    return table;
  };

  /* The strips: a line a trial. */
  const SVG = "http://www.w3.org/2000/svg", LEFT = 46, RIGHT = 12, GAP = 14, AXIS = 40;
  const drawn = (name, attributes, text = null) => {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== null) element.textContent = text;
    return element;
  };
  const strips = (box, sides) => {
    if (!sides.length) return;
    const figure = made("figure", { class: "strips" });
    box.append(figure);
    const width = Math.max(240, figure.clientWidth), trials = sides.reduce((sum, side) => sum + side.trials.length, 0);
    const line = trials > 16 ? 9 : 15, bottom = GAP * sides.length + line * trials;
    const every = sides.flatMap((side) => [...side.trials.flat(), ...side.centre]).filter((ns) => ns !== null);
    const low = Math.min(...every), high = Math.max(...every), pad = (high - low || low * 0.001) * 0.04;
    const x = (ns) => LEFT + (ns - low + pad) / (high - low + 2 * pad) * (width - LEFT - RIGHT);
    const svg = drawn("svg", { width, height: bottom + AXIS, viewBox: `0 0 ${width} ${bottom + AXIS}`, role: "img",
      "aria-label": "Each trial's samples in both runs; the table below has the figures" });
    axis(svg, low - pad, high + pad, x, width, bottom);
    let y = 0;
    for (const side of sides) {
      y += GAP / 2;
      side_(svg, side, x, y, line);
      y += side.trials.length * line + GAP / 2;
    }
    figure.append(svg, made("figcaption", { class: "note" },
      "A line a trial: thin from 5 to 95 % of its samples, thick from 25 to 75 %, a mark at its median. Behind them the "
      + "case's time with its 95 % interval."));
  };
  const side_ = (svg, { name, centre: [middle, from, to], trials }, x, top, line) => {
    const group = drawn("g", { class: `side ${name}` }), height = trials.length * line;
    if (from !== null) group.append(drawn("rect", { class: "interval", x: x(from), y: top, width: Math.max(0.5, x(to) - x(from)), height }));
    group.append(drawn("path", { class: "centre", d: `M${x(middle)} ${top}v${height}` }));
    group.append(drawn("text", { x: 0, y: top + line / 2 + 4 }, name));
    trials.forEach(([median, q05, q25, q75, q95], place) => {
      const y = top + (place + 0.5) * line;
      group.append(drawn("path", { class: "thin", d: `M${x(q05)} ${y}H${x(q95)}` }));
      group.append(drawn("path", { class: "thick", d: `M${x(q25)} ${y}H${x(q75)}` }));
      group.append(drawn("circle", { cx: x(median), cy: y, r: line > 9 ? 4 : 3 }));
    });
    svg.append(group);
  };
  const axis = (svg, low, high, x, width, bottom) => {
    const rough = (high - low) / Math.max(2, Math.min(6, width / 110)), power = 10 ** Math.floor(Math.log10(rough));
    const sizes = [10, 5, 2, 1].map((each) => each * power), wanted = sizes.findLast((each) => each >= rough) ?? sizes[0];
    /* One tick gives no scale: a finer one where the wanted size has less than two in the range. */
    const size = sizes.find((each) => each <= wanted && Math.floor(high / each) > Math.ceil(low / each)) ?? power;
    const decimals = Math.max(0, -Math.floor(Math.log10(size / 1e3) + 1e-9));
    for (let at = Math.ceil(low / size) * size; at <= high; at += size) {
      svg.append(drawn("path", { class: "grid", d: `M${x(at)} 0v${bottom}` }));
      svg.append(drawn("text", { x: x(at), y: bottom + 16, "text-anchor": "middle" }, (at / 1e3).toFixed(decimals)));
    }
    svg.append(drawn("text", { x: width - RIGHT, y: bottom + 34, "text-anchor": "end" }, "time of a launch in µs"));
  };

  const compact = (wanted) => {
    map.classList.toggle("compact", wanted);
    makeRoom();
  };

  /* Begin. */
  $("no-script").remove();
  form.hidden = $("hint").hidden = false;
  map.setAttribute("role", "grid");
  map.classList.add("live");
  for (const each of rows) for (const cell of cellsOf(each.row)) cell.tabIndex = -1;
  for (const chip of form.querySelectorAll("[data-word]")) {
    chip.addEventListener("click", () => {
      chip.setAttribute("aria-pressed", chip.getAttribute("aria-pressed") !== "true");
      filter();
    });
  }
  form.addEventListener("input", (event) => {
    if (event.target.id === "order") order();
    else if (event.target.id === "compact") compact(event.target.checked);
    else filter();
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  $("show-all").addEventListener("click", () => {
    form.reset();
    for (const chip of form.querySelectorAll("[data-word]")) chip.setAttribute("aria-pressed", "false");
    compact(false);
    order();
  });
  window.addEventListener("resize", makeRoom);
  order();
  makeRoom();
})();
