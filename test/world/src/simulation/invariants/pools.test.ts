import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Node, NodeClaim, NodePool, Pod } from '@tenon/api'
import { rfc3339, VirtualClock } from '@tenon/runtime'
import { consolidateAfterKept, limitsKept } from './pools.ts'
import type { World } from '../../world.ts'
import type { ApiWrite, Scene } from './scene.ts'

const minute = 60_000
const labels = { 'karpenter.sh/nodepool': 'general' }
const pool = { metadata: { name: 'general' }, spec: { disruption: { consolidateAfter: '5m' } } } as NodePool
const node = { metadata: { name: 'a' }, spec: { providerID: 'test://a' } } as Node
const pod = { metadata: { name: 'web', uid: '1' }, spec: { nodeName: 'a' } } as Pod

/**
 * What is said when node `a` goes as empty two minutes after its last pod was told to end.
 * @param leadsMs how long the process that deletes it has led by then.
 * @param quietMs how long ago a pod event was stored.
 */
async function saidOf(leadsMs: number, quietMs: number): Promise<readonly string[]> {
  const clock = new VirtualClock()
  const claim = (): NodeClaim => ({
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodeClaim',
    metadata: { name: 'a', labels },
    spec: { nodeClassRef: { group: 'test', kind: 'TestClass', name: 'default' }, requirements: [] },
    status: {
      providerID: 'test://a',
      lastPodEventTime: rfc3339(clock.now() - quietMs),
      conditions: [
        {
          type: 'DisruptionReason',
          status: 'True',
          reason: 'Empty',
          message: '',
          lastTransitionTime: rfc3339(clock.now()),
        },
      ],
    },
  })
  const said: string[] = []
  const scene: Partial<Scene> = {
    clock,
    blindMs: 5000,
    nodeMonitorGraceMs: 40_000,
    viewsMayBeWrong: () => false,
    violate: (invariant) => said.push(invariant),
    claimByName: claim,
    nodeByProviderId: () => node,
  }
  const rule = consolidateAfterKept(scene as Scene)
  rule.pool?.(pool, undefined)
  rule.pod?.(pod, undefined)
  await clock.advance(60 * minute)
  const leaving = { ...pod, metadata: { ...pod.metadata, deletionTimestamp: '2026-01-01T01:00:00Z' } }
  rule.pod?.(leaving, pod)
  await clock.advance(2 * minute)
  const process = { leadsSinceMs: clock.monotonic() - leadsMs } as ApiWrite['process']
  const write = { process, method: 'DELETE', plural: 'nodeclaims', name: 'a' } as ApiWrite
  rule.apiWrite?.(write)
  return said
}

describe('the rest of an empty node', () => {
  test('begins when its last pod leaves while somebody leads, whatever is written down', async () => {
    assert.deepEqual(await saidOf(30 * minute, 20 * minute), ['consolidateAfterKept'])
  })

  test('begins at what is written down when nobody has led since the last pod left', async () => {
    assert.deepEqual(await saidOf(minute, 20 * minute), [])
    assert.deepEqual(await saidOf(minute, 3 * minute), ['consolidateAfterKept'])
  })
})

describe('limits of a NodePool', () => {
  const limited: NodePool = { ...pool, spec: { ...pool.spec, limits: { cpu: '10' } } }
  const condition = {
    type: 'DisruptionReason',
    status: 'True',
    reason: 'Underutilized',
    message: '',
  } as const
  const launched = (name: string, createdMs: number, isDisrupted: boolean): NodeClaim => ({
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodeClaim',
    metadata: { name, labels, creationTimestamp: rfc3339(createdMs) },
    spec: { nodeClassRef: { group: 'test', kind: 'TestClass', name: 'default' }, requirements: [] },
    status: {
      capacity: { cpu: '8' },
      conditions: isDisrupted ? [{ ...condition, lastTransitionTime: rfc3339(createdMs) }] : [],
    },
  })

  /**
   * Launches a second claim of eight cores in the room of one that a command is about.
   * @param takenBackMs when that command is taken back; the second claim is created after a minute.
   */
  async function violations(takenBackMs: number): Promise<readonly string[]> {
    const clock = new VirtualClock()
    const said: string[] = []
    const claims = [launched('old', clock.now(), true)]
    const scene: Partial<Scene> = {
      clock,
      blindMs: 5000,
      nodeMonitorGraceMs: 40_000,
      violate: (invariant) => said.push(invariant),
      world: Object.create({ claims: () => claims }) as World,
    }
    const rule = limitsKept(scene as Scene)
    rule.pool?.(limited, undefined)
    await clock.advance(takenBackMs)
    const old = claims[0]
    claims[0] = launched('old', 0, false)
    rule.claim?.(claims[0], old)
    await clock.advance(minute + 3000 - takenBackMs)
    const created = launched('new', clock.now() - 3000, false)
    claims.push(created)
    rule.claim?.(created, undefined)
    return said
  }

  test('do not count a node whose command was taken back after the claim was created', async () => {
    assert.deepEqual(await violations(minute + 2000), [])
  })

  test('count a node whose command was taken back long before', async () => {
    assert.deepEqual(await violations(10_000), ['limitsKept'])
  })
})
