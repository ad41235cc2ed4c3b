// Called in the world in which references are kept, with elements that react to clicks and with closed shadow roots:
// what can be said of them, of what stands inside those roots, and of what `describe.js` found to take clicks quietly.
(...given) => {
  const attribute = (element, name) => Element.prototype.getAttribute.call(element, name);
  const up = (node) => node.parentNode || node.host || null;
  const ACTS = "a[href],button,input:not([type=hidden]),select,textarea,summary,[role=button],[role=link],[role=checkbox],[role=tab],[role=menuitem],[role=switch],[contenteditable=true]";
  const ROLES = { A: "link", BUTTON: "button", SELECT: "combobox", TEXTAREA: "textbox", SUMMARY: "button" };
  const TYPES = { checkbox: "checkbox", radio: "radio", button: "button", submit: "button", reset: "button", image: "button", range: "slider", number: "spinbutton", search: "searchbox" };
  const short = (text) => text.replace(/\s+/g, " ").trim().slice(0, 120);

  function roleOf(element) {
    const given = attribute(element, "role");
    if (given) return given.split(" ")[0];
    if (element instanceof HTMLInputElement) return TYPES[element.type] || "textbox";
    return ROLES[element.tagName] || "";
  }

  function nameOf(element) {
    const labelled = element.labels && element.labels.length ? element.labels[0].textContent : "";
    const button = element instanceof HTMLInputElement && /^(button|submit|reset)$/.test(element.type) ? element.value : "";
    const inner = element instanceof HTMLInputElement || element instanceof HTMLSelectElement ? "" : element.innerText || element.textContent;
    const candidates = [attribute(element, "aria-label"), labelled, button, inner, attribute(element, "alt"), attribute(element, "title"), attribute(element, "placeholder")];
    return short(candidates.find((one) => one && one.trim()) || "");
  }

  function stateOf(element) {
    const states = {};
    if (element.checked) states.checked = true;
    if (element.disabled) states.disabled = true;
    const pressed = attribute(element, "aria-checked");
    if (pressed === "true") states.checked = true;
    if (element instanceof HTMLSelectElement) return { states, text: short([...element.selectedOptions].map((one) => one.text).join(", ")) };
    const written = element instanceof HTMLTextAreaElement || (element instanceof HTMLInputElement && !/^(button|submit|reset|image|checkbox|radio|file|password)$/.test(element.type));
    return { states, text: written ? short(element.value) : "" };
  }

  function detailsOf(element) {
    const found = {};
    const submits = (element instanceof HTMLButtonElement && element.type === "submit") || (element instanceof HTMLInputElement && /^(submit|image)$/.test(element.type));
    const form = element.form instanceof HTMLFormElement ? element.form : null;
    if (form) {
      const get = (name) => Object.getOwnPropertyDescriptor(HTMLFormElement.prototype, name).get.call(form);
      const where = `${get("method").toUpperCase()} ${new URL(get("action"), document.baseURI).origin}`;
      if (submits) found.submits = where;
      else found.form = where;
    }
    if (element instanceof HTMLAnchorElement && element.href) found.href = element.href;
    if (element instanceof HTMLInputElement) {
      found.type = element.type;
      if (element.type === "password") element.agentGateSecret = true;
      if (element.agentGateSecret) found.secret = true;
    }
    return found;
  }

  function isShown(element) {
    const box = element.getBoundingClientRect();
    return box.width > 0 && box.height > 0 && element.checkVisibility({ visibilityProperty: true });
  }

  // Frames of one process can be handed each other's elements; each frame speaks for its own.
  function isOurs(node) {
    try {
      return node.ownerDocument === document;
    } catch {
      return false;
    }
  }

  const heard = new Map();
  const kindOf = (element) => `${element.tagName} ${attribute(element, "role")}`;
  for (const node of given) {
    if (!isOurs(node) || !(node instanceof Element) || !node.parentNode) continue;
    const kinds = heard.get(node.parentNode) || heard.set(node.parentNode, {}).get(node.parentNode);
    kinds[kindOf(node)] = (kinds[kindOf(node)] || 0) + 1;
  }
  const isOneOfMany = (element) => ((heard.get(element.parentNode) || {})[kindOf(element)] || 0) > 2;

  const records = [];
  const elements = [];
  const seen = new Set();

  function add(element, source) {
    if (seen.has(element) || element === document.body || element === document.documentElement || !isShown(element)) return;
    seen.add(element);
    const own = element._ariaRef ? element._ariaRef.ref : "";
    let near = up(element);
    while (near && !near._ariaRef) near = up(near);
    const inner = element.querySelector ? element.querySelector(ACTS) : null;
    // A listener around whole controls is a delegate, not a control, unless each of several neighbours has one.
    if (inner && !element.matches(ACTS) && !isOneOfMany(element)) {
      if (own ? element.childElementCount > 1 : source >= 0) return;
    }
    elements.push(element);
    records.push({ source, own, near: near ? near._ariaRef.ref : "", role: own ? "" : roleOf(element), name: nameOf(element), ...stateOf(element), ...detailsOf(element) });
  }

  function addInside(root) {
    for (const element of root.querySelectorAll("*")) {
      if (element.matches(ACTS)) add(element, -1);
      if (element.shadowRoot) addInside(element.shadowRoot);
    }
  }

  given.forEach((node, index) => {
    if (!isOurs(node)) return;
    if (node instanceof ShadowRoot) addInside(node);
    else if (node instanceof Element) {
      add(node, index);
      const root = node.getRootNode();
      if (root instanceof ShadowRoot && root.mode === "closed" && !seen.has(root)) {
        seen.add(root);
        addInside(root);
      }
    }
  });
  for (const element of globalThis.agentGateQuiet || []) add(element, -1);
  return { records, elements };
}
