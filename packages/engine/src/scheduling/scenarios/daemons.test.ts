/** Room that the pods of DaemonSets take on new and existing nodes (scheduling.md 7.2). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { labels, parseResources, type Pod, type Taint } from '@tenon/api'
import type { DaemonInput, NodeInput } from '../../input/input.ts'
import type { NewClaim } from '../../input/result.ts'
import {
  aDaemon,
  aNode,
  anExpression,
  anInput,
  aPod,
  aPool,
  aPoolInput,
  placedOn,
  preferring,
  requirementsOn,
  requiring,
  times,
} from '../../testing/builders.test-support.ts'
import { schedule } from '../schedule.ts'

const key = 'example.com/agents'

/** The one claim that `pods` get, next to `daemons`. */
function claimFor(pods: readonly Pod[], daemons: readonly DaemonInput[], nodePool = aPool()): NewClaim {
  const { claims, failures } = schedule(anInput({ pods, daemons, pools: [aPoolInput(nodePool)] }))
  assert.deepEqual(failures, [])
  const [claim] = claims
  assert.ok(claim !== undefined && claims.length === 1)
  return claim
}

/** Millicores that a claim for a pod of 1 core sets aside for the daemon; types are checked as well. */
function counted(daemon: DaemonInput, nodePool = aPool()): number {
  const claim = claimFor([aPod({ cpu: '1' })], [daemon], nodePool)
  const share = (claim.requests['cpu'] ?? 0) - 1000
  // The daemon asks for 2 cores, so that it takes the smallest type out of the choice.
  assert.equal(claim.instanceTypes.includes('type-2'), share === 0)
  return share
}

const twoCores = { cpu: '2' }

describe('daemon pods on new nodes', () => {
  test('SCH-63 a daemon of 2 cores moves a pod to a type with room for both', () => {
    const claim = claimFor([aPod({ cpu: '3' })], [aDaemon(twoCores)])
    assert.deepEqual(claim.instanceTypes, ['type-8', 'type-16'])
    assert.equal(claim.requests['cpu'], 5000)
  })

  test('SCH-64 a daemon that does not tolerate the pool or wants an unknown label is not counted', () => {
    const tainted = aPool('default', {}, { taints: [{ key, effect: 'NoSchedule' }] })
    const tolerations = [{ operator: 'Exists' as const }]
    const pods = [aPod({ cpu: '1' }, { tolerations })]
    assert.equal(claimFor(pods, [aDaemon(twoCores)], tainted).requests['cpu'], 1000)
    assert.equal(claimFor(pods, [aDaemon(twoCores, { tolerations })], tainted).requests['cpu'], 3000)
    assert.equal(counted(aDaemon(twoCores, { nodeSelector: { [key]: 'yes' } })), 0)
  })

  test('SCH-65 a startup taint of the pool does not keep daemons from counting', () => {
    const startupTaints: readonly Taint[] = [{ key, effect: 'NoSchedule' }]
    assert.equal(counted(aDaemon(twoCores), aPool('default', {}, { startupTaints })), 2000)
  })

  test('SCH-66 a daemon that excludes values of a label nobody sets is counted', () => {
    assert.equal(counted(aDaemon(twoCores, requiring([anExpression(key, 'NotIn', 'no')]))), 2000)
  })

  test('SCH-67 a daemon is counted when its second term matches', () => {
    const terms = [[anExpression(key, 'In', 'yes')], [anExpression(labels.os, 'In', 'linux')]]
    assert.equal(counted(aDaemon(twoCores, requiring(...terms))), 2000)
  })

  test('which term of a daemon matches is found for each type anew', () => {
    const onType = (name: string) => [anExpression(labels.instanceType, 'In', name)]
    const daemon = aDaemon(twoCores, requiring(onType('type-2'), onType('type-4')))
    const { instanceTypes } = claimFor([aPod({ cpu: '1' })], [daemon])
    assert.deepEqual(instanceTypes, ['type-4', 'type-8', 'type-16'])
    assert.deepEqual(claimFor([aPod({ cpu: '2500m' })], [daemon]).instanceTypes, ['type-8', 'type-16'])
  })

  test('SCH-68 daemons that select initialized nodes count, and the claim says nothing of it', () => {
    const daemon = aDaemon(twoCores, {
      nodeSelector: { [labels.initialized]: 'true', [labels.registered]: 'true' },
    })
    assert.equal(counted(daemon), 2000)
    const claim = claimFor([aPod({ cpu: '1' })], [daemon])
    for (const label of [labels.initialized, labels.registered]) {
      assert.deepEqual(requirementsOn(claim, label), [])
      assert.ok(!(label in claim.labels))
    }
    assert.equal(counted(aDaemon(twoCores, { nodeSelector: { [labels.initialized]: 'false' } })), 0)
  })

  test('SCH-72 a claim asks for its pods and, once, for its daemon', () => {
    const pods = times(2, () => aPod({ cpu: '1', memory: '1Gi' }))
    assert.deepEqual(
      claimFor(pods, [aDaemon({ cpu: '500m', memory: '256Mi' })]).requests,
      parseResources({ cpu: '2500m', memory: '2304Mi', pods: '3' }),
    )
  })

  test('a claim asks for what daemons take on each of its types, and no more', () => {
    const onTypes = (...names: readonly string[]) =>
      requiring([anExpression(labels.instanceType, 'In', ...names)])
    const everywhere = aDaemon({ cpu: '100m' })
    const onLarge = aDaemon({ cpu: '1', 'example.com/gpu': '0' }, onTypes('type-16'), 'large')
    assert.deepEqual(
      claimFor([aPod({ cpu: '1' })], [everywhere, onLarge]).requests,
      parseResources({ cpu: '1100m', pods: '2' }),
    )
    // On the types without the second daemon, no daemon runs at all: nothing is common to all types.
    assert.deepEqual(
      claimFor([aPod({ cpu: '1' })], [onLarge]).requests,
      parseResources({ cpu: '1', pods: '1' }),
    )
  })

  test('SCH-163 a daemon is counted on a pool with a PreferNoSchedule taint it does not tolerate', () => {
    const soft = aPool('default', {}, { taints: [{ key, effect: 'PreferNoSchedule' }] })
    assert.equal(counted(aDaemon(twoCores), soft), 2000)
  })

  test('SCH-164 a daemon is counted though its preferred node affinity matches nothing', () => {
    const demand = preferring([1, anExpression(labels.zone, 'In', 'mars')])
    assert.equal(counted(aDaemon(twoCores, demand)), 2000)
  })

  test('a daemon that no type has room for refuses every pod', () => {
    const { claims, failures } = schedule(
      anInput({ pods: [aPod({ cpu: '1' })], daemons: [aDaemon({ cpu: '16' })] }),
    )
    assert.deepEqual([claims.length, failures.length], [0, 1])
  })
})

describe('daemon pods on existing nodes', () => {
  /** Whether a pod of `cpu` goes to a node of 4 free cores. */
  function fitsOnNode(cpu: string, daemon: DaemonInput, node: Partial<NodeInput> = {}): boolean {
    const pod = aPod({ cpu })
    const result = schedule(anInput({ pods: [pod], nodes: [aNode('n1', node)], daemons: [daemon] }))
    assert.equal(result.claims.length === 0, pod.metadata.name in placedOn(result))
    return result.claims.length === 0
  }

  test('SCH-70 the share of a daemon that runs on the node already is not set aside again', () => {
    const daemon = aDaemon({ cpu: '1' })
    assert.ok(!fitsOnNode('3500m', daemon))
    assert.ok(fitsOnNode('3', daemon))
    assert.ok(fitsOnNode('4', daemon, { daemonRequests: parseResources({ cpu: '1', pods: '1' }) }))
  })

  test('of a daemon that runs with less than expected, the rest is set aside', () => {
    const daemonRequests = parseResources({ cpu: '400m', pods: '1' })
    assert.ok(!fitsOnNode('3500m', aDaemon({ cpu: '1' }), { daemonRequests }))
    assert.ok(fitsOnNode('3400m', aDaemon({ cpu: '1' }), { daemonRequests }))
  })

  test('SCH-71 a daemon larger than expected adds nothing to what is left', () => {
    const daemonRequests = parseResources({ cpu: '3', memory: '1Gi', pods: '1' })
    assert.ok(fitsOnNode('4', aDaemon({ cpu: '1' }), { daemonRequests }))
    assert.ok(!fitsOnNode('4001m', aDaemon({ cpu: '1' }), { daemonRequests }))
    assert.ok(
      !fitsOnNode('4001m', aDaemon({ cpu: '1' }, { nodeSelector: { [key]: 'no' } }), { daemonRequests }),
    )
  })

  test('a daemon counts on a node whose taints it tolerates and whose labels it wants', () => {
    const daemon = aDaemon(twoCores)
    const hard = { key, effect: 'NoSchedule' as const }
    const free = (own: DaemonInput, node: Partial<NodeInput>): boolean => {
      const pod = aPod({ cpu: '3' }, { tolerations: [{ operator: 'Exists' }] })
      const input = anInput({ pods: [pod], nodes: [aNode('n1', node)], daemons: [own] })
      return schedule(input).placements.length === 1
    }
    assert.ok(!free(daemon, {}))
    assert.ok(free(daemon, { taints: [hard] }))
    assert.ok(!free(daemon, { taints: [{ key, effect: 'PreferNoSchedule' }] }))
    // A real node must carry the label, also a well-known one.
    assert.ok(free(aDaemon(twoCores, { nodeSelector: { [labels.arch]: 'amd64' } }), {}))
    assert.ok(!free(aDaemon(twoCores, { nodeSelector: { [labels.zone]: 'zone-1' } }), {}))
    const terms = [[anExpression(key, 'Exists')], [anExpression(labels.os, 'In', 'linux')]]
    assert.ok(!free(aDaemon(twoCores, requiring(...terms)), {}))
  })
})
