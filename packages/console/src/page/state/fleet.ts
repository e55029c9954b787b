/** The nodes that existed before and after a journal entry. */
import type { Simulation } from '@tenon/ask'
import type { PageNodeRow } from '../../model/page-view.ts'
import type { DecisionRow } from '../../model/view.ts'

/** A node, identified by its NodeClaim. */
export interface FleetNode {
  readonly name: string
  readonly nodePool?: string
  readonly type?: string
  /** Absent if unknown. */
  readonly pricePerHour?: number
  readonly role: 'stays' | 'goes' | 'comes'
}

interface Life {
  bornAt?: string
  goneAt?: string
  nodePool?: string
  type?: string
  pricePerHour?: number
}

/** Claims whose launch is not in the journal existed from the start. */
export function fleetAt(
  journal: readonly DecisionRow[],
  present: readonly PageNodeRow[],
  entry: DecisionRow,
): { readonly before: readonly FleetNode[]; readonly after: readonly FleetNode[] } {
  const lives = livesOf(journal, present)
  const comes = new Set(
    entry.kind === 'move'
      ? (entry.replacements ?? [])
      : entry.kind === 'decision'
        ? journal.flatMap((each) => (isBirth(each) && each.decision === entry.id ? each.nodeClaims : []))
        : isBirth(entry)
          ? entry.nodeClaims
          : [],
  )
  const goes = new Set(['move', 'removal', 'removed'].includes(entry.kind) ? entry.nodeClaims : [])
  const alive = [...lives]
    .filter(([name, { bornAt, goneAt }]) => {
      const isBorn = bornAt === undefined || bornAt <= entry.at
      const isThere = goneAt === undefined || goneAt >= entry.at
      return (isBorn && isThere) || comes.has(name) || goes.has(name)
    })
    .map(([name, life]) => nodeOf(name, life))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
  return {
    before: alive
      .filter(({ name }) => !comes.has(name))
      .map((node) => ({ ...node, role: goes.has(node.name) ? 'goes' : 'stays' })),
    after: alive
      .filter(({ name }) => !goes.has(name))
      .map((node) => ({ ...node, role: comes.has(node.name) ? 'comes' : 'stays' })),
  }
}

/**
 * The nodes now, and after a simulated change.
 * @param present the nodes that are there.
 */
export function fleetAfter(
  present: readonly PageNodeRow[],
  { added, drifted, removed }: Simulation['nodes'],
): { readonly before: readonly FleetNode[]; readonly after: readonly FleetNode[] } {
  const going = new Set([...drifted, ...removed].map(({ nodeClaim }) => nodeClaim))
  const before = present.map((row): FleetNode => {
    const name = row.nodeClaim ?? row.name
    return {
      ...nodeOf(name, {
        ...(row.nodePool !== undefined && { nodePool: row.nodePool }),
        ...(row.instanceType !== undefined && { type: row.instanceType }),
        ...(row.pricePerHour !== undefined && { pricePerHour: row.pricePerHour }),
      }),
      role: going.has(name) ? 'goes' : 'stays',
    }
  })
  const comes = added.flatMap(({ count, instanceType, nodePool, pricePerHour }) =>
    Array.from(
      { length: count },
      (_, at): FleetNode => ({
        name: `${simulated}${nodePool}/${instanceType}/${at}`,
        nodePool,
        type: instanceType,
        ...(pricePerHour !== undefined && { pricePerHour }),
        role: 'comes',
      }),
    ),
  )
  return { before, after: [...before.filter(({ role }) => role === 'stays'), ...comes] }
}

/** No name of an object begins so. */
const simulated = '+'

/** Whether the node exists in a simulation only, and has no name. */
export function isSimulated({ name }: FleetNode): boolean {
  return name.startsWith(simulated)
}

function isBirth({ kind }: DecisionRow): boolean {
  return kind === 'launch' || kind === 'launched'
}

function livesOf(
  journal: readonly DecisionRow[],
  present: readonly PageNodeRow[],
): ReadonlyMap<string, Life> {
  const lives = new Map<string, Life>()
  const lifeOf = (name: string) => {
    const life = lives.get(name) ?? {}
    lives.set(name, life)
    return life
  }
  for (const row of present) {
    if (row.nodeClaim === undefined) continue
    const life = lifeOf(row.nodeClaim)
    if (row.instanceType !== undefined) life.type = row.instanceType
    if (row.nodePool !== undefined) life.nodePool = row.nodePool
    if (row.pricePerHour !== undefined) life.pricePerHour = row.pricePerHour
    if (row.createdAt !== undefined) life.bornAt = row.createdAt
  }
  for (const entry of journal) {
    if (entry.observed === true) continue
    for (const name of entry.nodeClaims) noteEntry(lifeOf(name), entry)
  }
  return lives
}

function noteEntry(life: Life, entry: DecisionRow): void {
  const { at, kind, message, nodePool, pricePerHour } = entry
  if (nodePool !== undefined) life.nodePool ??= nodePool
  if (isBirth(entry)) {
    if (life.bornAt === undefined || at < life.bornAt) life.bornAt = at
    if (pricePerHour?.after !== undefined) life.pricePerHour ??= pricePerHour.after
    const type = /^An instance was launched: ([^,]+),/.exec(message)?.[1]
    if (type !== undefined) life.type ??= type
  }
  if (kind === 'removed') life.goneAt = at
}

function nodeOf(name: string, { nodePool, pricePerHour, type }: Life): Omit<FleetNode, 'role'> {
  return {
    name,
    ...(nodePool !== undefined && { nodePool }),
    ...(type !== undefined && { type }),
    ...(pricePerHour !== undefined && { pricePerHour }),
  }
}
