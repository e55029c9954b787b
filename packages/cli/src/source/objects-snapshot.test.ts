import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runCommand } from '../testing/command.test-support.ts'
import { temporaryDirectory } from '../testing/tenon-process.test-support.ts'
import { readersKubeconfig } from '../testing/refusing.test-support.ts'
import { serveApi } from '../testing/served-api.test-support.ts'
import { aPod } from '../testing/snapshot.test-support.ts'

test('EXP-29 kinds that may not be listed are named at once', async (t) => {
  const cwd = await temporaryDirectory(t)
  const api = await serveApi(t, cwd, [aPod('web', undefined)])
  const resources = ['pods', 'nodes', 'nodepools', 'nodeclaims', 'daemonsets']
  const kubeconfig = await readersKubeconfig(api, { apiGroups: ['*'], resources, verbs: ['list'] })
  const startedMs = performance.now()
  const { code, out, err } = await runCommand(['explain', 'pod', 'web', '--kubeconfig', kubeconfig], { cwd })
  assert.deepEqual([code, out], [1, ''])
  assert.match(
    err,
    /these objects could not be listed: .*poddisruptionbudgets.*; grant the right to list and watch them/,
  )
  assert.doesNotMatch(err, /\b(pods|nodes|nodepools)\b/)
  // The limit for a server that does not answer is a minute.
  assert.ok(performance.now() - startedMs < 30_000)
})
