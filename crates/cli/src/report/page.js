"use strict";
(() => {
  const runs = JSON.parse(document.getElementById("ottla-report").textContent).runs;
  // The columns of the charts over time; the histogram has none.
  const columns = [["records"], ["p50", "p99"], null, ["requests"], ["cpu"]];
  const left = 58, right = 22, width = 560;
  const longest = Math.max(0, ...runs.map(run => run.points.seconds.at(-1) || 0));
  const text = value => value == null ? "-" : value >= 1000 ? Math.round(value).toLocaleString("en") : String(+value.toPrecision(3));
  for (const svg of document.querySelectorAll("svg[data-chart]")) {
    const names = columns[svg.dataset.chart], output = svg.closest("figure").querySelector("output");
    if (!names || !longest) continue;
    const line = svg.appendChild(document.createElementNS(svg.namespaceURI, "path"));
    line.setAttribute("class", "cursor");
    svg.addEventListener("pointermove", event => {
      const box = svg.getBoundingClientRect();
      const x = (event.clientX - box.left) / box.width * width;
      const second = Math.min(Math.max((x - left) / (width - left - right), 0), 1) * longest;
      const parts = runs.map(({points}) => {
        let at = points.seconds.findIndex(value => value >= second);
        if (at < 0) return "-";
        return names.map(name => text(points[name][at])).join(" / ");
      });
      line.setAttribute("d", `M${left + second / longest * (width - left - right)} 12V210`);
      output.textContent = `${second.toFixed(1)} s: ${parts.join(", ")}`;
    });
    svg.addEventListener("pointerleave", () => { line.removeAttribute("d"); output.textContent = ""; });
  }
})();
