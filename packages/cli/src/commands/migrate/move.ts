/** Moves the pods of a source of nodes to other nodes, and takes its nodes away, one at a time (adoption.md 2). */
import { kinds, type Node, type Pod } from '@tenon/api'
import type { KubeClient } from '@tenon/kube'
import { isActive, isDaemonPod, isMirrorPod, isReschedulable, keyOf } from '@tenon/operator/objects'
import { type Clock, durationText } from '@tenon/runtime'
import type { ClusterAutoscalerLooks, ScalerSign } from '../../source/cluster-autoscaler-signs.ts'
import { evicted, podsOn } from '../console/drain.ts'
import { type HoldFacts, holdOf, listHoldFacts, readHoldFacts } from './holds.ts'
import { cordon, markOf, recordedWorkloads, recordWorkloads, type Workload } from './marks.ts'
import type { Progress, StayingNode } from './progress.ts'
import { BackLooks, type Missing, missingOf, missingText, workloadsOf } from './workloads.ts'

/** Where nodes are taken from. */
export interface Source {
  /** Such as `sks-nodepool workers`. */
  readonly title: string
  /** Provider IDs of its instances that are not going already, read afresh. */
  providerIds(): Promise<ReadonlySet<string>>
  /**
   * Takes a drained node away.
   * @throws CliError unless a fresh answer says that the node belongs to the source.
   */
  remove(node: Node): Promise<void>
}

/** Nodes of a source that are not going already, read afresh. */
export async function membersOf(
  { client, signal }: { readonly client: Pick<KubeClient, 'list'>; readonly signal: AbortSignal },
  source: Source,
): Promise<readonly Node[]> {
  const [nodes, ids] = await Promise.all([client.list(kinds.node, { signal }), source.providerIds()])
  return nodes.filter(
    ({ metadata, spec: { providerID = '' } = {} }) =>
      providerID !== '' && ids.has(providerID) && metadata.deletionTimestamp === undefined,
  )
}

export interface Migration {
  readonly client: Pick<KubeClient, 'evict' | 'get' | 'list' | 'patch'>
  readonly clock: Clock
  readonly source: Source
  /** `namespace/name` of pods that no node would take, and why. */
  readonly homeless: ReadonlyMap<string, string>
  /** How long nothing may change while a node is drained, in milliseconds. */
  readonly limitMs: number
  readonly scaler: ClusterAutoscalerLooks
  readonly tell: (progress: Progress) => void
  readonly signal: AbortSignal
}

export type Outcome =
  | { readonly kind: 'done'; readonly removed: number; readonly staying: readonly StayingNode[] }
  /** `why` names the pod and the reason; nothing further was done. */
  | { readonly kind: 'stopped'; readonly node: string; readonly why: string }

type Drained =
  | { readonly kind: 'drained' }
  /** Pods on it may not be evicted, a person has uncordoned it, or somebody has removed it. */
  | { readonly kind: 'stays' }
  | { readonly kind: 'stuck'; readonly why: string }

/** Pause before an eviction that a PodDisruptionBudget has refused is tried again. */
const againMs = 5_000
const lookMs = 2_000
const uncordoned = 'a person has uncordoned it'

/**
 * Goes on where an earlier run has stopped: all that it needs is on the nodes. All pods are listed once for the order of
 * the nodes, and again when each has had its turn; a turn reads what belongs to its node.
 */
export async function moveOff(migration: Migration): Promise<Outcome> {
  const { clock, signal } = migration
  const removed = new Set<string>()
  const cordoned = new Set<string>()
  for (;;) {
    const before = removed.size
    const { turns, staying } = await turnsOf(migration, removed, cordoned)
    if (turns.length === 0) return { kind: 'done', removed: removed.size, staying }
    for (const [at, turn] of turns.entries()) {
      const { name, uid = '' } = turn.node.metadata
      if (at > 0) await cordonJoined(migration, cordoned)
      migration.tell({ event: 'draining', node: name, pods: turn.pods, nodesAfter: turns.length - 1 - at })
      const taken = await takeTurn(migration, name, uid)
      if (taken.kind === 'stuck') return { kind: 'stopped', node: name, why: taken.why }
      if (taken.kind === 'drained') removed.add(uid)
    }
    if (removed.size === before) await clock.sleep(lookMs, signal)
  }
}

/** Nodes that have joined since would take the pods. */
async function cordonJoined(migration: Migration, cordoned: Set<string>): Promise<void> {
  const ids = await migration.source.providerIds()
  if ([...ids].some((id) => !cordoned.has(id))) await cordonNew(migration, cordoned)
}

/** @param cordoned gets the provider IDs of nodes that take no pods any more. */
async function cordonNew(migration: Migration, cordoned: Set<string>): Promise<void> {
  const { client, source, tell } = migration
  for (const node of await membersOf(migration, source)) {
    cordoned.add(node.spec?.providerID ?? '')
    if (markOf(node) !== 'new') continue
    await cordon(client, node)
    tell({ event: 'cordoned', node: node.metadata.name })
  }
}

/** The nodes that can be drained, in the order in which they are. */
async function turnsOf(
  migration: Migration,
  removed: ReadonlySet<string>,
  cordoned: Set<string>,
): Promise<{ readonly turns: readonly Turn[]; readonly staying: readonly StayingNode[] }> {
  const { client, clock, homeless, signal, source } = migration
  await cordonNew(migration, cordoned)
  const members = (await membersOf(migration, source)).filter(
    ({ metadata }) => !removed.has(metadata.uid ?? ''),
  )
  if (members.length === 0) return { turns: [], staying: [] }
  const facts = await listHoldFacts(client, homeless, clock.now(), signal)
  const podsOf = Map.groupBy(await client.list(kinds.pod, { signal }), ({ spec }) => spec.nodeName ?? '')
  const turns: Turn[] = []
  const staying: StayingNode[] = []
  for (const node of members) {
    const { name } = node.metadata
    const pods = podsOf.get(name) ?? []
    const reasons = markOf(node) === 'leaving' ? holdTexts(pods, facts) : [uncordoned]
    if (reasons.length > 0) staying.push({ node: name, reasons })
    else turns.push(turnOf(node, pods))
  }
  return { turns: turns.toSorted(byTurn), staying }
}

/** Drains a node and takes it away, if it is still meant. */
async function takeTurn(migration: Migration, name: string, uid: string): Promise<Drained> {
  const { source, tell, signal } = migration
  const beside = async () => {
    const sign = await migration.scaler.findActive(signal)
    return sign && ({ kind: 'stuck', why: besideText(sign) } as const)
  }
  const before = await beside()
  if (before !== undefined) return before
  const drained = await drainedNode(migration, name)
  if (drained.kind !== 'drained') return drained
  const after = await beside()
  if (after !== undefined) return after
  const witness = await emptyNode(migration, name, uid)
  if (witness === undefined) return { kind: 'stays' }
  signal.throwIfAborted()
  await source.remove(witness)
  tell({ event: 'removed', node: name })
  return drained
}

/** Cluster Autoscaler would put back the nodes that go, and remove those that come. */
export function besideText({ what, fix }: ScalerSign): string {
  return `${what}, which would change the node group meanwhile: ${fix}`
}

/** A node that can be drained. */
export interface Turn {
  readonly node: Node
  /** Pods that move. */
  readonly pods: number
  /** Whether an earlier run has begun to drain it. */
  readonly hasBegun: boolean
}

export function turnOf(node: Node, pods: readonly Pod[]): Turn {
  return {
    node,
    pods: pods.filter(isReschedulable).length,
    hasBegun: recordedWorkloads(node) !== undefined,
  }
}

/** Nodes that an earlier run has begun first, then those with the fewest pods. */
export function byTurn(a: Turn, b: Turn): number {
  return (
    Number(b.hasBegun) - Number(a.hasBegun) ||
    a.pods - b.pods ||
    (a.node.metadata.name < b.node.metadata.name ? -1 : 1)
  )
}

/** Why pods keep their node, each reason with the pods that have it. */
export function holdTexts(pods: readonly Pod[], facts: HoldFacts): readonly string[] {
  const held = Map.groupBy(pods, (pod) => holdOf(pod, facts) ?? '')
  held.delete('')
  return Array.from(held, ([why, those]) => {
    const names = those.map(({ metadata }) => keyOf(metadata))
    return `${those.length === 1 ? 'pod' : 'pods'} ${fewNames(names)}: ${why}`
  })
}

const namedPods = 3

export function fewNames(names: readonly string[]): string {
  const rest = names.length - namedPods
  return `${names.slice(0, namedPods).join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`
}

/**
 * Evicts the pods of a cordoned node, and waits until as many run elsewhere as did before: also if the node stays after
 * all, or goes in another way.
 */
async function drainedNode(migration: Migration, name: string): Promise<Drained> {
  const { client, clock, limitMs, signal } = migration
  let workloads: readonly Workload[] | undefined
  const looks = new BackLooks(client)
  let refused: ReadonlyMap<string, string> = new Map()
  let askedMs = Number.NEGATIVE_INFINITY
  let changedMs = clock.monotonic()
  let seen = ''
  let isHeld = false
  for (;;) {
    const node: Node | undefined = await client.get(kinds.node, { name }, { signal })
    const leaving: Node | undefined = !isHeld && isLeaving(node) ? node : undefined
    // Pods on a node that stays are where they were.
    const left: readonly Pod[] = leaving ? (await podsOn({ client }, name)).filter(mustGo) : []
    const active: readonly Pod[] = left.filter(isActive)
    workloads ??= leaving && recordedWorkloads(leaving)
    const isDue = workloads === undefined || (active.length > 0 && clock.monotonic() - askedMs >= againMs)
    if (leaving !== undefined && isDue) {
      const facts = await readHoldFacts(client, active, migration.homeless, clock.now(), signal)
      isHeld = holdTexts(active, facts).length > 0
      if (isHeld) continue
      workloads ??= await recorded(migration, leaving, left)
      askedMs = clock.monotonic()
      refused = await evicted({ client }, name, active)
      continue
    }
    const missing: readonly Missing[] =
      left.length === 0 ? await looks.missing(workloads, leaving ? name : '', signal) : []
    if (left.length + missing.length === 0) return { kind: leaving ? 'drained' : 'stays' }
    const now = progressText(left, missing)
    // A pod that is given an hour to end has not failed after ten minutes.
    if (now !== seen || isEnding(left, clock.now())) changedMs = clock.monotonic()
    seen = now
    if (clock.monotonic() - changedMs >= limitMs)
      return { kind: 'stuck', why: await stuckText(migration, { name, left, workloads, refused }) }
    await clock.sleep(lookMs, signal)
  }
}

/** Changes with everything that a drain waits for. */
function progressText(left: readonly Pod[], missing: readonly Missing[]): string {
  return JSON.stringify([
    left.map(({ metadata }) => [metadata.uid, metadata.deletionTimestamp]),
    missing.map(({ workload, ready }) => [workload.uid, ready]),
  ])
}

function isLeaving(node: Node | undefined): node is Node {
  return node !== undefined && markOf(node) === 'leaving'
}

interface Stuck {
  readonly name: string
  /** Pods on the node. */
  readonly left: readonly Pod[]
  readonly workloads: readonly Workload[] | undefined
  /** Why evictions were refused, by `namespace/name`. */
  readonly refused: ReadonlyMap<string, string>
}

async function stuckText(
  { client, limitMs, signal }: Migration,
  { name, left, workloads, refused }: Stuck,
): Promise<string> {
  // Budgets refuse evictions as long as pods that were evicted before do not run: those are the reason.
  const absent = (await missingOf(client, workloads ?? [], name, signal)).filter(
    ({ waiting }) => left.length === 0 || waiting.length > 0,
  )
  const why = [
    ...absent.map(missingText),
    ...left.map((pod) => {
      const key = keyOf(pod.metadata)
      return isActive(pod)
        ? `pod ${key} may not be evicted: ${refused.get(key) ?? 'no reason given'}`
        : `pod ${key} was evicted and does not end`
    }),
  ]
  return `${why.slice(0, 3).join('; ')}; nothing changed for ${durationText(limitMs)}`
}

/** A workload that many nodes share has lost pods before: what counts is how many it has when this node's turn comes. */
async function recorded(
  { client, signal }: Migration,
  node: Node,
  pods: readonly Pod[],
): Promise<readonly Workload[]> {
  const workloads = await workloadsOf(client, pods, signal)
  await recordWorkloads(client, node, workloads)
  return workloads
}

/** The witness that the node is drained: nothing but DaemonSets' pods is on it, and nothing new can come. */
async function emptyNode(
  { client, signal }: Migration,
  name: string,
  uid: string,
): Promise<Node | undefined> {
  const node = await client.get(kinds.node, { name }, { signal })
  if (node === undefined || node.metadata.uid !== uid || markOf(node) !== 'leaving') return undefined
  return (await podsOn({ client }, name)).some(mustGo) ? undefined : node
}

function mustGo(pod: Pod): boolean {
  const hasEnded = pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed'
  return !hasEnded && !isDaemonPod(pod) && !isMirrorPod(pod)
}

function isEnding(pods: readonly Pod[], nowMs: number): boolean {
  return pods.some(({ metadata }) => Date.parse(metadata.deletionTimestamp ?? '') > nowMs)
}
