/** Maintains rows of nodes and NodeClaims, and their totals. */
import type { Pod } from '@tenon/api'
import type { SourceEvent } from './event.ts'
import { Fleet } from './fleet.ts'
import { type PodFacts, PodIndex } from './pods.ts'
import { Prices } from './prices.ts'
import { claimId, claimRow, type Known, nodeId, nodeRow, pendingRow } from './rows.ts'
import { ChangingTable } from './table.ts'
import { Totals } from './totals.ts'
import { Verdicts } from './verdicts.ts'
import type { Amounts, ClaimRow, NodeRow } from './view.ts'

type FleetEvent = Extract<
  SourceEvent,
  { kind: 'decisions' | 'nodePrices' | 'prices' | 'usage' | 'catalogues' }
>

export class FleetRows {
  readonly nodes = new ChangingTable<NodeRow>()
  readonly claims = new ChangingTable<ClaimRow>()
  readonly objects = new Fleet()
  readonly pods = new PodIndex()
  readonly prices = new Prices()
  readonly verdicts = new Verdicts()
  readonly totals = new Totals()
  readonly #byPool = new Map<string, Totals>()
  readonly #dirtyPools = new Set<string>()
  #usage: ReadonlyMap<string, Amounts> = new Map()
  #hasPods = false

  /** Whether pods can be listed. */
  get hasPods(): boolean {
    return this.#hasPods
  }

  readPods(hasPods: boolean): void {
    if (this.#hasPods !== hasPods) this.objects.touchAll()
    this.#hasPods = hasPods
  }

  /** @returns the pod if it waits for a node. */
  setPod(pod: Pod): PodFacts['waiting'] {
    const { nodes, key } = this.pods.set(pod)
    this.#touchPods(nodes)
    return this.pods.get(key)?.waiting
  }

  removePod(key: string): void {
    this.#touchPods(this.pods.remove(key))
  }

  touchPool(name: string): void {
    this.#dirtyPools.add(name)
  }

  totalsOf(pool: string): Totals {
    const totals = this.#byPool.get(pool)
    if (totals !== undefined) return totals
    const added = new Totals()
    this.#byPool.set(pool, added)
    return added
  }

  apply(event: FleetEvent): void {
    switch (event.kind) {
      case 'decisions':
        for (const name of this.verdicts.update(event.decisions)) this.objects.touchClaim(name)
        return
      case 'prices':
        for (const name of this.prices.update(event.prices)) this.objects.touchClaim(name)
        return
      case 'nodePrices':
        this.prices.pay(event.prices)
        this.objects.touchAll()
        return
      case 'usage':
        for (const name of [...this.#usage.keys(), ...event.usage.keys()]) this.#touchNodes([name])
        this.#usage = event.usage
        return
      case 'catalogues':
        this.prices.sell(event.catalogues, event.currency)
        this.objects.touchAll()
    }
  }

  /**
   * Rebuilds up to `most` changed rows.
   * @returns names of NodePools whose totals may have changed.
   */
  settle(most: number): readonly string[] {
    const { nodes, claims } = this.objects.taken(most)
    const again = new Set(claims)
    for (const name of nodes) {
      const node = this.objects.node(name)
      const claim = node && this.objects.claimOf(node)
      if (claim !== undefined) again.add(claim.metadata.name)
      if (node === undefined || claim !== undefined) this.#put(nodeId(name), undefined)
      else this.#put(nodeId(name), nodeRow(node, undefined, this.#known(name, undefined)))
    }
    for (const name of again) this.#settleClaim(name)
    const pools = [...this.#dirtyPools]
    this.#dirtyPools.clear()
    return pools
  }

  #settleClaim(name: string): void {
    const claim = this.objects.claim(name)
    if (claim === undefined) {
      this.#put(claimId(name), undefined)
      this.claims.delete(claimId(name))
      this.prices.forget(name)
      return
    }
    const node = this.objects.nodeOf(claim)
    const known = this.#known(node?.metadata.name, name)
    this.#put(claimId(name), node === undefined ? pendingRow(claim, known) : nodeRow(node, claim, known))
    this.claims.set(claimRow(claim, node, known))
  }

  #known(node: string | undefined, claim: string | undefined): Known {
    const object = node === undefined ? undefined : this.objects.node(node)
    return {
      pricePerHour: this.prices.of(object, claim === undefined ? undefined : this.objects.claim(claim)),
      decision: this.verdicts.of(claim),
      load: node === undefined || !this.#hasPods ? undefined : this.pods.loadOf(node),
      usage: node === undefined ? undefined : this.#usage.get(node),
    }
  }

  #put(id: string, row: NodeRow | undefined): void {
    const held = this.nodes.get(id)
    if (row === undefined) this.nodes.delete(id)
    else if (!this.nodes.set(row)) return
    for (const [each, by] of [
      [held, 'subtract'],
      [row, 'add'],
    ] as const) {
      if (each === undefined) continue
      this.totals[by](each)
      if (each.nodePool === undefined) continue
      this.totalsOf(each.nodePool)[by](each)
      this.#dirtyPools.add(each.nodePool)
    }
  }

  /** During the initial list of pods no row shows them. */
  #touchPods(names: readonly string[]): void {
    if (this.#hasPods) this.#touchNodes(names)
  }

  #touchNodes(names: readonly string[]): void {
    for (const name of names) this.objects.touchNode(name)
  }
}
