/** The data blocks of the file, as the browser finds them: some are asked for before they have arrived. */

const BLOCK_WAIT = 15; // milliseconds between two looks

/**
 * The base64 text of a block; waits while the file is still being read.
 * @param {string} name
 * @returns {Promise<string>}
 */
export async function blockText(name) {
  const id = `block:${name}`;
  for (;;) {
    const over = document.readyState !== "loading";
    const element = document.getElementById(id);
    // Without anything behind it, it may still be growing; behind the last one is the end of the page.
    if (element?.nextElementSibling) return element.textContent ?? "";
    if (over) throw new Error(`the file is not complete, it lacks ${name}`);
    await new Promise((resolve) => setTimeout(resolve, BLOCK_WAIT));
  }
}
