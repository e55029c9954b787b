import assert from 'node:assert/strict'
import { test } from 'node:test'
import { aStage, batchPoolId, nodepoolId, sksRole } from './node-groups.test-support.ts'

const labels = { team: 'a' }
const taints = { dedicated: { value: 'b', effect: 'NoSchedule' } } as const
const specs = ['0:5:workers', `0:3:${batchPoolId}`]
const anEmptyStage = (allowsEmptyGroups = true) =>
  aStage({
    specs,
    allowsEmptyGroups,
    seed: {
      instancePools: [{ id: batchPoolId, name: 'batch', type: 'standard.small', size: 0 }],
      nodepools: [{ id: nodepoolId, name: 'workers', type: 'standard.medium', size: 0, labels, taints }],
    },
  })

test('a group without nodes is found by the name or the id in --nodes, and grows from zero', async () => {
  const stage = anEmptyStage()
  assert.deepEqual(await stage.groups.refresh(stage.signal), [])
  const sizes = stage.groups.list().map(({ name, minSize, maxSize, targetSize }) => ({
    name,
    minSize,
    maxSize,
    targetSize,
  }))
  assert.deepEqual(sizes, [
    { name: 'workers', minSize: 0, maxSize: 5, targetSize: 0 },
    { name: 'batch', minSize: 0, maxSize: 3, targetSize: 0 },
  ])
  const workers = stage.groups.list().find(({ name }) => name === 'workers')?.id ?? ''
  const { settled } = await stage.settle(stage.groups.increaseSize(workers, 2, stage.signal))
  await stage.settle(settled)
  assert.equal(stage.members(workers).length, 2)
})

test('what its first node will be is known from its type and its nodepool', async () => {
  const stage = anEmptyStage()
  await stage.groups.refresh(stage.signal)
  const workers = stage.groups.list().find(({ name }) => name === 'workers')?.id ?? ''
  const node = await stage.groups.exampleNode?.(workers, stage.signal)
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

test('without the flag minimum 0 is refused, and nothing is looked for', async () => {
  const stage = anEmptyStage(false)
  await stage.groups.refresh(stage.signal)
  assert.deepEqual(stage.groups.list(), [])
  assert.match(stage.log.join(), /the minimum size is 0; it must be at least 1/)
})
