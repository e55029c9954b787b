/** What docs/ask/explain.md shows of a PodGroup, and how groups are named and listed. */
import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { KubeObject, Pod } from '@tenon/api'
import { writeSnapshot } from '@tenon/ask'
import { aPending, aPodGroup, aPool, aSnapshot, aType } from '@tenon/ask/test-clusters'
import { runCommand } from '../../testing/command.test-support.ts'

const twoNodes = aPool('web', { limits: { nodes: '2' } })

function members(group: string, count: number): readonly Pod[] {
  return Array.from({ length: count }, (_, at) =>
    aPending(`${group}-${at}`, { cpu: '3' }, { schedulingGroup: { podGroupName: group } }),
  )
}

async function explained(t: TestContext, objects: readonly KubeObject[], ...args: readonly string[]) {
  const folder = await mkdtemp(join(tmpdir(), 'tenon-explain-'))
  t.after(() => rm(folder, { recursive: true }))
  const path = join(folder, 'cluster.jsonl')
  await writeSnapshot(path, aSnapshot(objects, [aType('small', 4)]))
  return await runCommand(['explain', ...args, '-s', path])
}

test('EXP-29 what docs/ask/explain.md shows of a PodGroup is what the command prints', async (t) => {
  const page = await readFile(join(import.meta.dirname, '../../../../../docs/ask/explain.md'), 'utf8')
  const [, shown = ''] = /^\$ tenon explain podgroup train .*\n([^]*?)^```$/m.exec(page) ?? []
  const { out, code } = await explained(
    t,
    [twoNodes, aPodGroup('train', 3), ...members('train', 3)],
    'podgroup',
    'train',
  )
  assert.equal(code, 0)
  const pattern = shown.replaceAll(/[$()*+.?[\\\]^{|}]/g, '\\$&').replaceAll('…', '.*')
  assert.match(out, new RegExp(`^${pattern}$`))
})

test('EXP-29 all PodGroups are explained by type, by every name of the type, and as objects of one schema', async (t) => {
  const metadata = { name: 'other', namespace: 'default', uid: 'group-other' }
  const coscheduling = {
    apiVersion: 'scheduling.x-k8s.io/v1alpha1',
    kind: 'PodGroup',
    metadata,
    spec: { minMember: 2 },
  }
  const objects = [twoNodes, aPodGroup('train', 3), ...members('train', 2), coscheduling]
  for (const type of ['podgroups', 'podgroup', 'pg', 'PodGroup']) {
    const { out, code } = await explained(t, objects, type)
    assert.equal(code, 0)
    assert.match(out, /^podgroup\/train in default: .*has 2 .*\n[^]*podgroup\/other in default: /m, type)
  }
  const one = await explained(t, objects, 'podgroups.scheduling.x-k8s.io')
  assert.doesNotMatch(one.out, /train/)
  const both = await explained(t, objects, 'pg/train', 'pg/other', '-o', 'json')
  assert.match(both.out, /"kind": "PodGroupExplanation"[^]*"kind": "PodGroupExplanation"[^]*"kind": "List"/)
  const missing = await explained(t, objects, 'podgroup', 'nobody')
  assert.equal(missing.err, 'Error from server (NotFound): podgroups.scheduling.k8s.io "nobody" not found\n')
  const patch = await explained(t, objects, 'podgroup', 'train', '-o', 'patch')
  assert.match(patch.err, /-o patch is for pods/)
})
