// What the renderer leaves out: names for its controls, colours that can be read, a margin on phones.
// It keeps each part in a shadow root of its own, so all of them are looked through, as they come.

const sheet = new CSSStyleSheet();
sheet.replaceSync(`
  #api-info { margin-left: 0 !important; }
  .method-fg { color: inherit !important; }
  @media (max-width: 767px) { .main-content-inner--read-mode { padding: 12px 16px !important; } }
`);

const NAMES = { select: "Which example", textarea: "Example of a request body" };

export function mend(root: ShadowRoot) {
  if (root.adoptedStyleSheets.includes(sheet)) return;
  root.adoptedStyleSheets.push(sheet);
  const look = () => {
    for (const [tag, name] of Object.entries(NAMES)) {
      for (const control of root.querySelectorAll(`${tag}:not([aria-label])`)) control.setAttribute("aria-label", name);
    }
    for (const element of root.querySelectorAll("*")) if (element.shadowRoot) mend(element.shadowRoot);
  };
  look();
  new MutationObserver(look).observe(root, { childList: true, subtree: true });
}
