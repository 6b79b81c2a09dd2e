"use strict";
/* Filters, sorts and hands out the table of all figures. Without this script it stands there whole, by problem. */
(() => {
  const $ = (id) => document.getElementById(id);
  const table = $("figures"), form = $("controls"), search = $("search"), output = $("shown");
  const selects = [...form.querySelectorAll("select")], heads = [...table.tHead.rows[0].cells];
  const plain = (text) => text.replaceAll("\u00a0", " ").replaceAll("\u202f", " ").replace(/\s+/g, " ").trim();
  const folded = (text) => plain(text).toLowerCase().replaceAll("×", "x");
  const places = (element) => element.dataset.facets.split(" ").map((each) => each.split(",").map(Number));
  const bodies = [...table.tBodies], titles = heads.map((head) => plain(head.firstChild.textContent));
  const rows = bodies.flatMap((body) => {
    const problem = body.querySelector(".problem").textContent;
    return [...body.rows].slice(1).map((row) => ({
      row, body, problem, facets: [...places(body), ...places(row)], text: folded(`${problem} ${row.textContent}`),
    }));
  });
  const sorted = document.createElement("tbody");
  let order = { column: -1, down: false };

  /* A cell's own text, without the smaller text behind it. */
  const isNote = (node) => node.classList?.contains("note");
  const main = (cell) => plain([...cell.childNodes].filter((node) => !isNote(node)).map((node) => node.textContent).join(""));
  const notes = (cell) => [...cell.querySelectorAll(".note:not(.problem)")].map((note) => plain(note.textContent));
  const isNumber = (column) => heads[column].classList.contains("number");
  /* What stands where a figure would, such as «unsupported», or a dash, comes last in either direction. */
  const keyOf = ({ row }, column) => {
    const cell = row.cells[column];
    if (!isNumber(column)) return plain(cell.textContent);
    const value = cell && cell.colSpan === 1 ? parseFloat(main(cell).replaceAll(" ", "")) : NaN;
    return Number.isNaN(value) ? null : value;
  };
  const inOrder = () => {
    if (order.column < 0) return rows;
    const sign = order.down ? -1 : 1;
    const keyed = rows.map((each) => [keyOf(each, order.column), each]);
    keyed.sort(([a], [b]) => {
      if (a === null || b === null) return (a === null) - (b === null);
      return sign * (typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true }));
    });
    return keyed.map(([, each]) => each);
  };

  const filter = () => {
    const terms = folded(search.value).split(" ").filter(Boolean);
    const wanted = selects.filter((select) => select.value !== "").map((select) => [select.dataset.facet, Number(select.value)]);
    let shown = 0;
    for (const each of rows) {
      const fits = wanted.every(([facet, value]) => each.facets[facet].includes(value))
        && terms.every((term) => each.text.includes(term));
      each.row.hidden = !fits;
      shown += fits;
    }
    for (const body of bodies) body.hidden = !body.querySelector("tr:not(.group):not([hidden])");
    const by = order.column < 0 ? "by problem" : `by ${titles[order.column]}, ${order.down ? "largest" : "smallest"} first`;
    output.textContent = `${shown === rows.length ? `All ${shown}` : `${shown} of ${rows.length}`} rows, ${by}`;
  };
  const arrange = () => {
    const flat = order.column >= 0;
    table.classList.toggle("flat", flat);
    if (flat) {
      table.append(sorted);
      sorted.append(...inOrder().map(({ row }) => row));
    } else {
      for (const { row, body } of rows) body.append(row);
      sorted.remove();
    }
    heads.forEach((head, column) => {
      if (column === order.column) head.setAttribute("aria-sort", order.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    filter();
  };

  /* What is shown is in the address, so that it can be sent to somebody. */
  const SECTION = "#cases";
  const chosenFirst = (select) => select.dataset.chosen ?? "";
  const remember = () => {
    const state = new URLSearchParams();
    if (search.value) state.set("search", search.value);
    for (const select of selects) {
      const value = select.value === "" ? "all" : select.selectedOptions[0].text;
      if (select.value !== chosenFirst(select)) state.set(select.name, value);
    }
    if (order.column >= 0) state.set("sort", `${order.down ? "-" : ""}${titles[order.column]}`);
    history.replaceState(null, "", `${SECTION}${String(state) && "?"}${state}`);
  };
  const recall = () => {
    const [section, query] = location.hash.split("?", 2);
    const state = new URLSearchParams(section === SECTION ? query : "");
    search.value = state.get("search") ?? "";
    for (const select of selects) {
      const wanted = state.get(select.name), found = [...select.options].find((option) => option.text === wanted);
      select.value = wanted === "all" ? "" : found?.value ?? chosenFirst(select);
    }
    const by = state.get("sort") ?? "", down = by.startsWith("-");
    order = { column: titles.indexOf(down ? by.slice(1) : by), down };
    arrange();
    if (section === SECTION && query) document.querySelector(SECTION).scrollIntoView();
  };

  /* Hand out what is shown, in the order shown. */
  const shownRows = () => inOrder().filter(({ row }) => !row.hidden).map(({ row, problem }) => {
    const cells = [...row.cells].flatMap((cell) => [main(cell), ...Array(cell.colSpan - 1).fill("")]);
    return [problem, ...cells, [...row.cells].flatMap(notes).join("; ")];
  });
  const named = () => ["problem", ...heads.map((head, column) => {
    const unit = head.querySelector(".unit")?.textContent;
    return unit ? `${titles[column]} (${plain(unit)})` : titles[column];
  }), "note"];
  const bare = (text, column) => isNumber(column - 1) ? text.replaceAll(" ", "").replace(/^–$/, "") : text;
  const csv = () => {
    /* A name that a spreadsheet would take for a formula is kept from it by an apostrophe. */
    const harmless = (text) => /^[=+\-@]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text;
    const field = (text) => `"${harmless(text).replaceAll('"', '""')}"`;
    const body = shownRows().map((cells) => cells.map((text, at) => field(at && heads[at - 1] ? bare(text, at) : text)));
    return [named().map(field), ...body].map((cells) => `${cells.join(",")}\r\n`).join("");
  };
  const markdown = () => {
    const safe = (text) => text.replace(/[\\`*<>[\]|~&@#!]|(?<!\w)_|_(?!\w)/g, (sign) => `&#${sign.charCodeAt(0)};`);
    const rule = [":--", ...heads.map((_, column) => isNumber(column) ? "--:" : ":--"), ":--"];
    const lines = [named().map(safe), rule, ...shownRows().map((cells) => cells.map(safe))];
    return lines.map((cells) => `| ${cells.join(" | ")} |\n`).join("");
  };
  const say = (text) => { output.textContent = text; };
  $("copy").addEventListener("click", async () => {
    const text = markdown(), count = text.split("\n").length - 3, byHand = $("by-hand");
    try {
      await navigator.clipboard.writeText(text);
      say(`Copied ${count} rows as Markdown`);
    } catch {
      const area = byHand.querySelector("textarea");
      byHand.hidden = false;
      area.value = text;
      area.select();
    }
  });
  $("download").addEventListener("click", ({ target }) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob(["\ufeff", csv()], { type: "text/csv" }));
    link.download = `${target.dataset.name.replace(/[^\w.-]+/g, "_")}-figures.csv`;
    link.click();
    URL.revokeObjectURL(link.href);
    say(`Downloaded ${shownRows().length} rows as CSV`);
  });

  /* Begin. */
  for (const { row, problem } of rows) {
    const note = document.createElement("span");
    note.className = "note problem";
    note.textContent = problem;
    row.cells[0].append(note);
  }
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    /* Once up, once down, then by problem again; figures begin with the largest. */
    button.addEventListener("click", () => {
      const first = isNumber(column), own = order.column === column;
      order = own && order.down !== first ? { column: -1, down: false } : { column, down: own ? !order.down : first };
      arrange();
      remember();
    });
  });
  form.hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", () => { filter(); remember(); });
  $("show-all").addEventListener("click", () => {
    search.value = "";
    for (const select of selects) select.value = "";
    order = { column: -1, down: false };
    arrange();
    remember();
  });
  window.addEventListener("hashchange", () => { if (location.hash.startsWith(SECTION)) recall(); });
  recall();
})();
