import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { labels, nodeClassLabel, type Pod, type PodSpec, parseResources, type Requirement } from '@tenon/api'
import type { SchedulingInput, TopologyInput } from '../../input/input.ts'
import type { NewClaim, SchedulingResult } from '../../input/result.ts'
import {
  aDaemonOf,
  anInput,
  aNode,
  aPod,
  aPool,
  aPoolInput,
  aType,
  strictPolicy,
} from '../builders.test-support.ts'
import { violationsOf } from './checker.test-support.ts'

const zones = ['zone-1', 'zone-2', 'zone-3']
const small = aType('small', 2, 8, zones)
const large = aType('large', 8, 32, zones)
const pool = aPool()
const types = [small, large]

const isIn = (key: string, ...values: readonly string[]): Requirement => ({ key, operator: 'In', values })

/** A claim of the default pool for these pods, in one zone, as any type. */
function aClaim(pods: readonly Pod[], overrides: Partial<NewClaim> = {}): NewClaim {
  const nodeClass = nodeClassLabel(pool.spec.template.spec.nodeClassRef)
  return {
    nodePool: 'default',
    pool,
    labels: { [labels.nodePool]: 'default', [nodeClass]: 'default' },
    taints: [],
    requirements: [
      isIn(labels.nodePool, 'default'),
      isIn(nodeClass, 'default'),
      isIn(labels.zone, 'zone-1'),
      isIn(labels.instanceType, 'small', 'large'),
    ],
    requests: parseResources({ cpu: '100', memory: '1000Gi', pods: '100' }),
    instanceTypes: ['small', 'large'],
    largest: {},
    pricePerHour: 0.1,
    minValuesRelaxed: false,
    overlaid: { price: false, capacity: false },
    reservationIds: [],
    deviceDrivers: [],
    pods,
    ...overrides,
  }
}

/** Takes the zone from a claim's requirements, or sets another. */
function inZone(claim: NewClaim, ...wanted: readonly string[]): NewClaim {
  const others = claim.requirements.filter((each) => each.key !== labels.zone)
  return { ...claim, requirements: wanted.length === 0 ? others : [...others, isIn(labels.zone, ...wanted)] }
}

function aResult(parts: Partial<SchedulingResult>): SchedulingResult {
  return {
    claims: [],
    placements: [],
    failures: [],
    deferred: [],
    undecided: [],
    poolsWithoutTypes: [],
    malformed: [],
    validZones: new Map(),
    pricePerHour: 0,
    firstFitPricePerHour: 0,
    faults: [],
    ...parts,
  }
}

const input = (parts: Partial<SchedulingInput>): SchedulingInput =>
  anInput({ pools: [aPoolInput(pool, types)], ...parts })

const fails = (pod: Pod) => ({ pod, reason: { kind: 'noPools' as const } })

function labelled(app: string, spec: Partial<PodSpec> = {}): Pod {
  const pod = aPod({ cpu: '100m' }, spec)
  return { ...pod, metadata: { ...pod.metadata, labels: { app } } }
}

const term = (app: string, topologyKey: string) => ({ topologyKey, labelSelector: { matchLabels: { app } } })

const repels = (app: string, key: string): Partial<PodSpec> => ({
  affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term(app, key)] } },
})

const needs = (app: string, key: string): Partial<PodSpec> => ({
  affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term(app, key)] } },
})

const spreads = (app: string, key: string, rest: object = {}): Partial<PodSpec> => ({
  topologySpreadConstraints: [
    { ...term(app, key), maxSkew: 1, whenUnsatisfiable: 'DoNotSchedule' as const, ...rest },
  ],
})

/** Pods bound to a node in a zone, both of the same name. */
function boundTo(node: string, zone: string, ...pods: readonly Pod[]): TopologyInput {
  return {
    pods: pods.map((pod) => ({ ...pod, spec: { ...pod.spec, nodeName: node } })),
    nodes: new Map([
      [
        node,
        {
          hostname: node,
          labels: { [labels.zone]: zone, [labels.hostname]: node },
          taints: [],
          isCandidate: false,
        },
      ],
    ]),
    namespaces: new Map([['default', {}]]),
  }
}

/** That the checker objects to the decision with words that match, or not at all. */
function judged(
  given: SchedulingInput,
  result: Partial<SchedulingResult>,
  ...expected: readonly RegExp[]
): void {
  const found = violationsOf(given, aResult(result))
  for (const pattern of expected)
    assert.ok(
      found.some((text) => pattern.test(text)),
      `no violation matches ${pattern}: ${JSON.stringify(found)}`,
    )
  if (expected.length === 0) assert.deepEqual(found, [])
}

describe('the checker', () => {
  const [a, b] = [labelled('a'), labelled('b')]

  test('accepts a decision that is right', () => {
    judged(input({ pods: [a, b] }), { claims: [aClaim([a, b])] })
    judged(input({ pods: [a], nodes: [aNode('n')] }), { placements: [{ pod: a, node: 'n' }] })
    judged(input({ pods: [a], pools: [] }), { failures: [fails(a)] })
  })

  test('misses pods that are in no list, in two, or unknown', () => {
    judged(input({ pods: [a] }), {}, /is in 0 lists/)
    judged(input({ pods: [a] }), { claims: [aClaim([a])], undecided: [a] }, /is in 2 lists/)
    judged(input({ pods: [a] }), { claims: [aClaim([a, b])] }, /not in the input/)
  })

  test('objects to a node whose taint is not tolerated', () => {
    const taints = [{ key: 'gpu', effect: 'NoSchedule' as const }]
    const soft = [{ key: 'gpu', effect: 'PreferNoSchedule' as const }]
    const placements = [{ pod: a, node: 'n' }]
    judged(input({ pods: [a], nodes: [aNode('n', { taints })] }), { placements }, /refused by taint/)
    judged(input({ pods: [a], nodes: [aNode('n', { taints: soft })] }), { placements })
  })

  test('objects to a node without the labels that are asked for', () => {
    const selects = aPod({}, { nodeSelector: { disk: 'ssd' } })
    const host = aPod({}, { nodeSelector: { [labels.hostname]: 'n' } })
    const nodes = [aNode('n')]
    judged(input({ pods: [selects], nodes }), { placements: [{ pod: selects, node: 'n' }] }, /node selector/)
    judged(input({ pods: [host], nodes }), { placements: [{ pod: host, node: 'n' }] })
  })

  test('objects to a node where no volume alternative holds, or too many volumes are attached', () => {
    const volumes = (zone: string) =>
      new Map([
        [
          a.metadata.uid ?? '',
          {
            alternatives: [[{ key: labels.zone, operator: 'In' as const, values: [zone] }]],
            claims: { csi: ['default/x', 'default/y'] },
          },
        ],
      ])
    const placements = [{ pod: a, node: 'n' }]
    const nodes = [aNode('n', { volumeLimits: { csi: 2 }, volumesInUse: { csi: ['default/x'] } })]
    const full = [aNode('n', { volumeLimits: { csi: 2 }, volumesInUse: { csi: ['default/z'] } })]
    judged(input({ pods: [a], nodes, volumes: volumes('zone-1') }), { placements })
    judged(input({ pods: [a], nodes, volumes: volumes('zone-2') }), { placements }, /volume topology/)
    judged(
      input({ pods: [a], nodes: full, volumes: volumes('zone-1') }),
      { placements },
      /more volumes of csi/,
    )
  })

  test('objects to an overfull node, daemons that are to come included', () => {
    const pods = [aPod({ cpu: '2' }), aPod({ cpu: '2' })]
    const placements = pods.map((pod) => ({ pod, node: 'n' }))
    const daemons = [aDaemonOf(aPod({ cpu: '100m' }).spec)]
    const carried = [aNode('n', { daemonRequests: parseResources({ cpu: '100m', pods: '1' }) })]
    judged(input({ pods, nodes: [aNode('n')] }), { placements })
    judged(input({ pods, nodes: [aNode('n')], daemons }), { placements }, /more cpu is asked/)
    judged(input({ pods, nodes: carried, daemons }), { placements })
  })

  test('counts init containers, sidecars, pod level and overhead', () => {
    const cpu = (amount: string, restartPolicy?: string) => ({
      name: 'c',
      resources: { requests: { cpu: amount } },
      ...(restartPolicy !== undefined && { restartPolicy }),
    })
    const specs: Partial<PodSpec>[] = [
      { initContainers: [cpu('5')] },
      { initContainers: [cpu('2', 'Always'), cpu('3')] },
      { initContainers: [cpu('4', 'Always')] },
      { resources: { requests: { cpu: '5' } } },
      { overhead: { cpu: '4' } },
    ]
    for (const spec of specs) {
      const pod = aPod({ cpu: '100m' }, spec)
      judged(input({ pods: [pod], nodes: [aNode('n')] }), { placements: [{ pod, node: 'n' }] }, /more cpu/)
    }
  })

  test('objects to host ports that clash on a node and on a claim', () => {
    const port = (hostIP?: string) =>
      aPod(
        {},
        {
          containers: [
            {
              name: 'c',
              ports: [{ containerPort: 1, hostPort: 80, ...(hostIP !== undefined && { hostIP }) }],
            },
          ],
        },
      )
    const [one, two, other] = [port('10.0.0.1'), port(), port('10.0.0.2')]
    const on = (...pods: readonly Pod[]) => pods.map((pod) => ({ pod, node: 'n' }))
    const used = [{ ip: '0.0.0.0', port: 80, protocol: 'TCP' }]
    const nodes = [aNode('n')]
    judged(
      input({ pods: [one, two], nodes }),
      { placements: on(one, two) },
      /host ports of its new pods clash/,
    )
    judged(input({ pods: [one, other], nodes }), { placements: on(one, other) })
    judged(
      input({ pods: [one], nodes: [aNode('n', { usedHostPorts: used })] }),
      { placements: on(one) },
      /host port is taken/,
    )
    judged(input({ pods: [one, two] }), { claims: [aClaim([one, two])] }, /host ports of its pods clash/)
    const daemons = [aDaemonOf(two.spec)]
    judged(input({ pods: [one], daemons }), { claims: [aClaim([one])] }, /does not hold its pods: host ports/)
  })

  test('objects to a claim with types that are unknown, unsorted, too many, or cost something else', () => {
    const pods = [a]
    const claimed = (overrides: Partial<NewClaim>) => ({ claims: [aClaim(pods, overrides)] })
    const policy = { ...strictPolicy, maxInstanceTypes: 1 }
    judged(input({ pods }), claimed({ instanceTypes: ['small', 'huge'] }), /type huge is unknown/)
    judged(input({ pods }), claimed({ instanceTypes: ['large', 'small'], pricePerHour: 0.4 }), /not sorted/)
    judged(input({ pods }), claimed({ pricePerHour: 0.2 }), /price is 0.2/)
    judged(input({ pods, policy }), claimed({}), /too many types/)
    judged(input({ pods }), claimed({ instanceTypes: [] }), /no instance type/)
  })

  test('objects to a claim of a type that does not hold its pods, has no offering or the wrong labels', () => {
    const big = aPod({ cpu: '4' })
    const zoned = aPod({}, { nodeSelector: { [labels.zone]: 'zone-2' } })
    const away = { ...small, offerings: small.offerings.map((each) => ({ ...each, available: false })) }
    judged(input({ pods: [big] }), { claims: [aClaim([big])] }, /type small does not hold its pods: cpu/)
    judged(input({ pods: [zoned] }), { claims: [aClaim([zoned])] }, /wrong labels as type small in zone-1/)
    judged(
      input({ pods: [zoned] }),
      { claims: [inZone(aClaim([zoned]), 'zone-2', 'zone-1')] },
      /wrong labels as type small in zone-1/,
    )
    judged(input({ pods: [zoned] }), { claims: [inZone(aClaim([zoned]), 'zone-2')] })
    judged(
      input({ pods: [a], pools: [aPoolInput(pool, [away, large])] }),
      { claims: [aClaim([a])] },
      /small has no available offering/,
    )
  })

  test('objects to a claim that leaves its pool: taints, requirements, labels, names of its own', () => {
    const tainted = aPool('default', {}, { taints: [{ key: 'gpu', effect: 'NoExecute' }] })
    const bounded = aPool('default', {}, { requirements: [isIn(labels.zone, 'zone-2', 'zone-3')] })
    const pods = [a]
    const claims = [aClaim(pods)]
    judged(input({ pods, pools: [aPoolInput(tainted, types)] }), { claims }, /does not tolerate taint gpu/)
    judged(input({ pods, pools: [aPoolInput(bounded, types)] }), { claims }, /allows .*zone zone-1/)
    judged(input({ pods }), { claims: [aClaim(pods, { labels: {} })] }, /is not the NodePool's/)
    judged(input({ pods }), { claims: [aClaim(pods, { nodePool: 'gone' })] }, /NodePool is not there/)
    const host = [...aClaim(pods).requirements, isIn(labels.hostname, 'h')]
    judged(input({ pods }), { claims: [aClaim(pods, { requirements: host })] }, /speaks of .*hostname/)
    judged(input({ pods }), { claims: [aClaim(pods, { requests: {} })] }, /requests less cpu/)
  })

  test('objects to minValues that Strict must keep', () => {
    const least: Requirement = { key: labels.instanceType, operator: 'Exists', minValues: 2 }
    const strict = aPool('default', {}, { requirements: [least] })
    const claim = aClaim([a], { instanceTypes: ['small'] })
    const pools = [aPoolInput(strict, types)]
    judged(input({ pods: [a], pools }), { claims: [claim] }, /minValues 2 of .* is not kept/)
    judged(input({ pods: [a], pools }), { claims: [aClaim([a])] }, /is not passed on/)
    judged(input({ pods: [a], pools }), { claims: [{ ...claim, minValuesRelaxed: true }] }, /under Strict/)
  })

  test('objects to limits exceeded by the largest types of the claims, and by their number', () => {
    const limited = (limits: Record<string, string>) =>
      input({ pods: [a, b], pools: [aPoolInput(aPool('default', { limits }), types)] })
    const claims = [aClaim([a]), aClaim([b])]
    judged(limited({ cpu: '16' }), { claims })
    judged(limited({ cpu: '15' }), { claims }, /limit 15000 of cpu exceeded by 16000/)
    judged(limited({ nodes: '1' }), { claims }, /limit 1 of nodes exceeded/)
  })

  test('objects to anti-affinity between pods that can end up in one domain, either way round', () => {
    const shy = labelled('shy', repels('b', labels.zone))
    const lone = labelled('lone', repels('b', labels.hostname))
    const pods = [shy, b]
    const [here, there] = [aClaim([shy]), aClaim([b])]
    judged(input({ pods }), { claims: [here, there] }, /anti-affinity over .*zone/)
    judged(input({ pods }), { claims: [here, inZone(there, 'zone-2')] })
    judged(input({ pods }), { claims: [inZone(here, 'zone-1', 'zone-2'), inZone(there, 'zone-2')] }, /anti-/)
    judged(input({ pods }), { claims: [inZone(here), inZone(there, 'zone-2')] }, /anti-affinity/)
    judged(input({ pods: [lone, b] }), { claims: [aClaim([lone, b])] }, /anti-affinity over .*hostname/)
    judged(input({ pods: [lone, b] }), { claims: [aClaim([lone]), aClaim([b])] })
    const claims = [aClaim([b])]
    judged(input({ pods: [b], topology: boundTo('old', 'zone-1', shy) }), { claims }, /anti-affinity/)
    judged(input({ pods: [b], topology: boundTo('old', 'zone-2', shy) }), { claims })
    judged(input({ pods: [shy], topology: boundTo('old', 'zone-1', b) }), { claims: [here] }, /anti-affinity/)
  })

  test('objects to affinity that nobody in the domain meets, but lets a series start', () => {
    const follower = labelled('f', needs('b', labels.zone))
    const pods = [follower, b]
    judged(input({ pods }), { claims: [aClaim([follower]), aClaim([b])] })
    judged(input({ pods }), { claims: [aClaim([follower]), inZone(aClaim([b]), 'zone-2')] }, /affinity over/)
    judged(
      input({ pods }),
      { claims: [inZone(aClaim([follower]), 'zone-1', 'zone-2'), aClaim([b])] },
      /affinity/,
    )
    const [one, two] = [labelled('s', needs('s', labels.zone)), labelled('s', needs('s', labels.zone))]
    const series = [one, two]
    judged(input({ pods: series }), { claims: [aClaim([one]), aClaim([two])] })
    judged(
      input({ pods: series }),
      { claims: [aClaim([one]), inZone(aClaim([two]), 'zone-2')] },
      /affinity over .*zone is not met/,
    )
    const topology = boundTo('old', 'zone-3', labelled('s'))
    judged(input({ pods: [one], topology }), { claims: [aClaim([one])] }, /affinity over .* is not met/)
    judged(input({ pods: [one], topology }), { claims: [inZone(aClaim([one]), 'zone-3')] })
  })

  test('objects to a spread beyond maxSkew, with minDomains and bound pods, and to open domains', () => {
    const three = ['x', 'x', 'x'].map((app) => labelled(app, spreads('x', labels.zone)))
    const [one, two, last] = three as [Pod, Pod, Pod]
    const pods = three
    const separate = [aClaim([one]), inZone(aClaim([two]), 'zone-2'), inZone(aClaim([last]), 'zone-3')]
    judged(input({ pods }), { claims: separate })
    judged(input({ pods }), { claims: [aClaim([one, two]), inZone(aClaim([last]), 'zone-2')] }, /maxSkew 1/)
    judged(input({ pods: [one] }), { claims: [inZone(aClaim([one]))] }, /no single .*zone/)
    const topology = boundTo('old', 'zone-1', labelled('x'))
    judged(input({ pods: [one], topology }), { claims: [aClaim([one])] }, /1 bound, 1 new/)
    judged(input({ pods: [one], topology }), { claims: [inZone(aClaim([one]), 'zone-2')] })
    const many = [0, 1, 2, 3].map(() => labelled('y', spreads('y', labels.zone, { minDomains: 4 })))
    const [first, second, third, fourth] = many as [Pod, Pod, Pod, Pod]
    const short = [
      aClaim([first, fourth]),
      inZone(aClaim([second]), 'zone-2'),
      inZone(aClaim([third]), 'zone-3'),
    ]
    judged(input({ pods: many }), { claims: short }, /maxSkew 1/)
    const hosts = [0, 1].map(() => labelled('h', spreads('h', labels.hostname)))
    judged(input({ pods: hosts }), { claims: [aClaim(hosts)] }, /spread over .*hostname/)
    judged(input({ pods: hosts }), { claims: hosts.map((pod) => aClaim([pod])) })
  })

  test('objects to a failure of a pod for which there is room on a node or in a pool', () => {
    const huge = aPod({ cpu: '64' })
    const gpu = [{ key: 'gpu', effect: 'NoSchedule' as const }]
    judged(input({ pods: [a] }), { failures: [fails(a)] }, /NodePool default could launch/)
    judged(
      input({ pods: [a], pools: [], nodes: [aNode('n')] }),
      { failures: [fails(a)] },
      /node n would hold/,
    )
    judged(input({ pods: [huge], nodes: [aNode('n')] }), { failures: [fails(huge)] })
    const closed = aPool('default', { limits: { cpu: '1' } }, {})
    judged(input({ pods: [a], pools: [aPoolInput(closed, types)] }), { failures: [fails(a)] })
    const tainted = aPool('default', {}, { taints: gpu })
    judged(input({ pods: [a], pools: [aPoolInput(tainted, types)] }), { failures: [fails(a)] })
    const lone = labelled('h', repels('h', labels.hostname))
    judged(input({ pods: [lone] }), { failures: [fails(lone)] }, /NodePool default could launch/)
    const zonal = labelled('h', repels('h', labels.zone))
    judged(input({ pods: [zonal] }), { failures: [fails(zonal)] })
  })

  test('objects to prices that do not add up, exceed first fit, or are below what is possible', () => {
    const policy = { ...strictPolicy, improvement: 'planned' as const }
    const given = input({ pods: [a], policy })
    const claims = [aClaim([a])]
    judged(given, { claims, pricePerHour: 0.1, firstFitPricePerHour: 0.1 })
    judged(given, { claims, pricePerHour: 0.2, firstFitPricePerHour: 0.3 }, /claims cost 0.1/)
    judged(given, { claims, pricePerHour: 0.1, firstFitPricePerHour: 0.05 }, /above first fit/)
    const free = [aClaim([a], { pricePerHour: 0 })]
    judged(
      given,
      { claims: free, pricePerHour: 0, firstFitPricePerHour: 0 },
      /below what the cpu alone costs/,
    )
  })
})
