/** What a drain waits for: the rule that holds each pod, and when it ends. */
import {
  counted,
  matchesSelector,
  type Node,
  type NodeClass,
  type Pod,
  type PodDisruptionBudget,
  type ResourceType,
} from '@tenon/api'
import { rfc3339 } from '@tenon/runtime'
import type { Caches } from '../../state/caches.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import { deadlineMsOf } from '../../state/nodes/state-node.ts'
import type { PodsOnNodes } from '../../state/pods/pods-to-move.ts'
import { surgeStep } from '../../state/pods/surging-pods.ts'
import type { BudgetOutlook } from '../../state/pods/budget-outlook.ts'
import { doNotDisrupt, isTerminating, keyOf } from '../../state/pods/pods.ts'
import {
  drainTier,
  type DrainTier,
  forcedAtMs,
  isDrainable,
  isTerminatingNode,
  pendingVolumes,
  planDrain,
} from './drain.ts'

/** Why a pod is still on its node. Times are RFC 3339. */
type DrainRule =
  /** Terminating; `until` is when its grace period ends. */
  | { readonly kind: 'leaving'; readonly until: string }
  /** Annotation `karpenter.sh/do-not-disrupt`; without `until`, until it is removed. */
  /** Protected by an annotation. */
  | { readonly kind: 'doNotDisrupt'; readonly by: string; readonly until?: string }
  | {
      readonly kind: 'podDisruptionBudget'
      /** `namespace/name`. */
      readonly budget: string
      readonly currentHealthy: number
      readonly desiredHealthy: number
      /** Whether it may allow the eviction later; undefined in the compatibility mode. */
      readonly outlook?: BudgetOutlook
    }
  /** The API server evicts no pod that several PDBs cover. */
  | { readonly kind: 'severalPodDisruptionBudgets'; readonly budgets: readonly string[] }
  /** A rollout replaces it; annotation `tenon.sh/surge-on-drain`. */
  | { readonly kind: 'surging'; readonly deployment: string }
  /** Evicted when the pods of tier `after` are gone. */
  | { readonly kind: 'laterTier'; readonly after: DrainTier }
  /** Nothing holds it. */
  | { readonly kind: 'evicting' }

export interface WaitingPod {
  readonly namespace: string
  readonly name: string
  readonly rule: DrainRule
  /** When the deadline of the node overrides the rule, RFC 3339; undefined: never. */
  readonly forcedAt?: string
}

export interface DrainReport {
  readonly node: string
  readonly nodeClaim?: string
  /** When the drain began; RFC 3339. */
  readonly since: string
  /** When the remaining pods are deleted whatever holds them, RFC 3339; undefined: never. */
  readonly deadline?: string
  /** By namespace and name. */
  readonly pods: readonly WaitingPod[]
  /** Persistent volumes to be detached; empty while pods are waited for. */
  readonly volumes: readonly string[]
}

interface DrainFacts {
  readonly node: string
  readonly nodeClaim?: string
  readonly since: string
  /** Infinity when nothing limits the drain. */
  readonly deadlineMs: number
  /** All pods on the node. */
  readonly pods: readonly Pod[]
  readonly budgets: BudgetIndex
  readonly podsOnNodes: Pick<PodsOnNodes, 'outlookOf'>
  /** The Deployment whose rollout the drain waits for, as `namespace/name`. */
  readonly surgeOf: (pod: Pod) => string | undefined
  readonly windows?: ClusterState['windows']
  readonly pendingVolumes: readonly string[]
}

export function drainReport(facts: DrainFacts, nowMs: number): DrainReport {
  const { node, nodeClaim, since, deadlineMs } = facts
  const plan = planDrain(facts.pods, deadlineMs, nowMs)
  const pods = plan.waiting
    .map((pod) => waitingPod(pod, facts, plan.tier, nowMs))
    .toSorted((one, other) => byText(one.namespace, other.namespace) || byText(one.name, other.name))
  return {
    node,
    ...(nodeClaim !== undefined && { nodeClaim }),
    since,
    ...(Number.isFinite(deadlineMs) && { deadline: rfc3339(deadlineMs) }),
    pods,
    volumes: pods.length === 0 ? facts.pendingVolumes : [],
  }
}

/** Whether a rule, and not just time, keeps the pod. */
export function isHeld({ rule }: WaitingPod): boolean {
  return (
    rule.kind === 'doNotDisrupt' ||
    rule.kind === 'podDisruptionBudget' ||
    rule.kind === 'severalPodDisruptionBudgets'
  )
}

function waitingPod(pod: Pod, facts: DrainFacts, tier: DrainTier | undefined, nowMs: number): WaitingPod {
  const { namespace = '', name } = pod.metadata
  const forcedMs = isTerminating(pod) ? Number.POSITIVE_INFINITY : forcedAtMs(pod, facts.deadlineMs)
  return {
    namespace,
    name,
    rule: nowMs > forcedMs ? { kind: 'evicting' } : ruleOf(pod, facts, tier, nowMs),
    ...(Number.isFinite(forcedMs) && { forcedAt: rfc3339(forcedMs) }),
  }
}

/** The first rule that keeps the pod, in the order in which an eviction checks them. */
function ruleOf(
  pod: Pod,
  { budgets, podsOnNodes, surgeOf: deploymentOf, windows }: DrainFacts,
  tier: DrainTier | undefined,
  nowMs: number,
): DrainRule {
  const leavingBy = pod.metadata.deletionTimestamp
  if (leavingBy !== undefined) return { kind: 'leaving', until: leavingBy }
  const protection = doNotDisrupt(pod, nowMs, windows)
  if (protection.kind === 'active') {
    const { by, untilMs } = protection
    return { kind: 'doNotDisrupt', by, ...(Number.isFinite(untilMs) && { until: rfc3339(untilMs) }) }
  }
  const deployment = deploymentOf(pod)
  if (deployment !== undefined) return { kind: 'surging', deployment }
  const covering = pod.status?.phase === 'Pending' ? [] : budgets.covering(pod)
  const [budget] = covering
  if (covering.length > 1)
    return { kind: 'severalPodDisruptionBudgets', budgets: covering.map(({ metadata }) => keyOf(metadata)) }
  if (budget !== undefined && !allows(budget, pod)) {
    const { currentHealthy = 0, desiredHealthy = 0 } = budget.status ?? {}
    const outlook = podsOnNodes.outlookOf(budget)
    return {
      kind: 'podDisruptionBudget',
      budget: keyOf(budget.metadata),
      currentHealthy,
      desiredHealthy,
      ...(outlook && { outlook }),
    }
  }
  if (tier !== undefined && drainTier(pod) !== tier) return { kind: 'laterTier', after: tier }
  return { kind: 'evicting' }
}

/** Whether the API server would allow an eviction now. */
function allows({ spec, status = {} }: PodDisruptionBudget, pod: Pod): boolean {
  const { disruptionsAllowed = 0, currentHealthy = 0, desiredHealthy = 0 } = status
  if (disruptionsAllowed > 0) return true
  if (pod.status?.conditions?.some((each) => each.type === 'Ready' && each.status === 'True')) return false
  if (spec.unhealthyPodEvictionPolicy === 'AlwaysAllow') return true
  return desiredHealthy > 0 && currentHealthy >= desiredHealthy
}

const byText = (one: string, other: string) => (one < other ? -1 : Number(one > other))

/**
 * PDBs by namespace and one label of their selector. Finding those of a pod costs its labels and the PDBs that share one
 * of them, however many PDBs there are.
 */
export class BudgetIndex {
  readonly #byLabel = new Map<string, PodDisruptionBudget[]>()

  constructor(budgets: readonly PodDisruptionBudget[]) {
    for (const budget of budgets) {
      const [label] = Object.entries(budget.spec.selector?.matchLabels ?? {})
      const key = indexKey(budget.metadata.namespace, label)
      const known = this.#byLabel.get(key)
      if (known === undefined) this.#byLabel.set(key, [budget])
      else known.push(budget)
    }
  }

  /** The PDBs that cover the pod, by name. */
  covering({ metadata: { namespace, labels = {} } }: Pod): readonly PodDisruptionBudget[] {
    const keys = [
      indexKey(namespace, undefined),
      ...Object.entries(labels).map((label) => indexKey(namespace, label)),
    ]
    return keys
      .flatMap((key) => this.#byLabel.get(key) ?? [])
      .filter((budget) => matchesSelector(budget.spec.selector, labels))
      .toSorted((one, other) => (one.metadata.name < other.metadata.name ? -1 : 1))
  }
}

/** PDBs without `matchLabels` are checked for every pod of their namespace. */
function indexKey(namespace = '', label: readonly [string, string] | undefined): string {
  return label === undefined ? namespace : `${namespace}/${label[0]}=${label[1]}`
}

const budgetsNamed = 3
const podsNamed = 2

/** For the event on the Node. The deadline comes first, as the length of events is limited. */
export function drainSummary({ pods, deadline }: DrainReport): string {
  const limit = deadline === undefined ? '' : `; the rest is deleted by ${deadline}`
  const parts = [
    ...ofKind(pods, 'severalPodDisruptionBudgets', severalBudgets),
    ...budgetParts(pods),
    ...ofKind(pods, 'doNotDisrupt', protectedPods),
    ...ofKind(pods, 'surging', surgingPods),
    ...ofKind(pods, 'leaving', leavingPods),
    ...ofKind(pods, 'evicting', (held) => `${held.length} being evicted`),
    ...ofKind(pods, 'laterTier', (held) => `${held.length} evicted later`),
  ]
  return `Waiting for ${counted(pods.length, 'pod')} to leave the node${limit}: ${parts.join('; ')}`
}

type Kind = DrainRule['kind']
type Held<K extends Kind> = WaitingPod & { readonly rule: Extract<DrainRule, { readonly kind: K }> }

function ofKind<K extends Kind>(
  pods: readonly WaitingPod[],
  kind: K,
  textOf: (held: readonly Held<K>[]) => string,
): readonly string[] {
  const held = pods.filter((pod): pod is Held<K> => pod.rule.kind === kind)
  return held.length === 0 ? [] : [textOf(held)]
}

function severalBudgets(held: readonly Held<'severalPodDisruptionBudgets'>[]): string {
  const names = new Set(held.flatMap(({ rule }) => rule.budgets))
  return `${held.length} covered by more than one PodDisruptionBudget, which evictions do not allow (${some([...names])}; ${named(held)})`
}

/** Names the PDBs that hold the most pods. */
function budgetParts(pods: readonly WaitingPod[]): readonly string[] {
  const groups = new Map<string, Held<'podDisruptionBudget'>[]>()
  for (const pod of pods) {
    if (pod.rule.kind !== 'podDisruptionBudget') continue
    const group = groups.get(pod.rule.budget) ?? []
    group.push({ ...pod, rule: pod.rule })
    groups.set(pod.rule.budget, group)
  }
  const largest = [...groups].toSorted(([, one], [, other]) => other.length - one.length)
  const rest = largest.slice(budgetsNamed).flatMap(([, held]) => held)
  return [
    ...largest.slice(0, budgetsNamed).map(([budget, held]) => heldByBudget(budget, held)),
    ...(rest.length === 0
      ? []
      : [`${rest.length} held by ${counted(largest.length - budgetsNamed, 'other PodDisruptionBudget')}`]),
  ]
}

function heldByBudget(budget: string, held: readonly Held<'podDisruptionBudget'>[]): string {
  const { currentHealthy = 0, desiredHealthy = 0, outlook } = held[0]?.rule ?? {}
  const why = outlook?.text ?? `needs ${desiredHealthy} healthy pods and has ${currentHealthy}`
  return `${held.length} held by PodDisruptionBudget ${budget}, which ${why} (${named(held)})`
}

function protectedPods(held: readonly Held<'doNotDisrupt'>[]): string {
  const ends = held.flatMap(({ rule }) => (rule.until === undefined ? [] : [rule.until])).toSorted()
  const last = ends.at(-1)
  const isForGood = ends.length < held.length
  const until = isForGood || last === undefined ? 'until it is removed' : `until ${last} at the latest`
  const by = [...new Set(held.map(({ rule }) => rule.by))].toSorted().join(' or ')
  return `${held.length} protected by ${by} ${until} (${named(held)})`
}

function surgingPods(held: readonly Held<'surging'>[]): string {
  const deployments = new Set(held.map(({ rule }) => rule.deployment))
  return `${held.length} being replaced by a rollout of their Deployment before they go (${some([...deployments])})`
}

function leavingPods(held: readonly Held<'leaving'>[]): string {
  const last =
    held
      .map(({ rule }) => rule.until)
      .toSorted()
      .at(-1) ?? ''
  return `${held.length} being stopped, the last by ${last}`
}

const named = (pods: readonly WaitingPod[]) => some(pods.map(({ namespace, name }) => `${namespace}/${name}`))

function some(names: readonly string[]): string {
  const rest = names.length - podsNamed
  return `${names.slice(0, podsNamed).join(', ')}${rest > 0 ? ` and ${counted(rest, 'other')}` : ''}`
}

/** The Deployment whose rollout a drain waits for before it evicts a pod of the node, as `namespace/name`. */
export function surgeOf(
  { podsOnNodes, surgingPods: surging }: Pick<ClusterState, 'podsOnNodes' | 'surgingPods'>,
  { metadata }: Node,
): (pod: Pod) => string | undefined {
  return (pod) => {
    const deployment = surging.deploymentOf(pod)
    if (deployment === undefined || !podsOnNodes.surges(pod)) return undefined
    const step = surgeStep(pod, deployment, metadata.uid ?? '')
    return step === 'evict' ? undefined : keyOf(deployment.metadata)
  }
}

/** Every drain in progress, by name of the Node. */
export function drainReports(
  caches: Caches,
  state: ClusterState,
  nodeClasses: readonly ResourceType<NodeClass>[],
  nowMs: number,
): readonly DrainReport[] {
  const budgets = new BudgetIndex(caches.podDisruptionBudgets.list())
  return caches.nodes
    .list()
    .filter((node) => isTerminatingNode(node, nodeClasses))
    .toSorted((one, other) => (one.metadata.name < other.metadata.name ? -1 : 1))
    .map((node) => {
      const { name, deletionTimestamp = '' } = node.metadata
      const claim = state.claimOf(node)
      const pods = state.podsOn(name)
      const staying = pods.filter((pod) => !isDrainable(pod, nowMs))
      const facts = {
        node: name,
        ...(claim !== undefined && { nodeClaim: claim.metadata.name }),
        since: deletionTimestamp,
        deadlineMs: deadlineMsOf(claim),
        pods,
        budgets,
        podsOnNodes: state.podsOnNodes,
        surgeOf: surgeOf(state, node),
        windows: state.windows,
        pendingVolumes: pendingVolumes(caches, name, staying),
      }
      return drainReport(facts, nowMs)
    })
}
