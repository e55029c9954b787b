/** Drops sources that the lower bound does not need, so that it stays a small problem. */
import type { Shape, Source } from './offers.ts'

interface Candidate {
  readonly source: Source
  /** One bit for each shape that fits. */
  readonly mask: bigint
  readonly hasExclusive: boolean
}

/** Prices are sums of floats: smaller relative differences are rounding errors. */
const tolerance = 1e-9

/** The sources that are needed; the bound with them equals the bound with all of `offered`. */
export function withoutSuperfluous(offered: readonly Source[], shapes: readonly Shape[]): readonly Source[] {
  const resources = [...new Set(shapes.flatMap(({ requests }) => Object.keys(requests)))]
  const candidates = offered
    .filter(({ hosts }) => hosts.length > 0)
    .map((source) => ({
      source,
      mask: source.hosts.reduce((mask, shape) => mask | (1n << BigInt(shape)), 0n),
      hasExclusive: source.hosts.some((shape) => shapes[shape]?.exclusive !== undefined),
    }))
    // Those that can replace many others first.
    .toSorted(
      (a, b) =>
        b.source.hosts.length - a.source.hosts.length || a.source.pricePerHour - b.source.pricePerHour,
    )
  const needed = new Set(candidates)
  for (const a of candidates.toReversed()) {
    const others = [...needed].filter((b) => b !== a && (a.mask & b.mask) === a.mask)
    // One by one, so that of two sources that can replace each other one stays.
    if (others.some((b) => replaces(a, b, resources))) needed.delete(a)
  }
  return [...needed].map(({ source }) => source)
}

/**
 * Whether some number of nodes `b` per node `a` is as large and not more expensive. If pods exclude each other,
 * the number of nodes matters too, so at least one is needed.
 */
function replaces(a: Candidate, b: Candidate, resources: readonly string[]): boolean {
  let nodes = a.hasExclusive ? 1 : 0
  for (const name of resources) {
    const [wanted, had] = [a.source.capacity[name] ?? 0, b.source.capacity[name] ?? 0]
    if (wanted > 0) nodes = Math.max(nodes, had > 0 ? wanted / had : Number.POSITIVE_INFINITY)
  }
  return nodes * b.source.pricePerHour <= a.source.pricePerHour * (1 + tolerance)
}
