import type { Node } from '@tenon/api'

/** Label with the price of nodes of the provider `kwok`. */
const priceLabel = 'eks-node-viewer/instance-price'

/** Price of these nodes per hour; NaN if a node lacks the label. */
export function pricePerHourOf(nodes: readonly Node[]): number {
  return nodes.reduce((sum, { metadata }) => sum + Number(metadata.labels?.[priceLabel] ?? Number.NaN), 0)
}
