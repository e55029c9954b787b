import type { Node } from '@tenon/api'

/** Nodes of the provider `kwok` say what they cost. */
const priceLabel = 'eks-node-viewer/instance-price'

/** What these nodes cost per hour; NaN if one of them does not say. */
export function pricePerHourOf(nodes: readonly Node[]): number {
  return nodes.reduce((sum, { metadata }) => sum + Number(metadata.labels?.[priceLabel] ?? Number.NaN), 0)
}
