/** Candidates as a search for consolidation sees them. */
import type { NodePool, Pod } from '@tenon/api'

/** @param pods a letter for each. */
export function seen(name: string, pods: string, pricePerHour = 1, generation = 1, cpu = 1000) {
  return {
    name,
    requests: pods.split('').map(() => ({ cpu })),
    movable: pods.split('').map((uid) => ({ metadata: { name: uid, uid } }) as Pod),
    pricePerHour,
    disruptionCost: 1 + pods.length,
    waitsForBusyNodes: false,
    pool: poolOf(generation),
  }
}

export function poolOf(generation: number, limits?: Record<string, string>): NodePool {
  const spec = { template: { spec: {} }, ...(limits && { limits }) }
  return { metadata: { name: 'default', generation }, spec } as NodePool
}
