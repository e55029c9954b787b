import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds, labels } from '@tenon/api'
import { minutes, seconds, type Stage } from '../testing/stage.test-support.ts'
import { madeClaims } from '../testing/pools.test-support.ts'
import {
  cpu,
  left,
  openDisruption,
  setBudget,
  setCondition,
  setDisruption,
  setDrifted,
  tainted,
  eventMessages,
} from './disruption-stage.test-support.ts'

const closed = { disruption: { consolidateAfter: 'Never', budgets: [{ nodes: '0' }] } }
const decisions = 'voluntary_disruption_decisions_total'
const drifted = (decision: string) => ({ decision, reason: 'drifted', consolidation_type: '' })

/** Lets drifted nodes go, one or all at a time, and time pass until the first command has begun. */
async function begin(stage: Stage, nodes = '100%'): Promise<readonly string[]> {
  setBudget(stage, nodes)
  await stage.world.clock.advanceUntil(() => tainted(stage).length > 0, 15 * seconds)
  await stage.pass(500)
  return tainted(stage)
}

async function join(stage: Stage, name: string): Promise<void> {
  await stage.join(name)
  await stage.report(`node-${name}`)
}

test('DIS-68 nodes without pods go first, and of the others the one that has drifted for longest', async (t) => {
  const stage = await openDisruption(t, closed)
  await stage.ready('roomy')
  setDrifted(stage, 'z-oldest', 'a-young', 'empty')
  for (const name of ['z-oldest', 'a-young', 'empty']) {
    await stage.ready(name)
    if (name !== 'empty') await stage.pod(`on-${name}`, `node-${name}`)
    await stage.pass(2 * seconds)
  }
  setBudget(stage, '1')
  const order: string[] = []
  for (let i = 0; i < 60 && order.length < 2; i++) {
    await stage.pass(500)
    const gone = ['a-young', 'empty', 'z-oldest'].filter((name) => !left(stage).includes(name))
    for (const name of [...gone, ...tainted(stage)]) if (!order.includes(name)) order.push(name)
  }
  assert.deepEqual(order, ['empty', 'z-oldest'])
})

test('DIS-69 a node whose pod fits nowhere is told so, and the next one goes', async (t) => {
  const stage = await openDisruption(t, closed)
  setDrifted(stage, 'huge', 'plain')
  await stage.ready('huge')
  await stage.report('node-huge', 'True', { cpu: '200' })
  await stage.pod('giant', 'node-huge', cpu('150'))
  await stage.pass(2 * seconds)
  await stage.ready('plain')
  await stage.pod('p', 'node-plain')
  await begin(stage, '1')
  assert.deepEqual(tainted(stage), ['plain'])
  for (const object of ['Node/node-huge', 'NodeClaim/huge'])
    assert.match(eventMessages(stage, 'DisruptionBlocked', object)[0] ?? '', /default\/giant/)
})

test('DIS-70 without condition Drifted, or with status False, a node stays', async (t) => {
  const stage = await openDisruption(t, { disruption: { consolidateAfter: 'Never' } })
  for (const name of ['absent', 'false']) await stage.ready(name)
  setCondition(stage, 'false', 'Drifted', 'NotDrifted', 'False')
  await stage.pass(minutes)
  assert.deepEqual(left(stage), ['absent', 'false'])
  assert.equal(await stage.metric(decisions), 0)
})

test('DIS-71 pods that need three nodes get them, and the old node goes once all are initialized', async (t) => {
  const stage = await openDisruption(t, closed)
  setDrifted(stage, 'a')
  await stage.ready('a')
  await stage.report('node-a', 'True', { cpu: '16' })
  for (const name of ['p', 'q', 'r']) await stage.pod(name, 'node-a', cpu('3'))
  assert.deepEqual(await begin(stage), ['a'])
  const made = madeClaims(stage).map(({ metadata }) => metadata.name)
  assert.equal(made.length, 3)
  assert.equal(await stage.metric(decisions, drifted('replace')), 1)
  for (const name of made) {
    await stage.pass(10 * seconds)
    assert.ok(left(stage).includes('a'))
    await join(stage, name)
  }
  await stage.pass(5 * seconds)
  assert.ok(!left(stage).includes('a'))
})

test('DIS-72 DIS-78 pods that fit elsewhere move there, also to a node that has just got some', async (t) => {
  const stage = await openDisruption(t, { disruption: { consolidateAfter: '1h', budgets: [{ nodes: '0' }] } })
  setDrifted(stage, 'a')
  for (const name of ['a', 'roomy']) await stage.ready(name)
  for (const name of ['a', 'roomy']) await stage.pod(`on-${name}`, `node-${name}`, cpu('1'))
  await begin(stage)
  assert.deepEqual(left(stage), ['roomy'])
  assert.equal(await stage.metric(decisions, drifted('delete')), 1)
  assert.deepEqual(madeClaims(stage), [])
})

test('pods of a drifted node that cannot go do not keep others', async (t) => {
  const stage = await openDisruption(t, closed)
  setDrifted(stage, 'a', 'stuck')
  for (const name of ['a', 'stuck']) {
    await stage.ready(name)
    await stage.pod(`on-${name}`, `node-${name}`, cpu(name === 'a' ? '3' : '150'))
  }
  const resourceClaims = [{ name: 'gpu', resourceClaimName: 'gpu' }]
  await stage.pod('with-device', 'node-stuck', { spec: { resourceClaims } })
  assert.deepEqual(await begin(stage), ['a'])
  assert.equal(madeClaims(stage).length, 1)
})

test('DIS-73 one node goes at a time, the next one as soon as the replacement is launched', async (t) => {
  const stage = await openDisruption(t, closed)
  const names = ['a', 'b']
  setDrifted(stage, ...names)
  for (const name of names) {
    await stage.ready(name)
    await stage.pod(`on-${name}`, `node-${name}`, cpu('3'))
  }
  let isOut = true
  stage.cloud.onCreate = () => {
    if (isOut) throw new Error('not yet')
  }
  assert.deepEqual(await begin(stage), ['a'])
  await stage.pass(15 * seconds)
  assert.deepEqual(tainted(stage), ['a'])
  isOut = false
  const replacement = madeClaims(stage)[0]?.metadata.name ?? ''
  const isLaunched = () => stage.state(replacement, 'Launched') === 'True/Launched'
  await stage.world.clock.advanceUntil(isLaunched, minutes)
  await stage.pass(1500)
  assert.deepEqual(tainted(stage), names)
  assert.equal(await stage.metric(decisions, drifted('replace')), 2)
})

test('DIS-74 for pods that a PDB holds for good no node is launched when the claim ends in any case', async (t) => {
  const stage = await openDisruption(t, closed)
  setDrifted(stage, 'a')
  await stage.ready('a', { terminationGracePeriod: '1h' })
  const app = { app: 'held' }
  await stage.pod('held', 'node-a', { labels: app, ...cpu('3') })
  stage.world.create(kinds.podDisruptionBudget, {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: 'strict', namespace: 'default' },
    spec: { selector: { matchLabels: app }, maxUnavailable: 0 },
  })
  await stage.pass(seconds)
  await begin(stage)
  assert.deepEqual(left(stage), [])
  assert.equal(await stage.metric(decisions, drifted('delete')), 1)
  assert.deepEqual(madeClaims(stage), [])
})

test('DIS-75 a pod with a volume on the disk of the old node still gets a replacement', async (t) => {
  const stage = await openDisruption(t, closed)
  setDrifted(stage, 'a')
  await stage.ready('a')
  stage.patch(kinds.node, 'node-a', { metadata: { labels: { [labels.hostname]: 'node-a' } } })
  const { local } = stage.world.cluster.server
  const storage = { accessModes: ['ReadWriteOnce'], storageClassName: 'disks' }
  local.create(kinds.persistentVolume, {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: 'disk' },
    spec: {
      ...storage,
      capacity: { storage: '1Gi' },
      local: { path: '/mnt/disk' },
      claimRef: { namespace: 'default', name: 'data' },
      nodeAffinity: {
        required: {
          nodeSelectorTerms: [
            { matchExpressions: [{ key: labels.hostname, operator: 'In', values: ['node-a'] }] },
          ],
        },
      },
    },
  } as never)
  local.create(kinds.persistentVolumeClaim, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'data', namespace: 'default' },
    spec: { ...storage, volumeName: 'disk', resources: { requests: { storage: '1Gi' } } },
  })
  const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }]
  await stage.pod('keeper', 'node-a', { spec: { ...cpu('1').spec, volumes } })
  assert.deepEqual(await begin(stage), ['a'])
  assert.equal(madeClaims(stage).length, 1)
  assert.equal(await stage.metric(decisions, drifted('replace')), 1)
})

/** A drifted node with a pod, whose replacement is launched and does not join. */
async function replacing(t: Parameters<typeof openDisruption>[0]): Promise<{ stage: Stage; made: string }> {
  const stage = await openDisruption(t, closed)
  setDrifted(stage, 'a')
  await stage.ready('a')
  await stage.pod('p', 'node-a', cpu('3'))
  assert.deepEqual(await begin(stage), ['a'])
  assert.equal(stage.state('a', 'DisruptionReason'), 'True/Drifted')
  return { stage, made: madeClaims(stage)[0]?.metadata.name ?? '' }
}

test('DIS-76 when the replacement is deleted the node is free again, and may be replaced again', async (t) => {
  const { stage, made } = await replacing(t)
  setBudget(stage, '0')
  await stage.deleteClaim(made)
  await stage.pass(15 * seconds)
  assert.equal(stage.claimNow(made), undefined)
  assert.deepEqual(tainted(stage), [])
  assert.equal(stage.state('a', 'DisruptionReason'), 'absent')
  assert.deepEqual(await begin(stage), ['a'])
  assert.equal(await stage.metric(decisions, drifted('replace')), 2)
})

test('DIS-77 when the replacement is not initialized within ten minutes the node is free again, and both stay', async (t) => {
  const { stage, made } = await replacing(t)
  await stage.join(made)
  setDisruption(stage, { budgets: [{ nodes: '0' }] })
  await stage.pass(9 * minutes + 50 * seconds)
  assert.deepEqual(tainted(stage), ['a'])
  await stage.pass(30 * seconds)
  assert.deepEqual(tainted(stage), [])
  assert.equal(stage.state('a', 'DisruptionReason'), 'absent')
  assert.deepEqual(left(stage), ['a', made].toSorted())
})
