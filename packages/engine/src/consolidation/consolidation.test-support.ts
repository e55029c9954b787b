/** Words for stories about nodes that may go: instances with pods on them, and what a search says. */
import assert from 'node:assert/strict'
import { difference, type InstanceType, labels, type Pod, podRequests, type Resources, sum } from '@tenon/api'
import { allocatableOf } from '../scheduling/types/allocatable.ts'
import type { NodeInput, PodOrigin, PoolInput, SchedulingInput, SchedulingPolicy } from '../input/input.ts'
import { problemOf } from '../scheduling/problem/problem.ts'
import {
  aCluster,
  anInput,
  aPool,
  aPoolInput,
  boundTo,
  strictPolicy,
} from '../testing/builders.test-support.ts'
import { type ConsolidationFinding, type ConsolidationResult, disruptionResult } from './answer.ts'
import { examine } from './examine.ts'
import type { CandidateInput, ConsolidationQuestion, PoolTotals } from './question.ts'

/** A node that may go, unless it says otherwise. */
export interface Instance {
  readonly type: InstanceType
  readonly pods?: readonly Pod[]
  /** `on-demand` unless given. */
  readonly capacityType?: string
  /** `zone-1` unless given. */
  readonly zone?: string
  /** `default` unless given. */
  readonly pool?: string
  readonly policy?: CandidateInput['policy']
  readonly disruptionCost?: number
  readonly waitsForBusyNodes?: boolean
  /** Of the offering with its zone and capacity type unless given. */
  readonly pricePerHour?: number
  readonly node?: Partial<NodeInput>
  /** Whether nobody asks it to go. */
  readonly stays?: boolean
}

export interface Story {
  readonly instances: Readonly<Record<string, Instance>>
  readonly pools?: readonly PoolInput[]
  /** What the pool `default` sells, when no pools are given; else the instances' own types. */
  readonly types?: readonly InstanceType[]
  readonly pending?: readonly Pod[]
  /** On nodes that are going away. */
  readonly leaving?: readonly Pod[]
  readonly policy?: Partial<SchedulingPolicy>
  readonly spotToSpot?: boolean
  /** Unlimited for the pools of the instances unless given. */
  readonly budgets?: Readonly<Record<string, number>>
  readonly totals?: Readonly<Record<string, PoolTotals>>
  readonly unseenPools?: readonly string[]
  readonly shouldStop?: () => boolean
  readonly improvement?: NonNullable<ConsolidationQuestion['improvement']>
  readonly unchanged?: readonly string[]
  readonly settled?: readonly string[]
  readonly roomier?: readonly string[]
  readonly failedGroups?: NonNullable<ConsolidationQuestion['failedGroups']>
}

/** What a search among the instances of a story comes to. */
export function consolidate(search: ConsolidationQuestion['search'], story: Story): ConsolidationResult {
  const { shouldStop = () => false } = story
  const { input, question } = asked(search, story)
  const result = disruptionResult(input, question, examine(problemOf(input), question, { shouldStop }))
  assert.ok(result.kind === 'consolidation')
  return result
}

/** The question of a story, and the cluster with the pods of its candidates among those to place. */
export function asked(
  search: ConsolidationQuestion['search'],
  story: Story,
): { readonly input: SchedulingInput; readonly question: ConsolidationQuestion } {
  const { instances, spotToSpot = false, unseenPools = [] } = story
  const candidates = Object.entries(instances).flatMap(([name, instance]) =>
    instance.stays === true ? [] : [candidateOf(name, instance)],
  )
  const budgets = story.budgets ?? Object.fromEntries(candidates.map(({ nodePool }) => [nodePool, 1000]))
  const question: ConsolidationQuestion = {
    kind: 'consolidate',
    search,
    candidates,
    budgets: new Map(Object.entries(budgets)),
    totals: new Map(Object.entries(story.totals ?? {})),
    spotToSpot,
    unseenPools,
    ...(story.improvement && { improvement: story.improvement }),
    ...(story.unchanged && { unchanged: new Set(story.unchanged) }),
    ...(story.settled && { settled: new Set(story.settled) }),
    ...(story.roomier && { roomier: new Set(story.roomier) }),
    ...(story.failedGroups && { failedGroups: story.failedGroups }),
  }
  return { input: inputOf(story), question }
}

function inputOf({ instances, pools, types, pending = [], leaving = [], policy }: Story): SchedulingInput {
  const all = Object.entries(instances)
  const nodes = all.map(([name, instance]) => nodeOf(name, instance))
  const moving = all.flatMap(([name, { stays, pods = [] }]) =>
    stays === true ? [] : pods.map((pod) => boundTo(name, pod)),
  )
  const settled = all.flatMap(([name, { pods = [] }]) => pods.map((pod) => boundTo(name, pod)))
  const sold = types ?? [...new Set(all.map(([, { type }]) => type))]
  const origins = new Map<string, PodOrigin>()
  for (const { metadata } of leaving) origins.set(metadata.uid ?? '', 'deleting')
  for (const { metadata, status } of moving)
    origins.set(metadata.uid ?? '', status?.phase === 'Pending' ? 'starting' : 'candidate')
  return anInput({
    pods: [...pending, ...leaving, ...moving],
    nodes,
    pools: (pools ?? [aPoolInput(aPool(), sold)]).map((pool) => ({ ...pool, usage: usageOf(pool, all) })),
    origins,
    topology: aCluster(nodes, settled),
    policy: { ...strictPolicy, ...policy, simulation: 'disruption' },
  })
}

function usageOf({ nodePool }: PoolInput, instances: readonly (readonly [string, Instance])[]): Resources {
  return instances
    .filter(([, { pool = 'default' }]) => pool === nodePool.metadata.name)
    .reduce<Resources>((usage, [, { type }]) => sum(usage, { ...type.capacity, nodes: 1 }), {})
}

function nodeOf(name: string, instance: Instance): NodeInput {
  const { type, pods = [], capacityType = 'on-demand', zone = 'zone-1', pool = 'default' } = instance
  return {
    name,
    labels: {
      [labels.hostname]: name,
      [labels.instanceType]: type.name,
      [labels.zone]: zone,
      [labels.capacityType]: capacityType,
      [labels.nodePool]: pool,
      [labels.os]: 'linux',
      [labels.arch]: 'amd64',
    },
    taints: [],
    initialized: true,
    available: pods.reduce(
      (left, { spec }) => difference(left, { ...podRequests(spec), pods: 1 }),
      allocatableOf(type),
    ),
    daemonRequests: {},
    usedHostPorts: [],
    ...instance.node,
  }
}

function candidateOf(name: string, instance: Instance): CandidateInput {
  const { type, pods = [], capacityType = 'on-demand', zone = 'zone-1', pool = 'default' } = instance
  const says = (offering: InstanceType['offerings'][number], value: string) =>
    offering.requirements.some(({ values }) => values?.includes(value) === true)
  const offering = type.offerings.find((each) => says(each, zone) && says(each, capacityType))
  return {
    node: name,
    nodePool: pool,
    policy: instance.policy ?? 'WhenEmptyOrUnderutilized',
    capacityType,
    instanceType: type.name,
    pricePerHour: instance.pricePerHour ?? offering?.pricePerHour ?? 0,
    disruptionCost: instance.disruptionCost ?? 1 + pods.length,
    waitsForBusyNodes: instance.waitsForBusyNodes ?? false,
    capacity: { ...type.capacity, nodes: 1 },
    pods: pods.map(({ metadata }) => metadata.uid ?? ''),
  }
}

/** Why each node stays that something is said of, by kind. */
export function refusals({ findings }: ConsolidationResult): Readonly<Record<string, string>> {
  return Object.fromEntries(
    findings.flatMap((finding) => (finding.kind === 'refused' ? [[finding.node, finding.refusal.kind]] : [])),
  )
}

/** Scored moves, in order. */
export function scores({
  findings,
}: ConsolidationResult): readonly Extract<ConsolidationFinding, { kind: 'scored' }>[] {
  return findings.flatMap((finding) => (finding.kind === 'scored' ? [finding] : []))
}

/** Nodes that go, and the types that come for them, of each move. */
export function moves({
  moves: all,
}: ConsolidationResult): readonly (readonly [readonly string[], ...(readonly string[])[]])[] {
  return all.map(({ candidates, claims }) => [
    candidates.toSorted(),
    ...claims.map(({ instanceTypes }) => instanceTypes),
  ])
}
