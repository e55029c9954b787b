import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { writeSnapshot } from '@tenon/ask'
import { aNode, aPending, aPool, aSnapshot, aType } from '@tenon/ask/test-clusters'
import { runCommand } from './command.test-support.ts'

async function saved(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tenon-explain-'))
  t.after(() => rm(folder, { recursive: true }))
  const path = join(folder, 'cluster.jsonl')
  const pods = ['a', 'b', 'c'].map((name) => aPending(name, { cpu: '9' }, {}, 'web'))
  await writeSnapshot(path, aSnapshot([aPool('blue'), aNode('alone', '1'), ...pods], [aType('small', 1)]))
  return path
}

test('EXP-4 pods of all namespaces are one entry where they wait for one reason', async (t) => {
  const { code, out } = await runCommand(['explain', 'pods', '-A', '-s', await saved(t)])
  assert.equal(code, 0)
  assert.match(out, /^3 pods of 1 ReplicaSet: No NodePool can launch a node for it/)
  assert.match(out, /✗ NodePool blue: no instance type has enough resources/)
})

test('pods, nodes and NodePools are explained by name, as text and for programs', async (t) => {
  const path = await saved(t)
  const pool = await runCommand(['explain', 'nodepool/blue', '-s', path])
  assert.match(pool.out, /^nodepool\/blue: It launches nodes\n/)
  const node = await runCommand(['explain', 'no', 'alone', '-s', path])
  assert.match(node.out, /^node\/alone: It has no NodeClaim/)
  const pod = await runCommand(['explain', 'po/a', '-o', 'json', '-s', path])
  const answer: unknown = JSON.parse(pod.out)
  assert.ok(typeof answer === 'object' && answer !== null && 'kind' in answer && 'apiVersion' in answer)
  assert.deepEqual([answer.apiVersion, answer.kind], ['tenon.sh/v1alpha1', 'PodExplanation'])
})

test('EXP-29 a name that is unknown is an error in the words of kubectl', async (t) => {
  const path = await saved(t)
  for (const [type, plural] of [
    ['pod', 'pods'],
    ['node', 'nodes'],
    ['nodeclaim', 'nodeclaims.karpenter.sh'],
    ['nodepool', 'nodepools.karpenter.sh'],
  ] as const) {
    const { code, err } = await runCommand(['explain', type, 'nobody', '-s', path])
    assert.equal(code, 1)
    assert.equal(err, `Error from server (NotFound): ${plural} "nobody" not found\n`)
  }
})
