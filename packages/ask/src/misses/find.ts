/** Nearest misses: single changes that would let a pending pod run, each verified by another decision (ask.md 2). */
import {
  type InstanceType,
  labels,
  type NodePool,
  ownValue,
  parseResource,
  parseResources,
  type Pod,
  podRequests,
  type Resources,
  type Taint,
  tolerates,
} from '@tenon/api'
import type { PodReason, TemplateReason } from '@tenon/engine'
import type { PendingDecision } from '@tenon/operator'
import type { StudyFacts } from '../study/study.ts'
import { type Change, pointer } from './change.ts'
import { claimChanges, sourceOf } from './claim-changes.ts'
import {
  nodeAffinities,
  nodeSelectors,
  podAffinities,
  preferences,
  spreads,
  tolerations,
} from './pod-changes.ts'
import { groupChanges } from './group-changes.ts'
import { poolLabel, poolLimit, poolReady, poolRequirements } from './pool-changes.ts'
import { amountText, lastThat, roundAmounts } from './quantities.ts'
import { TypesThatHold } from './types-that-hold.ts'
import { KnownTrials, Trial, type TrialOutcome } from './trial.ts'

/** A change and its result. */
export interface NearestMiss extends TrialOutcome {
  readonly change: Change
}

export interface Misses {
  /** Those that open the least first, then the cheapest; unknown prices last. */
  readonly misses: readonly NearestMiss[]
  /** Changes that were not tried because of the time limit. */
  readonly untried: number
}

export interface MissOptions {
  /** Milliseconds after which no other change is tried. */
  readonly limitMs: number
}

/** Maximum number of values to try for a label. */
const triedValues = 6

/** Finds nearest misses for the pods of one decision. Pods of a workload share results. */
export class MissFinder {
  readonly #study: StudyFacts
  readonly #decision: PendingDecision
  readonly #known: KnownTrials
  readonly #values: LabelValues
  readonly #types: TypesThatHold

  constructor(study: StudyFacts, decision: PendingDecision) {
    this.#study = study
    this.#decision = decision
    this.#known = new KnownTrials(decision)
    this.#values = new LabelValues(decision.input.pools)
    this.#types = new TypesThatHold(decision.input.pools)
  }

  /** @param pod a pending pod, as in the decision's input. */
  async find(pod: Pod, { limitMs }: MissOptions): Promise<Misses> {
    const { clock } = this.#study
    const endMs = clock.monotonic() + limitMs
    const isOver = (): boolean => clock.monotonic() >= endMs
    const trial = new Trial(this.#study, this.#known, pod, isOver)
    const misses: NearestMiss[] = []
    let untried = 0
    const holders = this.#types.namesFor(podRequests(pod.spec, pod.status)).slice(0, triedValues)
    // Of instance types, those that hold the pod come first: others would be tried in vain.
    const values = (key: string) =>
      key === labels.instanceType && holders.length > 0 ? holders : this.#values.of(key)
    for (const candidate of candidates(this.#study, this.#decision, pod, values)) {
      const miss = isOver() ? undefined : await tried(candidate, trial)
      // The result of an aborted trial is unreliable.
      if (isOver()) untried++
      else if (miss !== undefined) misses.push(miss)
    }
    return { misses: misses.toSorted(narrowestFirst), untried }
  }
}

/** @returns undefined if the pod would still be pending. */
async function tried(candidate: Change | OpenChange, trial: Trial): Promise<NearestMiss | undefined> {
  const change = 'settle' in candidate ? await candidate.settle(trial) : candidate
  if (change === undefined) return undefined
  if (!trial.needsOthers && (await trial.of(change, 'workload')) === undefined) return undefined
  const outcome = await trial.of(change, 'all')
  return outcome && { change, ...outcome }
}

/**
 * How much a change opens: 0 one value, amount or object more; 1 a rule of the workload goes; 2 a rule of a NodePool
 * goes, for all of its pods (page.md 1).
 */
const openness: Readonly<Record<Change['kind'], 0 | 1 | 2>> = {
  addToleration: 0,
  addDeviceToleration: 0,
  widenNodeAffinity: 0,
  widenPoolRequirement: 0,
  lowerRequest: 0,
  lowerDeviceCount: 0,
  lowerDeviceCapacity: 0,
  lowerMinCount: 0,
  raiseLimit: 0,
  labelPool: 0,
  readyPool: 0,
  relaxSpread: 1,
  dropPreference: 1,
  dropNodeSelector: 1,
  dropNodeAffinity: 1,
  dropPodAffinity: 1,
  dropPodAntiAffinity: 1,
  dropDeviceSelector: 1,
  dropDeviceConstraint: 1,
  dropGroupTopology: 1,
  dropPoolRequirement: 2,
}

function narrowestFirst(a: NearestMiss, b: NearestMiss): number {
  return (
    openness[a.change.kind] - openness[b.change.kind] ||
    (a.pricePerHour ?? Number.POSITIVE_INFINITY) - (b.pricePerHour ?? Number.POSITIVE_INFINITY) ||
    (a.change.words < b.change.words ? -1 : 1)
  )
}

/** A change whose amount is found by bisection. */
interface OpenChange {
  readonly settle: (trial: Trial) => Promise<Change | undefined>
}

type ValuesOf = (key: string) => readonly string[]

function* candidates(
  study: StudyFacts,
  { input, result }: PendingDecision,
  pod: Pod,
  values: ValuesOf,
): Generator<Change | OpenChange, void, undefined> {
  const { operator } = study
  const original = operator.caches.pods.get({
    namespace: pod.metadata.namespace ?? '',
    name: pod.metadata.name,
  })
  if (original === undefined) return
  const uid = pod.metadata.uid
  const reason = result.failures.find((failure) => failure.pod.metadata.uid === uid)?.reason
  if (reason?.kind === 'devices') yield* claimCandidates(input, original, reason)
  yield* groupChanges(operator, reason)
  const reasons = templateReasons(reason)
  yield* tolerations(original, [...taintsOf(reasons.values()), ...taintsOfNodes(input.nodes, original)])
  yield* nodeSelectors(original)
  yield* podAffinities(original)
  yield* spreads(original)
  yield* preferences(original)
  yield* nodeAffinities(original, values)
  for (const resource of resourcesOf(original)) yield loweredRequest(original, resource)
  for (const { nodePool: name, because } of operator.questions().unreadyPools()) {
    const pool = operator.caches.nodePools.get({ name })
    if (pool !== undefined) yield poolReady(pool, because)
  }
  for (const [name, why] of reasons) {
    const pool = operator.caches.nodePools.get({ name })
    if (pool !== undefined) yield* poolCandidates(pool, why, original, values)
  }
  if (reason?.kind !== 'devices' && reason?.kind !== 'extendedResources') return
  for (const { nodePool } of input.pools) {
    const pool = operator.caches.nodePools.get({ name: nodePool.metadata.name })
    if (pool !== undefined) yield* poolRequirements(pool, values)
  }
}

/** Smaller numbers of devices to try. */
const triedCounts = [16, 8, 4, 2, 1]

function claimCandidates(
  { devices }: PendingDecision['input'],
  pod: Pod,
  { claim, because }: Extract<PodReason, { kind: 'devices' }>,
): readonly Change[] {
  const source = devices && sourceOf(pod, claim, devices.claims)
  return source === undefined ? [] : claimChanges(source, because, triedCounts)
}

function templateReasons(reason: PodReason | undefined): ReadonlyMap<string, TemplateReason> {
  const own = reasonAlone(reason)
  return new Map(own?.kind === 'noTemplate' ? own.templates.map((each) => [each.nodePool, each.reason]) : [])
}

/** The reason of a single pod; for a group, that of its first pod without a place. */
export function reasonAlone(reason: PodReason | undefined): PodReason | undefined {
  return reason?.kind === 'podGroup' ? reasonAlone(reason.because) : reason
}

function taintsOf(reasons: Iterable<TemplateReason>): readonly Taint[] {
  const taints = new Map<string, Taint>()
  for (const reason of reasons)
    if (reason.kind === 'untoleratedTaints')
      for (const taint of reason.taints)
        taints.set(JSON.stringify([taint.key, taint.value, taint.effect]), taint)
  return [...taints.values()]
}

/**
 * Taints of existing nodes that the pod does not tolerate, without those that nodes have while they are
 * unhealthy.
 */
function taintsOfNodes(nodes: PendingDecision['input']['nodes'], { spec }: Pod): readonly Taint[] {
  const taints = new Map<string, Taint>()
  for (const node of nodes) {
    const [taint, ...others] = node.taints.filter(
      (each) =>
        each.effect !== 'PreferNoSchedule' && !(spec.tolerations ?? []).some((one) => tolerates(one, each)),
    )
    if (taint === undefined || others.length > 0 || isSystemTaint(taint)) continue
    taints.set(JSON.stringify([taint.key, taint.value, taint.effect]), taint)
    if (taints.size === triedValues) break
  }
  return [...taints.values()]
}

function isSystemTaint({ key }: Taint): boolean {
  return /^(node|node-role)\.(kubernetes|cloudprovider\.kubernetes)\.io\//.test(key)
}

function* poolCandidates(
  pool: NodePool,
  reason: TemplateReason,
  pod: Pod,
  values: ValuesOf,
): Generator<Change | OpenChange, void, undefined> {
  if (reason.kind === 'incompatibleRequirements' && reason.conflict.kind === 'unknownLabel') {
    const { key } = reason.conflict
    for (const value of wantedValues(pod, key)) yield poolLabel(pool, key, value)
  }
  if (reason.kind === 'limits' || reason.kind === 'nodeLimit')
    for (const resource of Object.keys(pool.spec.limits ?? {})) yield raisedLimit(pool, resource)
  yield* poolRequirements(pool, (key) => [...new Set([...wantedValues(pod, key), ...values(key)])])
}

/** Values of a label that the pod selects. */
function wantedValues({ spec }: Pod, key: string): readonly string[] {
  const selected = ownValue(spec.nodeSelector, key)
  const terms = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms
  const required = (terms ?? []).flatMap(({ matchExpressions = [] }) =>
    matchExpressions.flatMap((each) =>
      each.key === key && each.operator === 'In' ? (each.values ?? []) : [],
    ),
  )
  return [...new Set([...(selected === undefined ? [] : [selected]), ...required])].slice(0, triedValues)
}

/** Values of labels that new nodes could have. */
class LabelValues {
  readonly #pools: PendingDecision['input']['pools']
  readonly #known = new Map<string, readonly string[]>()

  constructor(pools: PendingDecision['input']['pools']) {
    this.#pools = pools
  }

  of(key: string): readonly string[] {
    const known = this.#known.get(key)
    if (known !== undefined) return known
    const values = new Set<string>()
    for (const { instanceTypes, nodePool } of this.#pools) {
      const label = ownValue(nodePool.spec.template.metadata?.labels, key)
      if (label !== undefined) values.add(label)
      for (const type of instanceTypes) for (const value of valuesOfType(type, key)) values.add(value)
    }
    const some = [...values].toSorted().slice(0, triedValues)
    this.#known.set(key, some)
    return some
  }
}

function valuesOfType({ requirements, offerings }: InstanceType, key: string): readonly string[] {
  return [...requirements, ...offerings.flatMap((offering) => offering.requirements)].flatMap((each) =>
    each.key === key && each.operator === 'In' ? (each.values ?? []) : [],
  )
}

function resourcesOf({ spec }: Pod): readonly string[] {
  const names = spec.containers.flatMap(({ resources }) => Object.keys(resources?.requests ?? {}))
  return [...new Set(names)]
}

/** Finds the largest round amount that fits, for the container with the largest request. */
function loweredRequest(pod: Pod, resource: string): OpenChange {
  const requests = pod.spec.containers.map(({ resources }) => amountOf(resources?.requests, resource))
  const most = Math.max(...requests)
  const index = requests.indexOf(most)
  const amounts = roundAmounts(resource, most)
  const change = (amount: number): Change => ({
    kind: 'lowerRequest',
    target: { kind: 'pod' },
    field: `spec.containers[${index}].resources.requests[${resource}]`,
    words: `request ${amountText(resource, amount)} of ${resource} instead of ${amountText(resource, most)}`,
    operations: [
      {
        op: 'replace',
        path: pointer('spec', 'containers', index, 'resources', 'requests', resource),
        value: amountText(resource, amount),
      },
    ],
  })
  return {
    settle: async (trial) => {
      if (!(most > 0) || amounts.length === 0) return undefined
      const scope = trial.needsOthers ? 'all' : 'workload'
      const last = await lastThat(
        amounts.length,
        async (at) => (await trial.of(change(amounts.at(at)), scope)) !== undefined,
      )
      return last === undefined ? undefined : change(amounts.at(last))
    },
  }
}

function amountOf(requests: Readonly<Record<string, string>> | undefined, resource: string): number {
  const text = ownValue(requests, resource)
  return text === undefined ? 0 : parseResource(resource, text)
}

/** Finds the smallest round limit that is sufficient. */
function raisedLimit(pool: NodePool, resource: string): OpenChange {
  const limits: Resources = parseResources(pool.spec.limits)
  const now = ownValue(limits, resource) ?? 0
  return {
    settle: async (trial) => {
      if ((await trial.of(poolLimit(pool, resource, undefined), 'all')) === undefined) return undefined
      // Doubled until it is sufficient, then bisected down to a round amount.
      const enough = async (amount: number): Promise<boolean> =>
        (await trial.of(poolLimit(pool, resource, amount), 'all')) !== undefined
      let most = Math.max(now, 1)
      for (let doubled = 0; doubled < 40 && !(await enough(most)); doubled++) most *= 2
      const amounts = roundAmounts(resource, most * 2)
      const tooLittle = await lastThat(amounts.length, async (at) => !(await enough(amounts.at(at))))
      const least = tooLittle === undefined ? 0 : tooLittle + 1
      return least < amounts.length ? poolLimit(pool, resource, amounts.at(least)) : undefined
    },
  }
}
