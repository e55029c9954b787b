/** Runs test cases (ask.md 7): deterministic, without a cluster. */
import {
  counted,
  type InstanceType,
  labels,
  type NodeClaim,
  ownValue,
  type Pod,
  sumOfPrices,
} from '@tenon/api'
import type { NewClaim } from '@tenon/engine'
import type { PendingDecision } from '@tenon/operator'
import { type PendingExplanation, PendingExplainer } from '../explain/pending.ts'
import { priceOfLabels } from '../play/catalogue.ts'
import { playSnapshot, type SnapshotPlayReport } from '../play/play-snapshot.ts'
import { changedSnapshot, type ObjectName, type SnapshotChange } from '../simulate/changes.ts'
import type { Snapshot } from '../snapshot/snapshot.ts'
import { Study } from '../study/study.ts'
import type { Case, CaseExpectations, CaseFailure, CaseOutcome, CaseStep } from './case.ts'

/** The outcome, or why the case cannot be run. */
export type CaseResult = CaseOutcome | { readonly problem: string }

/** @param objectName parses names such as `deployment/shop/web`; undefined for anything else. */
export async function runCase(
  given: Snapshot,
  { when, expect }: Case,
  objectName: (text: string) => ObjectName | undefined,
): Promise<CaseResult> {
  let snapshot = given
  let passedMs = 0
  for (const step of when) {
    if (step.kind === 'pass') {
      passedMs += step.ms
      continue
    }
    if (passedMs > 0)
      return { problem: 'time passes after all other steps: move `pass` to the end of `when`' }
    const next = afterStep(snapshot, step, objectName)
    if ('problem' in next) return next
    snapshot = next.ok
  }
  const subjects = uidsOf(snapshot, given)
  const study = await Study.open(snapshot)
  const decision = await study.decide()
  const play = passedMs > 0 ? await playSnapshot(snapshot, { forMs: passedMs }) : undefined
  const seen = new Seen({ snapshot, decision, subjects, play })
  const explainer = new PendingExplainer(study, decision)
  const failures = await new Judge(seen, explainer).judge(expect)
  await study.close()
  return { failures, observed: seen.observed() }
}

type Next = { readonly ok: Snapshot } | { readonly problem: string }

function afterStep(
  snapshot: Snapshot,
  step: Exclude<CaseStep, { kind: 'pass' }>,
  objectName: (text: string) => ObjectName | undefined,
): Next {
  const named = (text: string, change: (object: ObjectName) => SnapshotChange): Next => {
    const object = objectName(text)
    return object === undefined
      ? { problem: `"${text}" names no object: use KIND/NAME or KIND/NAMESPACE/NAME` }
      : changedSnapshot(snapshot, [change(object)])
  }
  switch (step.kind) {
    case 'pods':
      return changedSnapshot(snapshot, [{ kind: 'apply', object: workloadOf(step) }])
    case 'apply':
      return changedSnapshot(
        snapshot,
        step.objects.map((object) => ({ kind: 'apply', object })),
      )
    case 'delete':
      return named(step.object, (object) => ({ kind: 'delete', object }))
    case 'scale':
      return named(step.workload, (object) => ({ kind: 'scale', object, replicas: step.replicas }))
    case 'lose':
      return { ok: withTypes(snapshot, (type) => withoutOffering(type, step)) }
    case 'price':
      return { ok: withTypes(snapshot, (type) => repriced(type, step)) }
  }
}

function workloadOf({ pods: { name, namespace, count, labels: own, spec } }: CaseStep & { kind: 'pods' }) {
  const template = { metadata: { name, labels: { app: name, ...own } }, spec }
  return {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: { name, namespace },
    spec: { replicas: count, template },
  }
}

function withTypes(snapshot: Snapshot, change: (type: InstanceType) => InstanceType): Snapshot {
  const catalogues = snapshot.catalogues.map((catalogue) => ({
    ...catalogue,
    instanceTypes: catalogue.instanceTypes?.map(change),
  }))
  return { ...snapshot, catalogues }
}

function withoutOffering(type: InstanceType, { offering }: CaseStep & { kind: 'lose' }): InstanceType {
  if (offering.instanceType !== undefined && offering.instanceType !== type.name) return type
  const isLost = (each: InstanceType['offerings'][number]): boolean =>
    (
      [
        [labels.zone, offering.zone],
        [labels.capacityType, offering.capacityType],
      ] as const
    ).every(
      ([key, value]) =>
        value === undefined ||
        each.requirements.some(
          (requirement) => requirement.key === key && requirement.values?.includes(value) === true,
        ),
    )
  return {
    ...type,
    offerings: type.offerings.map((each) => (isLost(each) ? { ...each, available: false } : each)),
  }
}

function repriced(
  type: InstanceType,
  { instanceType, pricePerHour }: CaseStep & { kind: 'price' },
): InstanceType {
  if (type.name !== instanceType) return type
  return { ...type, offerings: type.offerings.map((each) => ({ ...each, pricePerHour })) }
}

const isPod = (object: { readonly kind: string }): object is Pod => object.kind === 'Pod'

/** The pods that a case is about: those that its steps created, or all pending pods if there are none. */
function uidsOf(snapshot: Snapshot, given: Snapshot): ReadonlySet<string> {
  const before = new Set(given.objects.filter(isPod).map(({ metadata }) => metadata.uid ?? ''))
  const now = snapshot.objects.filter(isPod).map(({ metadata }) => metadata.uid ?? '')
  const added = now.filter((uid) => !before.has(uid))
  return new Set(added.length > 0 ? added : now)
}

interface SeenParts {
  readonly snapshot: Snapshot
  readonly decision: PendingDecision
  readonly subjects: ReadonlySet<string>
  readonly play: SnapshotPlayReport | undefined
}

/** Collects what a case observes. */
class Seen {
  readonly #parts: SeenParts

  constructor(parts: SeenParts) {
    this.#parts = parts
  }

  /** Pods of the case that could not be placed. */
  waiting(): readonly { readonly pod: Pod; readonly code: string }[] {
    const { input, result } = this.#parts.decision
    const failures = result.failures.map(({ pod, reason }) => ({ pod, codes: codesOf(reason) }))
    const leftOut = [...input.ignored, ...input.refused].map(({ pod }) => ({ pod, codes: ['leftOut'] }))
    const later = result.deferred.flatMap(({ claim, because }) =>
      claim.pods.map((pod) => ({ pod, codes: [because.kind] })),
    )
    return [...failures, ...leftOut, ...later]
      .filter(({ pod }) => this.#isSubject(pod))
      .map(({ pod, codes }) => ({ pod, code: codes.join(', ') }))
  }

  get pods(): number {
    return this.#parts.subjects.size
  }

  get running(): number {
    return this.pods - this.waiting().length
  }

  /** NodePools of the nodes with pods of the case; `(none)` for a node without a NodePool. */
  nodePools(): readonly string[] {
    const { decision, snapshot } = this.#parts
    const pools = new Map(
      snapshot.objects
        .filter(({ kind }) => kind === 'Node')
        .map(({ metadata }) => [metadata.name, ownValue(metadata.labels, labels.nodePool) ?? '(none)']),
    )
    const placed = decision.result.placements
      .filter(({ pod }) => this.#isSubject(pod))
      .map(({ node }) => pools.get(node) ?? '(none)')
    return sorted([...this.#claims().map(({ nodePool }) => nodePool), ...placed])
  }

  instanceTypes(): readonly string[] {
    return sorted(this.#claims().flatMap(({ instanceTypes }) => instanceTypes.slice(0, 1)))
  }

  get nodes(): number {
    const { decision, play, snapshot } = this.#parts
    if (play !== undefined) return play.instances
    const nodes = snapshot.objects.filter(({ kind }) => kind === 'Node').length
    return nodes + decision.result.claims.length
  }

  price(): { readonly pricePerHour: number; readonly unpriced: number } {
    const { decision, play, snapshot } = this.#parts
    if (play !== undefined) return { pricePerHour: play.pricePerHour, unpriced: play.unpricedInstances }
    const claims = snapshot.objects.filter((object): object is NodeClaim => object.kind === 'NodeClaim')
    const types = snapshot.catalogues.flatMap(({ instanceTypes = [] }) => instanceTypes)
    return sumOfPrices([
      ...claims.map(({ metadata }) => priceOfLabels(types, metadata.labels ?? {})),
      ...decision.result.claims.map(({ pricePerHour }) => pricePerHour),
    ])
  }

  /** Pods of the case by zone, without those on nodes that have no zone. */
  zones(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>()
    for (const { requirements, pods } of this.#claims()) {
      const zone = requirements.find(({ key }) => key === labels.zone)
      if (zone?.operator !== 'In' || zone.values?.length !== 1) continue
      const [name = ''] = zone.values
      counts.set(name, (counts.get(name) ?? 0) + pods.filter((pod) => this.#isSubject(pod)).length)
    }
    return counts
  }

  get evictions(): number | undefined {
    return this.#parts.play?.evictions
  }

  observed(): CaseExpectations {
    const waiting = this.waiting()
    return {
      running: waiting.length === 0 ? 'all' : this.running,
      nodePools: this.nodePools(),
      instanceTypes: this.instanceTypes(),
      nodesAtMost: this.nodes,
      pricePerHourAtMost: Math.ceil(this.price().pricePerHour * 1000) / 1000,
      ...(waiting.length > 0 && {
        pending: waiting.map(({ pod, code }) => ({ pod: pod.metadata.name, reason: code })),
      }),
    }
  }

  #claims(): readonly NewClaim[] {
    return this.#parts.decision.result.claims.filter(({ pods }) => pods.some((pod) => this.#isSubject(pod)))
  }

  #isSubject({ metadata }: Pod): boolean {
    return this.#parts.subjects.has(metadata.uid ?? '')
  }
}

/** The code of a reason, and the codes of its NodePools. */
function codesOf(reason: PendingDecision['result']['failures'][number]['reason']): readonly string[] {
  return reason.kind === 'noTemplate'
    ? sorted(reason.templates.map((each) => each.reason.kind))
    : [reason.kind]
}

function sorted(texts: readonly string[]): readonly string[] {
  return [...new Set(texts)].toSorted()
}

class Judge {
  readonly #seen: Seen
  readonly #explainer: PendingExplainer

  constructor(seen: Seen, explainer: PendingExplainer) {
    this.#seen = seen
    this.#explainer = explainer
  }

  async judge(expect: CaseExpectations): Promise<readonly CaseFailure[]> {
    return [
      ...(await this.#running(expect)),
      ...this.#among('nodePools', expect.nodePools, this.#seen.nodePools()),
      ...this.#among('instanceTypes', expect.instanceTypes, this.#seen.instanceTypes()),
      ...this.#noneOf(expect),
      ...this.#amounts(expect),
      ...this.#balance(expect),
      ...this.#disruption(expect),
      ...(await this.#pending(expect)),
    ]
  }

  async #running({ running }: CaseExpectations): Promise<readonly CaseFailure[]> {
    if (running === undefined) return []
    const { pods, running: found } = this.#seen
    const expected = running === 'all' ? pods : running
    if (found === expected) return []
    const [first] = this.#seen.waiting()
    const explanation = first && (await this.#why(first.pod))
    return [
      {
        field: 'expect.running',
        expected: `${expected} of ${counted(pods, 'pod')} run`,
        found: `${found} run`,
        ...(explanation !== undefined && { explanation }),
      },
    ]
  }

  #among(
    field: string,
    allowed: readonly string[] | undefined,
    found: readonly string[],
  ): readonly CaseFailure[] {
    if (allowed === undefined || found.every((each) => allowed.includes(each))) return []
    return [{ field: `expect.${field}`, expected: `only ${allowed.join(', ')}`, found: found.join(', ') }]
  }

  #noneOf({ noInstanceTypes = [] }: CaseExpectations): readonly CaseFailure[] {
    const found = this.#seen.instanceTypes().filter((each) => noInstanceTypes.includes(each))
    if (found.length === 0) return []
    return [
      {
        field: 'expect.noInstanceTypes',
        expected: `none of ${noInstanceTypes.join(', ')}`,
        found: found.join(', '),
      },
    ]
  }

  #amounts({ nodesAtMost, pricePerHourAtMost }: CaseExpectations): readonly CaseFailure[] {
    const { nodes } = this.#seen
    const { pricePerHour, unpriced } = this.#seen.price()
    const failures: CaseFailure[] = []
    if (nodesAtMost !== undefined && nodes > nodesAtMost)
      failures.push({
        field: 'expect.nodesAtMost',
        expected: `at most ${counted(nodesAtMost, 'node')}`,
        found: `${nodes}`,
      })
    if (pricePerHourAtMost !== undefined && (pricePerHour > pricePerHourAtMost + 1e-9 || unpriced > 0))
      failures.push({
        field: 'expect.pricePerHourAtMost',
        expected: `at most ${pricePerHourAtMost} per hour`,
        found: `${pricePerHour.toFixed(4)}${unpriced > 0 ? ` and ${counted(unpriced, 'node')} of unknown price` : ''}`,
      })
    return failures
  }

  #balance({ zonesBalanced }: CaseExpectations): readonly CaseFailure[] {
    if (zonesBalanced !== true) return []
    const zones = this.#seen.zones()
    const counts = [...zones.values()]
    if (counts.length > 1 && Math.max(...counts) - Math.min(...counts) <= 1) return []
    const found = Array.from(zones, ([zone, count]) => `${zone}: ${count}`).join(', ')
    return [
      {
        field: 'expect.zonesBalanced',
        expected: 'zones that differ by one pod at most',
        found: found === '' ? 'pods that may be in any zone' : found,
      },
    ]
  }

  #disruption({ noDisruption }: CaseExpectations): readonly CaseFailure[] {
    if (noDisruption !== true) return []
    const { evictions } = this.#seen
    if (evictions === 0) return []
    const found =
      evictions === undefined ? 'no time passes in this case: add a step `pass`' : `${evictions} evictions`
    return [{ field: 'expect.noDisruption', expected: 'no eviction', found }]
  }

  async #pending({ pending = [] }: CaseExpectations): Promise<readonly CaseFailure[]> {
    const waiting = this.#seen.waiting()
    const failures: CaseFailure[] = []
    for (const { pod, reason } of pending) {
      const found = waiting.find((each) => each.pod.metadata.name === pod || ownerNameOf(each.pod) === pod)
      const isMet = found !== undefined && (reason === undefined || found.code.split(', ').includes(reason))
      if (isMet) continue
      const explanation = found && (await this.#why(found.pod))
      failures.push({
        field: 'expect.pending',
        expected: `${pod} waits${reason === undefined ? '' : ` because of ${reason}`}`,
        found: found === undefined ? 'it runs' : `it waits because of ${found.code}`,
        ...(explanation !== undefined && { explanation }),
      })
    }
    return failures
  }

  async #why(pod: Pod): Promise<string | undefined> {
    const answer = await this.#explainer.explain(pod, { missesMs: 200 })
    return answer && explanationText(pod, answer)
  }
}

function ownerNameOf({ metadata }: Pod): string | undefined {
  return metadata.ownerReferences?.[0]?.name
}

function explanationText(pod: Pod, { summary, nodePools, misses }: PendingExplanation): string {
  return [
    `Pod ${pod.metadata.namespace ?? ''}/${pod.metadata.name}: ${summary}`,
    ...nodePools.map(({ nodePool, message }) => `  NodePool ${nodePool}: ${message}`),
    ...misses.slice(0, 3).map(({ change }) => `  It would run if you ${change.words}`),
  ].join('\n')
}
