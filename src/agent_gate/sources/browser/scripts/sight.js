// Runs once in the world in which references are kept, and stays there: says what elements are beyond their role and
// name, and what takes clicks without having said so. What it met once it knows again by its number.
(() => {
  if (globalThis.agentGateSight) return;
  const get = (type, name) => Object.getOwnPropertyDescriptor(type.prototype, name).get;
  const formAction = get(HTMLFormElement, "action");
  const formMethod = get(HTMLFormElement, "method");
  const attribute = (element, name) => Element.prototype.getAttribute.call(element, name);
  const up = (node) => node.parentNode || node.host || null;
  const short = (text) => text.replace(/\s+/g, " ").trim().slice(0, 120);
  const SECRET = /(^|\s)(current|new)-password(\s|$)/;
  const HOSTS = /^(ARTICLE|ASIDE|BLOCKQUOTE|DIV|FOOTER|H[1-6]|HEADER|MAIN|NAV|P|SECTION|SPAN)$/;
  const CONTROLS = "a[href],area[href],button,input,label,summary,select,textarea";
  const ACTS = "a[href],button,input:not([type=hidden]),select,textarea,summary,[role=button],[role=link],[role=checkbox],[role=tab],[role=menuitem],[role=switch],[contenteditable=true]";
  const ROLES = { A: "link", BUTTON: "button", SELECT: "combobox", TEXTAREA: "textbox", SUMMARY: "button" };
  const TYPES = { checkbox: "checkbox", radio: "radio", button: "button", submit: "button", reset: "button", image: "button", range: "slider", number: "spinbutton", search: "searchbox" };
  const MOST_HOSTS = 150;

  let byRef = new Map();
  let hosts = [];
  let quiet = [];
  let unnumbered = [];
  const met = new Map();
  const numbers = new WeakMap();
  const lookedInto = new WeakMap();
  const closed = new Set();
  const isKnownRoot = new WeakSet();
  const covers = [];

  function closest(element, selector) {
    for (let at = element; at; at = at.getRootNode().host || null) {
      const found = at.closest(selector);
      if (found) return found;
    }
    return null;
  }

  function submission(form, submitter) {
    const action = (submitter && attribute(submitter, "formaction") !== null && submitter.formAction) || formAction.call(form);
    const method = (submitter && attribute(submitter, "formmethod")) || formMethod.call(form);
    return `${method.toUpperCase()} ${new URL(action, document.baseURI).origin}`;
  }

  function isSecret(element) {
    if (!(element instanceof HTMLInputElement)) return false;
    if (element.type === "password" || SECRET.test(attribute(element, "autocomplete") || "")) element.agentGateSecret = true;
    return !!element.agentGateSecret;
  }

  function details(element, editable) {
    const found = {};
    let target = closest(element, CONTROLS);
    if (target instanceof HTMLLabelElement && target.control) target = target.control;
    if (target) {
      const submits =
        (target instanceof HTMLButtonElement && target.type === "submit") ||
        (target instanceof HTMLInputElement && /^(submit|image)$/.test(target.type));
      const form = target.form instanceof HTMLFormElement ? target.form : null;
      if (form && submits && !target.disabled) found.submits = submission(form, target);
      else if (form) found.form = submission(form, null);
      if (target.matches("a[href],area[href]")) found.href = String(target.href.baseVal ?? target.href);
      if (attribute(target, "download") !== null) found.download = true;
    }
    if (isSecret(element)) found.secret = true;
    if (element instanceof HTMLInputElement) found.type = element.type;
    if (editable && element.isContentEditable && !up(element)?.isContentEditable) found.type = "editable";
    return found;
  }

  // Whether there may be a closed shadow root: it shows something, and has nothing to show of its own.
  function mayHide(element) {
    if (element.localName.includes("-")) return true;
    if (element.firstElementChild || !HOSTS.test(element.tagName)) return false;
    return !(element.textContent || "").trim() && element.clientHeight > 0;
  }

  // What was looked into is looked into again when it was defined since, or has another size.
  function isNew(host) {
    const state = `${host.matches(":defined")} ${host.clientWidth} ${host.clientHeight}`;
    if (lookedInto.get(host) === state) return false;
    lookedInto.set(host, state);
    return true;
  }

  // What takes clicks and is only text for the snapshot: the line that opens details, and text under a hand.
  function isQuiet(element) {
    if (element.localName === "summary") return element instanceof HTMLElement;
    if (element._ariaRef || !element.firstChild || element.firstElementChild || !(element instanceof HTMLElement)) return false;
    const parent = up(element);
    return getComputedStyle(element).cursor === "pointer" && parent instanceof Element && getComputedStyle(parent).cursor !== "pointer";
  }

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
    if (element.checked || attribute(element, "aria-checked") === "true") states.checked = true;
    if (element.disabled) states.disabled = true;
    if (element instanceof HTMLSelectElement) return { states, text: short([...element.selectedOptions].map((one) => one.text).join(", ")) };
    const written = element instanceof HTMLTextAreaElement || (element instanceof HTMLInputElement && !/^(button|submit|reset|image|checkbox|radio|file|password)$/.test(element.type));
    return { states, text: written ? short(element.value) : "" };
  }

  function isShown(element) {
    const box = element.getBoundingClientRect();
    return box.width > 0 && box.height > 0 && element.checkVisibility({ visibilityProperty: true });
  }

  // Frames of one process can be handed each other's elements; each frame speaks for its own.
  function isOurs(node) {
    try {
      return node.ownerDocument === document && node.isConnected;
    } catch {
      return false;
    }
  }

  function known(heard) {
    const found = [];
    for (const number of heard) {
      const element = met.get(number)?.deref();
      if (!element) met.delete(number);
      else if (isOurs(element)) found.push(element);
    }
    return found;
  }

  class Unspoken {
    constructor(elements) {
      this.records = [];
      this.seen = new Set();
      this.kinds = new Map();
      for (const element of elements) {
        const kinds = this.kinds.get(element.parentNode) || this.kinds.set(element.parentNode, {}).get(element.parentNode);
        const kind = this.kindOf(element);
        kinds[kind] = (kinds[kind] || 0) + 1;
      }
    }

    kindOf(element) {
      return `${element.tagName} ${attribute(element, "role")}`;
    }

    isOneOfMany(element) {
      return ((this.kinds.get(element.parentNode) || {})[this.kindOf(element)] || 0) > 2;
    }

    add(element, heard) {
      if (this.seen.has(element) || element === document.body || element === document.documentElement || !isShown(element)) return;
      this.seen.add(element);
      const own = element._ariaRef ? element._ariaRef.ref : "";
      // A listener around whole controls is a delegate, not a control, unless each of several neighbours has one.
      if (!element.matches(ACTS) && element.querySelector(ACTS) && !this.isOneOfMany(element)) {
        if (own ? element.childElementCount > 1 : heard) return;
      }
      let near = up(element);
      while (near && !near._ariaRef) near = up(near);
      const number = numbers.get(element) || 0;
      if (!number) unnumbered.push(element);
      this.records.push({ backend: number, own, near: near ? near._ariaRef.ref : "", role: own ? "" : roleOf(element), name: nameOf(element), ...stateOf(element), ...details(element, false) });
    }

    addInside(root) {
      if (this.seen.has(root)) return;
      this.seen.add(root);
      for (const element of root.querySelectorAll("*")) {
        if (element.matches(ACTS)) this.add(element, false);
        if (element.shadowRoot) this.addInside(element.shadowRoot);
      }
    }
  }

  globalThis.agentGateSight = {
    // What each element with a reference is. Found on the way: what may have a closed root, and what takes clicks quietly.
    describe() {
      const refs = {};
      let first = "";
      [byRef, hosts, quiet, unnumbered] = [new Map(), [], [], []];
      const walk = (root, around) => {
        const editable = around || document.designMode === "on" || !!root.querySelector("[contenteditable]");
        for (const element of root.querySelectorAll("*")) {
          const ref = element._ariaRef && element._ariaRef.ref;
          if (ref) {
            first ||= ref;
            byRef.set(ref, element);
            const found = details(element, editable);
            for (const _ in found) {
              refs[ref] = found;
              break;
            }
          } else if (isSecret(element)) continue;
          if (isQuiet(element)) quiet.push(element);
          if (element.shadowRoot) walk(element.shadowRoot, editable);
          else if (hosts.length < MOST_HOSTS && mayHide(element) && isNew(element)) hosts.push(element);
        }
      };
      walk(document, false);
      return { origin: self.origin, title: document.title, refs, first, hosts: hosts.length, quiet: quiet.length, closed: closed.size };
    },

    // Elements and closed roots by their numbers, which are Chromium's.
    meet(given, ...nodes) {
      nodes.forEach((node, index) => {
        if (!(node instanceof ShadowRoot)) {
          met.set(given[index], new WeakRef(node));
          numbers.set(node, given[index]);
        } else if (!isKnownRoot.has(node)) {
          isKnownRoot.add(node);
          closed.add(new WeakRef(node));
        }
      });
    },

    // What can be said of elements that react to clicks, of what stands in closed roots, and of what takes clicks quietly.
    unspoken(heard) {
      const elements = known(heard).filter((node) => node instanceof Element && node.parentNode);
      const found = new Unspoken(elements);
      for (const element of elements) {
        found.add(element, true);
        const root = element.getRootNode();
        if (root instanceof ShadowRoot && root.mode === "closed") found.addInside(root);
      }
      for (const one of closed) {
        const root = one.deref();
        if (!root) closed.delete(one);
        else if (isOurs(root)) found.addInside(root);
      }
      for (const element of quiet) found.add(element, false);
      return found.records;
    },

    // Lays a cover over elements by their numbers, above everything, for as long as a picture takes.
    cover(given, colour) {
      for (const element of known(given)) {
        const box = element.getBoundingClientRect();
        const over = document.createElement("div");
        over.popover = "manual";
        over.style.cssText = `all:initial;display:block;position:absolute;inset:auto;left:${box.left + scrollX}px;top:${box.top + scrollY}px;width:${box.width}px;height:${box.height}px;background:${colour}`;
        document.documentElement.append(over);
        over.showPopover();
        covers.push(over);
      }
    },

    uncover() {
      for (const over of covers.splice(0)) over.remove();
    },

    hosts: () => hosts,
    unnumbered: () => unnumbered,

    find(ref) {
      const element = byRef.get(ref);
      return element && element.isConnected && element._ariaRef?.ref === ref ? element : null;
    },
  };
})();
