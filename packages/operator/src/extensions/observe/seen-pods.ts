/** Notes where pods went that a launch was decided for, and what it would have changed for them (adoption.md 2). */
import { counted, type Pod } from '@tenon/api'
import { type NewClaim, renderPodReason, type SchedulingResult } from '@tenon/engine'
import type { Change } from '@tenon/kube'
import type { Clock } from '@tenon/runtime'
import { podKeysNoted } from '../../journal/entry.ts'
import type { Journal } from '../../journal/journal.ts'
import type { GatheredInput } from '../../provisioning/input/scheduling-input.ts'
import type { Caches } from '../../state/caches.ts'
import type { PodIndex } from '../../state/pods/pod-index.ts'
import { isActive, isDaemonPod, isMirrorPod, isProvisionable, keyOf } from '../../state/pods/pods.ts'
import { createdMsOf, type SeenNode, type SeenNodes } from './seen-nodes.ts'

interface Dependencies {
  readonly caches: Pick<Caches, 'pods'>
  readonly state: { readonly pods: Pick<PodIndex, 'isWellFormed'> }
  readonly journal: Pick<Journal, 'note'>
  readonly clock: Pick<Clock, 'now'>
}

type Verdict =
  | { readonly kind: 'planned'; readonly launch: string; readonly decidedMs: number }
  /** On a node that existed, or was on its way. */
  | { readonly kind: 'placed'; readonly node: string }
  | { readonly kind: 'refused'; readonly why: string }

interface WaitingPod {
  readonly key: string
  /** When this process first saw that it waits for a node, Unix milliseconds. */
  readonly sinceMs: number
  /** Undefined until it was decided. */
  verdict?: Verdict
}

interface BoundPod {
  readonly key: string
  readonly node: string
  readonly boundMs: number
  /** Undefined if it never waited for a node. */
  readonly waited: WaitingPod | undefined
}

/** A new node, until it is known whom it was launched for. */
interface OpenNode {
  /** `pending`: no pod tells yet; `planned`: only pods run there that a launch was decided for. */
  state: 'pending' | 'planned'
  isShared: boolean
}

type Decide = (input: GatheredInput) => Promise<SchedulingResult>

export class SeenPods {
  readonly #deps: Dependencies
  readonly #nodes: Pick<SeenNodes, 'get' | 'onTick'>
  /** By UID. */
  readonly #waiting = new Map<string, WaitingPod>()
  #bound: BoundPod[] = []
  /** Pods that ended unbound, by launch. */
  readonly #gone = new Map<string, string[]>()
  readonly #open = new WeakMap<SeenNode, OpenNode | 'closed'>()

  constructor(deps: Dependencies, nodes: Pick<SeenNodes, 'get' | 'onTick'>) {
    this.#deps = deps
    this.#nodes = nodes
  }

  /** Call it once the caches are filled, and before anything is decided. */
  follow(): void {
    const { pods } = this.#deps.caches
    for (const pod of pods.list()) if (this.#isProvisionable(pod)) this.#wait(pod)
    pods.onChange((change) => {
      this.#changed(change)
    })
    this.#nodes.onTick(() => {
      this.#note()
    })
  }

  #isProvisionable(pod: Pod): boolean {
    return this.#deps.state.pods.isWellFormed(pod) && isProvisionable(pod)
  }

  #wait(pod: Pod): WaitingPod {
    const uid = uidOf(pod)
    const known = this.#waiting.get(uid)
    if (known !== undefined) return known
    const waiting = { key: keyOf(pod.metadata), sinceMs: this.#deps.clock.now() }
    this.#waiting.set(uid, waiting)
    return waiting
  }

  #changed(change: Change<Pod>): void {
    const { kind, object: pod } = change
    const uid = uidOf(pod)
    const waited = this.#waiting.get(uid)
    const node = nodeNameOf(pod)
    if (kind === 'deleted' || !this.#deps.state.pods.isWellFormed(pod) || !isActive(pod)) {
      this.#waiting.delete(uid)
      if (waited !== undefined) this.#end(waited)
    } else if (node === '') {
      if (waited === undefined && this.#isProvisionable(pod)) this.#wait(pod)
    } else {
      this.#waiting.delete(uid)
      const isBinding = kind === 'added' || nodeNameOf(change.old) === ''
      if (!isBinding || isDaemonPod(pod) || isMirrorPod(pod)) return
      if (waited === undefined && this.#openNode(this.#nodes.get(node)) === undefined) return
      this.#bound.push({ key: keyOf(pod.metadata), node, boundMs: this.#deps.clock.now(), waited })
    }
  }

  #end({ key, verdict }: WaitingPod): void {
    if (verdict?.kind !== 'planned') return
    this.#gone.set(verdict.launch, [...(this.#gone.get(verdict.launch) ?? []), key])
  }

  /** Undefined for a node that needs no more watching. */
  #openNode(node: SeenNode | undefined): OpenNode | undefined {
    if (node?.isNew !== true) return undefined
    const known = this.#open.get(node) ?? { state: 'pending', isShared: false }
    this.#open.set(node, known)
    return known === 'closed' ? undefined : known
  }

  /**
   * The launches that pods need which none was decided for before. Nodes that others launched for these pods are left out, as
   * are pods whose launch is decided: it is on its way, and others launched something else.
   * @param result of `input`, which is used where nothing has to be left out.
   */
  async launches(
    input: GatheredInput,
    result: SchedulingResult,
    decide: Decide,
  ): Promise<readonly NewClaim[]> {
    this.#refuseIgnored(input)
    const pods = input.pods.filter((pod) => this.#isUndecided(input, pod))
    if (pods.length === 0) return []
    const fresh = pods.map((pod) => this.#wait(pod)).filter(({ verdict }) => verdict === undefined)
    const fromMs = fresh.reduce((first, { sinceMs }) => Math.min(first, sinceMs), Number.POSITIVE_INFINITY)
    const nodes = input.nodes.filter(({ name }) => !isNewerIn(input, name, fromMs))
    const isWhole = pods.length === input.pods.length && nodes.length === input.nodes.length
    const decided = isWhole ? result : await decide(reduced(input, { pods, nodes }))
    for (const { pod, node } of decided.placements) this.#place(input, pod, node)
    for (const { pod, reason } of decided.failures)
      this.#decide(pod, { kind: 'refused', why: renderPodReason(reason) })
    return decided.claims.filter((claim) => claim.pods.length > 0)
  }

  /** Nothing can be launched at all. */
  refuseAll(input: GatheredInput, why: string): void {
    this.#refuseIgnored(input)
    for (const pod of input.pods.filter((each) => this.#isUndecided(input, each))) this.#refuse(pod, why)
  }

  #refuseIgnored({ refused }: GatheredInput): void {
    for (const { pod, reason } of refused) if (this.#isWaiting(pod)) this.#refuse(pod, reason)
  }

  #refuse(pod: Pod, why: string): void {
    this.#wait(pod).verdict = { kind: 'refused', why }
  }

  /** @param launch the id of its entry. */
  planned(claim: NewClaim, launch: string): void {
    const decidedMs = this.#deps.clock.now()
    for (const pod of claim.pods) this.#decide(pod, { kind: 'planned', launch, decidedMs })
  }

  /** A pod may have been bound or deleted during the decision. */
  #decide(pod: Pod, verdict: Verdict): void {
    const waiting = this.#waiting.get(uidOf(pod))
    if (waiting !== undefined) waiting.verdict = verdict
    else this.#end({ key: keyOf(pod.metadata), sinceMs: 0, verdict })
  }

  /** A node that others launched meanwhile is no place that a refused pod would have had. */
  #place(input: GatheredInput, pod: Pod, node: string): void {
    const { sinceMs = 0, verdict } = this.#waiting.get(uidOf(pod)) ?? {}
    if (verdict?.kind === 'refused' && isNewerIn(input, node, sinceMs)) return
    this.#decide(pod, { kind: 'placed', node })
  }

  #isUndecided({ origins }: GatheredInput, pod: Pod): boolean {
    const isPending = (origins?.get(uidOf(pod)) ?? 'pending') === 'pending'
    return isPending && this.#isWaiting(pod) && this.#waiting.get(uidOf(pod))?.verdict?.kind !== 'planned'
  }

  /** Whether it still waits: the input may be older than the cache. */
  #isWaiting({ metadata }: Pod): boolean {
    const { name, namespace, uid } = metadata
    const current = this.#deps.caches.pods.get({ name, ...(namespace !== undefined && { namespace }) })
    if (current === undefined || current.metadata.uid !== uid) return false
    return this.#deps.state.pods.isWellFormed(current) && nodeNameOf(current) === '' && isActive(current)
  }

  #note(): void {
    for (const [launch, keys] of this.#gone)
      this.#deps.journal.note({
        kind: 'seen',
        reason: 'PodsGone',
        message: `${counted(keys.length, 'pod')} ended without a node, or had one before the launch was decided`,
        pods: podKeysNoted(keys),
        decision: launch,
      })
    this.#gone.clear()
    const groups = Map.groupBy(this.#bound, (each) => this.#groupOf(each))
    this.#bound = []
    for (const pods of groups.values()) this.#noteBound(pods)
  }

  /** Pods of one group are noted together; one that would have been left without a node alone. */
  #groupOf({ key, node, waited }: BoundPod): string {
    const { verdict } = waited ?? {}
    return JSON.stringify([
      node,
      waited === undefined,
      verdict?.kind,
      verdict?.kind === 'planned' && verdict.launch,
      verdict?.kind === 'placed' && verdict.node,
      verdict?.kind === 'refused' && key,
    ])
  }

  #noteBound(pods: readonly BoundPod[]): void {
    const [first] = pods
    if (first === undefined) return
    const node = this.#nodes.get(first.node)
    const open = this.#openNode(node)
    if (!saysSomething(first, node, open)) return
    const { verdict } = first.waited ?? {}
    const [reason, what] = meaningOf(first, node)
    if (open !== undefined && node !== undefined) this.#settle(node, open, first)
    this.#deps.journal.note({
      kind: 'seen',
      reason,
      message: `${counted(pods.length, 'pod')} got Node ${first.node}: ${what}`,
      nodes: [first.node],
      ...(node?.claim !== undefined && { nodeClaims: [node.claim] }),
      pods: podKeysNoted(pods.map(({ key }) => key)),
      ...(verdict?.kind === 'planned' && { decision: verdict.launch }),
      ...(first.waited !== undefined && { waiting: waitingOf(pods, node) }),
    })
  }

  #settle(node: SeenNode, open: OpenNode, { waited }: BoundPod): void {
    const isPlanned = waited?.verdict?.kind === 'planned'
    if (isPlanned && !open.isShared) open.state = 'planned'
    else if (waited === undefined && open.state === 'pending') open.isShared = true
    else this.#open.set(node, 'closed')
  }
}

/** Pods that got a node as they would have in any case are not noted. */
function saysSomething(
  { waited }: BoundPod,
  node: SeenNode | undefined,
  open: OpenNode | undefined,
): boolean {
  const { verdict, sinceMs = 0 } = waited ?? {}
  if (verdict?.kind === 'planned') return true
  if (verdict?.kind === 'refused') return node?.isNew === true && isNewer(node.createdMs, sinceMs)
  return open !== undefined && (waited !== undefined || !open.isShared)
}

/** What an entry about pods says, by its reason. */
function meaningOf({ node, waited }: BoundPod, seen: SeenNode | undefined): readonly [string, string] {
  if (waited === undefined) return ['PodsJoined', 'they never waited for one']
  const { verdict } = waited
  switch (verdict?.kind) {
    case 'planned':
      return ['PodsBound', 'a launch was decided for them']
    case 'placed':
      return verdict.node === node || verdict.node === seen?.claim
        ? ['PodsPlaced', 'they would have been left to it']
        : ['PodsHadRoom', `Node ${verdict.node} had room for them`]
    case 'refused':
      return ['PodsRefused', `no node would have been launched: ${verdict.why}`]
    case undefined:
      return ['PodsUndecided', 'nothing was decided yet']
  }
}

function waitingOf(pods: readonly BoundPod[], node: SeenNode | undefined) {
  const total = (seconds: (pod: BoundPod) => number) => pods.reduce((sum, pod) => sum + seconds(pod), 0)
  const seconds = total(({ boundMs, waited }) => secondsBetween(waited?.sinceMs ?? boundMs, boundMs))
  if (pods[0]?.waited?.verdict?.kind !== 'planned' || node?.isNew !== true) return { seconds }
  const plannedSeconds = total(({ boundMs, waited }) => {
    const { sinceMs = boundMs, verdict } = waited ?? {}
    const decidedMs = verdict?.kind === 'planned' ? verdict.decidedMs : boundMs
    return secondsBetween(sinceMs, decidedMs) + secondsBetween(node.sinceMs, boundMs)
  })
  return { seconds, plannedSeconds }
}

/** The input for these pods and nodes alone. */
function reduced(
  { planned: _planned, podGroups = [], ...input }: GatheredInput,
  { pods, nodes }: Pick<GatheredInput, 'nodes' | 'pods'>,
): GatheredInput {
  const uids = new Set(pods.map(uidOf))
  // A group decides about all of its members.
  const whole = podGroups.filter(({ members }) => members.every((uid) => uids.has(uid)))
  return { ...input, pods, nodes, ...(whole.length > 0 && { podGroups: whole }) }
}

function isNewerIn({ stateNodes }: GatheredInput, name: string, fromMs: number): boolean {
  const found = stateNodes.get(name)
  return found !== undefined && isNewer(createdMsOf(found), fromMs)
}

/** Creation times are in whole seconds, and no autoscaler launches in the second in which a pod begins to wait. */
function isNewer(createdMs: number, fromMs: number): boolean {
  return createdMs > Math.floor(fromMs / 1000) * 1000
}

/** Also of a malformed pod. */
const nodeNameOf = ({ spec }: { readonly spec?: Partial<Pod['spec']> }): string => spec?.nodeName ?? ''
const uidOf = ({ metadata }: Pod): string => metadata.uid ?? keyOf(metadata)
const secondsBetween = (fromMs: number, toMs: number): number => Math.max(0, toMs - fromMs) / 1000
