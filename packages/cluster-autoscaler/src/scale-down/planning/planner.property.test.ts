import assert from 'node:assert/strict'
import { test } from 'node:test'
import { array, assert as check, integer, property, record } from 'fast-check'
import { aNode, aPod, onePlan, unneededNames } from '../scale-down.test-support.ts'

/** Whether all pods (CPU in thousandths) fit into the rooms, found by trying every way. */
function allFit(pods: readonly number[], rooms: readonly number[]): boolean {
  const [first, ...rest] = pods
  if (first === undefined) return true
  return rooms.some((room, index) => room >= first && allFit(rest, rooms.with(index, room - first)))
}

test('pods of all removable nodes have a place on those that stay', () => {
  const pod = record({ node: integer({ min: 0, max: 4 }), cpu: integer({ min: 1, max: 6 }) })
  const sizes = array(integer({ min: 4, max: 16 }), { minLength: 5, maxLength: 5 })
  check(
    property(sizes, array(pod, { maxLength: 9 }), (cpus, drawn) => {
      const free = [...cpus]
      const placed = drawn.filter(({ node, cpu }) => {
        if ((free[node] ?? 0) < cpu) return false
        free[node] = (free[node] ?? 0) - cpu
        return true
      })
      const plan = onePlan({
        nodes: cpus.map((cpu, index) => aNode(`n${index}`, { cpu: `${cpu * 100}m` })),
        pods: placed.map(({ node, cpu }, index) =>
          aPod(`p${index}`, { node: `n${node}`, cpu: `${cpu * 100}m` }),
        ),
      })
      const gone = new Set(unneededNames(plan))
      const moved = placed.filter(({ node }) => gone.has(`n${node}`)).map(({ cpu }) => cpu)
      const rooms = free.filter((_, index) => !gone.has(`n${index}`))
      assert.ok(
        allFit(moved, rooms),
        `${[...gone].join()} cannot all go: ${moved.join()} into ${rooms.join()}`,
      )
      // And the other way round: a node that alone could not go is not among the first one found.
      const [first] = unneededNames(plan)
      if (first === undefined) return
      const index = Number(first.slice(1))
      const own = placed.filter(({ node }) => node === index).map(({ cpu }) => cpu)
      assert.ok(own.reduce((sum, cpu) => sum + cpu, 0) * 2 <= (cpus[index] ?? 0))
      assert.ok(
        allFit(
          own,
          free.filter((_, at) => at !== index),
        ),
      )
    }),
    { numRuns: 300 },
  )
})
