"use strict";
// Shows what happens, as the server reports it, and sends the person's answers. All texts are
// set as text, never as markup.
(() => {
  const $ = (id) => document.getElementById(id);
  const base = $("console").dataset.base;
  const title = document.title;
  const rowHeight = 32; // as in the style
  const most = 10000; // calls in the list
  const number = new Intl.NumberFormat("en");
  const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
  const day = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "long" });
  const state = { ended: [], running: [], count: 0, shown: [] };

  const element = (tag, properties, ...children) => {
    const e = Object.assign(document.createElement(tag), properties);
    e.append(...children);
    return e;
  };

  const post = (path, body) =>
    fetch(base + path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

  const duration = (ms) => {
    if (ms >= 100000) {
      return `${number.format(Math.round(ms / 60000))} min`;
    }
    return ms >= 1000 ? `${(ms / 1000).toPrecision(3)} s` : `${ms >= 100 ? Math.round(ms) : Number(ms.toPrecision(2))} ms`;
  };

  const size = (bytes) => (bytes >= 1e6 ? `${(bytes / 1e6).toPrecision(3)} MB` : bytes >= 1e3 ? `${(bytes / 1e3).toPrecision(3)} kB` : `${bytes} B`);

  const who = (c) => [c.caller, c.client].filter(Boolean).join(", ");

  // The list of calls has elements only for the rows that can be seen.
  const row = (c, top) => {
    const cell = (text, name = "", tip = text) => {
      const e = element("span", { textContent: text, className: name, title: tip });
      e.setAttribute("role", "cell");
      return e;
    };
    const outcome = cell("");
    outcome.append(element("span", { className: `tag ${c.outcome || "running"}`, textContent: c.code && c.outcome !== "ok" ? c.code : c.outcome || "running" }));
    const r = element("div", { className: "call" },
      cell(clock.format(c.start), "", day.format(c.start)),
      cell(c.tool, "name"),
      cell(who(c)),
      cell(c.waited ? `${c.decision}, ${duration(c.waited)}` : c.decision || "", "", c.waited ? `${c.decision}; answered after ${duration(c.waited)}` : c.decision || ""),
      outcome,
      cell(c.outcome ? duration(c.ms || 0) : ""),
      cell(c.outcome ? size(c.size || 0) : ""));
    r.setAttribute("role", "row");
    r.style.top = `${top}px`;
    return r;
  };

  const draw = () => {
    const list = $("calls");
    const from = Math.max(Math.floor(list.scrollTop / rowHeight) - 10, 0);
    const to = Math.min(from + Math.ceil(list.clientHeight / rowHeight) + 20, state.shown.length);
    $("rows").replaceChildren(...state.shown.slice(from, to).map((c, i) => row(c, (from + i) * rowHeight)));
  };

  const matches = (c) => {
    const which = $("which").value;
    if (which === "failed" && (!c.outcome || c.outcome === "ok") || which === "asked" && c.decision !== "ask") {
      return false;
    }
    const words = $("query").value.toLowerCase().split(/\s+/).filter(Boolean);
    const text = [c.tool, c.caller, c.client, c.decision, c.outcome || "running", c.code].join(" ").toLowerCase();
    return words.every((word) => text.includes(word));
  };

  // select fills the list: running calls first, then the latest. A list that was scrolled stays
  // where it is read.
  const select = () => {
    const list = $("calls"), top = Math.floor(list.scrollTop / rowHeight), read = state.shown[top];
    state.shown = [...state.running.toReversed(), ...state.ended.toReversed()].filter(matches);
    $("rows").replaceChildren();
    $("rows").style.height = `${state.shown.length * rowHeight}px`;
    const now = top > 0 && read ? state.shown.findIndex((c) => c.id === read.id) : -1;
    if (now >= 0) {
      list.scrollTop += (now - top) * rowHeight;
    }
    list.setAttribute("aria-rowcount", state.shown.length + 1);
    $("shown").textContent = `${number.format(state.shown.length)} of ${number.format(state.ended.length + state.running.length)} calls` + (state.ended.length >= most ? "; earlier ones are in the audit log" : "");
    draw();
  };

  const numbers = () => {
    const count = (test) => state.ended.reduce((sum, c) => sum + (test(c) ? 1 : 0), 0);
    const refused = (c) => c.outcome === "denied" || c.outcome === "invalid";
    const waiting = $("questions").children.length;
    const all = [[state.count, "running"], [count((c) => !refused(c)), "ended"], [count((c) => c.outcome === "error" || c.outcome === "timeout"), "errors"], [count(refused), "refused"], [waiting, waiting === 1 ? "question" : "questions"]];
    $("numbers").replaceChildren(...all.map(([n, what]) => element("li", {}, element("b", { textContent: number.format(n) }), ` ${what}`)));
    document.title = waiting > 0 ? `(${waiting}) ${title}` : title;
  };

  const servers = (list) => {
    $("servers").replaceChildren(...list.map((s) => {
      const button = element("button", { type: "button", textContent: "Restart" });
      button.setAttribute("aria-label", `Restart ${s.name}`);
      button.addEventListener("click", async () => {
        button.disabled = true;
        const answer = await post("/restart", { name: s.name }).catch(() => null);
        button.disabled = false;
        say(answer?.ok ? "" : `${s.name}: ${answer ? await answer.text() : "the server of the console cannot be reached"}`);
      });
      const name = element("th", { scope: "row", textContent: s.name });
      const what = element("td", {}, element("span", { className: `tag ${s.state === "connected" ? "allow" : s.state === "failed" ? "error" : ""}`, textContent: s.state }));
      if (s.error) {
        what.append(element("span", { className: "detail", textContent: s.error }));
      }
      return element("tr", {}, name, what, element("td", { textContent: number.format(s.tools) }), element("td", {}, ...(s.starts ? [button] : [])));
    }));
  };

  const say = (text) => { $("status").textContent = text; };

  // parts returns a long text in parts of some lines, of which only those in view are laid out.
  // Lines of a diff have their colors, unless there are too many.
  const parts = (text, isDiff) => {
    const lines = text.split("\n"), out = [];
    const colored = isDiff && lines.length < 5000;
    const tag = (line) => (/^ {2}│ \+(?!\+\+ )/.test(line) ? "ins" : /^ {2}│ -(?!-- )/.test(line) ? "del" : "");
    for (let i = 0; i < lines.length; i += 200) {
      const some = lines.slice(i, i + 200);
      out.push(colored ? element("span", {}, ...some.map((line) => (tag(line) ? element(tag(line), { textContent: line }) : `${line}\n`)))
        : element("span", { textContent: some.join("\n") }));
    }
    return out;
  };

  const whose = (q) => `${clock.format(q.since)} ${who(q)}${q.left ? ": has left, and its call ends within a minute" : q.caller || q.client ? ": waits for the answer" : ""}`;

  // A question is fetched when it appears: its text may be long.
  const ask = async (q) => {
    const card = element("article", { className: "question" });
    card.dataset.id = q.id;
    card.append(element("h3", { textContent: q.tool }), element("p", { className: "hint", textContent: whose(q) }));
    $("questions").append(card);
    const answer = await fetch(`${base}/question?id=${encodeURIComponent(q.id)}`).catch(() => null);
    if (!answer?.ok) {
      return;
    }
    const d = await answer.json();
    const text = element("pre", { tabIndex: 0, className: "diff" }, ...parts(d.text, d.content !== undefined));
    const wrong = element("p", { className: "wrong" });
    wrong.setAttribute("role", "alert");
    const answers = element("div", { className: "answers" });
    card.append(text);
    const fields = (d.fields || []).map((f) => {
      const input = f.options ? element("select", {}, element("option", { value: "", textContent: "" }), ...f.options.map((o) => element("option", { textContent: o })))
        : element("input", { type: f.secret ? "password" : "text", autocomplete: "off" });
      input.value = f.value || "";
      input.required = Boolean(f.required);
      card.append(element("label", {}, f.label, ...(f.description ? [element("span", { className: "text", textContent: f.description })] : []), input, element("span", { textContent: f.expects + (f.required ? "; required" : "") })));
      return [f.name, input];
    });
    const edited = element("textarea", { hidden: true, spellcheck: false });
    edited.setAttribute("aria-label", "Content of the file");
    const reason = element("input", { type: "text", autocomplete: "off", placeholder: "with no: a reason for the model" });
    reason.setAttribute("aria-label", "Reason for the model, with no");
    card.append(edited, answers, wrong);
    const send = async (choice) => {
      if (!edited.hidden && edited.value !== d.content) { // what the person wrote is never dropped
        if (choice === "yes") {
          choice = "edit";
        } else if (choice !== "edit" && choice !== "no") {
          wrong.textContent = `"${choice}" would allow the content as proposed, without your changes: answer yes or edit, or undo them.`;
          return;
        }
      }
      const body = { id: q.id, choice };
      if (choice === "no" || choice === "decline") {
        body.reason = reason.value;
      } else if (choice === "edit") {
        body.content = edited.value;
      } else if (choice === "send") {
        body.fields = Object.fromEntries(fields.map(([name, input]) => [name, input.value]));
      }
      card.querySelectorAll("button").forEach((b) => { b.disabled = true; });
      const result = await post("/answer", body).catch(() => null);
      if (result?.ok) {
        return;
      }
      wrong.textContent = result ? await result.text() : "The server of the console cannot be reached.";
      card.querySelectorAll("button").forEach((b) => { b.disabled = result?.status === 410; });
    };
    for (const c of d.choices) {
      const button = element("button", { type: "button" }, c.word, ...(c.covers ? [element("small", { textContent: `allows ${c.covers} from now on` })] : []));
      button.addEventListener("click", () => {
        if (c.word === "edit" && edited.hidden) {
          edited.hidden = false;
          edited.value = d.content;
          button.textContent = "edit: allow with this content";
          edited.focus();
          return;
        }
        send(c.word);
      });
      answers.append(button);
    }
    answers.append(reason);
  };

  const questions = (list) => {
    for (const card of [...$("questions").children]) {
      if (!list.some((q) => q.id === card.dataset.id)) {
        card.remove();
      }
    }
    for (const q of list) {
      const card = [...$("questions").children].find((one) => one.dataset.id === q.id);
      if (card) {
        card.querySelector(".hint").textContent = whose(q);
      } else {
        ask(q);
      }
    }
    $("no-questions").hidden = list.length > 0;
  };

  const update = (u) => {
    if (u.calls) {
      state.ended.push(...u.calls);
      state.ended.splice(0, state.ended.length - most);
    }
    if (u.running) {
      state.running = u.running;
      state.count = u.count || 0;
    }
    if (u.questions) {
      questions(u.questions);
    }
    if (u.servers) {
      servers(u.servers);
    }
    if (u.calls || u.running || u.questions) {
      numbers();
      select();
    }
  };

  // The browser connects again by itself; then the server sends everything.
  const events = new EventSource(`${base}/events`);
  events.addEventListener("open", () => {
    Object.assign(state, { ended: [], running: [], count: 0 });
    say("");
  });
  events.addEventListener("message", (event) => update(JSON.parse(event.data)));
  events.addEventListener("error", () => {
    say("The connection was lost. Load the page again if it does not come back.");
  });

  $("query").addEventListener("input", select);
  $("which").addEventListener("change", select);
  $("calls").addEventListener("scroll", () => requestAnimationFrame(draw), { passive: true });
  window.addEventListener("resize", draw);
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !event.target.matches("input, select, textarea")) {
      event.preventDefault();
      $("query").focus();
    }
  });
  $("zone").textContent = Intl.DateTimeFormat().resolvedOptions().timeZone;
  $("console").hidden = false;
})();
