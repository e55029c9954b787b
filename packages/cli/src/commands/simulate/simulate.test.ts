import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { writeSnapshot } from '@tenon/ask'
import { aClaimedNode, aPending, aPool, aRunning, aSnapshot, aType } from '@tenon/ask/test-clusters'
import { objectNameOf } from '../../kubectl/object-names.ts'
import { runCommand } from '../../testing/command.test-support.ts'

test('PGE-14 simulate --scale takes a workload without its namespace, and no text speaks of a snapshot', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'tenon-simulate-'))
  t.after(() => rm(folder, { recursive: true }))
  const path = join(folder, 'cluster.jsonl')
  const [pool, type] = [aPool('blue'), aType('small', 2)]
  const pod = aPending('a', { cpu: '2' }, {}, 'web')
  await writeSnapshot(path, aSnapshot([pool, ...aClaimedNode('n1', pool, type), aRunning(pod, 'n1')], [type]))
  const simulate = (...args: readonly string[]) => runCommand(['simulate', ...args, '-s', path])
  const scaled = await simulate('--scale', 'deployment/web=3')
  assert.deepEqual([scaled.code, scaled.err], [0, ''])
  assert.match(scaled.out, /^Pods that would run: 2 /m)
  assert.equal((await simulate('--scale', 'deployment/web=3', '--exit-code')).code, 1)
  const missing = await simulate('--scale', 'deployment/nope=3')
  assert.deepEqual(missing, {
    code: 1,
    out: '',
    err: 'error: Deployment default/nope has no pods to copy; give its manifest with -f\n',
  })
  const deleted = await simulate('--delete', 'deployment/nope')
  assert.equal(deleted.err, 'Error from server (NotFound): deployments.apps "nope" not found\n')
  const { out: help } = await runCommand(['simulate', '--help'])
  assert.doesNotMatch(help, /a snapshot of the cluster/)
})

test('PGE-14 the current namespace is that of an object named without one', () => {
  const web = { kind: 'Deployment', name: 'web' }
  assert.deepEqual(objectNameOf('deployment/web', 'shop'), { ...web, namespace: 'shop' })
  assert.deepEqual(objectNameOf('deployment/team/web', 'shop'), { ...web, namespace: 'team' })
})
