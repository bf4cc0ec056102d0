/** Answers that come late: one question at a time, only the newest of those that wait, none that nobody wants any more. */

/**
 * @typedef {object} Question
 * @property {() => Promise<any>} ask
 * @property {(answer: any) => void} take
 * @property {() => boolean} wanted Still, when the answer is there.
 */

/**
 * @param {HTMLElement} element Marked as busy while an answer is waited for; what it shows stays.
 * @param {(message: string) => void} failed
 * @returns {<Answer>(ask: () => Promise<Answer>, take: (answer: Answer) => void, wanted: () => boolean) => void}
 */
export function newestOnly(element, failed) {
  /** @type {Question | null} */
  let waiting = null;
  let running = false;
  const work = async () => {
    running = true;
    const patience = setTimeout(() => element.classList.add("busy"), 120);
    while (waiting) {
      const { ask, take, wanted } = waiting;
      waiting = null;
      try {
        const answer = await ask();
        if (wanted()) take(answer);
      } catch (error) {
        if (wanted()) failed(error instanceof Error ? error.message : String(error));
      }
    }
    clearTimeout(patience);
    element.classList.remove("busy");
    running = false;
  };
  return (ask, take, wanted) => {
    waiting = { ask, take, wanted };
    if (!running) void work();
  };
}
