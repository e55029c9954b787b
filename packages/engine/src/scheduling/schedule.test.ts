import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { labels } from '@tenon/api'
import { renderPodReason } from '../reasons/reasons.ts'
import {
  aDaemonOf,
  anInput,
  aNode,
  aPod,
  aPool,
  aPoolInput,
  aType,
  strictPolicy,
} from '../testing/builders.test-support.ts'
import { schedule } from './schedule.ts'

const times = <T>(count: number, make: () => T): T[] => Array.from({ length: count }, make)

describe('packing pods onto new claims', () => {
  test('one pod gets the cheapest type that holds it, dearer ones listed after it', () => {
    const { claims, failures } = schedule(anInput({ pods: [aPod({ cpu: '3' })] }))
    assert.deepEqual(failures, [])
    assert.deepEqual(
      claims.map((claim) => claim.instanceTypes),
      [['type-4', 'type-8', 'type-16']],
    )
    assert.equal(claims[0]?.pricePerHour, 0.2)
    assert.deepEqual(claims[0]?.requests, { cpu: 3000, pods: 1 })
  })

  test('pods share a claim while some type holds all of them', () => {
    const { claims } = schedule(anInput({ pods: times(32, () => aPod({ cpu: '1' })) }))
    assert.deepEqual(
      claims.map((claim) => [claim.pods.length, claim.instanceTypes]),
      [
        [16, ['type-16']],
        [16, ['type-16']],
      ],
    )
  })

  test('the order of the pods does not change the outcome', () => {
    const pods = [
      ...times(7, () => aPod({ cpu: '900m' })),
      ...times(5, () => aPod({ cpu: '3', memory: '9Gi' })),
    ]
    const forward = schedule(anInput({ pods }))
    const backward = schedule(anInput({ pods: pods.toReversed() }))
    assert.deepEqual(backward, forward)
  })

  test('daemon pods take their share of every node', () => {
    const daemons = [aDaemonOf({ containers: [{ name: 'a', resources: { requests: { cpu: '1' } } }] })]
    const { claims } = schedule(anInput({ pods: [aPod({ cpu: '3500m' })], daemons }))
    assert.deepEqual(claims[0]?.instanceTypes, ['type-8', 'type-16'])
    assert.equal(claims[0]?.requests['cpu'], 4500)
  })

  test('a daemon that cannot run on the pool costs nothing', () => {
    const spec = {
      nodeSelector: { 'example.com/gpu': 'yes' },
      containers: [{ name: 'a', resources: { requests: { cpu: '1' } } }],
    }
    const { claims } = schedule(anInput({ pods: [aPod({ cpu: '3500m' })], daemons: [aDaemonOf(spec)] }))
    assert.equal(claims[0]?.instanceTypes[0], 'type-4')
  })

  test('the claim names its capacity types and the pool, never the host name', () => {
    const [claim] = schedule(anInput({ pods: [aPod()] })).claims
    const keys = claim?.requirements.map((requirement) => requirement.key)
    assert.deepEqual(keys, [
      'karpenter.kwok.sh/kwoknodeclass',
      labels.capacityType,
      labels.nodePool,
      labels.instanceType,
    ])
    assert.equal(claim?.labels[labels.nodePool], 'default')
  })
})

describe('requirements and taints', () => {
  test('a node selector narrows the claim', () => {
    const { claims } = schedule(
      anInput({ pods: [aPod({}, { nodeSelector: { [labels.instanceType]: 'type-8' } })] }),
    )
    assert.deepEqual(claims[0]?.instanceTypes, ['type-8'])
  })

  test('a label that no pool knows is refused with the label named', () => {
    const { failures } = schedule(anInput({ pods: [aPod({}, { nodeSelector: { team: 'blue' } })] }))
    assert.equal(
      failures[0] && renderPodReason(failures[0].reason),
      "NodePool default: label team is not known to it; add it to the NodePool's labels or requirements",
    )
  })

  test('a pod that asks for too much is told what no type offers', () => {
    const { failures } = schedule(anInput({ pods: [aPod({ cpu: '64' })] }))
    assert.match(
      renderPodReason(failures[0]?.reason ?? { kind: 'noPools' }),
      /no instance type has enough resources .*requests: cpu=64, pods=1/,
    )
  })

  test('a pod for which only types beyond the limits are large enough is told of the limits', () => {
    const types = [aType('small', 2, 8), aType('large', 8, 32)]
    const told = (limits: Readonly<Record<string, string>>, cpu: string) => {
      const pools = [aPoolInput(aPool('default', { limits }), types)]
      const { failures } = schedule(anInput({ pods: [aPod({ cpu })], pools }))
      return renderPodReason(failures[0]?.reason ?? { kind: 'noPools' })
    }
    assert.equal(
      told({ cpu: '4' }, '6'),
      'NodePool default: every instance type that holds the pod would exceed the limits of NodePool default; raise its spec.limits',
    )
    assert.match(told({ cpu: '4' }, '64'), /no instance type has enough resources/)
  })

  test('a pool with a taint serves only pods that tolerate it', () => {
    const tainted = aPoolInput(
      aPool('gpu', { weight: 10 }, { taints: [{ key: 'gpu', value: 'true', effect: 'NoSchedule' }] }),
    )
    const plain = aPod()
    const tolerant = aPod({ cpu: '1' }, { tolerations: [{ key: 'gpu', operator: 'Exists' }] })
    const { claims } = schedule(anInput({ pods: [plain, tolerant], pools: [aPoolInput(), tainted] }))
    assert.deepEqual(
      claims.map((claim) => [claim.nodePool, claim.pods.map((pod) => pod.metadata.name)]),
      [
        ['default', [plain.metadata.name]],
        ['gpu', [tolerant.metadata.name]],
      ],
    )
  })

  test('a preference is given up when nothing can meet it', () => {
    const spec = {
      affinity: {
        nodeAffinity: {
          preferredDuringSchedulingIgnoredDuringExecution: [
            {
              weight: 1,
              preference: {
                matchExpressions: [{ key: labels.zone, operator: 'In' as const, values: ['mars'] }],
              },
            },
          ],
        },
      },
    }
    const { claims, failures } = schedule(anInput({ pods: [aPod({}, spec)] }))
    assert.equal(failures.length, 0)
    assert.equal(claims.length, 1)
  })

  test('later required terms are tried when the first cannot be met', () => {
    const term = (zone: string) => ({
      matchExpressions: [{ key: labels.zone, operator: 'In' as const, values: [zone] }],
    })
    const spec = {
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [term('mars'), term('zone-1')],
          },
        },
      },
    }
    const [claim] = schedule(anInput({ pods: [aPod({}, spec)] })).claims
    assert.deepEqual(claim?.requirements.find((r) => r.key === labels.zone)?.values, ['zone-1'])
  })

  test('Gt bounds a numeric label', () => {
    const types = [2, 4, 8].map((cpu) => {
      const type = aType(`t-${cpu}`, cpu, cpu)
      return {
        ...type,
        requirements: [...type.requirements, { key: 'size', operator: 'In' as const, values: [String(cpu)] }],
      }
    })
    const pool = aPool('default', {}, { requirements: [{ key: 'size', operator: 'Gt', values: ['2'] }] })
    const policy = { ...strictPolicy, wellKnownLabels: new Set([...strictPolicy.wellKnownLabels, 'size']) }
    const { claims } = schedule(anInput({ pods: [aPod()], pools: [aPoolInput(pool, types)], policy }))
    assert.deepEqual(claims[0]?.instanceTypes, ['t-4', 't-8'])
  })
})

describe('existing nodes', () => {
  test('free room is used before anything is launched', () => {
    const { claims, placements } = schedule(
      anInput({ pods: times(4, () => aPod({ cpu: '1' })), nodes: [aNode('n1')] }),
    )
    assert.equal(claims.length, 0)
    assert.deepEqual(new Set(placements.map((placement) => placement.node)), new Set(['n1']))
  })

  test('initialized nodes are filled first, then by name', () => {
    const nodes = [aNode('c', { initialized: false }), aNode('b'), aNode('a', { initialized: false })]
    const { placements } = schedule(anInput({ pods: times(9, () => aPod({ cpu: '1' })), nodes }))
    const count = (name: string) => placements.filter((placement) => placement.node === name).length
    assert.deepEqual([count('b'), count('a'), count('c')], [4, 4, 1])
  })

  test('room that daemon pods will still take is left free', () => {
    const daemons = [aDaemonOf({ containers: [{ name: 'a', resources: { requests: { cpu: '2' } } }] })]
    const { claims } = schedule(anInput({ pods: [aPod({ cpu: '3' })], nodes: [aNode('n1')], daemons }))
    assert.equal(claims.length, 1)
  })

  test('a taint that counts keeps pods away', () => {
    const nodes = [aNode('n1', { taints: [{ key: 'k', effect: 'NoExecute' }] })]
    assert.equal(schedule(anInput({ pods: [aPod()], nodes })).claims.length, 1)
  })

  test('two pods with the same host port need two nodes', () => {
    const spec = { containers: [{ name: 'web', ports: [{ containerPort: 80, hostPort: 80 }] }] }
    const { claims, placements } = schedule(
      anInput({ pods: [aPod({}, spec), aPod({}, spec)], nodes: [aNode('n1')] }),
    )
    assert.equal(placements.length, 1)
    assert.equal(claims.length, 1)
  })
})

describe('NodePools', () => {
  test('the pool of higher weight is used while it can', () => {
    const pools = [aPoolInput(aPool('cheap', { weight: 1 })), aPoolInput(aPool('first', { weight: 50 }))]
    assert.equal(schedule(anInput({ pods: [aPod()], pools })).claims[0]?.nodePool, 'first')
  })

  test('a limit keeps larger types out and the next pool takes over', () => {
    const pools = [aPoolInput(aPool('small', { weight: 9, limits: { cpu: '4' } })), aPoolInput(aPool('rest'))]
    const { claims } = schedule(anInput({ pods: [aPod({ cpu: '3' }), aPod({ cpu: '15' })], pools }))
    assert.deepEqual(
      claims.map((claim) => [claim.nodePool, claim.instanceTypes[0]]),
      [
        ['rest', 'type-16'],
        ['small', 'type-4'],
      ],
    )
  })

  test('a node limit holds within one batch', () => {
    const pool = aPoolInput(aPool('default', { limits: { nodes: '2' } }), [aType('one', 1, 4)])
    const { claims, failures } = schedule(
      anInput({ pods: times(5, () => aPod({ cpu: '1' })), pools: [pool] }),
    )
    assert.equal(claims.length, 2)
    assert.equal(failures.length, 3)
    assert.equal(
      failures[0] && renderPodReason(failures[0].reason),
      'NodePool default: its limit on the number of nodes is used up; raise spec.limits.nodes',
    )
  })

  test('without a pool every pod is told so', () => {
    const { failures } = schedule(anInput({ pods: [aPod()], pools: [] }))
    assert.match(
      renderPodReason(failures[0]?.reason ?? { kind: 'noTypesInPools' }),
      /^no NodePool is ready to launch nodes/,
    )
  })

  test('minValues keep a choice of types', () => {
    const requirement = { key: labels.instanceType, operator: 'Exists' as const, minValues: 2 }
    const pool = aPool('default', {}, { requirements: [requirement] })
    const { claims } = schedule(
      anInput({ pods: times(20, () => aPod({ cpu: '1' })), pools: [aPoolInput(pool)] }),
    )
    assert.ok(claims.every((claim) => claim.instanceTypes.length >= 2))
    assert.ok(claims.length >= 3)
  })
})
