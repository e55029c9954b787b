import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VirtualClock } from '@tenon/runtime'
import { aPod } from '../../decider/inputs.test-support.ts'
import { type Knowledge, NodeEvidence } from './node-evidence.ts'

const minute = 60_000
const spread = [
  {
    maxSkew: 1,
    topologyKey: 'topology.kubernetes.io/zone',
    whenUnsatisfiable: 'DoNotSchedule' as const,
    labelSelector: {},
  },
]

/** Minutes for which nothing is launched for a pod after each of the nodes that refused it. */
async function pauses(knowledge: Knowledge, nodes: number): Promise<readonly number[]> {
  const clock = new VirtualClock()
  const evidence = new NodeEvidence(clock)
  const pod = aPod('app', '1', { topologySpreadConstraints: spread })
  const found: number[] = []
  for (let node = 1; node <= nodes; node += 1) {
    await clock.advance(2 * 60 * minute)
    const { untilMs, atMs } = evidence.useless({
      pod,
      nodePool: 'standard',
      node: `node-${node}`,
      claim: `claim-${node}`,
      cause: 'refused',
      words: '1 node(s) had volume node affinity conflict',
      margins: {},
      knowledge,
      boughtMs: clock.now() - minute,
    })
    found.push((untilMs - atMs) / minute)
  }
  return found
}

test('RPT-4 what keeps a pod away for good, and is known, needs no pause unless it comes again', async () => {
  assert.deepEqual(await pauses('lasting', 2), [0, 2])
})

test('RPT-4 what keeps a pod away now, and may pass, is tried again after growing pauses', async () => {
  assert.deepEqual(await pauses('present', 2), [1, 2])
})

test('RPT-4 after a refusal that nothing explains an hour passes', async () => {
  assert.deepEqual(await pauses('none', 2), [60, 60])
})

test('RPT-4 pods of the workload that ran before a node proved useless do not undo that', async () => {
  const clock = new VirtualClock()
  const evidence = new NodeEvidence(clock)
  await clock.advance(10 * minute)
  const { workload, atMs } = evidence.useless({
    pod: aPod('app', '1', {}),
    nodePool: 'standard',
    node: 'node-1',
    claim: 'claim-1',
    cause: 'short',
    words: '1 Insufficient memory',
    margins: { memory: 1.25 },
    knowledge: 'present',
    boughtMs: clock.now() - minute,
  })
  evidence.served(workload, atMs - minute)
  assert.notEqual(evidence.of(workload), undefined)
  evidence.served(workload, atMs)
  assert.equal(evidence.of(workload), undefined)
})
