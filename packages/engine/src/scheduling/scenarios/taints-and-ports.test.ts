/** Taints that keep pods away, and host ports that two pods cannot share (scheduling.md 7.1, 7.3). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type ContainerPort, labels, type Pod, type Taint, type Toleration } from '@tenon/api'
import type { SchedulingResult } from '../../input/result.ts'
import {
  aDaemon,
  aNode,
  anExpression,
  anInput,
  aPod,
  aPool,
  aPoolInput,
  failureTexts,
  placedOn,
  podNames,
  requiring,
} from '../../testing/builders.test-support.ts'
import { schedule } from '../schedule.ts'

/** A pod whose one container claims `port` of the host. */
function aPodOnPort(port: number, rest: Omit<ContainerPort, 'containerPort' | 'hostPort'> = {}): Pod {
  const ports = [{ containerPort: 80, hostPort: port, ...rest }]
  return aPod({}, { containers: [{ name: 'app', ports }] })
}

/** Names of the pods of each claim, regardless of order. */
function groups({ claims }: SchedulingResult): readonly (readonly string[])[] {
  return claims.map((claim) => podNames(claim.pods)).toSorted(([a = ''], [b = '']) => (a < b ? -1 : 1))
}

describe('taints', () => {
  test('SCH-44 pods need not tolerate the startup taints of a pool', () => {
    const startupTaints: readonly Taint[] = [
      { key: 'example.com/agent', value: 'missing', effect: 'NoSchedule' },
      { key: 'example.com/net', effect: 'NoExecute' },
    ]
    const pod = aPod()
    const result = schedule(
      anInput({ pods: [pod], pools: [aPoolInput(aPool('default', {}, { startupTaints }))] }),
    )
    assert.deepEqual(result.failures, [])
    assert.deepEqual(groups(result), [[pod.metadata.name]])
  })

  test('SCH-47 a startup taint that is back on an initialized node means a new node', () => {
    const taint: Taint = { key: 'example.com/agent', effect: 'NoSchedule' }
    const tags = { [labels.nodePool]: 'default', [labels.zone]: 'zone-1' }
    const pools = [aPoolInput(aPool('default', {}, { startupTaints: [taint] }))]
    const pod = aPod()
    const clean = schedule(anInput({ pods: [pod], nodes: [aNode('n1', { labels: tags })], pools }))
    assert.deepEqual(placedOn(clean), { [pod.metadata.name]: 'n1' })
    const nodes = [aNode('n1', { labels: tags, taints: [taint] })]
    const tainted = schedule(anInput({ pods: [pod], nodes, pools }))
    assert.deepEqual(tainted.placements, [])
    assert.deepEqual(groups(tainted), [[pod.metadata.name]])
  })

  test('SCH-48 an unmanaged node that is not ready is not used', () => {
    const pod = aPod()
    for (const effect of ['NoSchedule', 'NoExecute'] as const) {
      const nodes = [aNode('by-hand', { taints: [{ key: 'node.kubernetes.io/not-ready', effect }] })]
      const result = schedule(anInput({ pods: [pod], nodes }))
      assert.deepEqual(result.placements, [])
      assert.deepEqual(groups(result), [[pod.metadata.name]])
    }
  })

  test('a node is used while it starts, and no more when a taint counts after that', () => {
    const pod = aPod()
    const taints: readonly Taint[] = [{ key: 'node.kubernetes.io/not-ready', effect: 'NoExecute' }]
    const starting = schedule(anInput({ pods: [pod], nodes: [aNode('n1', { initialized: false })] }))
    assert.deepEqual(placedOn(starting), { [pod.metadata.name]: 'n1' })
    const broken = schedule(anInput({ pods: [pod], nodes: [aNode('n1', { taints })] }))
    assert.deepEqual([broken.placements.length, broken.claims.length], [0, 1])
  })

  test('a hard taint of a pool refuses a pod, and the refusal names it', () => {
    for (const effect of ['NoSchedule', 'NoExecute'] as const) {
      const taints = [{ key: 'example.com/gpu', value: 'a100', effect }]
      const pod = aPod()
      const result = schedule(anInput({ pods: [pod], pools: [aPoolInput(aPool('default', {}, { taints }))] }))
      assert.deepEqual(result.claims, [])
      assert.match(
        failureTexts(result)[pod.metadata.name] ?? '',
        new RegExp(`example\\.com/gpu=a100:${effect}`),
      )
    }
  })
})

describe('tolerations that compare numbers', () => {
  const key = 'example.com/level'

  /** Whether a pod with the toleration gets a claim of a pool, and a node, with this taint value. */
  function isTolerated(operator: 'Gt' | 'Lt', than: string, value: string): boolean {
    const taints: readonly Taint[] = [{ key, value, effect: 'NoSchedule' }]
    const tolerations: readonly Toleration[] = [{ key, operator, value: than }]
    const pools = [aPoolInput(aPool('default', {}, { taints }))]
    const onClaim = schedule(anInput({ pods: [aPod({}, { tolerations })], pools }))
    const onNode = schedule(anInput({ pods: [aPod({}, { tolerations })], nodes: [aNode('n1', { taints })] }))
    assert.equal(onClaim.claims.length === 1, onNode.placements.length === 1)
    return onClaim.claims.length === 1
  }

  test('SCH-49 Gt 5 tolerates the taint value 10, but not 010', () => {
    assert.ok(isTolerated('Gt', '5', '10'))
    assert.ok(!isTolerated('Gt', '5', '010'))
  })

  test('they are strict, and only plain decimal integers count', () => {
    assert.ok(!isTolerated('Gt', '5', '5'))
    assert.ok(!isTolerated('Gt', '5', '4'))
    assert.ok(isTolerated('Lt', '5', '-7'))
    assert.ok(!isTolerated('Lt', '5', '10'))
    assert.ok(isTolerated('Gt', '9007199254740992', '9007199254740993'))
    for (const odd of ['+7', '-0', '7.5', '', 'x', '1e3', '9223372036854775808'])
      assert.ok(!isTolerated('Gt', '-5', odd), odd)
    assert.ok(!isTolerated('Gt', '05', '10'))
  })
})

describe('host ports', () => {
  test('SCH-50 two pods with the same host port need two nodes', () => {
    const pods = [aPodOnPort(8080), aPodOnPort(8080)]
    const result = schedule(anInput({ pods }))
    assert.deepEqual(result.failures, [])
    assert.deepEqual(
      groups(result),
      pods.map((pod) => [pod.metadata.name]),
    )
  })

  test('a port in use on a node sends the pod elsewhere', () => {
    const usedHostPorts = [{ ip: '0.0.0.0', port: 8080, protocol: 'TCP' }]
    const [first, second] = [aPodOnPort(8080), aPodOnPort(8080)]
    const nodes = [aNode('a', { usedHostPorts }), aNode('b')]
    const result = schedule(anInput({ pods: [first, second], nodes }))
    assert.deepEqual(placedOn(result), { [first.metadata.name]: 'b' })
    assert.deepEqual(groups(result), [[second.metadata.name]])
  })

  const onTypes = (...types: readonly string[]) =>
    requiring([anExpression(labels.instanceType, 'In', ...types)])

  function withDaemonOn(pod: Pod, ...types: readonly string[]): SchedulingResult {
    const { containers } = aPodOnPort(8080).spec
    const spec = types.length === 0 ? { containers } : { containers, ...onTypes(...types) }
    return schedule(anInput({ pods: [pod], daemons: [aDaemon({}, spec)] }))
  }

  test('SCH-51 a daemon with the host port on every type refuses the pod, on some types only those', () => {
    const pod = aPodOnPort(8080)
    const everywhere = withDaemonOn(pod)
    assert.deepEqual(everywhere.claims, [])
    assert.match(failureTexts(everywhere)[pod.metadata.name] ?? '', /host port/)
    const elsewhere = withDaemonOn(pod, 'type-2', 'type-16')
    assert.deepEqual(elsewhere.failures, [])
    assert.deepEqual(
      elsewhere.claims.map((claim) => claim.instanceTypes),
      [['type-4', 'type-8']],
    )
  })

  test('SCH-52 different addresses do not clash, the unspecified address clashes with all', () => {
    const sharing = (...pods: readonly Pod[]): boolean => {
      const onClaims = schedule(anInput({ pods }))
      assert.deepEqual(onClaims.failures, [])
      const onNode = schedule(anInput({ pods, nodes: [aNode('n1')] }))
      assert.equal(onClaims.claims.length === 1, onNode.claims.length === 0)
      return onClaims.claims.length === 1
    }
    const at = (hostIP: string) => aPodOnPort(8080, { hostIP })
    assert.ok(sharing(at('10.0.0.1'), at('10.0.0.2')))
    assert.ok(!sharing(at('10.0.0.1'), at('10.0.0.1')))
    assert.ok(!sharing(at('10.0.0.1'), at('0.0.0.0')))
    assert.ok(!sharing(at('10.0.0.1'), at('::')))
    assert.ok(!sharing(at('10.0.0.1'), aPodOnPort(8080)))
    assert.ok(sharing(aPodOnPort(8080), aPodOnPort(8080, { protocol: 'UDP' })))
    assert.ok(sharing(aPodOnPort(8080), aPodOnPort(8081)))
  })

  test('RPT-5 two pods whose sidecars ask for the same host port need two nodes, new or existing', () => {
    const ports = [{ containerPort: 80, hostPort: 8080 }]
    const aPodWithSidecar = () =>
      aPod({}, { initContainers: [{ name: 'mesh', restartPolicy: 'Always', ports }] })
    const pods = [aPodWithSidecar(), aPodWithSidecar()]
    assert.equal(groups(schedule(anInput({ pods }))).length, 2)
    const mixed = schedule(anInput({ pods: [aPodWithSidecar(), aPodOnPort(8080)] }))
    assert.equal(groups(mixed).length, 2)
    const onNode = schedule(anInput({ pods, nodes: [aNode('n1')] }))
    assert.equal(Object.keys(placedOn(onNode)).length, 1)
    assert.equal(onNode.claims.length, 1)
  })

  test('RPT-6 containerPorts of a hostNetwork daemon are taken, on new nodes and on those it has yet to come to', () => {
    const containers = [{ name: 'exporter', ports: [{ containerPort: 9100 }] }]
    const daemons = [aDaemon({}, { containers, hostNetwork: true }, 'exporter')]
    const pod = aPodOnPort(9100)
    const result = schedule(anInput({ pods: [pod], daemons, nodes: [aNode('n1', { initialized: false })] }))
    assert.deepEqual([result.claims, placedOn(result)], [[], {}])
    assert.match(
      failureTexts(result)[pod.metadata.name] ?? '',
      /host port of the pod .*TCP 9100 by DaemonSet kube-system\/exporter/,
    )
    const onOwnNetwork = [aDaemon({}, { containers }, 'exporter')]
    assert.equal(schedule(anInput({ pods: [pod], daemons: onOwnNetwork })).claims.length, 1)
  })

  test('RPT-6 two hostNetwork pods with the same containerPort need two nodes', () => {
    const containers = [{ name: 'proxy', ports: [{ containerPort: 8443 }] }]
    const pods = [aPod({}, { containers, hostNetwork: true }), aPod({}, { containers, hostNetwork: true })]
    assert.equal(groups(schedule(anInput({ pods }))).length, 2)
    const inside = [aPod({}, { containers }), aPod({}, { containers })]
    assert.equal(groups(schedule(anInput({ pods: inside }))).length, 1)
  })

  test('host ports of init containers do not count', () => {
    const ports = [{ containerPort: 80, hostPort: 8080 }]
    const spec = { initContainers: [{ name: 'init', ports }] }
    assert.equal(schedule(anInput({ pods: [aPod({}, spec), aPod({}, spec)] })).claims.length, 1)
  })

  test('another port of the same daemon is no obstacle', () => {
    const pod = aPodOnPort(8081)
    const { containers } = aPodOnPort(8080).spec
    const { claims } = schedule(anInput({ pods: [pod], daemons: [aDaemon({}, { containers })] }))
    assert.deepEqual(
      claims.map((claim) => claim.instanceTypes),
      [['type-2', 'type-4', 'type-8', 'type-16']],
    )
  })
})
