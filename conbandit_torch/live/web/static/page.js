// One page without a framework. Names come from data files: they are only ever set as text.
const ANSWERS = [["Yes", 1], ["A bit", 0.5], ["No", 0], ["Don’t know", null]];
const FULL = 0.5; // the lean that a full bar stands for, unless something leans further
const LEAST_SURE = 0.05; // of what less is known, nothing is shown
const SMALL = new Set(["the", "a", "an", "of", "and", "in", "to", "for", "with", "on", "s"]);
const MOST_LIKED = 6, MOST_DISLIKED = 4;

const byId = (id) => document.getElementById(id);
const stage = byId("stage");
let busy = false;
let invitation = new URLSearchParams(location.hash.slice(1)).get("invitation");

class Refused extends Error {
  constructor(status, message) { super(message); this.status = status; }
}

async function call(method, path, body) {
  let response;
  try {
    response = await fetch(path, {
      method,
      credentials: "same-origin",
      headers: body === undefined ? {} : { "content-type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    throw new Refused(0, "The server cannot be reached. Nothing is lost: try again.");
  }
  if (response.status === 204) return null;
  const said = await response.json().catch(() => ({}));
  if (!response.ok) throw new Refused(response.status, said.error ?? `The server said ${response.status}.`);
  return said;
}

// Runs one thing at a time, and tells what went wrong.
async function doing(work) {
  if (busy) return;
  busy = true;
  stage.setAttribute("aria-busy", "true");
  try {
    await work();
    byId("trouble").hidden = true;
  } catch (error) {
    if (error.status === 401) { await begin(); return; }
    byId("trouble").textContent = error.message;
    byId("trouble").hidden = false;
  } finally {
    busy = false;
    stage.setAttribute("aria-busy", "false");
  }
}

function copyOf(id) {
  const node = byId(id).content.firstElementChild.cloneNode(true);
  return [node, (name) => node.querySelector(`[data-${name}]`)];
}

function element(tag, text, className) {
  const node = document.createElement(tag);
  if (text !== undefined) node.textContent = text;
  if (className) node.className = className;
  return node;
}

function put(node, focus) {
  node.classList.add("entering");
  stage.replaceChildren(node);
  if (focus) {
    node.querySelector("h2").focus({ preventScroll: true });
    const top = stage.getBoundingClientRect().top;
    if (top < 0 || top > innerHeight) stage.scrollIntoView({ block: "start" });
  }
}

const tell = (text) => { byId("news").textContent = text; };

async function begin() {
  const session = await call("GET", "/api/session");
  document.title = session.title;
  byId("title").textContent = session.title;
  if (session.taking_part) {
    show(await call("POST", "/api/turns", { move_on: false }), false);
    return;
  }
  for (const id of ["taste", "foot", "counts"]) byId(id).hidden = true;
  const [form, part] = copyOf("consent-form");
  for (const paragraph of session.consent) part("paragraphs").append(element("p", paragraph));
  part("agree").addEventListener("click", () => doing(async () => {
    const state = await call("POST", "/api/visits", { consent: true, invitation });
    if (invitation) { history.replaceState(null, "", location.pathname); invitation = null; }
    show(state, true);
  }));
  put(form, false);
}

function show(state, focus = true) {
  for (const id of ["taste", "foot", "counts"]) byId(id).hidden = false;
  const liked = Math.round(state.liked * 10) / 10;
  byId("counts").textContent = `${state.answered} answered · ${state.rated} rated · ${liked} liked`;
  showBeliefs(state.beliefs);
  if (state.question) showQuestion(state.question, focus);
  else showItems(state.items, focus);
}

function showQuestion(question, focus) {
  const [card, part] = copyOf("question-card");
  const compared = question.kind === "comparison";
  part("eyebrow").textContent = compared ? "Which of the two?" : "A question";
  const heading = part("text");
  const [first, second] = question.names;
  if (compared) heading.append("Which do you like better: ", element("em", first), " or ", element("em", second), "?");
  else heading.append("Do you like ", element("em", first), "?");
  const answers = compared ? [[first, 1], [second, 0], ["Both alike", 0.5], ["Don’t know", null]] : ANSWERS;
  for (const [label, value] of answers) {
    const button = element("button", label);
    button.type = "button";
    button.addEventListener("click", () => doing(async () => {
      show(await call("POST", "/api/answers", { question: question.id, value }));
    }));
    part("answers").append(button);
  }
  put(card, focus);
  tell(`A question. ${heading.textContent}`);
}

function showItems(items, focus) {
  const [slate, part] = copyOf("slate");
  part("text").textContent = items.length === 1 ? "Would you like this one?" : "Would you like one of these?";
  const cards = items.map((item) => itemCard(item, refresh));
  part("items").append(...cards.map(({ node }) => node));
  const next = part("next");
  next.addEventListener("click", () => doing(async () => {
    show(await call("POST", "/api/turns", { move_on: true }));
  }));
  function refresh() {
    const left = cards.filter(({ rated }) => !rated()).length;
    next.textContent = left === 0 ? "Go on" : left === items.length ? "None I can judge: go on" : "Skip the rest";
    next.classList.toggle("primary", left === 0);
    return left === 0 ? next : null;
  }
  refresh();
  put(slate, focus);
  tell(`${items.length} to look at: ${items.map(({ item }) => item).join("; ")}.`);
}

function itemCard(item, refresh) {
  const [node, part] = copyOf("item");
  const key = item.terms.join() || item.item;
  part("name").textContent = item.item;
  part("letter").textContent = initials(item.item);
  part("details").textContent = Object.values(item.details).join(" · ");
  node.querySelector(".poster").style.setProperty("--hue", hueOf(key));
  for (const term of item.terms) part("terms").append(element("li", term));
  part("reactions").setAttribute("aria-label", `What about ${item.item}?`);
  let reward = item.reward;
  const buttons = [...node.querySelectorAll("[data-reward]")];
  function mark() {
    for (const button of buttons) {
      button.setAttribute("aria-pressed", String(reward !== null && Number(button.dataset.reward) === reward));
      button.disabled = reward !== null;
    }
    node.dataset.state = reward === null ? "open" : reward > 0 ? "liked" : "passed";
  }
  for (const button of buttons) {
    button.addEventListener("click", () => doing(async () => {
      const given = Number(button.dataset.reward);
      const state = await call("POST", "/api/reactions", { decision: item.decision, reward: given });
      reward = given;
      mark();
      const liked = Math.round(state.liked * 10) / 10;
      byId("counts").textContent = `${state.answered} answered · ${state.rated} rated · ${liked} liked`;
      showBeliefs(state.beliefs);
      tell(given > 0 ? `You like ${item.item}.` : `${item.item} is not for you.`);
      const next = refresh() ?? nextOpen(node);
      next?.focus({ preventScroll: true });
    }));
  }
  const why = node.querySelector("details");
  why.addEventListener("toggle", () => { if (why.open) explain(item.item, part("why")); });
  mark();
  return { node, rated: () => reward !== null };
}

const nextOpen = (node) =>
  [...node.parentElement.querySelectorAll("[data-state='open'] [data-reward='1']")][0] ?? null;

async function explain(item, where) {
  let why;
  try {
    why = await call("GET", `/api/reasons?${new URLSearchParams({ item })}`);
  } catch (error) {
    where.replaceChildren(element("p", error.message, "quiet"));
    return;
  }
  const parts = [];
  if (why.estimate === null) parts.push(element("p", "It was drawn at random.", "quiet"));
  else {
    const chance = Math.round(100 * Math.min(1, Math.max(0, why.estimate)));
    const unsure = why.width === null ? "" : why.width > 0.3 ? ", and am far from sure" : why.width > 0.15 ? ", and am not sure" : "";
    parts.push(element("p", `I guess that you like it with ${chance} in 100${unsure}.`));
    const list = element("ul", undefined, "reasons");
    for (const reason of why.reasons.filter(({ effect }) => Math.abs(effect) >= 0.005)) {
      const line = element("li", undefined, reason.effect > 0 ? "more" : "less");
      const points = Math.round(100 * reason.effect);
      line.append(element("b", `${points > 0 ? "+" : points < 0 ? "−" : "±"}${Math.abs(points)}`), element("span", sentence(reason)));
      list.append(line);
    }
    if (list.children.length) parts.push(list);
    else parts.push(element("p", "Nothing you said speaks for or against it yet: I want to find out.", "quiet"));
  }
  where.replaceChildren(...parts);
}

function sentence({ kind, names, value }) {
  const what = names.join(" or ");
  if (kind === "reward") return value >= 0.5 ? `you liked ${what}` : `${what} was not for you`;
  if (kind === "comparison") return value === 0.5 ? `${what} are alike to you` : `you chose ${value > 0.5 ? names[0] : names[1]}`;
  return value >= 1 ? `you like ${what}` : value <= 0 ? `you do not like ${what}` : `you like ${what} a bit`;
}

function showBeliefs(beliefs) {
  const known = beliefs.filter(({ sure }) => sure >= LEAST_SURE);
  const liked = known.filter(({ lean }) => lean > 0).slice(0, MOST_LIKED);
  const disliked = known.filter(({ lean }) => lean < 0).slice(-MOST_DISLIKED);
  const largest = Math.max(FULL, ...known.map(({ lean }) => Math.abs(lean)));
  const list = byId("beliefs");
  const old = new Map([...list.children].map((node) => [node.dataset.term, node]));
  const nodes = [...liked, ...disliked].map((belief) => {
    const node = old.get(belief.term) ?? newBelief(belief.term);
    const side = belief.lean > 0 ? "more" : "less";
    node.className = `belief ${side}`;
    node.querySelector(".sure").textContent = `${Math.round(100 * belief.sure)} % sure`;
    node.querySelector(".side").textContent = belief.lean > 0 ? "liked more than most: " : "liked less than most: ";
    const bar = node.querySelector(".bar");
    requestAnimationFrame(() => {
      bar.style.setProperty("--size", Math.abs(belief.lean) / largest);
      bar.style.opacity = 0.3 + 0.7 * belief.sure;
    });
    return node;
  });
  list.replaceChildren(...nodes);
  byId("taste-hint").textContent = nodes.length
    ? "It grows with every answer. The fuller the colour, the surer I am."
    : "Nothing yet. It grows with every answer and every like.";
  document.querySelector(".axis").hidden = nodes.length === 0;
}

function newBelief(term) {
  const node = element("li");
  node.dataset.term = term;
  const words = element("div", undefined, "words");
  const name = element("span");
  name.append(element("span", "", "side hidden-text"), element("span", term, "term"));
  words.append(name, element("span", "", "sure"));
  const track = element("div", undefined, "track");
  track.setAttribute("aria-hidden", "true");
  track.append(element("div", undefined, "bar"));
  node.append(words, track);
  return node;
}

function initials(name) {
  const all = name.split(/[^\p{L}\p{N}]+/u).filter(Boolean);
  const words = all.length > 1 ? all.filter((word) => !SMALL.has(word.toLowerCase())) : all;
  return words.slice(0, 2).map((word) => (/^\d/.test(word) ? word.slice(0, 2) : [...word][0].toUpperCase())).join("") || "?";
}

function hueOf(text) {
  let sum = 7;
  for (const letter of text) sum = (sum * 31 + letter.codePointAt(0)) % 9973;
  return (sum * 47) % 360;
}

byId("leave").addEventListener("click", () => byId("leaving").showModal());
byId("leaving").addEventListener("close", () => {
  if (byId("leaving").returnValue !== "leave") return;
  byId("leaving").returnValue = "";
  doing(async () => {
    await call("DELETE", "/api/visits/me");
    await begin();
    tell("Everything that was yours is deleted.");
  });
});

doing(begin);
