// @ts-check
/** The API's document in Swagger UI. Requests carry only what was typed under "Authorize", never this browser's cookies. */

/** @typedef {{ React: any }} System */
/** @typedef {Record<string, any>} Props */

/** @type {any} */
const viewer = /** @type {any} */ (window).SwaggerUIBundle;
const dark = matchMedia("(prefers-color-scheme: dark)");
const followScheme = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
followScheme();
dark.addEventListener("change", followScheme);

/** Puts words for screen readers before a part. */
const introduced =
  (/** @type {string} */ tag, /** @type {string} */ words) =>
  (/** @type {any} */ Part, /** @type {System} */ { React }) =>
  (/** @type {Props} */ props) =>
    React.createElement(
      React.Fragment,
      null,
      React.createElement(tag, { className: "vh" }, words),
      React.createElement(Part, props)
    );

/** A button whose text is its name needs no other one. */
const namedByText =
  (/** @type {any} */ Button, /** @type {System} */ { React }) =>
  (/** @type {Props} */ props) =>
    React.createElement(Button, typeof props.children === "string" ? { ...props, "aria-label": undefined } : props);

/** Opens the operation that the address names: `/docs#place_hold`. */
const openNamed = () => {
  const name = decodeURIComponent(location.hash.slice(1));
  const operations = Object.values(shown.specSelectors.specJson().toJS().paths).flatMap(Object.values);
  const group = operations.find((one) => one.operationId === name)?.tags[0];
  if (!group) return;
  shown.layoutActions.show(["operations-tag", group], true);
  shown.layoutActions.show(["operations", group, name], true);
  requestAnimationFrame(() => document.querySelector(`.opblock[id$="-${name}"]`)?.scrollIntoView());
};

const shown = viewer({
  url: "/openapi.json",
  dom_id: "#viewer",
  docExpansion: "none",
  defaultModelsExpandDepth: 0,
  displayOperationId: true,
  displayRequestDuration: true,
  filter: true,
  validatorUrl: null,
  syntaxHighlight: { theme: "tomorrow-night" },
  onComplete: openNamed,
  requestInterceptor: (/** @type {Props} */ request) => Object.assign(request, { credentials: "omit" }),
  plugins: [
    () => ({
      wrapComponents: {
        operations: introduced("h2", "Operations"),
        authorizationPopup: introduced("h2", "Authentication"),
        CloseIcon: introduced("span", "Close"),
        Button: namedByText
      }
    })
  ]
});
addEventListener("hashchange", openNamed);
export {};
