import assert from 'node:assert/strict'
import { test } from 'node:test'
import { array, assert as check, asyncProperty, constantFrom, integer, record } from 'fast-check'
import { toBeDeletedTaint } from '../../names.ts'
import { during, FakeCluster } from '../fake-cluster.test-support.ts'
import { hardTaintOf, taintTimeMs } from '../nodes/taints.ts'
import { aGroup, aNode, aPod, minute, second } from '../scale-down.test-support.ts'

const least = { g: 1, h: 2 }

/** Eight nodes in two groups, every second one with a pod; the last of the first group was cordoned by a user. */
function aCluster(): FakeCluster {
  const cluster = new FakeCluster().withGroups(aGroup('g', 4, least.g), aGroup('h', 4, least.h))
  for (let index = 0; index < 8; index++) {
    const node = `n${index}`
    cluster.groupOf.set(node, index < 4 ? 'g' : 'h')
    cluster.add(aNode(node, { cpu: '2', isCordoned: index === 3 }))
    if (index % 2 === 0) cluster.add(aPod(`p${index}`, { node, cpu: '200m' }))
  }
  return cluster
}

/** The scheduler can bind a pod to a node as long as it may not have seen the taint. */
function canBind(cluster: FakeCluster, nodeName: string): boolean {
  const node = cluster.nodes.get(nodeName)
  if (node === undefined) return false
  const taint = hardTaintOf(node)
  return taint === undefined || cluster.clock.now() - (taintTimeMs(taint) ?? 0) < 4 * second
}

function marksOf(cluster: FakeCluster): { readonly tainted: string[]; readonly cordoned: string[] } {
  const names = [...cluster.nodes.keys()]
  return {
    tainted: names.filter((name) => cluster.taintKeys(name).includes(toBeDeletedTaint)),
    cordoned: names.filter((name) => cluster.nodes.get(name)?.spec?.unschedulable === true),
  }
}

const fault = record({
  kind: constantFrom(
    'unwritable',
    'writable',
    'unevictable',
    'evictable',
    'cloud',
    'cloudLate',
    'cloudFine',
    'bind',
  ),
  node: integer({ min: 0, max: 7 }),
  afterMs: integer({ min: 500, max: 40_000 }),
})

test('whatever fails, no group gets below its minimum and no pod is lost, and in the end no node is left marked', async () => {
  await check(
    asyncProperty(array(fault, { minLength: 1, maxLength: 25 }), async (faults) => {
      const cluster = aCluster()
      cluster.cloudMs = 3 * second
      let bound = 0
      cluster.onRemoved = (name) => {
        const left = [...cluster.pods.values()].filter(({ spec }) => spec.nodeName === name)
        assert.deepEqual(
          left.map(({ metadata }) => metadata.name),
          [],
          `${name} was removed with pods`,
        )
        cluster.clock.after(30 * second, () => cluster.nodes.delete(name))
      }
      const scaleDown = cluster.scaleDown({
        unneededTimeMs: 20 * second,
        delayAfterFailureMs: 20 * second,
        unremovableNodeRecheckTimeoutMs: 20 * second,
        maxDrainParallelism: 3,
      })
      const loop = async () => {
        await during(cluster, cluster.loop(scaleDown))
        const groups = [...cluster.groups.values()]
        assert.ok(groups.every(({ targetSize, minSize }) => targetSize >= minSize))
      }
      for (const { kind, node, afterMs } of faults) {
        const name = `n${node}`
        if (kind === 'unwritable') cluster.unwritable.add(name)
        else if (kind === 'writable') cluster.unwritable.delete(name)
        else if (kind === 'unevictable') cluster.unevictable.add(`p${node}`)
        else if (kind === 'evictable') cluster.unevictable.clear()
        else if (kind === 'bind' && canBind(cluster, name))
          cluster.add(aPod(`late${bound++}`, { node: name, cpu: '50m' }))
        else if (kind.startsWith('cloud')) {
          cluster.cloudFailure = kind === 'cloudFine' ? undefined : 'the pool did not answer'
          cluster.failsAfterEffect = kind === 'cloudLate'
        }
        await loop()
        await cluster.clock.advance(afterMs)
      }
      cluster.unwritable.clear()
      cluster.unevictable.clear()
      cluster.cloudFailure = undefined
      // Every deletion ends. Then all nodes are needed: none may be left marked, nor cordoned by us.
      await cluster.clock.advance(30 * minute)
      for (const name of cluster.nodes.keys()) cluster.add(aPod(`own-${name}`, { node: name, owner: 'none' }))
      await loop()
      await loop()
      assert.deepEqual(marksOf(cluster), { tainted: [], cordoned: cluster.nodes.has('n3') ? ['n3'] : [] })
      for (const name of cluster.pods.keys()) if (name.startsWith('own-')) cluster.pods.delete(name)
      for (let index = 0; index < 60; index++) {
        await loop()
        await cluster.clock.advance(30 * second)
      }
      for (const [id, { targetSize }] of cluster.groups) {
        const members = [...cluster.nodes.keys()].filter((name) => cluster.groupOf.get(name) === id)
        assert.equal(members.length, targetSize)
        assert.equal(targetSize, id === 'g' ? least.g : least.h)
      }
    }),
    { numRuns: 60 },
  )
})
