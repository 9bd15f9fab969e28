// The search of the site. The index is loaded when somebody begins to search.
"use strict";
const up = document.currentScript.dataset.up;
const box = document.getElementById("site-search");
const input = box.querySelector("input");
const list = box.querySelector("ol");
let sections = null; // until the index is loaded
let loading = false;

function load() {
  if (loading) return;
  loading = true;
  const script = document.createElement("script");
  script.src = up + "search-index.js";
  script.onload = () => {
    sections = toolregSections.map((s) => ({ ...s, words: [s.page, s.title, s.text].map(spaced) }));
    show();
  };
  document.head.append(script);
}

// spaced returns the words of a text in lower case, each after a space, so that a search for
// the beginning of a word does not find its middle.
function spaced(text) {
  return " " + text.toLowerCase().replace(/[^\p{L}\p{N}_]+/gu, " ");
}

// score is 0 if a word is missing. A word in a title counts more than one in the text, and
// words next to each other count more than the same words apart.
function score(section, words) {
  const phrase = " " + words.join(" ");
  let total = words.length > 1 && section.words.some((t) => t.includes(phrase)) ? 10 : 0;
  for (const word of words.map((w) => " " + w)) {
    const [page, title, text] = section.words;
    const s = (title.includes(word) ? 8 : 0) + (page.includes(word) ? 4 : 0) + Math.min(text.split(word).length - 1, 3);
    if (s === 0) return 0;
    total += s;
  }
  return total;
}

// excerpt returns the text around the first word that occurs in it.
function excerpt(section, words) {
  const text = section.text.toLowerCase();
  const at = Math.max(0, Math.min(...words.map((w) => text.indexOf(w)).filter((i) => i >= 0), section.text.length) - 40);
  const from = at >= section.text.length ? 0 : at;
  return (from > 0 ? "… " : "") + section.text.slice(from, from + 140) + (from + 140 < section.text.length ? " …" : "");
}

function show() {
  const words = spaced(input.value).split(" ").filter((w) => w.length > 1);
  list.replaceChildren();
  if (words.length === 0 || sections === null) return;
  const found = sections
    .map((section) => ({ section, score: score(section, words) }))
    .filter((f) => f.score > 0)
    .sort((a, b) => b.score - a.score)
    .slice(0, 12);
  for (const { section } of found) {
    const link = document.createElement("a");
    link.href = up + section.address;
    const title = document.createElement("b");
    title.textContent = section.page === section.title ? section.page : section.page + " › " + section.title;
    const text = document.createElement("span");
    text.textContent = excerpt(section, words);
    link.append(title, text);
    const item = document.createElement("li");
    item.append(link);
    list.append(item);
  }
  if (found.length === 0) {
    const item = document.createElement("li");
    item.textContent = "Nothing found.";
    list.append(item);
  }
}

function hide() {
  list.replaceChildren();
}

// move moves the focus to the next or previous result.
function move(by) {
  const all = [input, ...list.querySelectorAll("a")];
  const next = all[all.indexOf(document.activeElement) + by];
  if (next) next.focus();
}

input.addEventListener("focus", load);
input.addEventListener("input", show);
box.addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown") move(1);
  else if (event.key === "ArrowUp") move(-1);
  else if (event.key === "Escape") {
    hide();
    input.focus();
  } else if (event.key === "Enter" && event.target === input) list.querySelector("a")?.click();
  else return;
  event.preventDefault();
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target === input) return;
  event.preventDefault();
  input.focus();
});
document.addEventListener("click", (event) => {
  if (!box.contains(event.target) || event.target.closest("a")) hide();
});
box.hidden = false;
