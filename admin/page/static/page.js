// The script of the page. It fetches screens, which are HTML rendered and escaped by the server, and sends confirmed changes. The token stays in this tab and
// is sent to the origin of the page only.
"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const screen = $("screen"), question = $("question"), tokenBox = $("token"), state = $("state");
  const every = 10000, silence = 12000; // ms: refresh interval of screens without a stream; after which a stream counts as lost
  let frozen = false, utc = false, name = "", query = "", looking = null, stream = null, heard = 0, skew = 0, timer = 0, lostAt = null, retry = 1000;

  // --- requests ---

  const token = () => { try { return sessionStorage.getItem("hooklock-token") || ""; } catch { return ""; } };
  const keepToken = (text) => {
    try { if (text) sessionStorage.setItem("hooklock-token", text); else sessionStorage.removeItem("hooklock-token"); } catch { /* no storage: the token is asked for again */ }
    $("sign-out").hidden = !token();
  };
  const ask = (path, options = {}) => {
    const headers = new Headers(options.headers);
    if (token()) headers.set("Authorization", "Bearer " + token());
    return fetch(path, { ...options, headers, credentials: "omit", cache: "no-store", redirect: "error", referrerPolicy: "no-referrer" });
  };
  const needToken = (why, then) => {
    $("token-why").textContent = why;
    $("token-text").value = "";
    tokenBox.then = then;
    if (!tokenBox.open) tokenBox.showModal();
  };

  // --- time ---

  const date = new Intl.DateTimeFormat([], { timeZoneName: "short" }), pad = (n, size = 2) => String(n).padStart(size, "0");
  const zone = (d) => utc ? "UTC" : date.formatToParts(d).find((p) => p.type === "timeZoneName")?.value ?? "local";
  const parts = (d) => utc ? [d.getUTCFullYear(), d.getUTCMonth(), d.getUTCDate(), d.getUTCHours(), d.getUTCMinutes(), d.getUTCSeconds()]
    : [d.getFullYear(), d.getMonth(), d.getDate(), d.getHours(), d.getMinutes(), d.getSeconds()];
  const time = (d) => { const p = parts(d); return pad(p[3]) + ":" + pad(p[4]) + ":" + pad(p[5]); };
  const day = (d) => { const p = parts(d); return p[0] + "-" + pad(p[1] + 1) + "-" + pad(p[2]); };
  const clock = (d) => day(d) === day(new Date(Date.now() + skew)) ? time(d) : day(d) + " " + time(d);
  const span = (seconds) => {
    const s = Math.max(0, Math.floor(seconds));
    if (s < 60) return s + " s";
    if (s < 3600) return Math.floor(s / 60) + " min" + (s % 60 ? " " + s % 60 + " s" : "");
    if (s < 172800) return Math.floor(s / 3600) + " h " + Math.floor(s % 3600 / 60) + " min";
    return Math.floor(s / 86400) + " days";
  };
  const tell = (root) => {
    const now = Date.now() + skew;
    for (const t of root.querySelectorAll("time[datetime]")) {
      const at = new Date(t.dateTime), way = t.dataset.way;
      let text = clock(at);
      if (way === "ago") text = span((now - at) / 1000) + " ago";
      if (way === "for") text = span((now - at) / 1000);
      if (way === "in") text = at > now ? "in " + span((at - now) / 1000) : "due";
      if (t.textContent !== text) t.textContent = text;
      if (way !== "at") t.title = day(at) + " " + time(at) + " " + zone(at);
    }
    for (const t of root.querySelectorAll("text[data-at]")) t.textContent = clock(new Date(t.dataset.at));
    for (const p of root.querySelectorAll("progress[data-from]")) {
      const from = new Date(p.dataset.from), to = new Date(p.dataset.to);
      p.value = Math.max(0, Math.min(100, 100 * (now - from) / Math.max(1, to - from)));
    }
  };
  setInterval(() => { if (!frozen) tell(screen); }, 1000);

  // --- the status line ---

  const say = (text, bad = false) => {
    if ($("state-text").textContent !== text) $("state-text").textContent = text;
    state.classList.toggle("bad", bad);
  };
  let shownAt = null; // the time of the data on the screen
  const fresh = (at, note = "") => {
    lostAt = null;
    skew = new Date(at) - Date.now();
    shownAt = new Date(at);
    say((frozen ? "Frozen · " : "Live · ") + time(shownAt) + " " + zone(shownAt) + note);
  };
  const lost = (why) => {
    lostAt ??= new Date();
    say("No answer from Hooklock since " + time(lostAt) + " (" + why + "). Below is older data.", true);
  };

  // --- screens ---

  const html = (text) => {
    const t = document.createElement("template");
    t.innerHTML = text; // rendered by the server's templates; the policy of the page runs no script in it
    return t.content;
  };
  const words = (text) => html(text).querySelector(".trouble")?.textContent ?? html(text).textContent.trim(); // the text of an error
  const busy = () => question.open || tokenBox.open || $("keys").open;
  // Nothing may move under a pointer, a finger or the keyboard focus.
  let over = false, touching = false;
  screen.addEventListener("pointerover", (e) => { over = e.pointerType === "mouse"; });
  screen.addEventListener("pointerleave", () => { over = false; settle(); });
  screen.addEventListener("pointerdown", () => { touching = true; });
  addEventListener("pointerup", () => { touching = false; });
  addEventListener("pointercancel", () => { touching = false; });
  screen.addEventListener("focusout", () => setTimeout(settle, 0));
  const picked = () => [...screen.querySelectorAll("input[data-can]:checked")];
  const still = () => frozen || picked().length > 0 || over || touching || busy() || screen.contains(document.activeElement) || String(getSelection()) !== "";

  const place = () => {
    const hash = location.hash.slice(1) || "now";
    const cut = hash.indexOf("?");
    return cut < 0 ? [hash, ""] : [hash.slice(0, cut), hash.slice(cut + 1)];
  };
  const go = async (quiet = false, force = false) => {
    clearTimeout(timer);
    const [to, q] = place();
    if (!quiet) {
      stop();
      looking?.abort();
      [name, query] = [to, q];
      if (name !== "find") $("quick-text").value = "";
      for (const a of document.querySelectorAll("nav a")) {
        if (a.dataset.screen === name) a.setAttribute("aria-current", "page"); else a.removeAttribute("aria-current");
      }
    }
    const mine = looking = new AbortController();
    try {
      const answer = await ask("page/" + encodeURIComponent(to) + (q ? "?" + q : ""), { signal: mine.signal });
      const text = await answer.text();
      if (mine.signal.aborted) return;
      if (answer.status === 401 || answer.status === 429 && token()) {
        needToken(words(text), () => go());
        say("Sign in to see this.", true);
        return;
      }
      if (quiet && !force && still()) {
        pending = true;
        hint();
        if (lostAt) { lostAt = null; say("Hooklock answers again. Below is older data."); }
      } else show(text, quiet, answer.ok);
      retry = 1000;
    } catch (e) {
      if (mine.signal.aborted) return;
      lost(e.message);
      timer = setTimeout(() => go(screen.childElementCount > 0), retry);
      retry = Math.min(retry * 2, 10000);
      return;
    }
    if (name === "now" && !frozen) follow();
    else if (!frozen) timer = setTimeout(() => go(true), name === "jobs" ? 2000 : every);
  };
  let title = "", attention = "0";
  const entitle = () => { document.title = (attention === "0" ? "" : "(" + attention + ") ") + title + " · Hooklock"; };
  // The bar above each screen, and what needs attention.
  const putBar = (lines) => {
    if (lines && !$("bar").contains(document.activeElement) && $("bar").textContent !== lines.textContent) $("bar").replaceChildren(lines);
  };
  const lookAtBar = async () => {
    if (document.hidden || frozen) return;
    try {
      const answer = await ask("page/bar");
      if (!answer.ok) return;
      const next = html(await answer.text()), root = next.firstElementChild;
      attention = root.dataset.attention;
      $("attention").textContent = attention;
      $("attention").hidden = attention === "0";
      putBar(root.querySelector("[data-lines]"));
      entitle();
    } catch { /* the screen says that there is no answer */ }
  };
  setInterval(lookAtBar, every);
  let pending = false; // a screen was fetched again and waits
  const show = (text, quiet, ok) => {
    pending = false;
    const next = html(text), root = next.querySelector(".screen");
    const open = quiet ? null : next.querySelector("[data-open]");
    if (open) { location.replace(open.dataset.open); return; }
    if (root) {
      title = root.dataset.title;
      entitle();
      $("title").textContent = root.dataset.title;
      fresh(root.dataset.at);
    } else if (!ok) {
      title = "Not available";
      entitle();
      $("title").textContent = title;
      say("This screen cannot be shown.", true);
    }
    const lines = next.querySelector("[data-lines]");
    lines?.remove();
    putBar(lines);
    tell(next);
    if (quiet) carry(screen, () => screen.replaceChildren(next)); else screen.replaceChildren(next);
    waiting.clear();
    late.clear();
    hint();
    if (!quiet) { $("main").focus({ preventScroll: true }); returnToRow(); }
  };
  const edited = (f) => f.options ? f.selectedIndex !== Math.max(0, [...f.options].findIndex((o) => o.defaultSelected)) : f.value !== f.defaultValue;
  // What a person has unfolded, typed and not sent, or scrolled aside in old is so in what put puts in its place.
  const hands = [
    ["details", (d) => d.querySelector("summary").textContent, (d) => d.open, (d, open) => { d.open = open; }],
    ["form input[name], form select[name]", (f) => f.name, (f) => edited(f) ? f.value : null, (f, value) => { if (value !== null) f.value = value; }],
    [".scroll", (e) => e.getAttribute("aria-label"), (e) => e.scrollLeft, (e, left) => { e.scrollLeft = left; }],
  ];
  const carry = (old, put) => {
    const each = (root, [selector, name], use) => { for (const e of root.querySelectorAll(selector)) use(e.closest("section")?.id + " " + name(e), e); };
    const kept = hands.map((hand) => { const all = new Map(); each(old, hand, (name, e) => all.set(name, hand[2](e))); return all; });
    put();
    hands.forEach((hand, n) => each(screen, hand, (name, e) => { if (kept[n].has(name)) hand[3](e, kept[n].get(name)); }));
  };
  // A link in a row leaves a note in the history of the tab, by which Back returns to the row. Only a keyboard gets the focus there: under it nothing moves.
  screen.addEventListener("click", (e) => {
    const a = e.target.closest("tbody a[href^='#']");
    if (a) history.replaceState({ row: a.getAttribute("href"), keys: e.detail === 0 }, "");
  });
  const returnToRow = () => {
    const from = history.state?.row, a = from && screen.querySelector(`tbody a[href="${CSS.escape(from)}"]`);
    if (!a) { scrollTo(0, 0); return; }
    a.closest("tr").classList.add("left");
    a.scrollIntoView({ block: "center" });
    if (history.state.keys) a.focus({ preventScroll: true });
  };

  // --- the stream ---

  const waiting = new Map(); // rows to add or remove once nothing is pointed at: key -> HTML, or null
  let order = null;
  const stop = () => { stream?.abort(); stream = null; };
  const follow = async () => {
    stop();
    const mine = stream = new AbortController();
    heard = Date.now();
    const watch = setInterval(() => {
      if (Date.now() - heard > silence && !mine.signal.aborted) { lost("no data"); mine.abort(); again(); }
    }, 1000);
    const again = () => { if (stream === mine && !frozen) timer = setTimeout(() => { if (stream === mine) follow(); }, retry); retry = Math.min(retry * 2, 10000); };
    try {
      const answer = await ask("page/live" + (query ? "?" + query : ""), { signal: mine.signal });
      if (answer.status === 401) { needToken(words(await answer.text()), () => go()); return; }
      if (!answer.ok) { say(words(await answer.text()), true); again(); return; }
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        heard = Date.now();
        retry = 1000;
        text += value;
        for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) event(text.slice(0, end));
      }
      if (!mine.signal.aborted) { lost("the stream has ended"); again(); }
    } catch (e) {
      if (!mine.signal.aborted) { lost(e.message); again(); }
    } finally {
      clearInterval(watch);
    }
  };
  const event = (text) => {
    const kind = /^event: (.*)$/m.exec(text)?.[1], data = JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? "null");
    if (kind === "problem") {
      stop();
      if (data.status === 401) needToken(data.detail, () => go()); else { say(data.detail, true); timer = setTimeout(() => go(true), 5000); }
      return;
    }
    if (kind !== "change" || name !== "now") return;
    for (const [id, part] of new Map([...late, ...Object.entries(data.sections ?? {})])) section(id, part);
    const body = screen.querySelector("table[data-live] tbody");
    if (!body) return;
    if (data.trouble) {
      trouble.since ??= new Date();
      say(data.trouble + " Since " + time(trouble.since) + "; the locks below are older.", true);
      return;
    }
    trouble.since = null;
    fresh(data.at);
    for (const [key, row] of Object.entries(data.rows ?? {})) waiting.set(key, row);
    for (const key of data.gone ?? []) waiting.set(key, null);
    if (data.sequence) order = data.sequence;
    if (data.count !== undefined) { const c = screen.querySelector("[data-count]"); if (c && c.textContent !== String(data.count)) c.textContent = data.count; }
    settle();
  };
  const trouble = { since: null };
  // A section without the focus is replaced. Under the pointer its text may change, but not the number of its lines; a text that is being selected, or a
  // button that is pressed, stays as it is. What cannot be replaced now waits: the stream sends a change once.
  const late = new Map();
  const inHand = (e) => touching || (String(getSelection()) !== "" && getSelection().containsNode(e, true));
  const section = (id, part) => {
    const old = screen.querySelector(`[data-section="${CSS.escape(id)}"]`);
    if (!old) return;
    late.set(id, part);
    if (old.contains(document.activeElement) || busy() || inHand(old)) return;
    const next = html(part);
    tell(next);
    const here = next.firstElementChild;
    if (still() && here.querySelectorAll("dl div, tr").length !== old.querySelectorAll("dl div, tr").length) return;
    late.delete(id);
    carry(old, () => old.replaceWith(next));
  };
  const rowsOf = (body) => new Map([...body.rows].map((r) => [r.dataset.row, r]));
  const settle = () => {
    const body = screen.querySelector("table[data-live] tbody");
    if (pending && !still()) { pending = false; go(true); return; }
    if (!body || (waiting.size === 0 && !order)) { hint(); return; }
    const calm = !still();
    if (frozen) { hint(); return; }
    const rows = rowsOf(body);
    const texts = [...waiting].filter(([key, text]) => text !== null && (rows.has(key) || calm)).map(([, text]) => text);
    const made = texts.length ? html("<table><tbody>" + texts.join("") + "</tbody></table>") : null;
    if (made) tell(made);
    for (const next of made ? [...made.querySelectorAll("tr")] : []) {
      const key = next.dataset.row, old = rows.get(key);
      if (old && (old.contains(document.activeElement) || inHand(old))) continue;
      if (old) old.replaceWith(next); else { next.classList.add("new"); body.append(next); }
      rows.set(key, next);
      waiting.delete(key);
    }
    for (const [key, text] of [...waiting]) {
      if (text !== null) continue;
      if (calm) { rows.get(key)?.remove(); rows.delete(key); waiting.delete(key); } else rows.get(key)?.classList.add("gone");
    }
    if (calm && order) {
      let before = null;
      for (const key of order) {
        const r = rows.get(key);
        if (!r) continue;
        const at = before ? before.nextElementSibling : body.firstElementChild;
        if (at !== r) body.insertBefore(r, at);
        before = r;
      }
      order = null;
    }
    if (calm) {
      const empty = screen.querySelector("#locks [data-empty]");
      if (empty) empty.hidden = body.rows.length > 0;
    }
    hint();
  };
  const hint = () => {
    const body = screen.querySelector("table[data-live] tbody");
    let come = 0, gone = 0;
    const rows = body && waiting.size ? rowsOf(body) : null;
    if (rows) for (const [key, text] of waiting) { if (text === null) gone++; else if (!rows.has(key)) come++; }
    const rest = [];
    if (come) rest.push(come + " new");
    if (gone) rest.push(gone + " gone");
    let said = rest.length ? rest.join(", ") + (frozen ? "; frozen" : ": move the pointer away to show them") : "";
    if (!said && pending) said = frozen ? "Newer data, frozen" : "Newer data: move the pointer away to show it";
    if ($("waiting").textContent !== said) $("waiting").textContent = said;
  };

  // --- actions ---

  const freeze = (on) => {
    if (frozen === on) return;
    frozen = on;
    const b = $("freeze");
    b.setAttribute("aria-pressed", String(on));
    b.firstChild.textContent = on ? "Unfreeze " : "Freeze ";
    clearTimeout(timer);
    if (shownAt) fresh(shownAt); // newer data may have to wait until the pointer has left the screen
    if (on) stop(); else go(true);
  };
  const inZone = (on) => {
    utc = on;
    $("zone").firstChild.textContent = utc ? "Local time" : "UTC";
    tell(document);
    if (shownAt && !state.classList.contains("bad")) fresh(shownAt);
  };
  $("freeze").addEventListener("click", () => freeze(!frozen));
  $("refresh").addEventListener("click", () => { go(true, true); lookAtBar(); });
  $("zone").addEventListener("click", () => inZone(!utc));
  $("show-keys").addEventListener("click", () => $("keys").showModal());
  $("sign-out").addEventListener("click", () => { keepToken(""); go(); });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) { stop(); clearTimeout(timer); } else if (!frozen) { go(true); lookAtBar(); }
  });
  addEventListener("hashchange", () => { if (question.open) question.close(); if ($("keys").open) $("keys").close(); go(); });
  document.querySelector("[data-skip]").addEventListener("click", (e) => { e.preventDefault(); $("main").focus(); });
  addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || busy() || /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName)) return;
    const screenKey = document.querySelector(`nav a[data-key="${CSS.escape(e.key)}"]`);
    if (screenKey) location.hash = screenKey.getAttribute("href");
    else if (e.key === "/") $("quick-text").focus();
    else if (e.key === "f") freeze(!frozen);
    else if (e.key === "u") inZone(!utc);
    else if (e.key === "?") $("keys").showModal();
    else if (e.key === "j" || e.key === "k") step(e.key === "j" ? 1 : -1);
    else if (e.key === "r") go(true, true);
    else return;
    e.preventDefault();
  });
  // step moves the focus to the link of the next or previous row.
  const step = (by) => {
    const links = [...screen.querySelectorAll("tbody tr")].map((r) => r.querySelector("a")).filter((a) => a?.checkVisibility());
    const at = links.findIndex((a) => a.closest("tr").contains(document.activeElement));
    links[at < 0 ? (by > 0 ? 0 : links.length - 1) : Math.max(0, Math.min(links.length - 1, at + by))]?.focus();
  };
  // A time of day, such as since:02:13, is the latest one in the zone of the page; the address has it in UTC.
  const exact = (text) => text.replaceAll(/\b(since|until):(\d{1,2}):(\d{2})(?![\d:])/g, (_, what, hours, minutes) => {
    const d = new Date(Date.now() + skew);
    if (utc) d.setUTCHours(+hours, +minutes, 0, 0); else d.setHours(+hours, +minutes, 0, 0);
    if (d > new Date(Date.now() + skew)) d.setDate(d.getDate() - 1);
    return what + ":" + d.toISOString().slice(0, 19) + "Z";
  });
  const fields = (form) => {
    const q = new URLSearchParams();
    for (const [key, value] of new FormData(form)) if (value !== "") q.set(key, key === "text" ? exact(value) : value);
    return q.toString();
  };
  // The bar of the selection: its number, and what is possible with at least one of it.
  const showPicked = () => {
    const bar = screen.querySelector("[data-picked]"), all = picked();
    if (!bar) return;
    bar.hidden = all.length === 0;
    bar.querySelector("[data-number]").textContent = all.length + " selected:";
    for (const b of bar.querySelectorAll("[data-pick]")) b.hidden = !all.some((c) => c.dataset.can.split(" ").includes(b.dataset.pick));
    if (all.length === 0) settle();
  };
  let lastPick = null;
  screen.addEventListener("click", (e) => {
    const box = e.target.closest("input[data-can]");
    if (!box) return;
    const boxes = [...screen.querySelectorAll("input[data-can]")];
    if (e.shiftKey && boxes.includes(lastPick)) {
      const [from, to] = [boxes.indexOf(lastPick), boxes.indexOf(box)].sort((a, b) => a - b);
      for (const b of boxes.slice(from, to + 1)) b.checked = box.checked;
    }
    lastPick = box;
    showPicked();
  });
  const pickQuery = () => picked().map((c) => "pick=" + encodeURIComponent(c.value)).join("&");
  const download = async (format) => {
    try {
      const answer = await ask("page/export?format=" + format + "&" + (picked().length ? pickQuery() : query));
      if (!answer.ok) { say(words(await answer.text()), true); return; }
      const a = document.createElement("a");
      a.href = URL.createObjectURL(await answer.blob());
      a.download = "events." + format;
      a.click();
      setTimeout(() => URL.revokeObjectURL(a.href), 10000);
      if (answer.headers.get("X-Hooklock-More")) say("The download has the newest events only: narrow the search for the others.", true);
    } catch (e) { lost(e.message); }
  };
  document.addEventListener("submit", (e) => {
    const form = e.target;
    e.preventDefault();
    if (form.id === "quick") { location.hash = "find?" + fields(form); document.activeElement.blur(); }
    else if (form.dataset.go) {
      document.activeElement.blur();
      const to = form.dataset.go + "?" + fields(form);
      if (location.hash.slice(1) === to) go(); else location.hash = to;
    } else if (form.id === "token-form") {
      keepToken($("token-text").value.trim());
      tokenBox.close();
      tokenBox.then?.();
      lookAtBar();
    } else if ("question" in form.dataset) act(form);
  });
  document.addEventListener("click", (e) => {
    const b = e.target.closest("button");
    if (b?.dataset.ask) put(b.dataset.ask);
    if (b?.dataset.copy) copy(b);
    if (b?.dataset.pick) put("ask?do=picked-" + b.dataset.pick + "&" + pickQuery());
    if (b?.dataset.export) download(b.dataset.export);
    if (b && "close" in b.dataset) b.closest("dialog").close();
  });
  // The event comes some time after the dialog closes: the next question may be open by then.
  question.addEventListener("close", () => { if (!question.open) question.replaceChildren(); if (question.acted) { question.acted = false; $("main").focus({ preventScroll: true }); stop(); go(true, true); lookAtBar(); } settle(); });
  tokenBox.addEventListener("close", () => { $("token-text").value = ""; });

  // copy puts the address or the ticket of an event on the clipboard, which a page without TLS has by the older way only.
  const copy = async (button) => {
    const both = (d) => utc ? day(d) + " " + time(d) + " UTC" : day(d) + " " + time(d) + " " + zone(d) + " (" + d.toISOString().slice(11, 19) + " UTC)";
    const text = button.dataset.copy === "ids" ? picked().map((c) => c.value).join("\n") : button.dataset.copy === "link" ? location.href : button.dataset.copy === "paste" ? button.closest("section").querySelector("[data-paste]").textContent : $("ticket").textContent.replaceAll("⟨page⟩", () => location.href).replaceAll(/⟨at:([^⟩]*)⟩/g, (_, at) => both(new Date(at)));
    const label = button.textContent;
    try {
      if (navigator.clipboard) await navigator.clipboard.writeText(text);
      else {
        const area = document.createElement("textarea");
        area.value = text;
        document.body.append(area);
        area.select();
        const done = document.execCommand("copy");
        area.remove();
        button.focus();
        if (!done) throw new Error("not copied");
      }
      button.textContent = "Copied";
    } catch { button.textContent = "Not copied"; }
    setTimeout(() => { button.textContent = label; }, 2000);
  };

  let asking = "";
  const put = async (path) => {
    asking = path;
    try {
      const answer = await ask("page/" + path), text = await answer.text();
      if (path !== asking || question.open) return; // an open question stays
      if (answer.status === 401) { needToken(words(text), () => put(path)); return; }
      question.replaceChildren(html(text));
      if (!answer.ok) {
        const close = document.createElement("button");
        close.type = "button"; close.dataset.close = ""; close.textContent = "Close";
        const head = document.createElement("h2");
        head.id = "question-title"; head.textContent = "Not possible";
        question.prepend(head);
        question.append(close);
      }
      commands();
      if (!question.open) question.showModal();
      question.querySelector("#reason, [data-close]")?.focus();
    } catch (e) { lost(e.message); }
  };
  const base = () => new URL(".", location.href.split("#")[0]).href;
  const commands = () => {
    const form = question.querySelector("[data-question]");
    if (!form) return;
    const why = form.elements.reason?.value || "why", period = form.elements.for?.value ?? "", good = Boolean(form.elements.final?.checked);
    const values = { base: base(), reason: why, period, final: good ? "yes" : "" };
    for (const pre of form.querySelectorAll("[data-command]")) pre.textContent = shellLine(JSON.parse(pre.dataset.command), values);
  };
  question.addEventListener("input", commands);

  const send = async (r, why, good, period) => {
    const q = new URLSearchParams(r.query ?? {}), options = { method: r.method };
    if (r.reason === "query") q.set("reason", why);
    if (r.body) {
      const body = { ...r.body };
      if (r.reason === "body") body.reason = why;
      if (r.mayBeFinal && good) body.final = true;
      if (r.mayEnd && period) body.for = period;
      options.body = JSON.stringify(body);
      options.headers = { "Content-Type": "application/json" };
    }
    const answer = await ask(r.path + (q.size ? "?" + q : ""), options);
    return [answer.status, await answer.json().catch(() => ({}))];
  };
  const act = async (form) => {
    const requests = JSON.parse(form.dataset.requests), result = form.querySelector("#result"), why = form.elements.reason?.value ?? "", good = Boolean(form.elements.final?.checked), period = form.elements.for?.value ?? "";
    const button = form.querySelector("button.go");
    button.disabled = true;
    let done = 0, refused = 0, last = "";
    const note = (text, bad) => { const p = document.createElement("p"); p.textContent = text; p.className = bad ? "bad" : "good"; result.append(p); p.scrollIntoView({ block: "nearest" }); };
    result.replaceChildren();
    for (const r of requests) {
      try {
        const [status, said] = await send(r, why, good, period);
        if (status === 401) { button.disabled = false; needToken(said.detail ?? "", () => act(form)); return; }
        if (status > 299) {
          refused++;
          note(r.names + " refused: " + (said.detail ?? status) + " (" + (said.code ?? status) + ")", true);
          if (status === 403 || status === 503) break;
          continue;
        }
        done++;
        last = r.done ?? r.names + " is " + said.status;
        if (said.changed) last = said.changed.length ? "Reloaded: " + said.changed.join(", ") : "Reloaded; nothing has changed.";
      } catch (e) { refused++; note(r.names + ": no answer (" + e.message + "); it may have been done. Refresh and check.", true); break; }
    }
    question.acted = true;
    if (done || !refused) note(requests.length === 1 ? last : done + " done, " + refused + " refused", false);
    form.dataset.done = String(done);
    const close = form.querySelector(".buttons [data-close]");
    close.textContent = "Close";
    close.focus();
  };

  keepToken(token());
  go();
  lookAtBar();
})();
