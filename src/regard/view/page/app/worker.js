/** The worker: takes questions, sends answers. */

import { answered, giveUp } from "./answering.js";

/**
 * @typedef {import("./answering.js").Question} Question
 * @typedef {import("./answering.js").Answer} Answer
 */

const postAnswer = /** @type {(message: Answer | "up", transfer: Transferable[]) => void} */ (/** @type {unknown} */ (self.postMessage));

self.onmessage = (/** @type {MessageEvent<Question>} */ event) => {
  const question = event.data;
  if (question.ask === "cancel") giveUp(question.id);
  else void answered(question).then((answer) => postAnswer.call(self, answer, answer.values ? [answer.values.buffer] : []));
};
postAnswer.call(self, "up", []);
