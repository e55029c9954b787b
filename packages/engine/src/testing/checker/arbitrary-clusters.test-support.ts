/** Random clusters for property tests: pools, nodes, daemons, bound pods, policies. */
import {
  type InstanceType,
  labels as names,
  type NodePool,
  type Pod,
  type Requirement,
  type Resources,
  type Taint,
  wellKnownLabels,
} from '@tenon/api'
import * as fc from 'fast-check'
import type {
  AttachLimits,
  DaemonInput,
  NodeInput,
  PodOrigin,
  PodVolumes,
  PoolInput,
  SchedulingInput,
  SchedulingPolicy,
  TopologyNode,
} from '../../input/input.ts'
import {
  affinityTerm,
  apps,
  coresLabel,
  expression,
  expressions,
  families,
  familyLabel,
  namespaces,
  pendingPods,
  present,
  type Profile,
  rackLabel,
  reservationLabel,
  seldom,
  teamLabel,
  toleration,
  zones,
} from './arbitrary-pods.test-support.ts'
import { catalogue } from './arbitrary-types.test-support.ts'

const pick = <T>(...values: readonly T[]): fc.Arbitrary<T> => fc.constantFrom(...values)
const is = (key: string, ...values: readonly string[]): Requirement => ({ key, operator: 'In', values })

const taint: fc.Arbitrary<Taint> = pick(
  { key: 'dedicated', value: 'red', effect: 'NoSchedule' },
  { key: 'dedicated', value: 'blue', effect: 'NoSchedule' },
  { key: 'spot-only', effect: 'NoExecute' },
  { key: 'soft', value: 'red', effect: 'PreferNoSchedule' },
)

const taints = fc.uniqueArray(taint, { minLength: 1, maxLength: 2, selector: (each) => each.key })

function nodePool(name: string, profile: Profile): fc.Arbitrary<NodePool> {
  return fc
    .record({
      weight: seldom(fc.integer({ min: 1, max: 3 }), 2),
      requirements: seldom(expressions(profile, 3), profile.topology ? 4 : 2),
      least: seldom(
        fc.record({ key: pick(familyLabel, names.instanceType, names.zone), minValues: pick(1, 2, 3) }),
        6,
      ),
      team: pick(undefined, undefined, 'label', 'requirement'),
      taints: seldom(taints, profile.topology ? 6 : 3),
      limits: seldom(
        fc
          .record({
            cpu: seldom(pick('0', '2', '8', '20'), 2),
            nodes: seldom(pick('1', '2', '3'), 3),
            memory: seldom(pick('8Gi', '40Gi'), 3),
            'example.com/gpu': seldom(pick('0', '2'), 6),
          })
          .map((fields) => present<Record<string, string>>(fields)),
        3,
      ),
    })
    .map(({ weight, requirements = [], least, team, taints: poolTaints, limits }): NodePool => {
      const kept = requirements.filter((each) => !(team === 'label' && each.key === teamLabel))
      const hasTeam = kept.some((each) => each.key === teamLabel)
      const more: Requirement[] = team === 'requirement' && !hasTeam ? [is(teamLabel, 'red', 'blue')] : []
      const all: readonly Requirement[] = [...kept, ...more]
      const isNamed = least !== undefined && all.some((each) => each.key === least.key)
      const withLeast = all.map((each) =>
        each.key === least?.key ? { ...each, minValues: least.minValues } : each,
      )
      const wanted: readonly Requirement[] =
        least === undefined || isNamed
          ? withLeast
          : [...all, { key: least.key, operator: 'Exists', minValues: least.minValues }]
      return {
        apiVersion: 'karpenter.sh/v1',
        kind: 'NodePool',
        metadata: { name, uid: `pool-${name}` },
        spec: present<NodePool['spec']>({
          weight,
          limits,
          template: {
            ...(team === 'label' && { metadata: { labels: { [teamLabel]: 'red' } } }),
            spec: {
              nodeClassRef: { group: 'example.com', kind: 'InstanceClass', name: 'default' },
              requirements: wanted,
              ...(poolTaints !== undefined && { taints: poolTaints }),
            },
          },
        }),
      }
    })
}

function pools(profile: Profile): fc.Arbitrary<readonly PoolInput[]> {
  const one = (name: string, types: readonly InstanceType[]) =>
    fc.record({
      nodePool: nodePool(name, profile),
      instanceTypes: fc.subarray([...types], { minLength: Math.ceil(types.length / 2) }),
      usage: pick<Resources>({}, {}, { cpu: 4000, memory: 8 * 2 ** 30, nodes: 1 }),
    })
  return fc
    .tuple(catalogue(profile), fc.integer({ min: 1, max: 4 }))
    .chain(([types, count]) =>
      fc.tuple(...Array.from({ length: count }, (_, index) => one(`pool-${index}`, types))),
    )
}

function node(index: number, profile: Profile): fc.Arbitrary<NodeInput> {
  return fc
    .record({
      labels: fc.record({
        [names.zone]: seldom(pick(...zones, 'zone-8'), 1),
        [names.capacityType]: seldom(pick('on-demand', 'spot'), 1),
        [names.arch]: fc.constant('amd64'),
        [names.instanceType]: pick('type-0', 'type-1'),
        [familyLabel]: seldom(pick(...families), 1),
        [coresLabel]: pick('2', '4'),
        [teamLabel]: seldom(pick('red', 'blue', '7'), 2),
        [rackLabel]: seldom(pick('r1', 'r2'), 2),
        [names.hostname]: pick(`node-${index}`, `node-${index}`, `host-${index}`, undefined),
        [names.nodePool]: pick(undefined, 'pool-0'),
      }),
      taints: seldom(taints, 4),
      initialized: pick(true, true, true, false),
      available: fc.record({
        cpu: pick(0, 100, 700, 2000, 4000),
        memory: pick(256, 1024, 8192).map((mebibytes) => mebibytes * 2 ** 20),
        pods: pick(0, 2, 20, 100),
        'ephemeral-storage': fc.constant(20 * 2 ** 30),
      }),
      gpu: seldom(pick(0, 1, 2), 4),
      daemonRequests: pick<Resources>({}, {}, { cpu: 100, memory: 64 * 2 ** 20, pods: 1 }),
      usedHostPorts: pick([], [], [{ ip: '0.0.0.0', port: 8080, protocol: 'TCP' }]),
      volumeLimits: profile.volumes ? seldom(pick({ 'csi.example.com': 2 }), 2) : fc.constant(undefined),
      volumesInUse: profile.volumes
        ? seldom(pick({ 'csi.example.com': ['default/data-0', 'default/other'] }), 2)
        : fc.constant(undefined),
      refusesCandidatePods: profile.volumes ? pick(undefined, true) : fc.constant(undefined),
    })
    .map(({ gpu, available, labels, taints: nodeTaints = [], ...rest }) =>
      present<NodeInput>({
        ...rest,
        ...(index === 4 && { takesOnlyPlanned: true }),
        name: `node-${index}`,
        labels: present<Record<string, string>>(labels),
        taints: nodeTaints,
        available: gpu === undefined ? available : { ...available, 'example.com/gpu': gpu },
      }),
    )
}

function nodes(profile: Profile): fc.Arbitrary<readonly NodeInput[]> {
  return fc
    .integer({ min: 0, max: 8 })
    .chain((count) => fc.tuple(...Array.from({ length: count }, (_, index) => node(index, profile))))
}

function daemon(index: number): fc.Arbitrary<DaemonInput> {
  return fc
    .record({
      cpu: pick('50m', '200m', '1'),
      memory: pick('32Mi', '500Mi'),
      port: seldom(fc.constant(8080), 5),
      hostNetwork: seldom(fc.constant(true), 3),
      tolerations: seldom(fc.array(toleration, { minLength: 1, maxLength: 2 }), 2),
      terms: seldom(fc.array(expression, { minLength: 1, maxLength: 2 }), 3),
    })
    .map(({ cpu, memory, port, hostNetwork, tolerations, terms }) => ({
      name: `daemon-${index}`,
      namespace: 'kube-system',
      labels: {},
      spec: present<DaemonInput['spec']>({
        containers: [
          {
            name: 'app',
            resources: { requests: { cpu, memory } },
            ...(port !== undefined && {
              ports: [{ containerPort: port, ...(hostNetwork === undefined && { hostPort: port }) }],
            }),
          },
        ],
        hostNetwork,
        tolerations,
        affinity: terms && {
          nodeAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: {
              nodeSelectorTerms: terms.map((each) => ({ matchExpressions: [each] })),
            },
          },
        },
      }),
    }))
}

const daemons: fc.Arbitrary<readonly DaemonInput[]> = fc
  .integer({ min: 0, max: 3 })
  .chain((count) => fc.tuple(...Array.from({ length: count }, (_, index) => daemon(index))))

/** A node that is going away: pods are on it, none may come. */
const leavingNode: TopologyNode = {
  hostname: 'leaving',
  labels: { [names.hostname]: 'leaving', [names.zone]: 'zone-2', [rackLabel]: 'r1' },
  taints: [{ key: 'karpenter.sh/disrupted', effect: 'NoSchedule' }],
  isCandidate: false,
}

function boundPod(index: number, hosts: readonly string[], profile: Profile): fc.Arbitrary<Pod> {
  return pick(...apps).chain((app) =>
    fc
      .record({
        namespace: pick(...namespaces),
        rev: seldom(pick('1', '2'), 3),
        nodeName: pick(...hosts, 'gone'),
        against: profile.topology ? seldom(affinityTerm(app), 3) : fc.constant(undefined),
        phase: pick('Running' as const, 'Running' as const, 'Running' as const, 'Succeeded' as const),
        leaves: pick(false, false, false, true),
      })
      .map(
        ({ namespace, rev, nodeName, against, phase, leaves }): Pod => ({
          apiVersion: 'v1',
          kind: 'Pod',
          metadata: {
            name: `bound-${index}`,
            namespace,
            uid: `bound-${index}`,
            labels: rev === undefined ? { app } : { app, rev },
            ...(leaves && { deletionTimestamp: '2026-01-01T00:00:00Z' }),
          },
          spec: {
            nodeName,
            containers: [{ name: 'app' }],
            ...(against !== undefined && {
              affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [against] } },
            }),
          },
          status: { phase },
        }),
      ),
  )
}

const policy = (profile: Profile): fc.Arbitrary<SchedulingPolicy> =>
  fc
    .record({
      preferences: pick('Respect' as const, 'Respect' as const, 'Ignore' as const),
      minValues: pick('Strict' as const, 'Strict' as const, 'BestEffort' as const),
      maxInstanceTypes: pick(600, 600, 600, 3),
      simulation: profile.volumes ? pick(undefined, 'disruption' as const) : fc.constant(undefined),
      reservations: profile.volumes
        ? pick(
            { label: reservationLabel, mode: 'Strict' as const },
            { label: reservationLabel, mode: 'Fallback' as const },
          )
        : fc.constant(undefined),
    })
    .map((fields) =>
      present<SchedulingPolicy>({
        ...fields,
        wellKnownLabels: new Set([...wellKnownLabels, familyLabel, coresLabel, reservationLabel]),
      }),
    )

const podVolumes: fc.Arbitrary<PodVolumes> = fc
  .record({
    alternatives: fc.array(
      expression.map((each) => [each]),
      { maxLength: 2 },
    ),
    claims: fc
      .uniqueArray(pick('default/data-0', 'default/data-1', 'default/data-2'), { maxLength: 2 })
      .map((claims) => ({ 'csi.example.com': claims })),
    exclusive: seldom(pick(['default/data-0'], ['default/data-3']), 4),
  })
  .map((volumes) => present<PodVolumes>(volumes))

const attachLimits: fc.Arbitrary<AttachLimits> = pick(
  { byType: {}, others: { 'csi.example.com': 1 } },
  { byType: { 'type-0': { 'csi.example.com': 1 } }, others: { 'csi.example.com': 2 } },
)

function byUid<T>(pods: readonly Pod[], value: fc.Arbitrary<T>): fc.Arbitrary<ReadonlyMap<string, T>> {
  return fc.tuple(...pods.map(() => seldom(value, 2))).map(
    (values) =>
      new Map(
        pods.flatMap((pod, index) => {
          const one = values[index]
          return one === undefined ? [] : [[pod.metadata.uid ?? '', one] as const]
        }),
      ),
  )
}

/** A random cluster with pods to place. */
export function cluster(profile: Profile): fc.Arbitrary<SchedulingInput> {
  const parts = fc.record({
    pods: pendingPods(profile),
    nodes: nodes(profile),
    pools: pools(profile),
    daemons,
    policy: policy(profile),
    boundCount: fc.integer({ min: 0, max: 8 }),
  })
  return parts.chain(({ boundCount, ...input }) => {
    const hosts = [...input.nodes.map((each) => each.name), 'leaving']
    const bound = fc.tuple(
      ...Array.from({ length: boundCount }, (_, index) => boundPod(index, hosts, profile)),
    )
    return fc
      .record({
        bound,
        volumes: profile.volumes ? byUid(input.pods, podVolumes) : fc.constant(undefined),
        attachLimits: profile.volumes ? seldom(attachLimits, 2) : fc.constant(undefined),
        origins: profile.volumes
          ? byUid(input.pods, pick<PodOrigin>('deleting', 'candidate'))
          : fc.constant(undefined),
      })
      .map(({ bound: boundPods, volumes, origins, attachLimits: limits }) =>
        present<SchedulingInput>({
          ...input,
          attachLimits: limits,
          volumes,
          origins,
          topology: {
            pods: boundPods,
            nodes: new Map([...input.nodes.map(asTopologyNode), ['leaving', leavingNode] as const]),
            namespaces: new Map([
              ['default', { tier: 'front' }],
              ['other', { tier: 'back' }],
            ]),
          },
        }),
      )
  })
}

function asTopologyNode(input: NodeInput): readonly [string, TopologyNode] {
  const hostname = input.labels[names.hostname] ?? input.name
  return [input.name, { hostname, labels: input.labels, taints: input.taints, isCandidate: true }]
}
