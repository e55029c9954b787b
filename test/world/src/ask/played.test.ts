/** A snapshot that is played on, beside the world that it was taken of. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { karpenterKinds, type Node } from '@tenon/api'
import { readSnapshotText, snapshotLines, takeSnapshot } from '@tenon/ask'
import { playSnapshot } from '@tenon/ask/play'
import type { CloudProvider } from '@tenon/provider'
import { kwokNodeClassKind } from '@tenon/provider-kwok'
import { eventLoopTurns } from '@tenon/runtime'
import { aDeployment, aKwokPool, deploymentKind, World } from '../world.ts'

const minuteMs = 60_000
const hours = 6
/** As the world plays nodes and pods, on average. */
const times = { bootMs: 0, nodeReadyMs: 3_500, podStartMs: 1_200, podStopMs: 850 }

const priceOf = ({ metadata }: Node): number =>
  Number(metadata.labels?.['eks-node-viewer/instance-price'] ?? Number.NaN)

test('EXP-14 the price of an underused fleet falls in a play of its snapshot as in its own world, twice the same', async (t) => {
  let provider: CloudProvider | undefined
  const wrapProvider = (inner: CloudProvider): CloudProvider => {
    provider = inner
    return inner
  }
  const cluster = { gitVersion: 'v1.36.0' }
  const world = await World.start({ seed: 14, provider: 'kwok', wrapProvider, turns: 1, cluster })
  t.after(() => world.stop())
  world.create(kwokNodeClassKind, {
    apiVersion: 'karpenter.kwok.sh/v1alpha1',
    kind: 'KWOKNodeClass',
    metadata: { name: 'default' },
    spec: {},
  })
  const pool = aKwokPool('default', { disruption: { consolidateAfter: '1m', budgets: [{ nodes: '30%' }] } })
  const { template } = pool.spec
  const few = [
    { key: 'karpenter.kwok.sh/instance-cpu', operator: 'In', values: ['2', '4', '8'] },
    { key: 'karpenter.kwok.sh/instance-family', operator: 'In', values: ['c', 'm'] },
  ] as const
  const spec = { ...template.spec, requirements: [...template.spec.requirements, ...few] }
  world.create(karpenterKinds.nodePool, { ...pool, spec: { ...pool.spec, template: { ...template, spec } } })
  const { operator } = await world.startOperator()
  world.create(deploymentKind, aDeployment('web', 40, { cpu: '900m', memory: '500Mi' }))
  world.create(deploymentKind, aDeployment('api', 20, { cpu: '1500m', memory: '1Gi' }))
  // Nodes are at rest for a quarter of an hour after their last pod has come.
  await world.clock.advance(20 * minuteMs)
  world.scale('web', 9)
  world.scale('api', 6)
  await world.clock.advance(10_000)
  assert.ok(provider !== undefined)
  const origin = { kind: 'controller', identity: 'world', isLeading: true } as const
  const slicing = { clock: world.clock, turns: eventLoopTurns, sliceMs: 10 }
  const taken = await takeSnapshot(
    { operator, provider, origin, program: 'test', clock: world.clock, slicing },
    new AbortController().signal,
  )
  const read = readSnapshotText([...snapshotLines(taken)].join('\n'))
  assert.ok('ok' in read)
  const prices: number[] = []
  for (let minute = 0; minute < hours * 60; minute++) {
    await world.clock.advance(minuteMs)
    prices.push(world.nodes().reduce((sum, node) => sum + priceOf(node), 0))
  }
  const before = taken.objects
    .filter((object): object is Node => object.kind === 'Node')
    .reduce((sum, node) => sum + priceOf(node), 0)
  const after = prices.at(-1) ?? Number.NaN
  assert.ok(after < 0.6 * before, `${before} to ${after}`)
  const play = () => playSnapshot(read.ok, { forMs: hours * 60 * minuteMs, times })
  const report = await play()
  assert.equal(Math.abs(report.pricePerHour / after - 1) < 0.03, true, `${report.pricePerHour}, ${after}`)
  const own = prices.reduce((sum, price) => sum + price / 60, 0)
  assert.equal(Math.abs(report.cost / own - 1) < 0.03, true, `${report.cost} in place of ${own}`)
  assert.deepEqual(await play(), report)
})
