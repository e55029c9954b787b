import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Node, Pod } from '@tenon/api'
import { ConsoleModel } from '../model/model.ts'
import { Costs } from './costs.ts'

const nodes = 1000

/** Each node costs 1 an hour; its pods of two namespaces ask for a half and a quarter of it. */
function largeModel(): ConsoleModel {
  const model = new ConsoleModel()
  const names = Array.from({ length: nodes }, (_, at) => `n${at}`)
  const objects = names.map(
    (name): Node => ({
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name },
      status: { allocatable: { cpu: '4', memory: '8Gi' } },
    }),
  )
  const pods = names.flatMap((name) => [
    aPod('shop', name, { cpu: '2', memory: '4Gi' }),
    aPod('jobs', name, { cpu: '1', memory: '2Gi' }),
  ])
  model.apply({ kind: 'nodePrices', prices: new Map(names.map((name) => [name, 1])) })
  model.apply({ kind: 'replaced', resource: 'nodes', objects })
  model.apply({ kind: 'replaced', resource: 'pods', objects: pods })
  model.settle(Number.POSITIVE_INFINITY)
  return model
}

function aPod(namespace: string, node: string, requests: Readonly<Record<string, string>>): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace, name: `on-${node}` },
    spec: { nodeName: node, containers: [{ name: 'app', resources: { requests } }] },
    status: { phase: 'Running' },
  }
}

test('CON-7 costs of a large cluster are counted in parts, and are whole in the end', () => {
  const costs = new Costs(largeModel())
  let asked = 1
  while (costs.report('namespace', 0) === undefined) asked++
  assert.ok(asked >= 4, `counted in ${asked} parts`)
  assert.equal(costs.isCounting, false)
  const report = costs.report('namespace', 1000)
  assert.deepEqual(
    report?.groups.map(({ name, pods, requestedPerHour }) => [name, pods, requestedPerHour]),
    [
      ['shop', nodes, nodes / 2],
      ['jobs', nodes, nodes / 4],
    ],
  )
  assert.deepEqual([report?.totalPerHour, report?.idlePerHour], [nodes, nodes / 4])
})

test('costs are counted again after a while, and shown until the next are counted', () => {
  const model = largeModel()
  const costs = new Costs(model)
  while (costs.report('nodepool', 0) === undefined) continue
  model.apply({ kind: 'removed', resource: 'nodes', name: 'n0' })
  model.settle()
  const at = (ms: number) => costs.report('nodepool', ms)?.instances
  assert.equal(at(4000), nodes)
  assert.equal(at(8000), nodes)
  assert.equal(costs.isCounting, true)
  while (costs.isCounting) costs.report('nodepool', 8100)
  assert.equal(at(8200), nodes - 1)
})

test('whoever comes back or asks by something else is not shown what was counted before', () => {
  const costs = new Costs(largeModel())
  while (costs.report('nodepool', 0) === undefined) continue
  assert.equal(costs.report('zone', 100), undefined)
  while (costs.report('zone', 200) === undefined) continue
  assert.equal(costs.report('zone', 60_000), undefined)
})
