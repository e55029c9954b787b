/** Moves the pods of a source of nodes to other nodes, and takes its nodes away, one at a time (adoption.md 2). */
import { counted, kinds, type Node, type Pod } from '@tenon/api'
import type { KubeClient } from '@tenon/kube'
import { isActive, isDaemonPod, isMirrorPod, isReschedulable, keyOf } from '@tenon/operator/objects'
import { type Clock, durationText } from '@tenon/runtime'
import { evicted, podsOn } from '../console/drain.ts'
import { type HoldFacts, holdOf, readHoldFacts } from './holds.ts'
import { cordon, markOf, recordedWorkloads, recordWorkloads, type Workload } from './marks.ts'
import { type Missing, missingOf, missingText, workloadsOf } from './workloads.ts'

/** Where nodes are taken from. */
export interface Source {
  /** Such as `sks-nodepool workers`. */
  readonly title: string
  /** Its nodes that are not going already, read afresh. */
  members(): Promise<readonly Node[]>
  /**
   * Takes a drained node away.
   * @throws CliError unless a fresh answer says that the node belongs to the source.
   */
  remove(node: Node): Promise<void>
}

export interface Migration {
  readonly client: Pick<KubeClient, 'evict' | 'get' | 'list' | 'patch'>
  readonly clock: Clock
  readonly source: Source
  /** `namespace/name` of pods that no node would take, and why. */
  readonly homeless: ReadonlyMap<string, string>
  /** How long nothing may change while a node is drained, in milliseconds. */
  readonly limitMs: number
  readonly say: (line: string) => void
  readonly signal: AbortSignal
}

/** A node that stays, and why. */
export interface StayingNode {
  readonly node: string
  readonly reasons: readonly string[]
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

/** Goes on where an earlier run has stopped: all that it needs is on the nodes. */
export async function moveOff(migration: Migration): Promise<Outcome> {
  const { client, source, say, signal } = migration
  const removed = new Set<string>()
  for (;;) {
    for (const node of await source.members()) {
      if (markOf(node) !== 'new') continue
      await cordon(client, node)
      say(`node/${node.metadata.name} cordoned`)
    }
    const facts = await holdFacts(migration)
    const podsOf = Map.groupBy(await client.list(kinds.pod, { signal }), ({ spec }) => spec.nodeName ?? '')
    const drainable: Turn[] = []
    const staying: StayingNode[] = []
    for (const node of (await source.members()).filter(({ metadata }) => !removed.has(metadata.uid ?? ''))) {
      const { name } = node.metadata
      const pods = podsOf.get(name) ?? []
      const reasons = markOf(node) === 'leaving' ? holdTexts(pods, facts) : [uncordoned]
      if (reasons.length > 0) staying.push({ node: name, reasons })
      else
        drainable.push({
          node,
          pods: pods.filter(isReschedulable).length,
          hasBegun: recordedWorkloads(node) !== undefined,
        })
    }
    const [next] = drainable.toSorted(byTurn)
    if (next === undefined) return { kind: 'done', removed: removed.size, staying }
    const { name, uid = '' } = next.node.metadata
    say(
      `node/${name}: ${counted(next.pods, 'pod')} to move, ${counted(drainable.length - 1, 'node')} after it`,
    )
    const drained = await drainedNode(migration, name)
    if (drained.kind === 'stuck') return { kind: 'stopped', node: name, why: drained.why }
    if (drained.kind !== 'drained') continue
    const witness = await emptyNode(migration, name, uid)
    if (witness === undefined) continue
    signal.throwIfAborted()
    await source.remove(witness)
    removed.add(uid)
    say(`node/${name} drained and removed`)
  }
}

/** A node that can be drained. */
export interface Turn {
  readonly node: Node
  /** Pods that move. */
  readonly pods: number
  /** Whether an earlier run has begun to drain it. */
  readonly hasBegun: boolean
}

/** Nodes that an earlier run has begun first, then those with the fewest pods. */
export function byTurn(a: Turn, b: Turn): number {
  return (
    Number(b.hasBegun) - Number(a.hasBegun) ||
    a.pods - b.pods ||
    (a.node.metadata.name < b.node.metadata.name ? -1 : 1)
  )
}

const namedPods = 3

/** Why pods keep their node, each reason with the pods that have it. */
export function holdTexts(pods: readonly Pod[], facts: HoldFacts): readonly string[] {
  const held = Map.groupBy(pods, (pod) => holdOf(pod, facts) ?? '')
  held.delete('')
  return Array.from(held, ([why, those]) => {
    const names = those.slice(0, namedPods).map(({ metadata }) => keyOf(metadata))
    const rest = those.length - names.length
    return `${those.length === 1 ? 'pod' : 'pods'} ${names.join(', ')}${rest > 0 ? ` and ${rest} more` : ''}: ${why}`
  })
}

/**
 * Evicts the pods of a cordoned node, and waits until as many run elsewhere as did before: also if the node stays after
 * all, or goes in another way.
 */
async function drainedNode(migration: Migration, name: string): Promise<Drained> {
  const { client, clock, limitMs, signal } = migration
  let workloads: readonly Workload[] | undefined
  let refused: ReadonlyMap<string, string> = new Map()
  let askedMs = Number.NEGATIVE_INFINITY
  let changedMs = clock.monotonic()
  let seen = ''
  let isHeld = false
  for (;;) {
    const node: Node | undefined = await client.get(kinds.node, { name }, { signal })
    const stays: boolean = isHeld || !isLeaving(node)
    const left: readonly Pod[] = stays ? [] : (await podsOn({ client }, name)).filter(mustGo)
    if (isLeaving(node)) workloads ??= await recorded(migration, node, left)
    const active: readonly Pod[] = left.filter(isActive)
    if (active.length > 0 && clock.monotonic() - askedMs >= againMs) {
      isHeld = holdTexts(active, await holdFacts(migration)).length > 0
      if (isHeld) continue
      askedMs = clock.monotonic()
      refused = await evicted({ client }, name, active)
      continue
    }
    // Pods on a node that stays are where they were.
    const missing = left.length === 0 ? await missingOf(client, workloads, stays ? '' : name, signal) : []
    if (left.length + missing.length === 0) return { kind: stays ? 'stays' : 'drained' }
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
  const absent = (await missingOf(client, workloads, name, signal)).filter(
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
  const known = recordedWorkloads(node)
  if (known !== undefined) return known
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

async function holdFacts({ client, clock, homeless, signal }: Migration): Promise<HoldFacts> {
  return await readHoldFacts(client, homeless, clock.now(), signal)
}

function mustGo(pod: Pod): boolean {
  const hasEnded = pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed'
  return !hasEnded && !isDaemonPod(pod) && !isMirrorPod(pod)
}

function isEnding(pods: readonly Pod[], nowMs: number): boolean {
  return pods.some(({ metadata }) => Date.parse(metadata.deletionTimestamp ?? '') > nowMs)
}
