"use strict";
/* Filters the cases, and draws the chart of a case when it is opened. Without this script the table stands as it is. */
(() => {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const config = read("chart-config");
  const spec = read("chart-spec");
  const options = { mode: "vega-lite", renderer: "svg", actions: false, ast: true, defaultStyle: false, config };
  const WINDOWS = [30, 100, 400];
  const LABEL_WIDTH = 6.3; /* px of a letter */
  const MOST_LEVELS = 4;
  const TICK_ROOM = 5; /* px that a tick needs to be told from the next */
  const LINE_ROOM = 25; /* px that a line and its label need at least */
  const OUTSIDE = 0.01; /* of the points, at either end */
  const LEAST_SPAN = 0.02; /* of the scale, as a fraction of its upper end: less is no news */
  const TABLE_ROWS = 12;

  /* What reports/history/data.py packed. */
  const unpack = async (text) => {
    const bytes = Uint8Array.from(atob(text.trim()), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    const content = new Uint8Array(await new Response(stream).arrayBuffer());
    const length = new DataView(content.buffer).getUint32(0, true);
    const header = JSON.parse(new TextDecoder().decode(content.subarray(4, 4 + length)));
    const size = header.cases.length * header.runs.length;
    const planes = [0, 1, 2, 3].map((i) => content.subarray(4 + length + i * size, 4 + length + (i + 1) * size));
    return { ...header, planes };
  };
  const known = new Map();
  const dataOf = (section) => {
    if (!known.has(section)) known.set(section, unpack(section.querySelector("script.data").textContent));
    return known.get(section);
  };

  /* One object a run in which the case is. */
  const pointsOf = (data, place) => {
    const about = data.cases[place];
    const { half: [finest, step], failed, none } = data.quantum;
    const changed = changesOf(data, place);
    const points = [];
    let before = null;
    let stretch = 0;
    data.runs.forEach(([id, when], run) => {
      const at = place * data.runs.length + run;
      const [low, high, half, state] = data.planes.map((plane) => plane[at]);
      if (state === none) return;
      const point = { run, id, when, changed: changed.filter((c) => c.run === run).map((c) => c.text).join("; ") };
      const level = low + 256 * high;
      if (level === 0) {
        stretch += 1;
        points.push({ ...point, reason: about.reasons[run] || "no figure", failed: failed.includes(state) });
        return;
      }
      const us = about.lowest_us * Math.exp((level - 1) * about.height);
      const share = half ? finest * Math.exp(step * (half - 1)) : null;
      const ratio = before === null ? null : us / before - 1;
      before = us;
      points.push({
        ...point, us, share, ratio, heldBack: state, stretch, hollow: state > 0,
        low: us * (1 - (share || 0)), high: us * (1 + (share || 0)),
        time: `${figure(us)}\u00a0µs ${share === null ? "(one trial)" : `±${percent(share)}\u00a0%`}`,
        before: ratio === null ? "–" : `${signed(ratio)}\u00a0%`,
        held: state ? `${state}\u00a0% of samples` : "no sample",
      });
    });
    return points;
  };
  const changesOf = (data, place) => [
    ...data.marks.map(([run, kind, label, text]) => ({ run, kind, label, text, large: kind !== "commit" })),
    ...data.cases[place].kernel.map(([run, text]) => ({ run, kind: "kernel", label: "", text, large: false })),
  ];

  const figure = (us) => (us >= 1000 ? us.toFixed(0) : us.toPrecision(4));
  /* Below 0.1 % until a digit is not 0, as far as wanted. */
  const percent = (share, most = 4) => (share * 100).toFixed(share >= 0.0995 ? 0 : share >= 0.00095 ? 1
    : Math.min(most, Math.max(2, Math.ceil(-Math.log10(200 * share)))));
  const signed = (ratio) => {
    const figure = percent(Math.abs(ratio), 2);
    return Number(figure) ? `${ratio < 0 ? "−" : "+"}${figure}` : figure;
  };

  /* The span that all but the farthest points have, and always the best and the newest. */
  const spanOf = (points, picked) => {
    const sorted = points.map((point) => point.us).sort((a, b) => a - b);
    const cut = Math.floor(sorted.length * OUTSIDE);
    const inside = [...sorted.slice(cut, sorted.length - cut), ...picked.map((point) => point.us)];
    const within = points.filter((point) => point.us >= Math.min(...inside) && point.us <= Math.max(...inside));
    const typical = within.map((point) => point.share || 0).sort((a, b) => a - b)[Math.floor(within.length * 0.9)] || 0;
    const low = Math.min(...inside) * (1 - typical);
    const high = Math.max(...inside) * (1 + typical);
    const room = Math.max((high - low) * 0.08, (LEAST_SPAN * high - (high - low)) / 2);
    return [low - room, high + room];
  };

  /* Labels that would run into each other stand one above the other; what finds no room has its words on hover alone. */
  const labelled = (all, first, last, width) => {
    const crowded = all.filter((change) => change.large).length * LINE_ROOM > width;
    const sized = all.map((change) => ({ ...change, large: change.large && !(crowded && change.kind === "other") }));
    const few = sized.filter((change) => !change.large).length * TICK_ROOM < width;
    const changes = few ? sized : sized.filter((change) => change.large);
    const ends = Array(MOST_LEVELS).fill(-Infinity);
    return changes.map((change) => {
      if (!change.large) return { ...change, level: -1, align: "left" };
      const x = ((change.run - first) / Math.max(last - first, 1)) * width;
      const length = change.label.length * LABEL_WIDTH + 12;
      const align = x + length > width ? "right" : "left";
      const start = align === "left" ? x : x - length;
      const level = ends.findIndex((end) => end <= start);
      if (level >= 0) ends[level] = start + length;
      return { ...change, level, align };
    });
  };

  const draw = async (drawer, data, place, count) => {
    const about = data.cases[place];
    const plot = drawer.querySelector(".plot");
    const last = data.runs.length - 1;
    const first = Math.max(0, data.runs.length - count);
    const inWindow = (each) => each.run >= first;
    const all = pointsOf(data, place).filter(inWindow);
    const points = all.filter((point) => point.us !== undefined);
    const newest = points[points.length - 1];
    const best = points.find((point) => point.run === about.best);
    const picked = [
      best && { ...best, name: "best" },
      newest && { ...newest, name: newest.run === last ? "newest" : "last figure" },
    ].filter(Boolean);
    const [low, high] = points.length ? spanOf(points, picked) : [0, 1];
    for (const point of points) {
      point.outside = point.us > high ? "above" : point.us < low ? "below" : "no";
    }
    const began = about.began !== null && about.began >= first ? [{ run: about.began, name: "began" }] : [];
    const width = plot.clientWidth;
    const changes = changesOf(data, place).filter(inWindow).map((each) => ({ ...each, when: data.runs[each.run][1] }));
    const filled = structuredClone(spec);
    filled.params = Object.entries({
      dates: data.runs.map(([, , day]) => day), first, last, low, high,
      dot: Math.max(5, Math.min(42, (width / (last - first + 1)) * 9)),
    }).map(([name, value]) => ({ name, value }));
    filled.datasets = {
      points, changes: labelled(changes, first, last, width - 60), picked: [...picked, ...began],
      failures: all.filter((point) => point.us === undefined),
    };
    filled.description = plot.getAttribute("aria-label");
    filled.autosize = { type: "fit-x", contains: "padding" };
    await vegaEmbed(plot, filled, options);
    plot.classList.add("drawn");
    fillTable(drawer.querySelector("tbody"), all.slice(-TABLE_ROWS).reverse());
  };
  const fillTable = (body, points) => {
    body.replaceChildren(...points.map((point) => {
      const row = document.createElement("tr");
      const add = (tag, text, settings) => row.append(Object.assign(document.createElement(tag), { textContent: text, ...settings }));
      add("th", point.when, { scope: "row" });
      if (point.us === undefined) add("td", point.reason, { colSpan: 4 });
      else {
        const figures = [figure(point.us), point.share === null ? "–" : percent(point.share),
          point.ratio === null ? "–" : signed(point.ratio), String(point.heldBack)];
        for (const text of figures) add("td", text, { className: "number" });
      }
      add("td", point.changed);
      return row;
    }));
  };

  /* As far back as what the newest shows began, so that it is seen. */
  const windowFor = (about, runs) => {
    const wanted = about.began === null ? WINDOWS[1] : Math.max(WINDOWS[0], (runs - about.began) * 1.5);
    return WINDOWS.find((count) => count >= wanted && count < runs) || runs;
  };
  const open = async (button, section, body, place) => {
    const shown = button.getAttribute("aria-expanded") === "true";
    button.setAttribute("aria-expanded", String(!shown));
    if (shown) { body.querySelector(".drawer-row").remove(); return; }
    const row = document.createElement("tr");
    row.className = "drawer-row";
    row.append(document.createElement("td"));
    row.firstChild.colSpan = 6;
    row.firstChild.append(document.getElementById("drawer").content.cloneNode(true));
    body.append(row);
    const drawer = row.querySelector(".drawer");
    const name = button.textContent.replace(/\s+/g, " ").trim();
    drawer.querySelector(".plot").setAttribute("aria-label", `Times of ${name} by run`);
    try {
      const data = await dataOf(section);
      const runs = data.runs.length;
      drawer.querySelector(".remarks").textContent = data.cases[place].remarks.join(" ");
      const chosen = windowFor(data.cases[place], runs);
      const buttons = [...WINDOWS.filter((count) => count < runs), runs].map((count) => {
        const choice = document.createElement("button");
        choice.type = "button";
        choice.textContent = count === runs ? `all ${runs} runs` : `last ${count}`;
        choice.addEventListener("click", () => choose(count));
        return [count, choice];
      });
      const choose = async (count) => {
        for (const [own, choice] of buttons) choice.setAttribute("aria-pressed", String(own === count));
        await draw(drawer, data, place, count);
      };
      drawer.querySelector(".windows").append(...buttons.map(([, choice]) => choice));
      await choose(chosen);
    } catch (error) {
      drawer.textContent = "This chart could not be drawn.";
      console.error(error);
    }
  };

  const wire = (section) => {
    const table = section.querySelector("table.cases");
    const form = section.querySelector("form.filters");
    const bodies = [...table.tBodies];
    const texts = bodies.map((body) => body.textContent.toLowerCase().replace(/\s+/g, " "));
    const byName = bodies.map((body) => body.querySelector("th").textContent);
    bodies.forEach((body, place) => {
      const words = body.querySelector(".open");
      const button = document.createElement("button");
      button.type = "button";
      button.className = "open";
      button.setAttribute("aria-expanded", "false");
      button.append(...words.childNodes);
      words.replaceWith(button);
      button.addEventListener("click", () => open(button, section, body, place));
    });
    const filter = () => {
      const words = form.querySelector("input").value.toLowerCase().split(/\s+/).filter(Boolean);
      const show = form.querySelector("[data-show]").value;
      const fields = [...form.querySelectorAll("[data-field]")].filter((each) => each.value);
      let count = 0;
      bodies.forEach((body, place) => {
        body.hidden = !(words.every((word) => texts[place].includes(word)) &&
          fields.every((each) => body.dataset[each.dataset.field] === each.value) && (!show || show in body.dataset));
        count += !body.hidden;
      });
      form.querySelector("output").textContent = count === bodies.length ? `${count} cases` : `${count} of ${bodies.length} cases`;
    };
    const order = () => {
      const places = bodies.map((_, place) => place);
      if (form.querySelector("[data-order]").value === "name") {
        places.sort((a, b) => byName[a].localeCompare(byName[b], "en", { numeric: true }));
      }
      table.append(...places.map((place) => bodies[place]));
    };
    form.addEventListener("input", filter);
    form.querySelector("[data-order]").addEventListener("change", order);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.hidden = false;
    filter();
  };
  for (const section of document.querySelectorAll("section[id^='device-']")) wire(section);
})();
