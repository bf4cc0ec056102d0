/** The data blocks of the file, as the browser finds them: some are asked for before they have arrived. */

const BLOCK_WAIT = 15; // milliseconds between two looks

/**
 * The base64 text of a block; waits while the file is still being read.
 * @param {string} name
 * @returns {Promise<string>}
 */
export async function blockText(name) {
  for (;;) {
    const over = document.readyState !== "loading";
    const text = blockNow(name);
    if (text !== null) return text;
    if (over) throw new Error(`the file is not complete, it lacks ${name}`);
    await new Promise((resolve) => setTimeout(resolve, BLOCK_WAIT));
  }
}

/**
 * The text of a block that has arrived; null where it has not.
 * @param {string} name
 * @returns {string | null}
 */
export function blockNow(name) {
  const element = document.getElementById(`block:${name}`);
  // Without anything behind it, it may still be growing; behind the last one is the end of the page.
  return element?.nextElementSibling ? element.textContent : null;
}
