/** The state of a cluster for viewer and page, updated by events (console.md 1). */
import type { KubeObject, NodeClaim, NodePool, Pod } from '@tenon/api'
import type { CostDimension, CostReport } from '@tenon/ask'
import type { JournalEntry } from '@tenon/operator'
import { rfc3339 } from '@tenon/runtime'
import { costing } from './cost.ts'
import type { SourceEvent, ExplainedReason } from './event.ts'
import { present } from './facts.ts'
import { FleetRows } from './fleet-rows.ts'
import { History } from './history.ts'
import { offeringRows, pendingRowOf } from './rows.ts'
import type { ObjectRef } from './object-ref.ts'
import { type PodFacts, podKey } from './pods.ts'
import { poolRow } from './pool-row.ts'
import { Past } from './past.ts'
import { problemsOf } from './problems.ts'
import { type Relations, relationsOf } from './relations.ts'
import { type Found, search } from './search.ts'
import { ChangingTable } from './table.ts'
import type {
  Absent,
  ConsoleResource,
  ConsoleView,
  GroupRow,
  Header,
  OfferingRow,
  PendingPodRow,
  PodOnNode,
  PoolRow,
  TenonHeader,
  ViewChange,
} from './view.ts'

/** Rows to rebuild at once while the event loop is busy with others: about 10 ms. */
const mostAtOnce = 200

/** Has a single reader: {@link takeChanges} returns each change once. */
export class ConsoleModel {
  readonly #fleet = new FleetRows()
  readonly #pools = new Map<string, NodePool>()
  readonly #poolTable = new ChangingTable<PoolRow>()
  readonly #groupTable = new ChangingTable<GroupRow>()
  readonly #pendingTable = new ChangingTable<PendingPodRow>()
  readonly #offeringTable = new ChangingTable<OfferingRow>()
  readonly #history = new History()
  /** What was spent and decided, further back than the newest entries. */
  readonly past: Past = new Past()
  #reasons: ReadonlyMap<string, ExplainedReason> = new Map()
  readonly #absent = new Map<string, Absent>()
  /** Resources whose initial list is complete. */
  readonly #read = new Set<string>()
  #staleSince: string | undefined
  /** What {@link takeChanges} returned last, to return only changes. */
  readonly #lastTaken = { header: '', problems: '[]', absent: '[]' }

  apply(event: SourceEvent): void {
    for (const _ of this.applying(event)) continue
  }

  /** Like {@link apply}, in short steps: a source may send everything at once. */
  *applying(event: SourceEvent): Generator<undefined, void, undefined> {
    this.#read.add(whatIsRead(event))
    switch (event.kind) {
      case 'replaced':
        yield* this.#replacing(event.resource, event.objects)
        this.#noteRead(event.resource)
        return
      case 'read':
        this.#noteRead(event.resource)
        return
      case 'set':
        this.#set(event.resource, event.object)
        return
      case 'removed':
        this.#remove(event.resource, keyOf(event.resource, event))
        return
      case 'journal':
      case 'past':
        this.#readJournal(event)
        return
      case 'decisions':
      case 'nodePrices':
      case 'prices':
      case 'usage':
        this.#absent.delete(event.kind)
        this.#fleet.apply(event)
        return
      case 'catalogues':
        this.#absent.delete('offerings')
        this.#absent.delete('prices')
        this.#fleet.apply(event)
        replaceRows(this.#offeringTable, offeringRows(event.catalogues))
        return
      case 'groups':
        this.#absent.delete('nodegroups')
        replaceRows(this.#groupTable, event.groups)
        return
      case 'reasons':
        this.#absent.delete('reasons')
        this.#explain(event.reasons)
        return
      case 'stale':
        this.#staleSince ??= rfc3339(event.sinceMs)
        return
      case 'fresh':
        this.#staleSince = undefined
        return
      case 'absent':
        this.#absent.set(event.what, { what: event.what, why: event.why })
        if (event.what === 'pods') this.#fleet.readPods(false)
    }
  }

  /** Whether every resource was listed or is known to be absent, and a controller was looked for. */
  get isFilled(): boolean {
    const isKnown = (what: string) => this.#read.has(what) || this.#absent.has(what)
    return ['nodes', 'nodeclaims', 'nodepools', 'pods', 'journal', 'decisions'].every(isKnown)
  }

  /** Whether the model has something that is read with the rights of the user, such as `pods` or `journal`. */
  hasRead(what: string): boolean {
    // Prices and offerings are of the cloud, and without a controller both read and absent.
    return what !== 'prices' && this.#read.has(what === 'nodegroups' ? 'groups' : what)
  }

  /** Whether {@link takeChanges} has more rows to return. */
  get isBehind(): boolean {
    return this.#fleet.objects.isTouched
  }

  /** IDs of pods that have been pending since before a time in Unix milliseconds; sorted. */
  waitingPods(beforeMs: number): readonly string[] {
    const isOld = ({ pendingSince, createdAt = '' }: PendingPodRow) =>
      !(Date.parse(pendingSince ?? createdAt) >= beforeMs)
    return this.#pendingTable
      .rows()
      .filter(isOld)
      .map(({ id }) => id)
      .toSorted()
  }

  /**
   * Rebuilds changed rows.
   * @param most approximate limit; Infinity for all.
   */
  settle(most: number = mostAtOnce): void {
    for (const name of this.#fleet.settle(most)) {
      const pool = this.#pools.get(name)
      if (pool === undefined) this.#poolTable.delete(name)
      else this.#poolTable.set(poolRow(pool, this.#fleet.totalsOf(name)))
    }
  }

  /**
   * Totals of the rows as they were last built.
   * @param nowMs Unix milliseconds.
   */
  header(nowMs: number): Header {
    const { totals, pods, prices, hasPods } = this.#fleet
    return {
      nodes: totals.nodes,
      pendingNodes: totals.pending,
      resources: totals.resources(),
      price: totals.price(),
      ...present('currency', prices.currency),
      ...(hasPods && { pods: pods.counts() }),
      ...present('tenon', this.#tenon(nowMs)),
      ...present('staleSince', this.#staleSince),
    }
  }

  /** @param nowMs Unix milliseconds. */
  view(nowMs: number): ConsoleView {
    this.settle(Number.POSITIVE_INFINITY)
    return {
      header: this.header(nowMs),
      nodes: this.#fleet.nodes.rows(),
      claims: this.#fleet.claims.rows(),
      pools: this.#poolTable.rows(),
      groups: this.#groupTable.rows(),
      pendingPods: this.#pendingTable.rows(),
      decisions: this.#history.table.rows(),
      offerings: this.#offeringTable.rows(),
      problems: this.#problems(nowMs),
      absent: [...this.#absent.values()],
    }
  }

  /**
   * What has changed since the last call. If thousands of rows have, a part of them, so that the event loop is
   * not blocked; the rest follows in the next calls.
   * @param nowMs Unix milliseconds.
   * @param most approximate limit of rebuilt rows; Infinity for all.
   */
  takeChanges(nowMs: number, most: number = mostAtOnce): readonly ViewChange[] {
    this.settle(most)
    const tables = {
      nodes: this.#fleet.nodes,
      claims: this.#fleet.claims,
      pools: this.#poolTable,
      groups: this.#groupTable,
      pendingPods: this.#pendingTable,
      decisions: this.#history.table,
      offerings: this.#offeringTable,
    }
    const changes: ViewChange[] = Object.entries(tables).flatMap(([table, rows]) => {
      const taken = rows.taken()
      return taken === undefined ? [] : [{ table, ...taken } as ViewChange]
    })
    for (const [name, part] of [
      ['header', this.header(nowMs)],
      ['problems', this.#problems(nowMs)],
      ['absent', [...this.#absent.values()]],
    ] as const) {
      const text = JSON.stringify(part)
      if (this.#lastTaken[name] === text) continue
      this.#lastTaken[name] = text
      changes.push({ [name]: part } as ViewChange)
    }
    return changes
  }

  /** The cost by a dimension of `tenon cost`; one step per row. */
  costing(by: CostDimension): Generator<undefined, CostReport, undefined> {
    return costing(this.#fleet, by)
  }

  /** The newest entries of the journal, oldest first; or why there is none. */
  journal(): readonly JournalEntry[] | { readonly absent: string } {
    if (this.#history.isKnown) return this.#history.table.rows()
    return { absent: this.#absent.get('journal')?.why ?? 'the journal is being read' }
  }

  /** The pods of a node that have not terminated, by name. */
  podsOn(node: string): readonly PodOnNode[] {
    return podRows(this.#fleet.pods.on(node))
  }

  /** The pods of a workload that have not terminated, by name. */
  podsOf(workload: ObjectRef): readonly PodOnNode[] {
    return podRows(this.#fleet.pods.of(workload))
  }

  /** What an object belongs to, and what belongs to it, as far as the model has it. */
  relationsOf(ref: ObjectRef): Relations {
    const { objects, pods } = this.#fleet
    return relationsOf({ objects, pods, pools: this.#pools }, ref)
  }

  search(text: string): Found {
    const { objects, pods } = this.#fleet
    return search({ objects, pods, pools: this.#pools }, text)
  }

  #readJournal(event: Extract<SourceEvent, { kind: 'journal' | 'past' }>): void {
    if (event.kind === 'past') {
      this.past.read(event)
      return
    }
    this.#absent.delete('journal')
    this.#history.add(event.entries)
    this.past.add(event.entries)
  }

  *#replacing(
    resource: ConsoleResource,
    objects: readonly KubeObject[],
  ): Generator<undefined, void, undefined> {
    const kept = new Set(objects.map((object) => keyOf(resource, object.metadata)))
    for (const key of this.#keys(resource))
      if (!kept.has(key)) {
        this.#remove(resource, key)
        yield
      }
    for (const object of objects) {
      this.#set(resource, object)
      yield
    }
  }

  #noteRead(resource: ConsoleResource): void {
    this.#absent.delete(resource)
    if (resource === 'pods') this.#fleet.readPods(true)
  }

  #keys(resource: ConsoleResource): Iterable<string> {
    switch (resource) {
      case 'nodes':
        return this.#fleet.objects.nodeNames()
      case 'nodeclaims':
        return this.#fleet.objects.claimNames()
      case 'nodepools':
        return this.#pools.keys()
      case 'pods':
        return this.#fleet.pods.keys()
    }
  }

  /** A source only sends objects of the kind of the resource. */
  #set(resource: ConsoleResource, object: KubeObject): void {
    const { name } = object.metadata
    switch (resource) {
      case 'nodes':
        this.#fleet.objects.setNode(name, object)
        return
      case 'nodeclaims':
        this.#fleet.objects.setClaim(name, object as NodeClaim)
        return
      case 'nodepools':
        this.#pools.set(name, object as NodePool)
        this.#fleet.touchPool(name)
        return
      case 'pods':
        this.#placePending(podKey(object), this.#fleet.setPod(object as Pod))
    }
  }

  #remove(resource: ConsoleResource, key: string): void {
    switch (resource) {
      case 'nodes':
        this.#fleet.objects.setNode(key, undefined)
        return
      case 'nodeclaims':
        this.#fleet.objects.setClaim(key, undefined)
        return
      case 'nodepools':
        this.#pools.delete(key)
        this.#fleet.touchPool(key)
        return
      case 'pods':
        this.#fleet.removePod(key)
        this.#pendingTable.delete(key)
    }
  }

  #placePending(key: string, waiting: Pod | undefined): void {
    const facts = this.#fleet.pods.get(key)
    if (facts === undefined || waiting === undefined) this.#pendingTable.delete(key)
    else this.#pendingTable.set(pendingRowOf(facts, waiting, this.#reasons.get(key)))
  }

  #explain(reasons: readonly ExplainedReason[]): void {
    this.#reasons = new Map(reasons.map((each) => [`${each.namespace}/${each.name}`, each]))
    for (const { id } of this.#pendingTable.rows()) this.#placePending(id, this.#fleet.pods.get(id)?.waiting)
  }

  #tenon(nowMs: number): TenonHeader | undefined {
    const { verdicts } = this.#fleet
    if (!this.#history.isKnown) return undefined
    const paused = this.#poolTable.rows().find((pool) => pool.paused !== undefined)?.paused
    return {
      decisionsPerMinute: this.#history.decisionsPerMinute(nowMs),
      ...present('next', verdicts.next()),
      ...present('paused', paused),
      ...present('savedToday', this.#history.savedToday(nowMs)),
    }
  }

  #problems(nowMs: number): ConsoleView['problems'] {
    return problemsOf(
      {
        nodes: this.#fleet.nodes.rows(),
        pools: this.#poolTable.rows(),
        groups: this.#groupTable.rows(),
        pendingPods: this.#pendingTable.rows(),
        offerings: this.#offeringTable.rows(),
      },
      nowMs,
    )
  }
}

function whatIsRead(event: SourceEvent): string {
  return event.kind === 'replaced' || event.kind === 'read' ? event.resource : event.kind
}

function keyOf(
  resource: ConsoleResource,
  { name, namespace }: { readonly name: string; readonly namespace?: string },
): string {
  return resource === 'pods' ? `${namespace ?? 'default'}/${name}` : name
}

function podRows(pods: Iterable<PodFacts>): readonly PodOnNode[] {
  const rows = Array.from(pods, ({ namespace, name, owner, isRunning, node, requests }) => ({
    id: `${namespace}/${name}`,
    namespace,
    name,
    ...(owner.kind !== 'Pod' && { owner: `${owner.kind.toLowerCase()}/${owner.name}` }),
    ...present('node', node),
    isRunning,
    requests,
    labels: {},
  }))
  return rows.toSorted((a, b) => (a.id < b.id ? -1 : 1))
}

function replaceRows<R extends { readonly id: string }>(table: ChangingTable<R>, rows: readonly R[]): void {
  const ids = new Set(rows.map(({ id }) => id))
  for (const { id } of table.rows()) if (!ids.has(id)) table.delete(id)
  for (const row of rows) table.set(row)
}
