import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { featuresAnnotation, featuresOfKubelet, type Node, type NodeClass } from '@tenon/api'
import { expectedFeatures } from './declared-features.ts'
import { aClaim, aNode, aPool } from './nodes.test-support.ts'
import { joined, type StateNode } from './state-node.ts'

const aClass = (features?: string): NodeClass => ({
  apiVersion: 'karpenter.kwok.sh/v1alpha1',
  kind: 'KWOKNodeClass',
  metadata: {
    name: 'default',
    ...(features !== undefined && { annotations: { [featuresAnnotation]: features } }),
  },
})

/** An initialized instance of pool `default`. */
function anInstance(
  name: string,
  createdAt: string,
  version: string,
  declaredFeatures?: string[],
): StateNode {
  const node = aNode(name, { pool: 'default', metadata: { name, creationTimestamp: createdAt } })
  const reporting: Node = {
    ...node,
    status: {
      ...node.status,
      nodeInfo: { kubeletVersion: version },
      ...(declaredFeatures !== undefined && { declaredFeatures }),
    },
  }
  return joined(reporting, aClaim(name), `p://${name}`, false)
}

describe('features of new nodes', () => {
  test('VER-24 without nodes they follow the kubelet version of the provider', () => {
    const expected = (version?: string) => expectedFeatures(aPool('default'), aClass(), version, [])
    assert.deepEqual(expected('v1.36.3'), featuresOfKubelet(36))
    assert.deepEqual(expected('1.35.0'), [])
    assert.equal(expected(), undefined)
    assert.equal(expected('latest'), undefined)
  })

  test('VER-25 the node class may declare what is not declared by default', () => {
    const nodeClass = aClass(' UserNamespacesHostNetworkSupport, ,Other')
    const named = ['Other', 'UserNamespacesHostNetworkSupport']
    assert.deepEqual(expectedFeatures(aPool('default'), nodeClass, undefined, []), named)
    assert.deepEqual(
      expectedFeatures(aPool('default'), nodeClass, 'v1.36.0', []),
      [...(featuresOfKubelet(36) ?? []), ...named].toSorted(),
    )
  })

  test('they follow the newest initialized node of the same minor', () => {
    const nodes = [
      anInstance('old', '2026-01-01T00:00:00Z', 'v1.36.1', ['Old']),
      anInstance('new', '2026-01-02T00:00:00Z', 'v1.36.2', ['New']),
      anInstance('next', '2026-01-03T00:00:00Z', 'v1.37.0', ['Next']),
      anInstance('silent', '2026-01-04T00:00:00Z', 'v1.35.0'),
    ]
    const expected = (version?: string) => expectedFeatures(aPool('default'), aClass('Named'), version, nodes)
    assert.deepEqual([expected('v1.36.9'), expected('v1.37.1'), expected()], [['New'], ['Next'], []])
    assert.deepEqual(expected('v1.38.0'), [...(featuresOfKubelet(38) ?? []), 'Named'].toSorted())
    assert.equal(expectedFeatures(aPool('other'), undefined, undefined, nodes), undefined)
  })
})
