/** Tells the failure of a zone or of the cluster from that of single nodes (wanted.md 2). */
import { labels, type Node } from '@tenon/api'

/** Within this long of each other, nodes count as having turned unhealthy together. */
const togetherMs = 10 * 60_000
/** Repair goes on once no further node has turned unhealthy for this long. */
const quietMs = 30 * 60_000
/** Fewer nodes are no mass: with one node in each zone, every failure would be that of a zone. */
const leastNodes = 3
const mostOfZone = 1 / 2
const mostOfCluster = 1 / 3

export interface MassFailure {
  /** Undefined: the cluster. */
  readonly zone?: string
  /** Nodes that turned unhealthy together, of all. */
  readonly nodes: number
  readonly of: number
  /** Unix milliseconds. */
  readonly untilMs: number
}

/**
 * Failures of many nodes at once, which repair waits for until `untilMs`.
 * @param since when the node turned unhealthy, Unix milliseconds; undefined if it is well.
 */
export function massFailures(
  nodes: Iterable<Node>,
  since: (node: Node) => number | undefined,
  nowMs: number,
): readonly MassFailure[] {
  const ofCluster = new Group()
  const ofZones = new Map<string, Group>()
  for (const node of nodes) {
    if (!counts(node)) continue
    const sinceMs = since(node)
    ofCluster.add(sinceMs, nowMs)
    const zone = node.metadata.labels?.[labels.zone]
    if (zone === undefined || zone === '') continue
    const group = ofZones.get(zone) ?? new Group()
    ofZones.set(zone, group)
    group.add(sinceMs, nowMs)
  }
  const zones = Array.from(ofZones, ([zone, group]) => ({ zone, ...group.failure(mostOfZone) }))
  const all = [{ ...ofCluster.failure(mostOfCluster) }, ...zones]
  return all.flatMap((each) => ('untilMs' in each ? [each as MassFailure] : []))
}

/** Nodes that start or go say nothing about the others. */
function counts({ metadata }: Node): boolean {
  if (metadata.deletionTimestamp !== undefined) return false
  return metadata.labels?.[labels.nodePool] === undefined || metadata.labels[labels.initialized] === 'true'
}

class Group {
  #total = 0
  readonly #turnedMs: number[] = []

  add(sinceMs: number | undefined, nowMs: number): void {
    this.#total++
    if (sinceMs !== undefined) this.#turnedMs.push(Math.min(sinceMs, nowMs))
  }

  failure(most: number): Omit<MassFailure, 'zone'> | undefined {
    const nodes = mostTogether(this.#turnedMs.toSorted((a, b) => a - b))
    const untilMs = latest(this.#turnedMs) + quietMs
    if (nodes < leastNodes || nodes <= most * this.#total) return undefined
    return { nodes, of: this.#total, untilMs }
  }
}

function latest(timesMs: readonly number[]): number {
  return timesMs.reduce((last, each) => Math.max(last, each), 0)
}

/** The largest number of times within ten minutes. @param timesMs in order. */
function mostTogether(timesMs: readonly number[]): number {
  let most = 0
  let first = 0
  for (const [at, ms] of timesMs.entries()) {
    while (ms - (timesMs[first] ?? ms) > togetherMs) first++
    most = Math.max(most, at - first + 1)
  }
  return most
}
