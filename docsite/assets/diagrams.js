// Draws the diagrams of a page. Mermaid is loaded from this site, and only where there is something to draw.
const drawings = document.querySelectorAll("div.diagram");
const base = document.currentScript.src.replace(/[^/]*$/, "");

function draw() {
  const dark = document.body.dataset.mdColorScheme === "slate";
  mermaid.initialize({ startOnLoad: false, theme: dark ? "dark" : "neutral" });
  for (const one of drawings) {
    one.dataset.source ??= one.textContent;
    one.textContent = one.dataset.source;
    delete one.dataset.processed;
  }
  mermaid.run({ nodes: drawings });
}

if (drawings.length) {
  const script = document.createElement("script");
  script.src = `${base}mermaid.min.js`;
  script.onload = () => {
    draw();
    new MutationObserver(draw).observe(document.body, { attributeFilter: ["data-md-color-scheme"] });
  };
  document.head.append(script);
}
