/** The commands of the brake and of rollouts, on an API server whose controller the test plays. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { karpenterKinds, kinds, nodePoolHash } from '@tenon/api'
import { aPoolCluster } from '../../testing/pool-cluster.test-support.ts'

test('EXP-21 tenon pause and resume write what kubectl could, and say so', async (t) => {
  const { brake, setCondition, tenon } = await aPoolCluster(t)
  setCondition('Paused', 'True')
  const paused = await tenon('pause', '-n', 'kube-system')
  assert.deepEqual(paused, { code: 0, out: 'configmap/tenon-brake paused\n', err: '' })
  assert.deepEqual(brake(), { paused: 'true' })
  await tenon(
    'pause',
    '-n',
    'kube-system',
    '--for',
    '2h',
    '--reason',
    'x "y"',
    '--all',
    '--including',
    'repair',
  )
  const value = JSON.parse(brake()?.['paused'] ?? '{}') as Record<string, unknown>
  assert.deepEqual([value['reason'], value['includes']], ['x "y"', ['launches', 'repair']])
  assert.equal(Date.parse(String(value['until'])) - Date.parse(String(value['since'])), 2 * 3_600_000)
  const resumed = await tenon('resume', '-n', 'kube-system')
  assert.deepEqual([resumed.code, resumed.out], [0, 'configmap/tenon-brake resumed\n'])
  assert.deepEqual(Object.keys(brake() ?? {}), ['resumed'])
  assert.ok(Date.parse(brake()?.['resumed'] ?? '') <= Date.now())
  const again = await tenon('resume', '-n', 'kube-system')
  assert.deepEqual([again.code, again.out], [1, ''])
})

test('EXP-21 resume ends a pause that Tenon began, and leaves word that it did', async (t) => {
  const { brake, local, tenon } = await aPoolCluster(t)
  const text = JSON.stringify({
    until: '2999-01-01T00:00:00Z',
    since: '2026-01-01T00:00:00Z',
    reason: 'lost',
  })
  const metadata = { name: 'tenon-brake', namespace: 'kube-system' }
  local.create(kinds.configMap, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata,
    data: { 'auto-brake': text },
  })
  assert.equal((await tenon('resume', '-n', 'kube-system')).code, 0)
  const left = JSON.parse(brake()?.['auto-brake'] ?? '{}') as Record<string, string>
  assert.deepEqual([left['since'], left['reason']], ['2026-01-01T00:00:00Z', 'lost'])
  assert.ok(Date.parse(left['until'] ?? '') <= Date.now())
})

test('EXP-21 a NodePool is paused by name in either form; names that are none are told as kubectl does', async (t) => {
  const { pool, setCondition, tenon } = await aPoolCluster(t)
  setCondition('Paused', 'True')
  const out = await tenon('pause', 'nodepool/web')
  assert.deepEqual(out, { code: 0, out: 'nodepool.karpenter.sh/web paused\n', err: '' })
  assert.equal(pool().metadata.annotations?.['tenon.sh/paused'], 'true')
  assert.equal((await tenon('resume', 'nodepools', 'web')).out, 'nodepool.karpenter.sh/web resumed\n')
  assert.equal(pool().metadata.annotations?.['tenon.sh/paused'], undefined)
  assert.ok(Date.parse(pool().metadata.annotations?.['tenon.sh/resumed'] ?? '') <= Date.now())
  assert.match((await tenon('resume', 'nodepool/web')).err, /is not paused/)
  const missing = await tenon('pause', 'nodepool/nope')
  assert.deepEqual([missing.code, missing.out], [1, ''])
  assert.match(missing.err, /^Error from server \(NotFound\): nodepools.karpenter.sh "nope" not found/)
  assert.match((await tenon('pause', 'pod/a')).err, /doesn't have a resource type "pod"/)
  assert.match((await tenon('pause', '--including', 'evictions')).err, /"evictions" is unknown/)
  assert.match((await tenon('pause')).err, /name the namespace of the controller with -n/)
})

test('EXP-21 a dry run changes nothing', async (t) => {
  const { brake, pool, tenon } = await aPoolCluster(t)
  for (const [strategy, suffix] of [
    ['client', '(dry run)'],
    ['server', '(server dry run)'],
  ] as const) {
    const out = await tenon('pause', 'nodepool/web', `--dry-run=${strategy}`)
    assert.equal(out.out, `nodepool.karpenter.sh/web paused ${suffix}\n`)
    assert.equal((await tenon('pause', '-n', 'kube-system', `--dry-run=${strategy}`)).code, 0)
  }
  assert.equal(pool().metadata.annotations?.['tenon.sh/paused'], undefined)
  assert.equal(brake(), undefined)
})

test('EXP-21 a pause that no controller confirms is warned of', async (t) => {
  const { tenon } = await aPoolCluster(t)
  const out = await tenon('pause', 'nodepool/web')
  assert.equal(out.code, 0)
  assert.match(out.err, /^warning: no controller has said within 5 s/)
})

test('EXP-24 rollout status ends with 0 when all are updated, with 1 on a halt and a time-out', async (t) => {
  const { claim, local, pool, setCondition, tenon } = await aPoolCluster(t)
  claim('new', nodePoolHash(pool()))
  claim('old', '1')
  const waiting = await tenon('rollout', 'status', 'nodepool/web', '--watch=false')
  assert.deepEqual(waiting, {
    code: 0,
    out: 'Waiting for rollout of nodepool "web": 1 of 2 nodes updated\n',
    err: '',
  })
  const late = await tenon('rollout', 'status', 'nodepool/web', '--timeout', '1s')
  assert.deepEqual([late.code, late.err], [1, 'error: timed out waiting for the condition\n'])
  setCondition('RolloutHalted', 'True', 'it went wrong')
  const halted = await tenon('rollout', 'status', 'nodepool/web')
  assert.equal(halted.code, 1)
  assert.match(halted.err, /^error: rollout of nodepool "web" is halted: 1 of 2 .*: it went wrong/)
  setCondition('RolloutHalted', 'False')
  const following = tenon('rollout', 'status', 'nodepool/web')
  local.delete(karpenterKinds.nodeClaim, undefined, 'old')
  const done = await following
  assert.equal(done.code, 0)
  assert.match(done.out, /nodepool "web" successfully rolled out \(1 node\)\n$/)
})

test('EXP-24 rollout pause and resume set annotations, and refuse what makes no sense', async (t) => {
  const { annotate, pool, setCondition, tenon } = await aPoolCluster(t)
  const stored = () => pool().metadata.annotations ?? {}
  assert.equal((await tenon('rollout', 'pause', 'nodepool/web')).out, 'nodepool.karpenter.sh/web paused\n')
  assert.equal(stored()['tenon.sh/rollout-paused'], 'true')
  assert.match((await tenon('rollout', 'pause', 'nodepool/web')).err, /is already paused/)
  annotate({ 'tenon.sh/rollout-state': '{}' })
  assert.equal((await tenon('rollout', 'resume', 'nodepool/web')).out, 'nodepool.karpenter.sh/web resumed\n')
  assert.deepEqual(stored(), { 'tenon.sh/rollout-state': '{}' })
  assert.match((await tenon('rollout', 'resume', 'nodepool/web')).err, /neither paused nor halted/)
  setCondition('RolloutHalted', 'True')
  assert.equal((await tenon('rollout', 'resume', 'nodepool/web')).code, 0)
  assert.deepEqual(stored(), {})
})

test('EXP-24 undo restores the template before the last edit, and only when that is confirmed', async (t) => {
  const { annotate, pool, template: written, tenon } = await aPoolCluster(t)
  assert.match((await tenon('rollout', 'undo', 'nodepool/web', '--yes')).err, /no rollout history found/)
  const template = { ...written, metadata: { labels: { 'example.com/was': 'before' } } }
  annotate({
    'tenon.sh/rollout-history': JSON.stringify([{ until: '2026-11-27T00:00:00Z', template }]),
  })
  const unconfirmed = await tenon('rollout', 'undo', 'nodepool/web')
  assert.deepEqual([unconfirmed.code, unconfirmed.out], [1, ''])
  assert.match(unconfirmed.err, /confirm it with --yes/)
  await tenon('rollout', 'undo', 'nodepool/web', '--dry-run=server')
  assert.equal(pool().spec.template.metadata, undefined)
  const undone = await tenon('rollout', 'undo', 'nodepool/web', '--yes')
  assert.deepEqual(undone, { code: 0, out: 'nodepool.karpenter.sh/web rolled back\n', err: '' })
  const { expireAfter: _, ...restored } = pool().spec.template.spec
  assert.deepEqual({ ...pool().spec.template, spec: restored }, template)
})

test('PGE-14 pause, resume and rollout take the name of a NodePool alone, as usage says', async (t) => {
  const { claim, pool, setCondition, tenon } = await aPoolCluster(t)
  setCondition('Paused', 'True', 'it is the weekend')
  const paused = await tenon('pause', 'web')
  assert.deepEqual(paused, { code: 0, out: 'nodepool.karpenter.sh/web paused\n', err: '' })
  assert.equal(pool().metadata.annotations?.['tenon.sh/paused'], 'true')
  const listed = await tenon('get', 'nodepools', '-o', 'wide')
  assert.match(listed.out, /^NAME +NODECLASS +NODES +READY +PAUSED .* WHY-PAUSED +AGE\n/)
  assert.match(listed.out, /^web +n +0 +Unknown +True .* it is the weekend /m)
  assert.equal((await tenon('resume', 'web')).out, 'nodepool.karpenter.sh/web resumed\n')
  claim('only', nodePoolHash(pool()))
  const status = await tenon('rollout', 'status', 'web')
  assert.deepEqual(status, {
    code: 0,
    out: 'nodepool "web" successfully rolled out (1 node)\n',
    err: '',
  })
  const missing = await tenon('pause', 'nope')
  assert.deepEqual(missing, {
    code: 1,
    out: '',
    err: 'Error from server (NotFound): nodepools.karpenter.sh "nope" not found\n',
  })
  assert.match((await tenon('pause', 'nodepool')).err, /^error: name the nodepools/)
})
