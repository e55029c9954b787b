/** One row a decision: its launches, how far they have come, and what it does to the price (page.md 2). */
import { counted } from '@tenon/api'
import { NewEntries } from '@tenon/ask/cost'
import type { JournalEntry, JournalWorkload } from '@tenon/operator'

export const foldedKinds = ['launch', 'replace', 'remove', 'refusal', 'failure', 'brake', 'rollout'] as const
type FoldedKind = (typeof foldedKinds)[number]

export interface FoldedDecision {
  /** That of its first entry. */
  readonly id: string
  /** Unix milliseconds. */
  readonly atMs: number
  /** Of its last entry. */
  readonly untilMs: number
  readonly kind: FoldedKind
  readonly reason: string
  /** The workloads and the number of pods, such as `web, 12 pods`; without pods what was done. */
  readonly title: string
  /** What became of it, such as `2 nodes ready`. */
  readonly outcome: string
  readonly nodePools: readonly string[]
  readonly workloads: readonly JournalWorkload[]
  readonly pods: number
  readonly nodes: readonly string[]
  /** Of the price per hour; absent if unknown, or if there is none. */
  readonly effect?: number
  readonly currency?: string
  /** Only decided, not carried out. */
  readonly observed?: true
}

interface DecisionQuery {
  /** Unix milliseconds. */
  readonly fromMs: number
  readonly toMs: number
  readonly nodePool?: string
  readonly kind?: string
  /** A part of the name of a workload, a pool or a node. */
  readonly text?: string
}

interface Row {
  readonly id: string
  readonly atMs: number
  untilMs: number
  kind: FoldedKind
  reason: string
  message: string
  readonly nodePools: Set<string>
  workloads: readonly JournalWorkload[]
  pods: number
  readonly nodes: Set<string>
  before: number | undefined
  after: number | undefined
  currency: string | undefined
  readonly isObserved: boolean
  /** NodeClaims that come, and how far each is. */
  readonly coming: Map<string, Stage>
  /** NodeClaims that go; true: gone. */
  readonly going: Map<string, boolean>
  failures: number
  isGivenUp: boolean
}

const stages = ['created', 'launched', 'registered', 'ready'] as const
type Stage = (typeof stages)[number]
const stageOf: Readonly<Partial<Record<JournalEntry['kind'], Stage>>> = {
  launched: 'launched',
  registered: 'registered',
  initialized: 'ready',
}

/** Two weeks with 1,000 decisions a day; bounds memory to some 30 MiB. */
const mostRows = 20_000
const mostNodes = 20

/** Entries are added oldest first; older ones than the last are ignored. */
export class FoldedDecisions {
  /** In the order of their begin. */
  #rows: Row[] = []
  readonly #byId = new Map<string, Row>()
  /** By NodeClaim: the row that it came with, and the one that it goes with. */
  readonly #coming = new Map<string, Row>()
  readonly #going = new Map<string, Row>()
  readonly #new = new NewEntries()

  add(entry: JournalEntry): void {
    const atMs = Date.parse(entry.at)
    if (!this.#new.take(entry.id, atMs)) return
    switch (entry.kind) {
      case 'decision':
        this.#decide(entry, atMs)
        return
      case 'launch':
        this.#launch(entry, atMs)
        return
      case 'launched':
      case 'registered':
      case 'initialized':
        this.#advance(entry, atMs)
        return
      case 'move':
        this.#move(entry, atMs)
        return
      case 'removal':
        this.#remove(entry, atMs)
        return
      case 'removed':
        this.#removed(entry, atMs)
        return
      case 'refusal':
      case 'failure':
        this.#fail(entry, atMs)
        return
      case 'brake':
      case 'rollout':
        this.#row(entry, atMs, entry.kind)
        return
      case 'seen':
      case 'spend':
    }
  }

  /** Newest first. @param most how many to return. */
  list(
    query: DecisionQuery,
    most: number,
  ): { readonly rows: readonly FoldedDecision[]; readonly all: number } {
    const rows: FoldedDecision[] = []
    let all = 0
    for (let at = this.#rows.length - 1; at >= 0; at--) {
      const row = this.#rows[at]
      if (row === undefined || row.atMs < query.fromMs) break
      if (!fits(row, query)) continue
      all++
      if (rows.length < most) rows.push(shown(row))
    }
    return { rows, all }
  }

  /** Those that change the price most, in a currency. */
  largest(
    { fromMs, toMs, currency }: Pick<DecisionQuery, 'fromMs' | 'toMs'> & { readonly currency: string },
    most: number,
  ): readonly FoldedDecision[] {
    const found = this.#rows.filter(
      (row) =>
        row.atMs >= fromMs &&
        row.atMs < toMs &&
        !row.isObserved &&
        (row.currency ?? '') === currency &&
        (effectOf(row) ?? 0) !== 0,
    )
    return found
      .toSorted((a, b) => Math.abs(effectOf(b) ?? 0) - Math.abs(effectOf(a) ?? 0) || b.atMs - a.atMs)
      .slice(0, most)
      .map(shown)
  }

  get(id: string): FoldedDecision | undefined {
    const row = this.#byId.get(id)
    return row && shown(row)
  }

  /** NodePools that decisions are about. */
  nodePools(): readonly string[] {
    return [...new Set(this.#rows.flatMap(({ nodePools }) => [...nodePools]))].toSorted()
  }

  #decide(entry: JournalEntry, atMs: number): void {
    const row = this.#row(entry, atMs, 'launch')
    row.before = entry.pricePerHour?.before
    row.after = entry.pricePerHour?.after
  }

  #launch(entry: JournalEntry, atMs: number): void {
    const known = this.#byId.get(entry.decision ?? '')
    const row = known ?? this.#row(entry, atMs, 'launch')
    if (entry.nodePool !== undefined) row.nodePools.add(entry.nodePool)
    // The price of a pass, or of a replacement, is in the entry of the decision.
    if (known === undefined) {
      row.before = entry.pricePerHour?.before
      row.after = entry.pricePerHour?.after
    }
    for (const name of entry.nodeClaims) {
      row.coming.set(name, 'created')
      this.#coming.set(name, row)
    }
    row.untilMs = atMs
  }

  #advance(entry: JournalEntry, atMs: number): void {
    const stage = stageOf[entry.kind]
    for (const name of entry.nodeClaims) {
      const row = this.#coming.get(name)
      if (row === undefined || stage === undefined) continue
      row.coming.set(name, stage)
      addSome(row.nodes, entry.nodes)
      row.untilMs = atMs
      if (stage === 'ready') this.#coming.delete(name)
    }
  }

  #move(entry: JournalEntry, atMs: number): void {
    const row = this.#byId.get(entry.decision ?? '') ?? this.#row(entry, atMs, 'remove')
    const { replacements = [] } = entry
    row.kind = replacements.length > 0 ? 'replace' : 'remove'
    row.reason = entry.reason
    row.message = entry.message
    row.before = entry.pricePerHour?.before
    row.after = entry.pricePerHour?.after
    row.currency = entry.currency ?? row.currency
    this.#describe(row, entry)
    for (const name of entry.nodeClaims) {
      row.going.set(name, false)
      this.#going.set(name, row)
    }
    for (const name of replacements) {
      row.coming.set(name, row.coming.get(name) ?? 'created')
      this.#coming.set(name, row)
    }
    row.untilMs = atMs
  }

  #remove(entry: JournalEntry, atMs: number): void {
    const [name] = entry.nodeClaims
    const moved = name === undefined ? undefined : this.#going.get(name)
    if (moved !== undefined) {
      moved.untilMs = atMs
      return
    }
    const row = this.#row(entry, atMs, 'remove')
    row.before = entry.pricePerHour?.before
    row.after = entry.pricePerHour?.after
    for (const each of entry.nodeClaims) {
      row.going.set(each, false)
      this.#going.set(each, row)
    }
  }

  #removed(entry: JournalEntry, atMs: number): void {
    for (const name of entry.nodeClaims) {
      this.#coming.delete(name)
      const row = this.#going.get(name)
      if (row === undefined) continue
      this.#going.delete(name)
      row.going.set(name, true)
      row.untilMs = atMs
    }
  }

  #fail(entry: JournalEntry, atMs: number): void {
    const [name = ''] = entry.nodeClaims
    const row = this.#byId.get(entry.decision ?? '') ?? this.#coming.get(name) ?? this.#going.get(name)
    if (row === undefined || entry.reason === 'NotBegun') {
      this.#row(entry, atMs, entry.kind === 'refusal' ? 'refusal' : 'failure')
      return
    }
    row.failures++
    row.untilMs = atMs
    if (entry.kind !== 'refusal') return
    row.isGivenUp = true
    // Its nodes stay, and may go with another command.
    for (const each of row.going.keys()) if (this.#going.get(each) === row) this.#going.delete(each)
  }

  #row(entry: JournalEntry, atMs: number, kind: FoldedKind): Row {
    const row: Row = {
      id: entry.id,
      atMs,
      untilMs: atMs,
      kind,
      reason: entry.reason,
      message: entry.message,
      nodePools: new Set(),
      workloads: [],
      pods: 0,
      nodes: new Set(),
      before: undefined,
      after: undefined,
      currency: entry.currency,
      isObserved: entry.observed === true,
      coming: new Map(),
      going: new Map(),
      failures: 0,
      isGivenUp: false,
    }
    this.#describe(row, entry)
    this.#rows.push(row)
    this.#byId.set(entry.id, row)
    if (entry.decision !== undefined) this.#byId.set(entry.decision, row)
    if (this.#rows.length > mostRows) this.#dropOldest()
    return row
  }

  #describe(row: Row, { nodePool, nodes, pods }: JournalEntry): void {
    if (nodePool !== undefined) row.nodePools.add(nodePool)
    addSome(row.nodes, nodes)
    if (pods === undefined) return
    row.pods = pods.count
    row.workloads = pods.workloads ?? []
  }

  #dropOldest(): void {
    const dropped = new Set(this.#rows.splice(0, mostRows / 10))
    for (const rows of [this.#byId, this.#coming, this.#going])
      for (const [key, row] of rows) if (dropped.has(row)) rows.delete(key)
  }
}

function addSome(names: Set<string>, more: readonly string[]): void {
  for (const name of more) if (names.size < mostNodes) names.add(name)
}

function fits(row: Row, { fromMs, toMs, kind = '', nodePool = '', text = '' }: DecisionQuery): boolean {
  if (row.atMs < fromMs || row.atMs >= toMs) return false
  if (kind !== '' && row.kind !== kind) return false
  if (nodePool !== '' && !row.nodePools.has(nodePool)) return false
  if (text === '') return true
  const words = [
    ...row.workloads.map(({ namespace, workload }) => `${namespace}/${workload}`),
    ...row.nodePools,
    ...row.nodes,
    ...row.coming.keys(),
    ...row.going.keys(),
    row.reason,
    row.message,
  ]
  return words.some((word) => word.toLowerCase().includes(text.toLowerCase()))
}

function shown(row: Row): FoldedDecision {
  const { atMs, currency, id, isObserved, kind, nodePools, nodes, pods, reason, untilMs, workloads } = row
  const effect = effectOf(row)
  return {
    id,
    atMs,
    untilMs,
    kind,
    reason,
    title: titleOf(row),
    outcome: outcomeOf(row),
    nodePools: [...nodePools].toSorted(),
    workloads,
    pods,
    nodes: [...nodes],
    ...(effect !== undefined && { effect }),
    ...(currency !== undefined && { currency }),
    ...(isObserved && { observed: true }),
  }
}

function effectOf({ after, before, isGivenUp }: Row): number | undefined {
  if (isGivenUp || after === undefined || before === undefined) return undefined
  return after - before
}

function titleOf({ message, pods, workloads }: Row): string {
  if (pods === 0) return message
  const [first, second, ...others] = workloads.map(({ workload }) => workload.split('/').at(-1) ?? workload)
  if (first === undefined) return counted(pods, 'pod')
  const names = [first, ...(second === undefined ? [] : [second])].join(' and ')
  return `${names}${others.length > 0 ? ` and ${others.length} more` : ''}, ${counted(pods, 'pod')}`
}

function outcomeOf({ coming, failures, going, isGivenUp, isObserved }: Row): string {
  const parts = stages.toReversed().flatMap((stage) => {
    const count = [...coming.values()].filter((each) => each === stage).length
    return count === 0 ? [] : [`${counted(count, 'node')} ${stage}`]
  })
  const gone = [...going.values()].filter(Boolean).length
  if (gone > 0) parts.push(`${counted(gone, 'node')} gone`)
  if (going.size > gone && !isGivenUp) parts.push(`${counted(going.size - gone, 'node')} going`)
  if (isGivenUp) parts.push('given up')
  else if (failures > 0) parts.push(counted(failures, 'failure'))
  if (isObserved) parts.push('only observed')
  return parts.join(', ')
}
