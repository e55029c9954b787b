import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { labels, type Pod, type PodSpec } from '@tenon/api'
import { renderPodReason } from '../../reasons/reasons.ts'
import type { NodeInput, TopologyInput } from '../../input/input.ts'
import { aNode, anInput, aPod, aPool, aPoolInput, aType } from '../../testing/builders.test-support.ts'
import { schedule } from '../schedule.ts'

const zones = ['zone-1', 'zone-2', 'zone-3']
const types = [2, 4, 8, 16].map((cpu) => aType(`type-${cpu}`, cpu, cpu * 4, zones))
const pools = [aPoolInput(aPool(), types)]

const times = <T>(count: number, make: (i: number) => T): T[] =>
  Array.from({ length: count }, (_, i) => make(i))

function labelled(app: string, spec: Partial<PodSpec> = {}, cpu = '100m'): Pod {
  const pod = aPod({ cpu }, spec)
  return { ...pod, metadata: { ...pod.metadata, labels: { app } } }
}

const selector = (app: string) => ({ matchLabels: { app } })

const spread = (key: string, app: string, rest: object = {}) => ({
  topologySpreadConstraints: [
    {
      maxSkew: 1,
      topologyKey: key,
      whenUnsatisfiable: 'DoNotSchedule' as const,
      labelSelector: selector(app),
      ...rest,
    },
  ],
})

const affinity = (kind: 'podAffinity' | 'podAntiAffinity', key: string, app: string) => ({
  affinity: {
    [kind]: {
      requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: key, labelSelector: selector(app) }],
    },
  },
})

function zoneOf(claim: { readonly requirements: readonly { key: string; values?: readonly string[] }[] }) {
  return claim.requirements.find((requirement) => requirement.key === labels.zone)?.values
}

/** A cluster in which `pods` are bound to `nodes`. */
function bound(nodes: readonly NodeInput[], pods: readonly Pod[]): TopologyInput {
  return {
    pods,
    nodes: new Map(
      nodes.map((node) => [
        node.name,
        { hostname: node.name, labels: node.labels, taints: node.taints, isCandidate: true },
      ]),
    ),
    namespaces: new Map([['default', {}]]),
  }
}

function on(node: string, pod: Pod): Pod {
  return { ...pod, spec: { ...pod.spec, nodeName: node } }
}

describe('topology spread', () => {
  test('pods are spread evenly over the zones that can be had', () => {
    const { claims, failures } = schedule(
      anInput({ pods: times(9, () => labelled('web', spread(labels.zone, 'web'))), pools }),
    )
    assert.deepEqual(failures, [])
    const perZone = new Map<string, number>()
    for (const claim of claims) {
      const [zone = ''] = zoneOf(claim) ?? []
      perZone.set(zone, (perZone.get(zone) ?? 0) + claim.pods.length)
    }
    assert.deepEqual(
      [...perZone].toSorted(([a], [b]) => (a < b ? -1 : 1)),
      zones.map((zone) => [zone, 3]),
    )
  })

  test('pods that run already count', () => {
    const nodes = [
      aNode('n1', { available: {} }),
      aNode('n2', { available: {}, labels: { [labels.zone]: 'zone-2' } }),
    ]
    const running = [on('n1', labelled('web')), on('n2', labelled('web'))]
    const { claims } = schedule(
      anInput({
        pods: [labelled('web', spread(labels.zone, 'web'))],
        pools,
        nodes,
        topology: bound(nodes, running),
      }),
    )
    assert.deepEqual(claims.map(zoneOf), [['zone-3']])
  })

  test('spreading over hosts needs as many nodes as pods', () => {
    const { claims } = schedule(
      anInput({ pods: times(4, () => labelled('web', spread(labels.hostname, 'web'))), pools }),
    )
    assert.deepEqual(
      claims.map((claim) => claim.pods.length),
      [1, 1, 1, 1],
    )
  })

  test('minDomains keeps the skew against an empty domain', () => {
    const pods = times(3, () => labelled('web', spread(labels.zone, 'web', { minDomains: 5 })))
    const { claims, failures } = schedule(anInput({ pods, pools }))
    assert.equal(claims.flatMap((claim) => claim.pods).length, 3)
    const more = schedule(
      anInput({
        pods: times(4, () => labelled('web', spread(labels.zone, 'web', { minDomains: 5 }))),
        pools,
      }),
    )
    assert.deepEqual([failures.length, more.failures.length], [0, 1])
  })

  test('a constraint that may be broken is given up when nothing else helps', () => {
    const one = [aPoolInput(aPool(), [aType('only', 4, 16, ['zone-1'])])]
    const nodes = [aNode('n2', { available: {}, labels: { [labels.zone]: 'zone-2' } })]
    const soft = spread(labels.zone, 'web', { whenUnsatisfiable: 'ScheduleAnyway' })
    const hard = spread(labels.zone, 'web')
    const run = (spec: Partial<PodSpec>) =>
      schedule(
        anInput({
          pods: times(3, () => labelled('web', spec)),
          pools: one,
          nodes,
          topology: bound(nodes, []),
        }),
      ).failures.length
    assert.deepEqual([run(soft), run(hard)], [0, 2])
  })

  test('a pod that cannot be spread is told the rule and the counts', () => {
    const one = [aPoolInput(aPool(), [aType('only', 1, 4, ['zone-1'])])]
    const nodes = [aNode('n2', { available: {}, labels: { [labels.zone]: 'zone-2' } })]
    const pods = times(2, () => labelled('web', spread(labels.zone, 'web'), '900m'))
    const { failures } = schedule(anInput({ pods, pools: one, nodes, topology: bound(nodes, []) }))
    assert.match(renderPodReason(failures[0]?.reason ?? { kind: 'noPools' }), /zone-2/)
  })
})

describe('pod affinity', () => {
  test('pods that want to be together share a zone', () => {
    const spec = affinity('podAffinity', labels.zone, 'web')
    const { claims, failures } = schedule(
      anInput({ pods: times(20, () => labelled('web', spec, '3')), pools }),
    )
    assert.deepEqual(failures, [])
    assert.equal(new Set(claims.map((claim) => String(zoneOf(claim)))).size, 1)
  })

  test('a pod follows one that runs already', () => {
    const nodes = [aNode('n2', { available: {}, labels: { [labels.zone]: 'zone-2' } })]
    const { claims } = schedule(
      anInput({
        pods: [labelled('client', affinity('podAffinity', labels.zone, 'server'))],
        pools,
        nodes,
        topology: bound(nodes, [on('n2', labelled('server'))]),
      }),
    )
    assert.deepEqual(claims.map(zoneOf), [['zone-2']])
  })

  test('a pod that wants to be with nobody there is not placed', () => {
    const { failures } = schedule(
      anInput({ pods: [labelled('client', affinity('podAffinity', labels.zone, 'server'))], pools }),
    )
    assert.match(
      renderPodReason(failures[0]?.reason ?? { kind: 'noPools' }),
      /its pod affinity over topology.kubernetes.io\/zone cannot be met/,
    )
  })

  test('the pod it waits for may be placed later in the same pass', () => {
    const client = labelled('client', affinity('podAffinity', labels.zone, 'server'), '4')
    const server = labelled('server', {}, '1')
    const { failures } = schedule(
      anInput({
        pods: [client, { ...server, spec: { ...server.spec, nodeSelector: { [labels.zone]: 'zone-2' } } }],
        pools,
      }),
    )
    assert.deepEqual(failures, [])
  })
})

describe('pod anti-affinity', () => {
  test('pods that avoid each other on hosts get a node each', () => {
    const spec = affinity('podAntiAffinity', labels.hostname, 'web')
    const { claims } = schedule(anInput({ pods: times(5, () => labelled('web', spec)), pools }))
    assert.equal(claims.length, 5)
  })

  test('a pod without the rule is kept away from one that has it', () => {
    const shy = labelled('db', affinity('podAntiAffinity', labels.hostname, 'web'), '2')
    const { claims } = schedule(anInput({ pods: [shy, labelled('web'), labelled('web')], pools }))
    assert.deepEqual(
      claims.map((claim) => claim.pods.length).toSorted((a, b) => a - b),
      [1, 2],
    )
  })

  test('a running pod keeps away whom it avoids', () => {
    const nodes = [aNode('n1', { labels: { [labels.zone]: 'zone-1', [labels.hostname]: 'n1' } })]
    const shy = on('n1', labelled('db', affinity('podAntiAffinity', labels.hostname, 'web')))
    const { placements, claims } = schedule(
      anInput({ pods: [labelled('web'), labelled('other')], pools, nodes, topology: bound(nodes, [shy]) }),
    )
    assert.deepEqual(
      placements.map(({ pod }) => pod.metadata.labels?.['app']),
      ['other'],
    )
    assert.equal(claims.length, 1)
  })

  test('as long as a zone is open, one pod blocks every zone it might be in', () => {
    const spec = affinity('podAntiAffinity', labels.zone, 'web')
    const { claims, failures } = schedule(anInput({ pods: times(3, () => labelled('web', spec)), pools }))
    assert.equal(claims.length, 1)
    assert.equal(failures.length, 2)
  })

  test('a preference to be apart is given up in the end', () => {
    const spec = {
      affinity: {
        podAntiAffinity: {
          preferredDuringSchedulingIgnoredDuringExecution: [
            { weight: 1, podAffinityTerm: { topologyKey: labels.zone, labelSelector: selector('web') } },
          ],
        },
      },
    }
    const { failures } = schedule(anInput({ pods: times(6, () => labelled('web', spec)), pools }))
    assert.deepEqual(failures, [])
  })
})
