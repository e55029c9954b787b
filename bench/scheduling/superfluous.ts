/** Omits sources that the lower bound can do without, so that it stays a small problem. */
import type { Shape, Source } from './offers.ts'

interface Candidate {
  readonly source: Source
  /** One bit for each shape that it may hold. */
  readonly mask: bigint
  readonly hasExclusive: boolean
}

/** Prices are sums of floats: differences below this part of them mean nothing. */
const tolerance = 1e-9

/** The sources that are needed; the bound over them is the bound over all of `offered`. */
export function withoutSuperfluous(offered: readonly Source[], shapes: readonly Shape[]): readonly Source[] {
  const resources = [...new Set(shapes.flatMap(({ requests }) => Object.keys(requests)))]
  const candidates = offered
    .filter(({ hosts }) => hosts.length > 0)
    .map((source) => ({
      source,
      mask: source.hosts.reduce((mask, shape) => mask | (1n << BigInt(shape)), 0n),
      hasExclusive: source.hosts.some((shape) => shapes[shape]?.exclusive !== undefined),
    }))
    // Those that replace many others first.
    .toSorted(
      (a, b) =>
        b.source.hosts.length - a.source.hosts.length || a.source.pricePerHour - b.source.pricePerHour,
    )
  const needed = new Set(candidates)
  for (const a of candidates.toReversed()) {
    const others = [...needed].filter((b) => b !== a && (a.mask & b.mask) === a.mask)
    // One after the other leaves, so that of two which can replace each other one stays.
    if (others.some((b) => replaces(a, b, resources))) needed.delete(a)
  }
  return [...needed].map(({ source }) => source)
}

/**
 * Whether some number of nodes `b` for each node `a` is as large and no more expensive. Where pods exclude each
 * other, nodes count as well, so that it takes one at least.
 */
function replaces(a: Candidate, b: Candidate, resources: readonly string[]): boolean {
  let nodes = a.hasExclusive ? 1 : 0
  for (const name of resources) {
    const [wanted, had] = [a.source.capacity[name] ?? 0, b.source.capacity[name] ?? 0]
    if (wanted > 0) nodes = Math.max(nodes, had > 0 ? wanted / had : Number.POSITIVE_INFINITY)
  }
  return nodes * b.source.pricePerHour <= a.source.pricePerHour * (1 + tolerance)
}
