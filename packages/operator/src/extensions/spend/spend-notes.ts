/**
 * `journal.spend`: notes what instances cost and for whom, so that what was spent can be told by namespace, workload and label
 * long after the pods are gone (page.md 2).
 */
import {
  counted,
  labels as labelKeys,
  type Pod,
  podRequests,
  type PricePerHour,
  type PriceSum,
  type Resources,
  sumOfPrices,
} from '@tenon/api'
import type { ReconcileResult } from '@tenon/kube'
import type { CloudProvider } from '@tenon/provider'
import { type Clock, inSlices, type Slicing } from '@tenon/runtime'
import type { SingletonSpec } from '../../controller.ts'
import { type JournalShare, type JournalSpend, workloadName } from '../../journal/entry.ts'
import type { Journal } from '../../journal/journal.ts'
import { type Caches, indexes } from '../../state/caches.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import { allocatableOf, type StateNode } from '../../state/nodes/state-node.ts'
import { isTerminal } from '../../state/pods/pods.ts'
import { priceShares } from '../capacitybuffer/figures.ts'

interface Dependencies {
  readonly caches: Pick<Caches, 'nodeClaims' | 'nodePools' | 'pods'>
  readonly state: Pick<ClusterState, 'buffers' | 'parsed' | 'pods' | 'poolCosts' | 'stateNodes'>
  readonly provider: Pick<CloudProvider, 'currency'>
  readonly journal: Pick<Journal, 'follow' | 'note'>
  readonly slicing: Slicing & { readonly clock: Pick<Clock, 'now'> }
}

/** What shares a node: pods of one workload. */
interface Share {
  readonly namespace: string
  readonly workload: string
  pricePerHour: number
  readonly labels: Readonly<Record<string, string>>
}

type Shares = Map<string, Share>

/** A NodeClaim of which the caches may not say yet that it was launched, or is gone. */
interface Recent {
  readonly atMs: number
  readonly nodePool: string
  readonly pricePerHour: PricePerHour
  readonly isGone: boolean
}

const hourMs = 3_600_000
/** How often the currency is looked at, and prices that are missing. */
const lookMs = 60_000
const startMs = 5_000
/** How far the caches may be behind the journal. */
const recentMs = 60_000
/** Prices that the provider does not know stay unknown. */
const mostLooks = 12
/** Bounds an entry to about 20 kB. */
const mostShares = 200
const mostLabels = 20
/** Labels that differ between revisions or pods of one workload. */
const ofRevisions =
  /^(pod-template-hash|controller-revision-hash|pod-template-generation|.*controller-uid|(.*\/)?job-name|.*pod-index|.*pod-name|.*completion-index)$/

export class SpendNotes implements SingletonSpec {
  readonly name = 'journal.spend'
  readonly #deps: Dependencies
  #looks = 0
  /** Of the last entry. */
  #last: { readonly atMs: number; readonly currency: string | undefined } | undefined
  /** Workloads whose labels were noted on this day. */
  readonly #labelled = new Set<string>()
  #day = 0

  /** By name. */
  readonly #recent = new Map<string, Recent>()

  constructor(deps: Dependencies) {
    this.#deps = deps
    deps.journal.follow(({ entry }) => {
      const { kind, nodeClaims, nodePool = '', pricePerHour } = entry
      const [name] = nodeClaims
      if (name === undefined || entry.observed === true || (kind !== 'launched' && kind !== 'removed')) return
      const atMs = deps.slicing.clock.now()
      this.#recent.set(name, {
        atMs,
        nodePool,
        pricePerHour: pricePerHour?.after,
        isGone: kind === 'removed',
      })
    })
  }

  async run(): Promise<ReconcileResult> {
    const { provider, slicing } = this.#deps
    const { clock } = slicing
    const currency = provider.currency?.()
    if (this.#last === undefined && this.#isMissingPrices() && this.#looks++ < mostLooks)
      return { kind: 'after', delayMs: startMs }
    const isDue =
      this.#last === undefined ||
      this.#last.currency !== currency ||
      Math.floor(clock.now() / hourMs) !== Math.floor(this.#last.atMs / hourMs)
    for (const [name, { atMs }] of this.#recent) if (clock.now() - atMs > recentMs) this.#recent.delete(name)
    if (isDue) {
      const shares = await inSlices(this.#gathering(), slicing)
      // Prices of two currencies must not be in one entry.
      if (provider.currency?.() === currency) this.#note(shares, currency)
    }
    return { kind: 'after', delayMs: Math.min(lookMs, hourMs - (clock.now() % hourMs)) }
  }

  #isMissingPrices(): boolean {
    const { caches, state } = this.#deps
    return caches.nodePools.list().some(({ metadata }) => state.poolCosts.unlooked(metadata.name).length > 0)
  }

  *#gathering(): Generator<undefined, ReadonlyMap<string, Shares>, undefined> {
    const pools = new Map<string, Shares>()
    for (const stateNode of this.#deps.state.stateNodes()) {
      const nodePool = stateNode.claim?.metadata.labels?.[labelKeys.nodePool]
      const price = stateNode.claim && this.#deps.state.poolCosts.priceOf(stateNode.claim)
      yield
      if (nodePool === undefined || price === undefined) continue
      const shares = pools.get(nodePool) ?? new Map<string, Share>()
      pools.set(nodePool, shares)
      this.#add(shares, stateNode, price)
    }
    return pools
  }

  #add(shares: Shares, stateNode: StateNode, price: number): void {
    const { caches, state } = this.#deps
    const { node, providerID } = stateNode
    const pods =
      node === undefined
        ? []
        : caches.pods
            .byIndex(indexes.byNode, node.metadata.name)
            .filter((pod) => state.pods.isWellFormed(pod) && !isTerminal(pod))
    const rooms = state.buffers.kept().get(providerID) ?? []
    const asked = [
      ...pods.map((pod) => ({ ...workloadName(pod), ...askedBy(pod) })),
      ...rooms.flatMap(({ buffer, pods: room }) =>
        room.map((pod) => ({ ...bufferName(buffer), ...askedBy(pod) })),
      ),
    ]
    const parts = priceShares(
      price,
      allocatableOf(stateNode, state.parsed),
      asked.map(({ requests }) => requests),
    )
    for (const [at, { labels, namespace, workload }] of asked.entries()) {
      const key = `${namespace}/${workload}`
      const share = shares.get(key) ?? { namespace, workload, pricePerHour: 0, labels }
      share.pricePerHour += parts[at] ?? 0
      shares.set(key, share)
    }
  }

  #note(shares: ReadonlyMap<string, Shares>, currency: string | undefined): void {
    const { journal, slicing } = this.#deps
    const atMs = slicing.clock.now()
    const day = Math.floor(atMs / (24 * hourMs))
    // Readers of a part of the journal find labels in each day of it.
    if (day !== this.#day) this.#labelled.clear()
    this.#day = day
    this.#last = { atMs, currency }
    const kept = largest([...shares.values()].flatMap((each) => [...each.values()]))
    const spend = Array.from(
      this.#prices(),
      ([nodePool, { pricePerHour, unpriced }]): JournalSpend => ({
        nodePool,
        pricePerHour,
        unpriced,
        shares: this.#shares(shares.get(nodePool) ?? new Map(), kept),
      }),
    ).toSorted((a, b) => (a.nodePool < b.nodePool ? -1 : 1))
    const { pricePerHour, unpriced } = spend.reduce(
      (sum, each) => ({
        pricePerHour: sum.pricePerHour + each.pricePerHour,
        unpriced: sum.unpriced + each.unpriced,
      }),
      { pricePerHour: 0, unpriced: 0 },
    )
    journal.note({
      kind: 'spend',
      reason: 'Spend',
      message: `${counted(spend.length, 'NodePool')} with instances${unpriced === 0 ? '' : `; ${counted(unpriced, 'instance')} of unknown price`}`,
      pricePerHour: { after: pricePerHour },
      spend,
    })
  }

  /** By NodePool. At once, so that entries before this one are in it and later ones are not. */
  #prices(): ReadonlyMap<string, PriceSum> {
    const { caches, state } = this.#deps
    const prices = new Map<string, PricePerHour[]>()
    const add = (nodePool: string, price: PricePerHour) => {
      const known = prices.get(nodePool)
      if (known === undefined) prices.set(nodePool, [price])
      else known.push(price)
    }
    const seen = new Set<string>()
    for (const claim of caches.nodeClaims.list()) {
      const { name } = claim.metadata
      if ((claim.status?.providerID ?? '') === '') continue
      seen.add(name)
      if (this.#recent.get(name)?.isGone === true) continue
      add(claim.metadata.labels?.[labelKeys.nodePool] ?? '', state.poolCosts.priceOf(claim))
    }
    for (const [name, { isGone, nodePool, pricePerHour }] of this.#recent)
      if (!isGone && !seen.has(name)) add(nodePool, pricePerHour)
    return new Map(Array.from(prices, ([nodePool, all]) => [nodePool, sumOfPrices(all)]))
  }

  /** The smaller ones are summed up by namespace, and those of the smallest namespaces together. */
  #shares(shares: Shares, kept: ReadonlySet<Share>): readonly JournalShare[] {
    const noted: JournalShare[] = []
    const remainders = new Map<string, number>()
    for (const share of shares.values()) {
      const { labels, namespace, pricePerHour, workload } = share
      if (!kept.has(share)) {
        remainders.set(namespace, (remainders.get(namespace) ?? 0) + pricePerHour)
        continue
      }
      const key = `${namespace}/${workload}`
      const isLabelled = this.#labelled.has(key)
      this.#labelled.add(key)
      noted.push({ namespace, workload, pricePerHour, ...(!isLabelled && { labels }) })
    }
    const byPrice = [...remainders].toSorted(([, a], [, b]) => b - a)
    for (const [namespace, pricePerHour] of byPrice.slice(0, mostShares))
      noted.push({ namespace, workload: '', pricePerHour })
    const rest = byPrice.slice(mostShares).reduce((sum, [, price]) => sum + price, 0)
    if (rest > 0) noted.push({ namespace: '', workload: '', pricePerHour: rest })
    return noted
  }
}

function largest(shares: readonly Share[]): ReadonlySet<Share> {
  if (shares.length <= mostShares) return new Set(shares)
  return new Set(shares.toSorted((a, b) => b.pricePerHour - a.pricePerHour).slice(0, mostShares))
}

function askedBy(pod: Pod): { readonly requests: Resources; readonly labels: Share['labels'] } {
  const labels = Object.entries(pod.metadata.labels ?? {}).filter(([key]) => !ofRevisions.test(key))
  return {
    requests: podRequests(pod.spec, pod.status),
    labels: Object.fromEntries(labels.slice(0, mostLabels)),
  }
}

function bufferName(buffer: string): Pick<Share, 'namespace' | 'workload'> {
  const at = buffer.indexOf('/')
  return { namespace: buffer.slice(0, at), workload: `capacitybuffer/${buffer.slice(at + 1)}` }
}
