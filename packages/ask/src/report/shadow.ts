/**
 * Compares what Tenon would have done with what another autoscaler did, from the journal of a controller that only observes
 * (adoption.md 2).
 */
import type { JournalEntry, JournalInstance } from '@tenon/operator'
import { type Period, ShadowBooks, type ShadowCase } from './shadow-books.ts'

/** A pod that got a node, and would not have got one from Tenon. */
export interface LeftPod {
  readonly at: string
  readonly pod: string
  readonly node: string
  readonly why: string
}

/** Counts and sums of both; `difference` is Tenon's minus the other's. What is unknown is in none of them. */
export interface ShadowComparison {
  /** What the journal has of the period that was asked for; absent if it has nothing. */
  readonly covered?: Period & { readonly hours: number }
  /** The first times without observation. */
  readonly gaps: readonly Period[]
  readonly gapCount: number
  readonly gapHours: number
  /** How often observing began anew: then both begin with the nodes that exist. */
  readonly restarts: number
  readonly currency?: string
  /** Absent if no cost can be compared. */
  readonly cost?: {
    readonly other: number
    readonly tenon: number
    readonly difference: number
    /** The parts of the difference. */
    readonly byLaunches: number
    readonly byMoves: number
  }
  /** Largest differences first. With `otherCases` they sum up to the difference of the costs. */
  readonly cases: readonly ShadowCase[]
  readonly otherCases: { readonly count: number; readonly difference: number }
  readonly notCompared: {
    /** Node hours. */
    readonly unpricedHours: number
    /** Node hours for which it is unknown what Tenon would have had, and what they cost as far as that is known. */
    readonly undecidedHours: number
    readonly undecidedCost: number
    readonly unpricedLaunches: number
    /** Entries with prices in another currency. */
    readonly otherCurrency: number
    /** The first types without a price. */
    readonly types: readonly string[]
  }
  /** Of the hours in which the nodes of both are known. */
  readonly nodeHours: { readonly other: number; readonly tenon: number }
  readonly launches: {
    readonly other: number
    readonly tenon: number
    readonly byType: readonly {
      readonly instanceType: string
      readonly other: number
      readonly tenon: number
    }[]
    /** Nodes for whose pods Tenon saw room on a node that existed. */
    readonly hadRoom: number
  }
  readonly removals: { readonly other: number; readonly tenon: number; readonly replacements: number }
  /** Pods that have to move. Of the other's removals without notice they are unknown. */
  readonly evictions: { readonly other: number; readonly tenon: number; readonly unknownRemovals: number }
  /** How long pods waited for a node, of those for which both are known. */
  readonly waiting: {
    readonly pods: number
    readonly otherSeconds: number
    readonly tenonSeconds: number
    readonly podsNotCompared: number
  }
  /** The first pods that Tenon would have left without a node. */
  readonly leftPods: readonly LeftPod[]
  readonly leftPodCount: number
}

/** The controller notes at least one entry in five minutes. */
const silenceMs = 11 * 60_000
const mostNamed = 100
const mostTypes = 1000

export class ShadowReader {
  readonly #window: Period
  readonly #books: ShadowBooks
  readonly #byType = new Map<string, { other: number; tenon: number }>()
  readonly #unpricedTypes = new Set<string>()
  readonly #gaps: Period[] = []
  readonly #leftPods: LeftPod[] = []
  /** When a census named a node last, by name. */
  readonly #confirmedMs = new Map<string, number>()
  #currency: string | undefined
  /** Whether all nodes are known: from the first census of an observer on. */
  #isOpen = false
  #firstMs: number | undefined
  /** Since the last interruption. */
  #spanFromMs = 0
  #lastMs = Number.NEGATIVE_INFINITY
  /** During the first census. */
  #isOpening = false
  #censusMs = Number.NEGATIVE_INFINITY
  /** Whether no `Observing` has followed the last census. */
  #isCensusNew = false
  #coveredHours = 0
  readonly #counts = {
    gaps: 0,
    gapHours: 0,
    restarts: 0,
    unpricedLaunches: 0,
    otherCurrency: 0,
    launchesOther: 0,
    launchesTenon: 0,
    hadRoom: 0,
    removedByOther: 0,
    removedByTenon: 0,
    replacements: 0,
    evictionsOther: 0,
    evictionsTenon: 0,
    unknownRemovals: 0,
    waitingPods: 0,
    otherSeconds: 0,
    tenonSeconds: 0,
    podsNotCompared: 0,
    leftPods: 0,
  }

  /** @param window what is before it is read for the nodes that exist then. */
  constructor(window: Period) {
    this.#window = window
    this.#books = new ShadowBooks(window)
  }

  /** Takes entries of one journal, oldest first. Those that are not of an observer are ignored. */
  add(entry: JournalEntry): void {
    // A clock that was set back does not make hours negative.
    const atMs = Math.max(Date.parse(entry.at), this.#lastMs)
    if (atMs > this.#window.toMs) return
    if (entry.kind === 'seen') this.#seen(entry, atMs)
    else if (entry.observed === true && this.#isOpen && atMs - this.#lastMs <= silenceMs)
      this.#decided(entry, atMs)
  }

  /** Call it once, after the last entry. */
  result(): ShadowComparison {
    const { toMs } = this.#window
    if (this.#isOpen) {
      const isSilent = toMs - this.#lastMs > silenceMs
      const endMs = isSilent ? this.#lastMs : toMs
      this.#endSpan(endMs)
      if (isSilent) this.#noteGap({ fromMs: endMs, toMs })
    } else if (this.#firstMs !== undefined) this.#noteGap({ fromMs: this.#lastMs, toMs })
    return this.#comparison()
  }

  #seen(entry: JournalEntry, atMs: number): void {
    this.#currency ??= entry.currency
    if (entry.reason === 'ObservingBegan') {
      this.#begin(atMs)
      return
    }
    if (entry.reason === 'NodesPresent') this.#census(entry, atMs)
    if (!this.#isOpen) return
    if (atMs - this.#lastMs > silenceMs) this.#skip({ fromMs: this.#lastMs, toMs: atMs })
    this.#lastMs = atMs
    if (entry.reason === 'Observing') this.#dropUnconfirmed()
    else if (entry.reason.startsWith('Node')) this.#nodeChanged(entry, atMs)
    else if (entry.reason === 'PodsGone')
      this.#books.podsGone(entry.decision ?? '', entry.pods?.count ?? 0, atMs)
    else this.#podsBound(entry, atMs)
  }

  /** Another process observes, which knows nothing of what was decided before. */
  #begin(atMs: number): void {
    if (this.#isOpen) {
      this.#endSpan(this.#lastMs)
      this.#noteGap({ fromMs: this.#lastMs, toMs: atMs })
    }
    if (this.#firstMs !== undefined && this.#isIn(atMs)) this.#counts.restarts++
    this.#isOpen = false
    this.#isCensusNew = false
    this.#lastMs = atMs
  }

  #endSpan(atMs: number): void {
    this.#books.closeAll(atMs)
    this.#confirmedMs.clear()
    this.#coveredHours += this.#books.hours(this.#spanFromMs, atMs)
  }

  #skip(gap: Period): void {
    this.#books.skip(gap)
    this.#coveredHours += this.#books.hours(this.#spanFromMs, gap.fromMs)
    this.#spanFromMs = gap.toMs
    this.#noteGap(gap)
  }

  #noteGap(gap: Period): void {
    const hours = this.#books.hours(gap.fromMs, gap.toMs)
    if (hours === 0) return
    this.#counts.gaps++
    this.#counts.gapHours += hours
    if (this.#gaps.length < mostNamed) this.#gaps.push(gap)
  }

  #census(entry: JournalEntry, atMs: number): void {
    if (!this.#isOpen) {
      this.#isOpen = true
      this.#isOpening = true
      this.#spanFromMs = atMs
      this.#firstMs ??= atMs
      this.#lastMs = atMs
    }
    // A census has several entries, of slightly different times.
    if (!this.#isCensusNew) this.#censusMs = atMs
    this.#isCensusNew = true
    const { instances = [], nodeClaims, nodes } = entry
    for (const [at, name] of (nodeClaims.length > 0 ? nodeClaims : nodes).entries()) {
      this.#confirmedMs.set(name, atMs)
      if (this.#books.get(name) !== undefined) continue
      // Of one whose arrival is missing in the journal it is not known what was decided.
      const standing = this.#isOpening ? 'kept' : 'unknown'
      this.#open(name, { nodePool: undefined, instance: this.#priced(entry, instances[at]), standing }, atMs)
    }
  }

  #open(name: string, line: Parameters<ShadowBooks['open']>[1], atMs: number): void {
    this.#books.open(name, line, atMs)
    this.#noteUnpriced(line.instance)
  }

  /** The removal of nodes that a census lacks is missing in the journal. */
  #dropUnconfirmed(): void {
    if (!this.#isCensusNew) return
    this.#isCensusNew = false
    this.#isOpening = false
    for (const name of this.#books.names())
      if ((this.#confirmedMs.get(name) ?? 0) < this.#censusMs) this.#close(name, this.#censusMs)
    this.#books.tidy()
  }

  #close(name: string, atMs: number): void {
    this.#books.close(name, atMs)
    this.#confirmedMs.delete(name)
  }

  #nodeChanged(entry: JournalEntry, atMs: number): void {
    const name = keyOf(entry)
    const instance = this.#priced(entry, entry.instances?.[0])
    const line = this.#books.get(name)
    const isIn = this.#isIn(atMs)
    if (entry.reason === 'NodeRepriced' && line !== undefined) this.#books.reprice(line, instance, atMs)
    if (entry.reason === 'NodeJoined') {
      this.#open(name, { nodePool: entry.nodePool, instance, standing: 'pending' }, atMs)
      this.#confirmedMs.set(name, atMs)
      if (isIn) this.#countLaunch('other', instance)
    }
    if (entry.reason !== 'NodeLeft') return
    this.#close(name, atMs)
    if (!isIn) return
    this.#counts.removedByOther++
    if (entry.pods === undefined) this.#counts.unknownRemovals++
    else this.#counts.evictionsOther += entry.pods.count
  }

  #podsBound(entry: JournalEntry, atMs: number): void {
    const isIn = this.#isIn(atMs)
    const line = this.#books.get(keyOf(entry))
    const { decision = '', pods, reason } = entry
    if (isIn) this.#countWaiting(entry)
    if (reason === 'PodsBound') this.#books.bound(line, decision, pods?.count ?? 0, atMs)
    if (reason === 'PodsRefused' && isIn) this.#noteLeft(entry)
    if (line === undefined) return
    if (reason === 'PodsHadRoom' && line.standing === 'pending' && isIn) this.#counts.hadRoom++
    if (reason === 'PodsJoined') this.#books.share(line, atMs)
    if (reason === 'PodsPlaced' || reason === 'PodsHadRoom') this.#books.keep(line, atMs)
    if (reason === 'PodsRefused' || reason === 'PodsUndecided') this.#books.forget(line, atMs)
  }

  #countWaiting({ pods, reason, waiting }: JournalEntry): void {
    if (waiting === undefined || pods === undefined) return
    const counts = this.#counts
    // On the node that Tenon would have left them to they wait as long.
    const planned = reason === 'PodsPlaced' ? waiting.seconds : waiting.plannedSeconds
    if (planned === undefined) {
      counts.podsNotCompared += pods.count
      return
    }
    counts.waitingPods += pods.count
    counts.otherSeconds += waiting.seconds
    counts.tenonSeconds += planned
  }

  #noteLeft({ at, message, nodes, pods }: JournalEntry): void {
    this.#counts.leftPods += pods?.count ?? 0
    for (const pod of pods?.names ?? [])
      if (this.#leftPods.length < mostNamed)
        this.#leftPods.push({
          at,
          pod,
          node: nodes[0] ?? '',
          why: message.replace(/^.*?no node would have been launched: /, ''),
        })
  }

  #decided(entry: JournalEntry, atMs: number): void {
    const { id, instances = [], nodeClaims, nodePool, pods, reason } = entry
    const isIn = this.#isIn(atMs)
    if (entry.kind === 'launch') {
      const instance = this.#priced(entry, instances[0])
      if (isIn) this.#countLaunch('tenon', instance)
      if (pods !== undefined && pods.count > 0)
        this.#books.launch({ id, nodePool, instance, pods: pods.count }, atMs)
    }
    if (entry.kind === 'move') {
      const after = entry.pricePerHour?.after
      const { pricePerHour } = this.#priced(entry, after === undefined ? {} : { pricePerHour: after })
      this.#books.move(id, nodeClaims, { after: pricePerHour, nodes: instances.length, reason }, atMs)
      if (!isIn) return
      this.#counts.removedByTenon += nodeClaims.length
      this.#counts.replacements += instances.length
      this.#counts.evictionsTenon += pods?.count ?? 0
    }
    if (entry.kind === 'refusal') this.#books.moveEnded(entry.decision ?? '', atMs)
  }

  #countLaunch(by: 'other' | 'tenon', instance: JournalInstance): void {
    this.#counts[by === 'other' ? 'launchesOther' : 'launchesTenon']++
    const { instanceType = 'unknown', pricePerHour } = instance
    if (pricePerHour === undefined && by === 'tenon') this.#counts.unpricedLaunches++
    this.#noteUnpriced(instance)
    const counted = this.#byType.get(instanceType) ?? { other: 0, tenon: 0 }
    counted[by]++
    if (this.#byType.size < mostTypes) this.#byType.set(instanceType, counted)
  }

  #noteUnpriced({ instanceType = 'unknown', pricePerHour }: JournalInstance): void {
    if (pricePerHour === undefined && this.#unpricedTypes.size < mostNamed)
      this.#unpricedTypes.add(instanceType)
  }

  /** A price in another currency is as unknown as none. */
  #priced({ currency }: JournalEntry, instance: JournalInstance = {}): JournalInstance {
    const { pricePerHour, ...rest } = instance
    if (pricePerHour === undefined || currency === this.#currency) return instance
    this.#counts.otherCurrency++
    return rest
  }

  #isIn(atMs: number): boolean {
    return atMs >= this.#window.fromMs
  }

  #comparison(): ShadowComparison {
    const { items, others } = this.#books.cases.result()
    const { byMoves, comparedHours, other, tenon, ...totals } = this.#books.totals
    const counts = this.#counts
    const difference = tenon - other
    const fromMs = Math.max(this.#firstMs ?? 0, this.#window.fromMs)
    return {
      ...(this.#firstMs !== undefined &&
        this.#coveredHours > 0 && {
          covered: {
            fromMs,
            toMs: Math.min(this.#window.toMs, Math.max(fromMs, this.#endMs())),
            hours: this.#coveredHours,
          },
        }),
      gaps: this.#gaps,
      gapCount: counts.gaps,
      gapHours: counts.gapHours,
      restarts: counts.restarts,
      ...(this.#currency !== undefined && { currency: this.#currency }),
      ...(comparedHours > 0 && {
        cost: { other, tenon, difference, byLaunches: difference - byMoves, byMoves },
      }),
      cases: items,
      otherCases: { count: others.count, difference: others.sum },
      notCompared: {
        unpricedHours: totals.unpricedHours,
        undecidedHours: totals.undecidedHours,
        undecidedCost: totals.undecidedCost,
        unpricedLaunches: counts.unpricedLaunches,
        otherCurrency: counts.otherCurrency,
        types: [...this.#unpricedTypes].toSorted(),
      },
      nodeHours: { other: totals.nodeHoursOther, tenon: totals.nodeHoursTenon },
      launches: {
        other: counts.launchesOther,
        tenon: counts.launchesTenon,
        byType: Array.from(this.#byType, ([instanceType, each]) => ({ instanceType, ...each })).toSorted(
          (a, b) => b.other + b.tenon - a.other - a.tenon || (a.instanceType < b.instanceType ? -1 : 1),
        ),
        hadRoom: counts.hadRoom,
      },
      removals: {
        other: counts.removedByOther,
        tenon: counts.removedByTenon,
        replacements: counts.replacements,
      },
      evictions: {
        other: counts.evictionsOther,
        tenon: counts.evictionsTenon,
        unknownRemovals: counts.unknownRemovals,
      },
      waiting: {
        pods: counts.waitingPods,
        otherSeconds: counts.otherSeconds,
        tenonSeconds: counts.tenonSeconds,
        podsNotCompared: counts.podsNotCompared,
      },
      leftPods: this.#leftPods,
      leftPodCount: counts.leftPods,
    }
  }

  /** The end of the last observation. */
  #endMs(): number {
    return this.#window.toMs - this.#lastMs > silenceMs ? this.#lastMs : this.#window.toMs
  }
}

/** Nodes of NodeClaims are known by these, which exist first. */
function keyOf({ nodeClaims: [claim], nodes: [node] }: JournalEntry): string {
  return claim ?? node ?? ''
}
