/* Makes a quiz of the questions of a page: see _ext/quiz.py, which writes them. */
"use strict";

const questions = [...document.querySelectorAll("form.quiz")];
const score = document.querySelector(".quiz-score");

function said(form) {
  return form.querySelector(".quiz-said");
}

function check(form) {
  const chosen = form.querySelector(".quiz-option:has(input:checked)");
  const answer = chosen.dataset.answer;
  form.dataset.first ??= answer; // the first try counts
  chosen.dataset.tried = "";
  const explanation = chosen.querySelector(".quiz-why").cloneNode(true).children;
  const [, ...parts] = explanation; // without the summary
  said(form).dataset.answer = answer;
  said(form).replaceChildren(...parts);
  count();
}

function clear(form) {
  said(form).replaceChildren();
  delete said(form).dataset.answer;
}

function count() {
  const firsts = questions.map((form) => form.dataset.first).filter(Boolean);
  const numbers = {
    right: firsts.filter((answer) => answer === "right").length,
    answered: firsts.length,
    questions: questions.length,
  };
  score.querySelector("p").textContent = score.dataset.text.replace(
    /\{(\w+)\}/g,
    (_, name) => numbers[name],
  );
}

function startAgain() {
  for (const form of questions) {
    form.reset();
    delete form.dataset.first;
    for (const option of form.querySelectorAll("[data-tried]")) delete option.dataset.tried;
    clear(form);
  }
  count();
  questions[0].querySelector("input").focus();
}

for (const form of questions) {
  for (const part of form.querySelectorAll("input, button")) part.hidden = false;
  for (const fold of form.querySelectorAll(".quiz-why")) fold.hidden = true;
  form.addEventListener("change", () => clear(form));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    check(form);
  });
}
score.hidden = false;
score.querySelector("button").addEventListener("click", startAgain);
count();
