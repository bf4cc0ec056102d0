/** Which blocks of the file a question needs. */

/**
 * @param {{ ask: string, layer: import("./description.js").Layer, head: number }} question
 * @returns {string[]}
 */
export function blockNames({ ask, layer, head }) {
  const packed = layer.packed;
  if (ask === "thumbnails") return [`thumbnails:${layer.id}`];
  if (ask === "overview") return [`overview:${layer.id}:${head}`];
  if (!packed) throw new Error("this layer is not in the file");
  if (packed.form === "weights") return [`weights:${layer.id}:${head}`];
  return [
    `queries:${layer.id}:${head}`, `keys:${layer.id}:${packed.groups[head]}`, `sums:${layer.id}:${head}`,
    ...(packed.mask ? [`${packed.mask}:${layer.id}`] : []), ...(packed.bias ? [`bias:${layer.id}:${head}`] : []),
  ];
}
