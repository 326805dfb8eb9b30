/** The chart library asks `Intl` for the browser's language while it loads. Some browsers name one that is no language tag (`en-US@posix`), and `Intl` throws. Those get the page's own language instead. */
try {
  new Intl.NumberFormat(navigator.language);
} catch {
  Object.defineProperty(navigator, "language", { value: document.documentElement.lang || "en", configurable: true });
}
