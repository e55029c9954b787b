import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Case } from './case.ts'
import { caseParts, drawCase, underPlainNames } from './generate/draw.ts'
import { plantedBug, storyOf } from '../simulation/planted/bugs.ts'
import { faultKinds } from '../simulation/story.ts'
import { drawStory, judgeStory } from './stories.ts'
import { inheritedNames } from './generate/names.ts'
import { startupTaint } from './generate/pools.ts'
import { playStartupAgent } from './startup-agent.ts'
import { World } from '../world.ts'
import { kinds, type NodePool, type Pod } from '@tenon/api'
import { createCredentials } from '@tenon/devcluster'
import { decorated } from '@tenon/provider'
import { type Decision, improvement, renaming, soundness } from './oracles/decisions.ts'
import { openableDomains, withKnownDomains } from './oracles/domains.ts'
import { type Row, unnamed } from './rows.ts'
import { calmStart, noIdleNodes, noUselessNodes, reasonTold } from './oracles/records.ts'
import { LogWatch } from './oracles/log-watch.ts'
import type { NodeRecord, PodRecord } from './observer.ts'
import { plantedFault } from './planted/faults.ts'
import type { PlantedFault } from './planted/planted-fault.ts'
import { play } from './play.ts'

const minute = 60_000
const credentials = await createCredentials(Date.UTC(2026, 0, 1))

/** Two pods on instances of one type. */
function aSmallCase(more: Partial<Case> = {}): Case {
  const pool = {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: { name: 'pool' },
    spec: {
      template: {
        spec: {
          nodeClassRef: { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'default' },
          requirements: [],
        },
      },
      disruption: { consolidateAfter: 'Never' },
    },
  }
  const pod = (name: string, spec: object) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: { app: name } },
    spec: {
      containers: [{ name: 'app', image: 'pause', resources: { requests: { cpu: '1', memory: '1Gi' } } }],
      ...spec,
    },
  })
  const zone = (value: string) => [
    { key: 'topology.kubernetes.io/zone', operator: 'In', values: [value] },
    { key: 'karpenter.sh/capacity-type', operator: 'In', values: ['on-demand'] },
  ]
  return {
    part: 'cluster',
    seed: 1,
    provider: 'kwok',
    catalogue: [
      {
        name: 'small',
        architecture: 'amd64',
        operatingSystems: ['linux'],
        resources: { cpu: '2', memory: '4Gi', pods: '110', 'ephemeral-storage': '20Gi' },
        offerings: [{ Price: 0.1, Available: true, Requirements: zone('zone-a') }],
      },
    ],
    objects: [
      { apiVersion: 'karpenter.kwok.sh/v1alpha1', kind: 'KWOKNodeClass', metadata: { name: 'default' } },
      pool,
      pod('a', {}),
      pod('b', {}),
    ],
    steps: [],
    settings: {},
    surroundings: {},
    minutes: 3,
    ...more,
  }
}

const noTypes: PlantedFault = {
  name: 'no-types',
  mistake: 'the provider has nothing to offer',
  part: 'cluster',
  provider: (inner) => decorated(inner, { getInstanceTypes: () => Promise.resolve([]) }),
}

describe('drawing', () => {
  test('the same seed draws the same case, another seed another one', () => {
    for (const part of caseParts) {
      assert.deepEqual(drawCase(part, 7), drawCase(part, 7))
      assert.notDeepEqual(drawCase(part, 7), drawCase(part, 8))
    }
  })

  test('a story has some of the faults that deceive, and no others; it says how to play it again', async () => {
    assert.deepEqual(drawStory(7), drawStory(7))
    assert.notDeepEqual(drawStory(7), drawStory(8))
    const struck = Array.from({ length: 50 }, (_, seed) => drawStory(seed)).map(({ withoutFaults }) =>
      faultKinds.filter((kind) => !withoutFaults.includes(kind)),
    )
    assert.equal(new Set(struck.flat()).size, 10)
    assert.ok(struck.every(({ length }) => length > 0))
    const bug = plantedBug('finalizer-late')
    const { findings, pods } = await judgeStory(storyOf(bug, 1), bug)
    assert.equal(findings[0]?.oracle, 'invariantsHold')
    assert.match(
      findings[0]?.text ?? '',
      /^finalizerFirst: .* npm run world -- --seed 1 --hours 0.1 --nodes 3 /,
    )
    assert.ok(pods > 0)
  })

  test('a case with inherited names has a counterpart without any', () => {
    const text = JSON.stringify(underPlainNames(drawCase('names', 3)))
    for (const name of inheritedNames) assert.ok(!text.includes(`"${name}"`), name)
  })
})

describe('playing', () => {
  test('all is well where a plain pod gets its node, and what the API server refuses is left out', async () => {
    const given = aSmallCase()
    const unfinished = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'c' }, spec: { containers: [] } }
    const played = await play({ ...given, objects: [...given.objects, unfinished] })
    assert.deepEqual(played.findings, [])
    assert.equal(played.accepted.length, given.objects.length)
    assert.deepEqual(played.launched, ['small', 'small'])
    assert.ok(Math.abs((played.settled?.pricePerHour ?? 0) - 0.2) < 1e-9)
  })

  test('a case at Clever Cloud gets the cheapest flavor, and a NodeGroup of somebody else stays', async () => {
    const plain = aSmallCase()
    const [, pool, ...pods] = plain.objects
    const apiVersion = 'karpenter.clever-cloud.com/v1alpha1'
    const nodeClass = { apiVersion, kind: 'CleverNodeClass', metadata: { name: 'default' }, spec: {} }
    const template = {
      spec: {
        nodeClassRef: { group: 'karpenter.clever-cloud.com', kind: 'CleverNodeClass', name: 'default' },
        requirements: [],
      },
    }
    const mine = {
      apiVersion: 'api.clever-cloud.com/v1',
      kind: 'NodeGroup',
      metadata: { name: 'mine', labels: { 'karpenter.clever-cloud.com/managed': 'true' } },
      spec: { flavor: 'XS', nodeCount: 0 },
    }
    const objects = [
      nodeClass,
      { ...pool, spec: { template, disruption: { consolidateAfter: 'Never' } } } as NodePool,
      ...pods,
      mine,
    ]
    const given: Case = { ...plain, part: 'groups', provider: 'clever-cloud', objects }
    const played = await play(given)
    assert.deepEqual(played.findings, [])
    assert.deepEqual([played.launched, played.settled?.pricePerHour], [['2XS'], 1])
    const gone = { apiVersion: mine.apiVersion, kind: mine.kind, name: 'mine' }
    const { findings } = await play({ ...given, steps: [{ atMs: 30_000, delete: gone }] })
    assert.deepEqual(
      findings.map(({ oracle }) => oracle),
      ['nothingLost'],
    )
  })

  test('a case plays the same way twice', async () => {
    assert.deepEqual(await play(drawCase('price', 5)), await play(drawCase('price', 5)))
  })

  test('a pod that waits although a fresh node would take it is found', async () => {
    const { findings } = await play(aSmallCase(), noTypes)
    assert.deepEqual(
      findings.map(({ oracle }) => oracle),
      ['everyPodRuns'],
    )
    assert.match(
      findings[0]?.text ?? '',
      /kube-scheduler puts it on a fresh node of NodePool pool, type small/,
    )
  })

  test('the start-up taint goes from a node that gets it long after it has come, too', async (t) => {
    const world = await World.start({ seed: 1, provider: 'kwok', credentials })
    t.after(() => world.stop())
    playStartupAgent(world)
    world.create(kinds.node, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'node' } })
    await world.clock.advance(minute)
    world.cluster.server.local.patch(kinds.node, undefined, 'node', { spec: { taints: [startupTaint] } })
    await world.clock.advance(minute)
    const [node] = world.nodes()
    assert.ok(node !== undefined)
    assert.ok(!(node.spec?.taints ?? []).some(({ key }) => key === startupTaint.key))
  })

  test('a pod that no fresh node would take is none', async () => {
    const given = aSmallCase()
    const [first, second, pod] = given.objects
    assert.ok(first !== undefined && second !== undefined && pod !== undefined)
    const mars = {
      ...pod,
      spec: { containers: [{ name: 'app', image: 'pause' }], nodeSelector: { planet: 'mars' } },
    }
    const { findings, settled } = await play({ ...given, objects: [first, second, mars] })
    assert.deepEqual([findings, settled], [[], undefined])
  })

  test('zones that a NodePool could open count for a spread', async () => {
    const topologyKey = 'topology.kubernetes.io/zone'
    const labelSelector = { matchLabels: { app: 'a' } }
    const term = { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey, labelSelector }] }
    const { objects, catalogue = [], ...given } = aSmallCase()
    const other = JSON.parse(
      JSON.stringify(catalogue[0]).replace('zone-a', 'zone-b').replace('small', 'other'),
    ) as object
    const pods = ['a-0', 'a-1'].map((name) => ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, labels: { app: 'a' } },
      spec: {
        containers: [{ name: 'app', image: 'pause', resources: { requests: { cpu: '1500m' } } }],
        affinity: { podAffinity: term },
        topologySpreadConstraints: [
          { maxSkew: 1, topologyKey, labelSelector, whenUnsatisfiable: 'DoNotSchedule' },
        ],
      },
    }))
    const others = objects.filter(({ kind }) => kind !== 'Pod')
    const { findings, settled } = await play({
      ...given,
      catalogue: [...catalogue, other],
      objects: [...others, ...pods],
    })
    assert.deepEqual([findings, settled], [[], undefined])
  })

  test('zones of a NodePool at its limit count for a spread, and excuse no pod that the spread admits', async () => {
    const { objects, catalogue = [], ...given } = aSmallCase()
    const inZoneB = JSON.parse(JSON.stringify(catalogue).replaceAll('zone-a', 'zone-b')) as typeof catalogue
    const [nodeClass, pool, pod] = objects
    assert.ok(nodeClass !== undefined && pool !== undefined && pod !== undefined)
    const topologyKey = 'topology.kubernetes.io/zone'
    const inZones = (name: string, limits: object, ...values: readonly string[]) => {
      const { spec } = pool as NodePool
      const requirements = [{ key: topologyKey, operator: 'In' as const, values }]
      const template = { spec: { ...spec.template.spec, requirements } }
      return { ...pool, metadata: { name }, spec: { ...spec, limits, template } }
    }
    const spread = (name: string) => ({
      ...pod,
      metadata: { name, labels: { app: 'web' } },
      spec: {
        containers: [{ name: 'app', image: 'pause', resources: { requests: { cpu: '1' } } }],
        topologySpreadConstraints: [
          {
            maxSkew: 1,
            topologyKey,
            whenUnsatisfiable: 'DoNotSchedule',
            labelSelector: { matchLabels: { app: 'web' } },
          },
        ],
      },
    })
    const [sold] = catalogue
    const offerings = [...catalogue, ...inZoneB].flatMap(
      (type) => (type as { offerings: object[] }).offerings,
    )
    const held: Case = {
      ...given,
      catalogue: [{ ...sold, offerings }],
      objects: [
        nodeClass,
        inZones('open', {}, 'zone-a'),
        inZones('full', { cpu: '0' }, 'zone-b'),
        ...['a-0', 'a-1'].map(spread),
      ],
    }
    const { findings, launched } = await play(held)
    assert.deepEqual([findings, launched], [[], ['small']])
    const broken = await play(held, noTypes)
    assert.deepEqual(
      broken.findings.map(({ oracle }) => oracle),
      ['everyPodRuns'],
    )
  })
})

describe('planted faults', () => {
  test('host ports that are not looked at are found by two pods with one', async () => {
    const given = aSmallCase()
    const ports = [{ containerPort: 80, hostPort: 8080 }]
    const containers = [
      { name: 'app', image: 'pause', ports, resources: { requests: { cpu: '100m', memory: '64Mi' } } },
    ]
    const objects = given.objects.map((object) =>
      object.kind === 'Pod' ? { ...object, spec: { containers } } : object,
    )
    assert.deepEqual((await play({ ...given, objects })).findings, [])
    const { findings } = await play({ ...given, objects }, plantedFault('host-port-ignored'))
    assert.deepEqual(
      findings.map(({ oracle }) => oracle),
      ['everyPodRuns'],
    )
  })
})

describe('oracles', () => {
  const aPod = (more: Partial<PodRecord>): PodRecord => ({
    name: 'default/a',
    isDaemon: false,
    staysToTheEnd: false,
    createdMs: 0,
    node: 'n',
    runningMs: minute,
    finishedMs: undefined,
    deletionMs: undefined,
    goneMs: undefined,
    evictedMs: undefined,
    ...more,
  })
  const seen = (pods: readonly PodRecord[], nodes: readonly NodeRecord[] = []) => ({
    pods: new Map(pods.map((pod, index) => [String(index), pod])),
    nodes: new Map(nodes.map((node, index) => [String(index), node])),
    workloadPods: () => pods,
  })
  const aNode = (name: string): NodeRecord => ({
    name,
    pool: 'pool',
    createdMs: 0,
    readyMs: 0,
    goneMs: undefined,
    pods: new Set(),
  })

  test('an eviction ten minutes after the start is found, one after sixteen is not', () => {
    const evicted = (ms: number) => seen([aPod({ evictedMs: ms, deletionMs: ms })])
    assert.equal(calmStart(evicted(11 * minute), aSmallCase()).length, 1)
    assert.equal(calmStart(evicted(17 * minute), aSmallCase()).length, 0)
  })

  test('an eviction after another pod has come is excused', () => {
    const evicted = aPod({ evictedMs: 5 * minute, deletionMs: 5 * minute })
    const late = aPod({ name: 'default/b', createdMs: 3 * minute, runningMs: 4 * minute })
    assert.equal(calmStart(seen([evicted, late]), aSmallCase()).length, 0)
  })

  test('a second useless node within the hour for a pod that waits is found', () => {
    const waiting = aPod({ node: undefined, runningMs: undefined })
    const found = (count: number) =>
      noUselessNodes(
        seen(
          [waiting],
          Array.from({ length: count }, (_, index) => aNode(`n-${index}`)),
        ),
        aSmallCase(),
        30 * minute,
      )
    assert.equal(found(1).length, 0)
    assert.equal(found(2).length, 1)
  })

  test('a useless node of each NodePool is allowed', () => {
    const waiting = aPod({ node: undefined, runningMs: undefined })
    const nodes = (...pools: readonly string[]) =>
      pools.map((pool, index) => ({ ...aNode(`n-${index}`), pool }))
    const found = (...pools: readonly string[]) =>
      noUselessNodes(seen([waiting], nodes(...pools)), aSmallCase(), 30 * minute)
    assert.equal(found('a', 'b').length, 0)
    assert.equal(found('a', 'b', 'b').length, 1)
  })

  test('a useless node is excused by a pod that came about then and found a place soon', () => {
    const waiting = aPod({ node: undefined, runningMs: undefined })
    const soon = aPod({ createdMs: 10 * minute, runningMs: 12 * minute })
    const found = (...createdMs: readonly number[]) =>
      noUselessNodes(
        seen(
          [waiting, soon],
          createdMs.map((ms) => ({ ...aNode(`n-${ms}`), createdMs: ms })),
        ),
        aSmallCase(),
        30 * minute,
      ).length
    assert.equal(found(0, 11 * minute), 0)
    assert.equal(found(0, 16 * minute), 1)
    assert.equal(found(0, 10 * minute, 11 * minute), 1)
  })

  test('a node that no pod came to and that nothing keeps is found after half an hour', () => {
    const found = (ready: number, disruption: object = {}) => {
      const given = aSmallCase()
      const objects = given.objects.map((object) =>
        object.kind === 'NodePool' ? { ...object, spec: { disruption } } : object,
      )
      const node = { ...aNode('n'), readyMs: ready }
      return noIdleNodes(seen([], [node]), { ...given, objects }, 60 * minute).length
    }
    assert.equal(found(20 * minute), 1)
    assert.equal(found(40 * minute), 0)
    assert.equal(found(20 * minute, { consolidateAfter: 'Never' }), 0)
    assert.equal(found(20 * minute, { budgets: [{ nodes: '0' }] }), 0)
  })

  test('a refusal that is told without the words of the scheduler is found', () => {
    const given = aSmallCase({ surroundings: { refusedApps: ['app-0'] } })
    const refusal = (text: string) => ({ refusals: [{ pod: 'default/app-0-1', text, atMs: 0 }] })
    assert.equal(reasonTold(refusal('the scheduler refuses the pod'), given).length, 1)
    assert.equal(
      reasonTold(refusal('refused: 0/1 nodes are available: 1 node(s) were refused'), given).length,
      0,
    )
    assert.equal(reasonTold(refusal('and has less memory than was planned'), given).length, 0)
  })

  test('a zone counts for a spread if it has instances for the pods and its name is known', () => {
    const row = (zone: string, cpu: number): Row => ({
      pool: aSmallCase().objects.find(({ kind }) => kind === 'NodePool') as NodePool,
      type: 'type',
      labels: { zone },
      taints: [],
      capacity: {},
      promised: {},
      allocatable: { cpu, pods: 110 },
      pricePerHour: 1,
    })
    const pod: Pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'a' },
      spec: {
        containers: [{ name: 'app', resources: { requests: { cpu: '1500m' } } }],
        topologySpreadConstraints: [{ maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule' }],
      },
    }
    const rows = [row('a', 1000), row('a', 2000), row('b', 1000), row('c', 4000)]
    assert.deepEqual(
      openableDomains(rows, [pod]).map(({ labels }) => labels['zone']),
      ['a', 'c'],
    )
    const open = row(unnamed, 4000)
    assert.deepEqual(
      withKnownDomains([open], [pod]).map(({ labels }) => labels),
      [{}],
    )
    assert.deepEqual(withKnownDomains([open], []), [open])
    const terms = [{ topologyKey: 'zone' }]
    const apart = { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: terms } }
    const loner: Pod = { ...pod, spec: { ...pod.spec, affinity: apart } }
    assert.deepEqual(withKnownDomains([open], [loner]), [])
  })

  test('a decision that loses a pod, throws, or costs more than first fit is found', () => {
    const plain: Decision = {
      given: 2,
      claims: [{ pods: ['a'], pricePerHour: 1, types: 1 }],
      elsewhere: ['b'],
      isAtLimits: false,
      pricePerHour: 1,
      faults: [],
    }
    const oraclesOf = (decision: Decision) => soundness(decision, 'first fit').map(({ oracle }) => oracle)
    assert.deepEqual(oraclesOf(plain), [])
    assert.deepEqual(oraclesOf({ ...plain, elsewhere: [] }), ['everyPodRuns'])
    assert.deepEqual(oraclesOf({ ...plain, elsewhere: ['a'] }), ['everyPodRuns'])
    assert.deepEqual(oraclesOf({ ...plain, faults: ['improvement: Error'] }), ['noThrow'])
    assert.deepEqual(oraclesOf({ ...plain, pricePerHour: Number.NaN }), ['noHigherPrice'])
    assert.deepEqual(improvement(plain, plain), [])
    assert.equal(improvement({ ...plain, pricePerHour: 1.1 }, plain).length, 1)
    assert.equal(renaming(plain, { ...plain, elsewhere: [] }).length, 1)
    assert.deepEqual(renaming({ ...plain, isAtLimits: true }, { ...plain, elsewhere: [] }), [])
  })

  test('an error with a place in the program is found once, other errors are not', () => {
    const watch = new LogWatch()
    const line = (text: string): string => JSON.stringify({ level: 'ERROR', error: text })
    watch.write(line('the cloud says no'))
    assert.equal(watch.findings.length, 0)
    watch.write(line('Cannot read properties of undefined (reading 4)'))
    watch.write(line('Cannot read properties of undefined (reading 5)'))
    assert.equal(watch.findings.length, 1)
  })

  test('a step of a NodeClaim that is logged again and again is found once', () => {
    const watch = new LogWatch()
    const line = (name: string): string =>
      JSON.stringify({ level: 'INFO', message: 'registered nodeclaim', NodeClaim: { name } })
    for (let times = 0; times < 5; times++) for (const name of ['a', 'b']) watch.write(line(name))
    assert.deepEqual(watch.findings, [])
    for (let times = 0; times < 5; times++) watch.write(line('a'))
    assert.deepEqual(
      watch.findings.map(({ oracle, text }) => [oracle, text]),
      [['saysOnce', '"registered nodeclaim" was logged 6 times for NodeClaim a']],
    )
  })
})
