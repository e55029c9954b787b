/** Random pods for property tests: every kind of constraint, often at odds with another. */
import {
  type Affinity,
  type Container,
  labels as names,
  normalizedLabel,
  type NodeSelectorRequirement,
  type NodeSelectorTerm,
  type Pod,
  type PodAffinityTerm,
  type PodSpec,
  type ResourceList,
  type Toleration,
  type TopologySpreadConstraint,
} from '@tenon/api'
import * as fc from 'fast-check'

/** Which kinds of rules a random cluster has. */
export interface Profile {
  /** Rules among pods: spread, affinity, anti-affinity. */
  readonly topology: boolean
  /** Volumes, attach limits, origins of pods, simulations for disruption, reservations, overrides. */
  readonly volumes: boolean
  /** Several expressions on one label, which may contradict each other. */
  readonly contradictions: boolean
}

export const familyLabel = 'example.com/family'
export const coresLabel = 'example.com/cores'
export const teamLabel = 'example.com/team'
export const reservationLabel = 'example.com/reservation'
export const rackLabel = 'example.com/rack'
export const zones: readonly string[] = ['zone-1', 'zone-2', 'zone-3']
export const families: readonly string[] = ['alpha', 'beta', 'gamma']
export const apps: readonly string[] = ['a', 'b', 'c']
export const namespaces: readonly string[] = ['default', 'other']

/** Left out `absent` times as often as it is there. */
export const seldom = <T>(arbitrary: fc.Arbitrary<T>, absent = 3): fc.Arbitrary<T | undefined> =>
  fc.oneof({ weight: absent, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary })

/** An object of those fields that are not undefined. */
export function present<T extends object>(fields: { [K in keyof T]: T[K] | undefined }): T {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T
}

const pick = <T>(...values: readonly T[]): fc.Arbitrary<T> => fc.constantFrom(...values)

/** Values that some node may have for a label, and some that none has. */
const valuesByKey: Readonly<Record<string, readonly string[]>> = {
  [names.zone]: [...zones, 'zone-9'],
  [names.capacityType]: ['on-demand', 'spot'],
  [names.arch]: ['amd64', 'arm64'],
  [familyLabel]: [...families, 'omega'],
  [teamLabel]: ['red', 'blue', '7'],
  [rackLabel]: ['r1', 'r2'],
  [names.instanceType]: ['type-0', 'type-1', 'type-2', 'type-3'],
}

/** One expression on one of the labels above, or a bound on the number of cores. */
export const expression: fc.Arbitrary<NodeSelectorRequirement> = fc.oneof(
  {
    weight: 4,
    arbitrary: pick(...Object.keys(valuesByKey)).chain((key) =>
      fc.record({
        key: fc.constant(key),
        operator: pick('In' as const, 'NotIn' as const),
        values: fc.uniqueArray(pick(...(valuesByKey[key] ?? [])), { minLength: 1, maxLength: 3 }),
      }),
    ),
  },
  fc.record({
    key: pick(...Object.keys(valuesByKey)),
    operator: pick('Exists' as const, 'DoesNotExist' as const),
  }),
  fc.record({
    key: fc.constant(coresLabel),
    operator: pick('Gt' as const, 'Lt' as const),
    values: pick('1', '2', '3', '8').map((bound) => [bound]),
  }),
)

/** Expressions of one list; on different labels unless contradictions are wanted. */
export function expressions(
  profile: Profile,
  most: number,
): fc.Arbitrary<readonly NodeSelectorRequirement[]> {
  return profile.contradictions
    ? fc.array(expression, { minLength: 1, maxLength: most + 1 })
    : fc.uniqueArray(expression, { minLength: 1, maxLength: most, selector: (each) => each.key })
}

const term = (profile: Profile): fc.Arbitrary<NodeSelectorTerm> =>
  expressions(profile, 2).map((matchExpressions) => ({ matchExpressions }))

const quantities: fc.Arbitrary<ResourceList> = fc
  .record({
    cpu: seldom(pick('0', '50m', '100m', '500m', '1', '1500m', '3'), 1),
    memory: seldom(pick('0', '64Mi', '512Mi', '1Gi', '3Gi'), 2),
    'example.com/gpu': seldom(pick('0', '1', '2'), 12),
    'ephemeral-storage': seldom(pick('1Gi', '30Gi'), 12),
    'hugepages-2Mi': seldom(pick('4Mi'), 20),
  })
  .map((fields) => present<ResourceList>(fields))

const ports = fc.array(
  fc
    .record({
      containerPort: fc.constant(80),
      hostPort: pick(8080, 8081, 0),
      hostIP: seldom(pick('10.0.0.1', '10.0.0.2', '0.0.0.0', '::', '')),
      protocol: seldom(pick('TCP' as const, 'UDP' as const)),
    })
    .map((port) => present<NonNullable<Container['ports']>[number]>(port)),
  { minLength: 1, maxLength: 2 },
)

const container: fc.Arbitrary<Container> = fc
  .record({ requests: quantities, ports: seldom(ports, 12) })
  .map(({ requests, ports: taken }) =>
    present<Container>({ name: 'app', resources: { requests }, ports: taken }),
  )

const initContainer: fc.Arbitrary<Container> = fc
  .record({ requests: quantities, restartPolicy: seldom(fc.constant('Always'), 2) })
  .map(({ requests, restartPolicy }) =>
    present<Container>({ name: 'init', resources: { requests }, restartPolicy }),
  )

export const toleration: fc.Arbitrary<Toleration> = fc
  .record({
    key: pick('dedicated', 'spot-only', 'soft', ''),
    operator: pick('Exists' as const, 'Equal' as const, undefined),
    value: pick('red', 'blue', undefined),
    effect: pick('NoSchedule' as const, 'NoExecute' as const, 'PreferNoSchedule' as const, undefined),
  })
  .map((fields) =>
    present<Toleration>(fields.operator === 'Exists' ? { ...fields, value: undefined } : fields),
  )

const topologyKey = fc.oneof(
  { weight: 8, arbitrary: pick(names.zone, names.hostname) },
  { weight: 2, arbitrary: fc.constant(names.capacityType) },
  { weight: 1, arbitrary: fc.constant(rackLabel) },
)

const podSelector = (own: string) =>
  fc.oneof(
    { weight: 6, arbitrary: fc.constant({ matchLabels: { app: own } }) },
    pick(...apps).map((app) => ({ matchLabels: { app } })),
    fc.constant({ matchExpressions: [{ key: 'app', operator: 'NotIn' as const, values: ['c'] }] }),
    fc.constant({ matchExpressions: [{ key: 'rev', operator: 'Exists' as const }] }),
    fc.constant({}),
  )

/** A (anti-)affinity term of a pod of app `own`. */
export const affinityTerm = (own: string): fc.Arbitrary<PodAffinityTerm> =>
  fc
    .record({
      topologyKey,
      labelSelector: podSelector(own),
      namespaces: seldom(fc.uniqueArray(pick(...namespaces), { minLength: 1 }), 5),
      namespaceSelector: seldom(pick({}, { matchLabels: { tier: 'front' } }), 5),
    })
    .map((fields) => present<PodAffinityTerm>(fields))

const spread = (own: string): fc.Arbitrary<TopologySpreadConstraint> =>
  fc
    .record({
      topologyKey,
      maxSkew: pick(1, 1, 2, 3),
      whenUnsatisfiable: pick('DoNotSchedule' as const, 'DoNotSchedule' as const, 'ScheduleAnyway' as const),
      labelSelector: podSelector(own),
      minDomains: seldom(pick(1, 2, 3, 4), 4),
      nodeAffinityPolicy: seldom(pick('Honor' as const, 'Ignore' as const)),
      nodeTaintsPolicy: seldom(pick('Honor' as const, 'Ignore' as const)),
      matchLabelKeys: seldom(fc.constant(['rev']), 5),
    })
    .map((fields) =>
      present<TopologySpreadConstraint>(
        fields.whenUnsatisfiable === 'ScheduleAnyway' ? { ...fields, minDomains: undefined } : fields,
      ),
    )

/** The API server wants a topology key but once for each kind of constraint. */
const spreads = (own: string) =>
  fc.uniqueArray(spread(own), {
    minLength: 1,
    maxLength: 2,
    selector: (each) => `${each.topologyKey} ${each.whenUnsatisfiable}`,
  })

const weighted = <T, K extends string>(key: K, arbitrary: fc.Arbitrary<T>) =>
  fc.array(
    fc
      .record({ weight: pick(1, 10, 100), value: arbitrary })
      .map(({ weight, value }) => ({ weight, [key]: value }) as { weight: number } & Record<K, T>),
    { minLength: 1, maxLength: 2 },
  )

function affinity(own: string, profile: Profile): fc.Arbitrary<Affinity> {
  const never = fc.constant(undefined)
  const terms = fc.array(affinityTerm(own), { minLength: 1, maxLength: 2 })
  const wishes = weighted('podAffinityTerm', affinityTerm(own))
  const ifTopology = <T>(arbitrary: fc.Arbitrary<T>, freq: number) =>
    profile.topology ? seldom(arbitrary, freq) : never
  return fc
    .record({
      nodeTerms: seldom(fc.array(term(profile), { minLength: 1, maxLength: 3 }), profile.topology ? 8 : 2),
      nodeWishes: seldom(weighted('preference', term(profile)), 5),
      with: ifTopology(terms, 4),
      withWishes: ifTopology(wishes, 8),
      against: ifTopology(terms, 3),
      againstWishes: ifTopology(wishes, 8),
    })
    .map((parts) => {
      const required = 'requiredDuringSchedulingIgnoredDuringExecution'
      const preferred = 'preferredDuringSchedulingIgnoredDuringExecution'
      return {
        nodeAffinity: present({
          [required]: parts.nodeTerms && { nodeSelectorTerms: parts.nodeTerms },
          [preferred]: parts.nodeWishes,
        }),
        podAffinity: present({ [required]: parts.with, [preferred]: parts.withWishes }),
        podAntiAffinity: present({ [required]: parts.against, [preferred]: parts.againstWishes }),
      }
    })
}

const nodeSelector = fc
  .uniqueArray(pick(...Object.keys(valuesByKey), 'failure-domain.beta.kubernetes.io/zone'), {
    minLength: 1,
    maxLength: 2,
    selector: (key) => (key.endsWith('zone') ? 'zone' : key),
  })
  .chain((keys) =>
    fc.record(
      Object.fromEntries(keys.map((key) => [key, pick(...(valuesByKey[key] ?? zones))])) as Record<
        string,
        fc.Arbitrary<string>
      >,
    ),
  )

function podSpec(own: string, profile: Profile): fc.Arbitrary<PodSpec> {
  return fc
    .record({
      containers: fc.array(container, { minLength: 1, maxLength: 2 }),
      initContainers: seldom(fc.array(initContainer, { minLength: 1, maxLength: 3 }), 6),
      overhead: seldom(fc.constant({ cpu: '50m', memory: '32Mi' }), 10),
      resources: seldom(pick({ requests: { cpu: '2' } }, { requests: { memory: '2Gi' } }), 12),
      nodeSelector: seldom(nodeSelector, profile.topology ? 10 : 5),
      affinity: seldom(affinity(own, profile), profile.topology ? 1 : 2),
      tolerations: seldom(fc.array(toleration, { minLength: 1, maxLength: 3 }), 2),
      topologySpreadConstraints: profile.topology ? seldom(spreads(own), 2) : fc.constant(undefined),
    })
    .map((fields) => withoutRepeatedKeys(present<PodSpec>(fields), profile))
}

/** Unless contradictions are wanted: each label is spoken of once, in the first place that does. */
function withoutRepeatedKeys(spec: PodSpec, profile: Profile): PodSpec {
  const { nodeAffinity } = spec.affinity ?? {}
  if (profile.contradictions) return spec
  const terms = nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? []
  const required = new Set(terms.flatMap((each) => each.matchExpressions ?? []).map((each) => each.key))
  const selected = Object.entries(spec.nodeSelector ?? {}).filter(
    ([key]) => !required.has(normalizedLabel(key)),
  )
  const hard = new Set([...required, ...selected.map(([key]) => normalizedLabel(key))])
  const wishes = nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution?.flatMap((wish) => {
    const kept = (wish.preference.matchExpressions ?? []).filter((each) => !hard.has(each.key))
    return kept.length === 0 ? [] : [{ ...wish, preference: { matchExpressions: kept } }]
  })
  return {
    ...spec,
    ...(spec.nodeSelector !== undefined && { nodeSelector: Object.fromEntries(selected) }),
    ...(wishes !== undefined && {
      affinity: {
        ...spec.affinity,
        nodeAffinity: { ...nodeAffinity, preferredDuringSchedulingIgnoredDuringExecution: wishes },
      },
    }),
  }
}

/** A workload: pods that are alike, and how many there are. */
interface Workload {
  readonly app: string
  readonly namespace: string
  readonly spec: PodSpec
  readonly replicas: number
  readonly revision: string | undefined
  readonly age: number
}

function workload(profile: Profile): fc.Arbitrary<Workload> {
  return pick(...apps).chain((app) =>
    fc.record({
      app: fc.constant(app),
      namespace: pick('default', 'default', 'default', 'other'),
      spec: podSpec(app, profile),
      replicas: fc.integer({ min: 1, max: 10 }),
      revision: seldom(pick('1', '2'), 3),
      age: fc.integer({ min: 0, max: 2 }),
    }),
  )
}

/** Up to 40 pending pods. */
export function pendingPods(profile: Profile): fc.Arbitrary<readonly Pod[]> {
  return fc.array(workload(profile), { minLength: 1, maxLength: 6 }).map((workloads) =>
    workloads
      .flatMap((each) => Array.from({ length: each.replicas }, () => each))
      .slice(0, 40)
      .map(
        ({ app, namespace, spec, revision, age }, index): Pod => ({
          apiVersion: 'v1',
          kind: 'Pod',
          metadata: {
            name: `pod-${index}`,
            namespace,
            uid: `uid-${String(index).padStart(3, '0')}`,
            creationTimestamp: `2026-01-01T00:00:0${age}Z`,
            labels: revision === undefined ? { app } : { app, rev: revision },
          },
          spec,
        }),
      ),
  )
}
