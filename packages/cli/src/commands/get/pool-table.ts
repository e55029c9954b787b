/** NodePools: the columns of the CustomResourceDefinition, and what their instances cost together. */
import { type KubeObject, type NodeClaim, type NodePool, ownValue, priceText, sumOfPrices } from '@tenon/api'
import { conditionStatus, framed, none, type TableOf, unknown } from './cells.ts'
import { type Facts, poolOf } from './facts.ts'

/** @param claims all NodeClaims of the cluster. */
export function poolTable(claims: readonly NodeClaim[]): TableOf<NodePool> {
  const claimsOf = Map.groupBy(claims, poolOf)
  return (facts) =>
    framed(facts, [
      { title: 'NODECLASS', value: ({ spec }) => spec.template.spec.nodeClassRef.name },
      { title: 'NODES', value: ({ status }) => String(status?.nodes ?? 0) },
      { title: 'READY', value: (pool) => conditionStatus(pool, 'Ready') },
      {
        title: `${facts.currency ?? 'PRICE'}/HOUR`,
        value: (pool) => priceOfAll(claimsOf.get(pool.metadata.name) ?? [], facts),
      },
      { title: 'WEIGHT', value: ({ spec }) => String(spec.weight ?? none), isWide: true },
      { title: 'CPU', value: ({ status }) => ownValue(status?.resources, 'cpu') ?? none, isWide: true },
      { title: 'MEMORY', value: ({ status }) => ownValue(status?.resources, 'memory') ?? none, isWide: true },
    ])
}

/** `1.2500`, `1.2500+2?` with two instances whose price is not known. */
function priceOfAll(claims: readonly KubeObject[], facts: Facts): string {
  const { pricePerHour, unpriced } = sumOfPrices(claims.map((claim) => facts.priceOf(claim)))
  if (unpriced === claims.length && unpriced > 0) return unknown
  return unpriced === 0 ? priceText(pricePerHour) : `${priceText(pricePerHour)}+${unpriced}?`
}
