"use strict";
(() => {
  const all = (s, of = document) => Array.from(of.querySelectorAll(s));
  const shown = e => e.checkVisibility ? e.checkVisibility() : e.getClientRects().length > 0; // not in details that are closed
  const filter = document.getElementById("filter"), hits = document.getElementById("hits"), keys = document.getElementById("keys");
  // The texts that the filter looks through, lower case; made when it is used first.
  let found = null;
  const look = () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    found = found || all("[data-find]").map(e => [e, (e.textContent + " " + (e.querySelector("svg")?.getAttribute("aria-label") || "")).toLowerCase()]);
    let n = 0;
    for (const [e, text] of found) {
      const here = words.every(w => text.includes(w));
      e.classList.toggle("hidden", !here);
      n += here && words.length ? 1 : 0;
    }
    hits.textContent = words.length ? n + (n === 1 ? " row" : " rows") : "";
  };
  filter.addEventListener("input", look);
  document.getElementById("help").addEventListener("click", () => keys.showModal());
  // The event that has the focus is shown in the lanes of its run.
  let at = null;
  const unset = () => all(".over u.on").forEach(u => u.classList.remove("on"));
  const point = e => {
    unset();
    at = e;
    const u = e.closest("[data-section]").querySelector(".over u");
    if (u) { u.style.setProperty("--t", e.dataset.x); u.classList.add("on"); }
  };
  document.addEventListener("focusin", e => { const row = e.target.closest("[data-event]"); if (row) point(row); });
  document.addEventListener("click", e => { const row = e.target.closest("[data-event]"); if (row) row.focus(); });
  const go = e => { if (!e) return; e.focus({preventScroll: true}); e.scrollIntoView({block: "center"}); };
  const events = () => all("[data-event]").filter(shown);
  const step = by => {
    const list = events();
    if (!list.length) return;
    let i = at && shown(at) ? list.indexOf(at) : -1;
    if (i < 0) {
      i = list.findIndex(e => e.classList.contains("broke"));
      go(list[Math.max(i, 0)]);
      return;
    }
    go(list[Math.min(Math.max(i + by, 0), list.length - 1)]);
  };
  const run = by => {
    const list = all("[data-section]").filter(shown);
    const here = document.activeElement.closest("[data-section]");
    const i = here ? list.indexOf(here) + by : 0;
    const next = list[Math.min(Math.max(i, 0), list.length - 1)];
    if (!next) return;
    next.open = true;
    next.querySelector("summary").focus({preventScroll: true});
    next.scrollIntoView({block: "start"});
  };
  const opened = () => {
    const to = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let d = to && to.closest("details"); d; d = d.parentElement.closest("details")) d.open = true;
    if (to) to.scrollIntoView({block: "start"});
  };
  addEventListener("hashchange", opened);
  opened();
  document.addEventListener("keydown", e => {
    if (e.ctrlKey || e.metaKey || e.altKey || keys.open) return;
    const typing = e.target === filter;
    if (e.key === "Escape") {
      if (typing) { filter.value = ""; look(); filter.blur(); }
      unset();
      return;
    }
    if (typing) {
      if (e.key === "Enter") { filter.blur(); at = null; step(0); }
      return;
    }
    const inRow = e.target.closest && e.target.closest("[data-event]");
    const done = {
      "j": () => step(1), "k": () => step(-1), "n": () => run(1), "p": () => run(-1),
      "v": () => go(events().find(x => x.classList.contains("broke"))),
      "/": () => filter.focus(), "?": () => keys.showModal(),
      "ArrowDown": inRow && (() => step(1)), "ArrowUp": inRow && (() => step(-1)),
    }[e.key];
    if (done) { e.preventDefault(); done(); }
  });
})();
