import assert from 'node:assert/strict'
import { test } from 'node:test'
import { oneChunk, readText } from '@tenon/runtime'
import { aStage, batchPoolId, nodepoolId, sksRole } from './node-groups.test-support.ts'

const labels = { team: 'a' }
const taints = { dedicated: { value: 'b', effect: 'NoSchedule' } } as const
const specs = ['0:5:workers', '0:3:batch']
const anEmptyStage = (allowsEmptyGroups = true) =>
  aStage({
    specs,
    allowsEmptyGroups,
    seed: {
      instancePools: [],
      nodepools: [{ id: nodepoolId, name: 'workers', type: 'standard.medium', size: 0, labels, taints }],
    },
  })

test('a nodepool without nodes is found by its name in --nodes, and grows from zero', async () => {
  const stage = anEmptyStage()
  assert.deepEqual(await stage.groups.refresh(stage.signal), [])
  const sizes = stage.groups.list().map(({ name, minSize, maxSize, targetSize }) => ({
    name,
    minSize,
    maxSize,
    targetSize,
  }))
  assert.deepEqual(sizes, [{ name: 'workers', minSize: 0, maxSize: 5, targetSize: 0 }])
  const workers = stage.groups.list().find(({ name }) => name === 'workers')?.id ?? ''
  const { settled } = await stage.settle(stage.groups.increaseSize(workers, 2, stage.signal))
  await stage.settle(settled)
  assert.equal(stage.members(workers).length, 2)
})

test('what its first node will be is known from its type and its nodepool', async () => {
  const stage = anEmptyStage()
  await stage.groups.refresh(stage.signal)
  const workers = stage.groups.list().find(({ name }) => name === 'workers')?.id ?? ''
  const example = await stage.groups.exampleNode?.(workers, stage.signal)
  const node = example?.node
  assert.equal(node?.status?.capacity?.['cpu'], '2')
  assert.equal(node.metadata.labels?.['node.kubernetes.io/instance-type'], 'standard.medium')
  assert.equal(node.metadata.labels['team'], 'a')
  assert.deepEqual(node.spec?.taints, [{ key: 'dedicated', value: 'b', effect: 'NoSchedule' }])
  assert.equal(await stage.groups.exampleNode?.('another', stage.signal), undefined)
})

test('the last member goes when the minimum is 0, and another process finds the empty group again', async () => {
  const stage = aStage({ specs: ['0:5:workers'], allowsEmptyGroups: true, operations: sksRole })
  await stage.discover()
  const ids = stage.members(stage.workersId).map((id) => `exoscale://${id}`)
  const { workersId } = stage
  await stage.settle(stage.groups.deleteInstances(workersId, ids, stage.signal))
  assert.deepEqual(stage.members(workersId), [])
  const other = stage.restarted()
  await other.refresh(stage.signal)
  assert.deepEqual(
    other.list().map(({ id, targetSize }) => [id, targetSize]),
    [[workersId, 0]],
  )
})

test('an Instance Pool cannot be empty, and says so', async () => {
  const stage = aStage({ specs, allowsEmptyGroups: true })
  await stage.discover()
  const faults = await stage.groups.refresh(stage.signal)
  assert.deepEqual(faults, [
    { groupId: batchPoolId, reason: 'Instance Pool batch cannot be empty: give it a minimum of at least 1' },
  ])
})

test('a nodepool that has members is not taken for empty when an answer lacks their number', async () => {
  const stage = aStage({
    specs: ['0:5:workers'],
    allowsEmptyGroups: true,
    between: (transport) => ({
      send: async (request, signal) => {
        const response = await transport.send(request, signal)
        if (!cuts || !request.path.includes('/instance-pool/')) return response
        const { size: _size, instances: _instances, ...rest } = JSON.parse(await readText(response.body))
        return {
          status: 200,
          headers: { 'content-type': 'application/json' },
          body: oneChunk(JSON.stringify(rest)),
        }
      },
    }),
  })
  let cuts = false
  await stage.discover()
  cuts = true
  const { workersId } = stage
  await assert.rejects(stage.settle(stage.groups.refresh(stage.signal)), /the answer has no size/)
  await assert.rejects(
    stage.settle(stage.groups.increaseSize(workersId, 1, stage.signal).then(({ settled }) => settled)),
    /the answer has no size/,
  )
  assert.equal(stage.members(workersId).length, 2)
})

test('without the flag minimum 0 is refused, and nothing is looked for', async () => {
  const stage = anEmptyStage(false)
  await stage.groups.refresh(stage.signal)
  assert.deepEqual(stage.groups.list(), [])
  assert.match(stage.log.join(), /the minimum size is 0; it must be at least 1/)
})
