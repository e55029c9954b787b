import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Node } from '@tenon/api'
import { NodeGroupError } from '@tenon/provider'
import { silentLogger } from '@tenon/runtime'
import type { UnregisteredRemoval } from './cluster-state.ts'
import { aNode, startMs } from './registry.test-support.ts'
import { InstanceRemover } from './removal.ts'

function stage(options: { readonly nodes?: readonly Node[]; readonly failing?: readonly string[] } = {}) {
  const told: string[] = []
  const deletions: string[] = []
  const remover = new InstanceRemover({
    groups: {
      deleteInstances: (groupId, ids) => {
        deletions.push(`${groupId}: ${ids.join()}`)
        return options.failing?.includes(groupId)
          ? Promise.reject(new NodeGroupError('the pool cannot be read'))
          : Promise.resolve()
      },
    },
    listNodes: () => Promise.resolve(options.nodes ?? []),
    members: { invalidate: (groupId) => void told.push(`invalidated ${groupId}`) },
    reporting: {
      events: {
        status: (type, reason, message) => void told.push(`${type} ${reason}: ${message}`),
        object: () => undefined,
      },
      metrics: {
        set: () => undefined,
        clear: () => undefined,
        observe: () => undefined,
        add: (name, by) => void told.push(`${name} ${by}`),
      },
      logger: silentLogger,
    },
    belowMinimum: false,
  })
  return { remover, told, deletions, signal: new AbortController().signal }
}

function removal(groupId: string, ...names: string[]): UnregisteredRemoval {
  const instances = names.map((name) => ({
    groupId,
    providerId: `exoscale://${name}`,
    sinceMs: startMs,
    hadNode: false,
  }))
  return { kind: 'remove', groupId, instances }
}

test('CAS-32 old unregistered instances are removed in one call, told and counted', async () => {
  const { remover, told, deletions, signal } = stage()
  remover.removeUnregistered([removal('a', 'x', 'y')], signal)
  assert.equal(remover.inProgress('a'), 2)
  remover.removeUnregistered([removal('a', 'x', 'y')], signal)
  await remover.idle()
  assert.equal(remover.inProgress('a'), 0)
  assert.deepEqual(deletions, ['a: exoscale://x,exoscale://y'])
  assert.deepEqual(told, [
    'invalidated a',
    'Normal DeleteUnregistered: Removed unregistered node exoscale://x',
    'Normal DeleteUnregistered: Removed unregistered node exoscale://y',
    'old_unregistered_nodes_removed_count 2',
  ])
})

test('CAS-32 a group at its minimum keeps them', async () => {
  const { remover, deletions, signal } = stage()
  remover.removeUnregistered([{ kind: 'atMinimum', groupId: 'a', count: 1 }], signal)
  await remover.idle()
  assert.deepEqual(deletions, [])
})

test('an instance that the API server has a node of by now is kept', async () => {
  const { remover, deletions, signal } = stage({ nodes: [aNode('x')] })
  remover.removeUnregistered([removal('a', 'x', 'y'), removal('b', 'x')], signal)
  await remover.idle()
  assert.deepEqual(deletions, ['a: exoscale://y'])
})

test('a group that fails is told and does not keep others from it', async () => {
  const { remover, told, deletions, signal } = stage({ failing: ['a'] })
  remover.removeUnregistered([removal('a', 'x'), removal('b', 'y')], signal)
  await remover.idle()
  assert.deepEqual(deletions, ['a: exoscale://x', 'b: exoscale://y'])
  assert.deepEqual(
    told.filter((each) => each.startsWith('Warning')),
    ['Warning DeleteUnregisteredFailed: Failed to remove node exoscale://x: the pool cannot be read'],
  )
})
