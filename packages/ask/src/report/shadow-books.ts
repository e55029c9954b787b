/**
 * What each node costs beside what Tenon would have paid for its pods (adoption.md 2). Memory grows with the nodes and launches
 * of one moment.
 */
import type { JournalInstance } from '@tenon/operator'
import { Extremes } from './extremes.ts'

/** A period in Unix milliseconds. */
export interface Period {
  readonly fromMs: number
  readonly toMs: number
}

/** What one node, or one launch for pods that got no new node, costs in both worlds. */
export interface ShadowCase {
  /** Of a launch there is no node; its name is the id of its entry in the journal. */
  readonly kind: 'node' | 'launch'
  readonly name: string
  readonly nodePool?: string
  readonly instanceType?: string
  /** Types that Tenon would have launched in its place, at least at first; absent if none. */
  readonly planned?: readonly string[]
  /** The last reason to remove or replace it, such as `Underutilized`. */
  readonly reason?: string
  /** Totals in the currency, not rates. */
  readonly other: number
  readonly tenon: number
  readonly difference: number
}

/** A launch that was decided and not carried out. */
interface PlannedLaunch {
  readonly id: string
  readonly nodePool: string | undefined
  readonly instance: JournalInstance
  /** Pods that it was decided for, at least 1. */
  readonly pods: number
  /** Of them those that have no node yet. */
  waiting: number
  /** What it has cost for these. */
  cost: number
  /** Counted until this time, Unix milliseconds. */
  countedMs: number
}

/**
 * `kept`: the node is there in both worlds. `pending`: it came, and no pod tells yet what was decided. `planned`: Tenon would
 * have launched others in its place. `unknown`: nothing was decided for its pods, or no node at all.
 */
type Standing = 'kept' | 'pending' | 'planned' | 'unknown'

export interface SeenLine {
  readonly name: string
  readonly nodePool: string | undefined
  instance: JournalInstance
  standing: Standing
  /** Whether other pods run there than those that a launch was decided for. */
  isShared: boolean
  /** Pods on it of each planned launch. */
  readonly shares: Map<PlannedLaunch, number>
  /** Types of all launches that were decided for its pods. */
  readonly planned: Set<string>
  /** A removal or replacement that would have begun: the part of this node. */
  move: { readonly id: string; readonly price: number | undefined; readonly nodes: number } | undefined
  lastReason: string | undefined
  countedMs: number
  /** While `pending`: what is not attributed yet. */
  open: { hours: number; cost: number | undefined }
  other: number
  tenon: number
}

/** Totals or rates of a node; undefined where unknown. */
interface Amounts {
  readonly other: number | undefined
  readonly tenon: number | undefined
  /** As `tenon`, had no move begun. */
  readonly unmoved: number | undefined
  /** Nodes that Tenon has in its place. */
  readonly nodes: number | undefined
}

export interface BookTotals {
  other: number
  tenon: number
  /** Of the difference what removals and replacements make. */
  byMoves: number
  /** Hours of nodes and launches that are in the costs. */
  comparedHours: number
  unpricedHours: number
  undecidedHours: number
  undecidedCost: number
  nodeHoursOther: number
  nodeHoursTenon: number
}

const hourMs = 3_600_000
const mostCases = 50

export class ShadowBooks {
  readonly window: Period
  readonly #lines = new Map<string, SeenLine>()
  readonly #launches = new Map<string, PlannedLaunch>()
  /** Names of nodes, by id of the move. */
  readonly #moves = new Map<string, readonly string[]>()
  readonly cases: Extremes<ShadowCase> = new Extremes(mostCases, ({ difference }) => difference)
  readonly totals: BookTotals = {
    other: 0,
    tenon: 0,
    byMoves: 0,
    comparedHours: 0,
    unpricedHours: 0,
    undecidedHours: 0,
    undecidedCost: 0,
    nodeHoursOther: 0,
    nodeHoursTenon: 0,
  }

  /** @param window only what falls into it is counted. */
  constructor(window: Period) {
    this.window = window
  }

  get(name: string): SeenLine | undefined {
    return this.#lines.get(name)
  }

  names(): IterableIterator<string> {
    return this.#lines.keys()
  }

  hours(fromMs: number, toMs: number): number {
    const { window } = this
    return Math.max(0, Math.min(toMs, window.toMs) - Math.max(fromMs, window.fromMs)) / hourMs
  }

  open(
    name: string,
    { nodePool, instance, standing }: Pick<SeenLine, 'instance' | 'nodePool' | 'standing'>,
    atMs: number,
  ): void {
    this.close(name, atMs)
    this.#lines.set(name, {
      name,
      nodePool,
      instance,
      standing,
      isShared: false,
      shares: new Map(),
      planned: new Set(),
      move: undefined,
      lastReason: undefined,
      countedMs: atMs,
      open: { hours: 0, cost: 0 },
      other: 0,
      tenon: 0,
    })
  }

  reprice(line: SeenLine, instance: JournalInstance, atMs: number): void {
    this.#count(line, atMs)
    line.instance = instance
  }

  /** The node is gone. */
  close(name: string, atMs: number): void {
    const line = this.#lines.get(name)
    if (line === undefined) return
    this.#count(line, atMs)
    if (line.standing === 'pending') this.forget(line, atMs)
    this.#lines.delete(name)
    const { instance, lastReason, nodePool, other, planned, tenon } = line
    if (other === tenon) return
    this.cases.add({
      kind: 'node',
      name,
      ...(nodePool !== undefined && { nodePool }),
      ...(instance.instanceType !== undefined && { instanceType: instance.instanceType }),
      ...(planned.size > 0 && { planned: [...planned] }),
      ...(lastReason !== undefined && { reason: lastReason }),
      other,
      tenon,
      difference: tenon - other,
    })
  }

  /** The observer ends: what was decided has no effect on the next one. */
  closeAll(atMs: number): void {
    for (const name of this.#lines.keys()) this.close(name, atMs)
    for (const launch of this.#launches.values()) {
      this.#countLaunch(launch, atMs)
      this.#closeLaunch(launch)
    }
    this.#moves.clear()
  }

  /** Nothing is known of this time. */
  skip({ fromMs, toMs }: Period): void {
    for (const line of this.#lines.values()) {
      this.#count(line, fromMs)
      line.countedMs = toMs
    }
    for (const launch of this.#launches.values()) {
      this.#countLaunch(launch, fromMs)
      launch.countedMs = toMs
    }
  }

  launch(launch: Pick<PlannedLaunch, 'id' | 'instance' | 'nodePool' | 'pods'>, atMs: number): void {
    // Ids are unique but in a damaged journal.
    this.podsGone(launch.id, Number.POSITIVE_INFINITY, atMs)
    this.#launches.set(launch.id, { ...launch, waiting: launch.pods, cost: 0, countedMs: atMs })
  }

  /** Pods of a launch ended before they had a node. */
  podsGone(id: string, pods: number, atMs: number): void {
    const launch = this.#launches.get(id)
    if (launch !== undefined) this.#settle(launch, pods, undefined, atMs)
  }

  /** Pods of a launch have got a node. */
  bound(line: SeenLine | undefined, id: string, pods: number, atMs: number): void {
    const launch = this.#launches.get(id)
    if (line !== undefined) this.#count(line, atMs)
    if (launch === undefined) {
      if (line !== undefined) this.forget(line, atMs)
      return
    }
    if (line?.standing === 'pending') {
      // Until now Tenon had the launch in its place, which is counted for itself.
      this.#attribute(line, { tenon: 0, unmoved: 0, nodes: 0 })
      line.standing = line.isShared ? 'kept' : 'planned'
    }
    this.#settle(launch, pods, line?.standing === 'planned' ? line : undefined, atMs)
  }

  /** Other pods run there, too: Tenon might have needed a node for them, and is taken to have this one. */
  share(line: SeenLine, atMs: number): void {
    line.isShared = true
    if (line.standing === 'planned') this.keep(line, atMs)
  }

  /** Tenon has the node, too. */
  keep(line: SeenLine, atMs: number): void {
    if (line.standing === 'unknown') return
    this.#count(line, atMs)
    if (line.standing === 'pending') {
      const { cost, hours } = line.open
      this.#attribute(line, { tenon: cost, unmoved: cost, nodes: hours })
    }
    line.standing = 'kept'
    line.shares.clear()
  }

  /** It is not known what Tenon would have in place of a new node. */
  forget(line: SeenLine, atMs: number): void {
    if (line.standing === 'planned') this.keep(line, atMs)
    if (line.standing !== 'pending') return
    this.#count(line, atMs)
    this.#attribute(line, { tenon: undefined, unmoved: undefined, nodes: undefined })
    line.standing = 'unknown'
  }

  /** @param after of all nodes in place of them; undefined if the price is unknown. */
  move(
    id: string,
    names: readonly string[],
    {
      after,
      nodes,
      reason,
    }: { readonly after: number | undefined; readonly nodes: number; readonly reason: string },
    atMs: number,
  ): void {
    const part = 1 / Math.max(1, names.length)
    this.#moves.set(id, names)
    for (const name of names) {
      const line = this.#lines.get(name)
      if (line === undefined) continue
      this.#count(line, atMs)
      line.move = { id, price: after === undefined ? undefined : after * part, nodes: nodes * part }
      line.lastReason = reason
    }
  }

  moveEnded(id: string, atMs: number): void {
    for (const name of this.#moves.get(id) ?? []) {
      const line = this.#lines.get(name)
      if (line?.move?.id !== id) continue
      this.#count(line, atMs)
      line.move = undefined
    }
    this.#moves.delete(id)
  }

  /** @param line takes over what the launch has cost for these pods, and costs from now on. */
  #settle(launch: PlannedLaunch, pods: number, line: SeenLine | undefined, atMs: number): void {
    this.#countLaunch(launch, atMs)
    const settled = Math.min(pods, launch.waiting)
    if (line !== undefined && settled > 0) {
      const cost = (launch.cost * settled) / launch.waiting
      launch.cost -= cost
      line.tenon += cost
      line.shares.set(launch, (line.shares.get(launch) ?? 0) + settled)
      line.planned.add(typeOf(launch))
    }
    launch.waiting -= settled
    if (launch.waiting <= 0) this.#closeLaunch(launch)
  }

  #countLaunch(launch: PlannedLaunch, toMs: number): void {
    const hours = (this.hours(launch.countedMs, toMs) * launch.waiting) / launch.pods
    launch.countedMs = Math.max(launch.countedMs, toMs)
    this.totals.nodeHoursTenon += hours
    const { pricePerHour } = launch.instance
    if (pricePerHour === undefined) {
      this.totals.unpricedHours += hours
      return
    }
    launch.cost += hours * pricePerHour
    this.totals.tenon += hours * pricePerHour
    this.totals.comparedHours += hours
  }

  #closeLaunch(launch: PlannedLaunch): void {
    this.#launches.delete(launch.id)
    const { id, cost, nodePool } = launch
    if (cost === 0) return
    this.cases.add({
      kind: 'launch',
      name: id,
      ...(nodePool !== undefined && { nodePool }),
      planned: [typeOf(launch)],
      other: 0,
      tenon: cost,
      difference: cost,
    })
  }

  #count(line: SeenLine, toMs: number): void {
    const hours = this.hours(line.countedMs, toMs)
    line.countedMs = Math.max(line.countedMs, toMs)
    if (hours === 0) return
    const { other, tenon, unmoved, nodes } = ratesOf(line)
    if (line.standing === 'pending') {
      const { open } = line
      line.open = { hours: open.hours + hours, cost: sum(open.cost, times(other, hours)) }
      return
    }
    this.#book(line, hours, {
      other: times(other, hours),
      tenon: times(tenon, hours),
      unmoved: times(unmoved, hours),
      nodes: times(nodes, hours),
    })
  }

  /** Books the time for which it was not known whom the node is for. */
  #attribute(line: SeenLine, amounts: Omit<Amounts, 'other'>): void {
    const { cost, hours } = line.open
    line.open = { hours: 0, cost: 0 }
    if (hours > 0) this.#book(line, hours, { other: cost, ...amounts })
  }

  #book(line: SeenLine, hours: number, { other, tenon, unmoved, nodes }: Amounts): void {
    const { totals } = this
    if (nodes === undefined) {
      totals.undecidedHours += hours
      totals.undecidedCost += other ?? 0
      if (other === undefined) totals.unpricedHours += hours
      return
    }
    totals.nodeHoursOther += hours
    totals.nodeHoursTenon += nodes
    if (other === undefined || tenon === undefined) {
      totals.unpricedHours += hours
      return
    }
    line.other += other
    line.tenon += tenon
    totals.other += other
    totals.tenon += tenon
    totals.comparedHours += hours
    totals.byMoves += tenon - (unmoved ?? tenon)
  }

  /** Forgets moves of nodes that are gone, whose end is missing in the journal. */
  tidy(): void {
    for (const [id, names] of this.#moves)
      if (names.every((name) => this.#lines.get(name)?.move?.id !== id)) this.#moves.delete(id)
  }
}

/** Per hour. */
function ratesOf(line: SeenLine): Amounts {
  const { instance, move, standing } = line
  const other = instance.pricePerHour
  const base =
    standing === 'kept'
      ? { tenon: other, nodes: 1 }
      : standing === 'planned'
        ? plannedRates(line)
        : { tenon: undefined, nodes: undefined }
  // A planned node is not replaced by one that costs more.
  const isKept =
    move === undefined ||
    base.nodes === undefined ||
    (standing === 'planned' && base.tenon !== undefined && (move.price ?? base.tenon) >= base.tenon)
  return isKept
    ? { other, ...base, unmoved: base.tenon }
    : { other, tenon: move.price, nodes: move.nodes, unmoved: base.tenon }
}

/** Each launch counts for the part of its pods that runs there. */
function plannedRates({ shares }: SeenLine): Pick<Amounts, 'nodes' | 'tenon'> {
  let tenon: number | undefined = 0
  let nodes = 0
  for (const [{ instance, pods }, here] of shares) {
    nodes += here / pods
    tenon = sum(tenon, times(instance.pricePerHour, here / pods))
  }
  return { tenon, nodes }
}

const typeOf = ({ instance }: Pick<PlannedLaunch, 'instance'>): string => instance.instanceType ?? 'unknown'

function times(rate: number | undefined, hours: number): number | undefined {
  return rate === undefined ? undefined : rate * hours
}

function sum(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? undefined : one + other
}
