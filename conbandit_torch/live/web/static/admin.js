// The numbers of a study, for who has the token. The token stays in this page's memory.
const byId = (id) => document.getElementById(id);
let token = "", timer = 0;

const rounded = (value, digits) => (value === null ? "–" : value.toFixed(digits));
const withInterval = (value, half, digits) =>
  value === null ? "–" : half === null ? rounded(value, digits) : `${rounded(value, digits)} ± ${rounded(half, digits)}`;

function cell(tag, content) {
  const node = document.createElement(tag);
  if (content instanceof Node) node.append(content);
  else node.textContent = content;
  return node;
}

function range({ reward, reward_half }, low, high) {
  const box = document.createElement("div");
  box.className = "range";
  box.setAttribute("aria-hidden", "true");
  if (reward === null) return box;
  const at = (value) => `${(100 * (value - low)) / (high - low)}%`;
  if (reward_half !== null) {
    const line = document.createElement("i");
    const [from, to] = [Math.max(low, reward - reward_half), Math.min(high, reward + reward_half)];
    line.style.left = at(from);
    line.style.width = `${(100 * (to - from)) / (high - low)}%`;
    box.append(line);
  }
  const dot = document.createElement("b");
  dot.style.left = at(reward);
  box.append(dot);
  return box;
}

async function refresh() {
  clearTimeout(timer);
  try {
    const response = await fetch("/api/admin/summary", { headers: { authorization: `Bearer ${token}` } });
    const said = await response.json();
    if (!response.ok) throw new Error(said.error);
    show(said);
    byId("trouble").hidden = true;
    timer = setTimeout(refresh, 5000);
  } catch (error) {
    byId("trouble").textContent = error.message;
    byId("trouble").hidden = false;
    byId("who").hidden = false;
    byId("results").hidden = true;
  }
}

function show(summary) {
  document.title = `${summary.title} – the study so far`;
  byId("title").textContent = summary.title;
  byId("counts").textContent = `${summary.people} people`;
  const ends = summary.policies.filter(({ reward }) => reward !== null)
    .flatMap(({ reward, reward_half }) => [reward - (reward_half ?? 0), reward + (reward_half ?? 0)]);
  const low = Math.max(0, Math.floor(10 * Math.min(1, ...ends)) / 10);
  const high = Math.min(1, Math.ceil(10 * Math.max(0, ...ends)) / 10);
  const [from, to] = ends.length && high > low ? [low, high] : [0, 1];
  byId("low").textContent = rounded(from, 1);
  byId("high").textContent = rounded(to, 1);
  byId("rows").replaceChildren(...summary.policies.map((policy) => {
    const row = document.createElement("tr");
    const name = cell("th", policy.policy);
    name.scope = "row";
    row.append(
      name,
      cell("td", String(policy.people)),
      cell("td", String(policy.rated)),
      cell("td", withInterval(policy.reward, policy.reward_half, 3)),
      cell("td", range(policy, from, to)),
      cell("td", withInterval(policy.questions, policy.questions_half, 1)),
    );
    return row;
  }));
  byId("order").textContent = summary.order;
  byId("notes").textContent = summary.notes;
  byId("who").hidden = true;
  byId("results").hidden = false;
}

byId("who").addEventListener("submit", (event) => {
  event.preventDefault();
  token = byId("token").value;
  byId("token").value = "";
  refresh();
});
