import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Node, NodeClaim, Pod } from '@tenon/api'
import { VirtualClock } from '@tenon/runtime'
import { initializedInTime, nothingBoughtInVain } from './evidence.ts'
import type { Invariant, Rule, Scene } from './scene.ts'

const minute = 60_000

const condition = (type: string) => ({
  type,
  status: 'True',
  reason: type,
  message: '',
  lastTransitionTime: '',
})

function aClaim(name: string, types: readonly string[]): NodeClaim {
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodeClaim',
    metadata: { name },
    spec: { nodeClassRef: { group: 'example.com', kind: 'Class', name: 'a' }, requirements: [] },
    status: { providerID: `test://${name}`, conditions: types.map(condition) },
  } as NodeClaim
}

function aNode(name: string): Node {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name },
    spec: { providerID: `test://${name}` },
    status: { conditions: [condition('Ready')] },
  } as Node
}

function aPod(nodeName?: string): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', namespace: 'default', uid: '1' },
    spec: { containers: [], ...(nodeName !== undefined && { nodeName }) },
  }
}

/** A rule and a scene of nodes that are all open, named as their claims. */
function watch(invariant: Invariant) {
  const clock = new VirtualClock()
  const said: string[] = []
  let web: Pod | undefined = aPod()
  const scene: Partial<Scene> = {
    clock,
    violate: (_, text) => said.push(text),
    claimByName: (name) => aClaim(name, ['Registered', 'Initialized']),
    nodeByProviderId: (id) => aNode(id.replace('test://', '')),
    podByKey: () => web,
  }
  const rule: Rule = invariant(scene as Scene)
  const pass = async (minutes: number): Promise<void> => {
    for (let passed = 0; passed < minutes; passed++) {
      await clock.advance(minute)
      rule.minute?.()
    }
  }
  const buy = async (claim: string): Promise<void> => {
    rule.bought?.(claim, ['default/web'])
    rule.claim?.(aClaim(claim, ['Initialized']), undefined)
    await pass(5)
  }
  const bind = (nodeName: string): void => {
    web = aPod(nodeName)
    rule.pod?.(web, undefined)
  }
  return { said, rule, pass, buy, bind }
}

describe('nodes that are bought for a pod', () => {
  test('may be in vain once an hour', async () => {
    const { said, buy, pass } = watch(nothingBoughtInVain)
    await buy('a')
    await pass(60)
    await buy('b')
    assert.deepEqual(said, [])
    await buy('c')
    assert.deepEqual(said, [
      'NodeClaims b and c were bought for pod default/web within an hour; no pod came to either, and it waits',
    ])
  })

  test('are not in vain when a pod comes to them', async () => {
    const { said, rule, buy, bind, pass } = watch(nothingBoughtInVain)
    await buy('a')
    rule.bought?.('b', ['default/web'])
    rule.claim?.(aClaim('b', ['Initialized']), undefined)
    bind('b')
    await pass(10)
    assert.deepEqual(said, [])
  })
})

test('a node that has registered and takes no pods has to go within 40 min', async () => {
  const { said, rule, pass } = watch(initializedInTime)
  rule.claim?.(aClaim('late', ['Registered']), undefined)
  rule.claim?.(aClaim('fine', ['Registered']), undefined)
  await pass(20)
  rule.claim?.(aClaim('fine', ['Registered', 'Initialized']), aClaim('fine', ['Registered']))
  await pass(20)
  assert.deepEqual(said, [])
  await pass(1)
  assert.deepEqual(said, ['the node of NodeClaim late has taken no pods for 40 min and stays'])
})
