import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { runCommand } from '../../testing/command.test-support.ts'
import { createProgram } from '../../program.ts'
import { quietIo } from '../../testing/quiet-io.test-support.ts'
import { type ClusterNames, candidates } from './candidates.ts'
import { shells } from './scripts.ts'

const io = quietIo()

const names: ClusterNames = {
  objects: ({ type }) => Promise.resolve(type.plural === 'nodes' ? ['n1', 'n2', 'other'] : ['p']),
  namespaces: () => Promise.resolve(['kube-system', 'shop']),
}

const complete = async (...words: readonly string[]) =>
  await candidates(await createProgram(io), words, names)

test('EXP-29 commands, types, names of the cluster, flags and their values are completed', async () => {
  assert.deepEqual(await complete('ge'), ['get'])
  assert.ok(!(await complete('')).includes('__complete'))
  assert.deepEqual(await complete('get', 'node'), ['nodeclaims', 'nodepools', 'nodes'])
  assert.deepEqual(await complete('get', 'no', 'n'), ['n1', 'n2'])
  assert.deepEqual(await complete('get', 'nodes', 'n1', 'n'), ['n1', 'n2'])
  assert.deepEqual(await complete('get', 'node/n'), ['node/n1', 'node/n2'])
  assert.deepEqual(await complete('get', '-n', 'sh'), ['shop'])
  assert.deepEqual(await complete('get', '-n', 'shop', 'po', ''), ['p'])
  assert.deepEqual(await complete('get', 'widgets', ''), [])
  assert.deepEqual(await complete('get', '--color', ''), ['always', 'auto', 'never'])
  assert.deepEqual(await complete('get', '--sort'), ['--sort-by'])
  assert.deepEqual(await complete('cost', '--by', 'n'), ['namespace', 'nodepool'])
  assert.deepEqual(await complete('completion', ''), ['bash', 'fish', 'powershell', 'zsh'])
  assert.deepEqual(await complete('explain', 'no', 'n'), ['n1', 'n2'])
  assert.deepEqual(await complete('explain', 'node/n1', 'node/n'), ['node/n1', 'node/n2'])
  assert.deepEqual(await complete('pause', ''), ['nodepool/p', 'p'])
  assert.deepEqual(await complete('resume', 'nodepool', ''), ['p'])
  assert.deepEqual(await complete('rollout', 'undo', 'nodepool/'), ['nodepool/p'])
  assert.deepEqual(await complete('crds', ''), ['apply', 'diff'])
  assert.deepEqual(await complete('journal', '--node', 'n'), ['n1', 'n2'])
  assert.deepEqual(await complete('journal', '--nodepool', ''), ['p'])
  assert.deepEqual(await complete('simulate', '--delete', 'nodep'), ['nodepool/'])
  assert.deepEqual(await complete('simulate', '--delete', 'nodepool/'), ['nodepool/p'])
})

test('EXP-29 without a cluster the names are nothing, and no error', async () => {
  const env = { KUBECONFIG: '/nowhere' }
  assert.deepEqual(await runCommand(['__complete', '--', 'get', 'nodes', ''], { env }), {
    code: 0,
    out: '',
    err: '',
  })
  assert.equal((await runCommand(['__complete', '--', 'get', '--sho'], { env })).out, '--show-labels\n')
})

test('the script of every shell is printed, and shells that are here can read theirs', async () => {
  for (const shell of shells) {
    const { code, out } = await runCommand(['completion', shell])
    assert.equal(code, 0)
    assert.match(out, /tenon __complete -- /)
    if (shell !== 'powershell' && spawnSync(shell, ['-c', 'true']).status === 0)
      execFileSync(shell, ['-n'], { input: out })
  }
  assert.match(
    (await runCommand(['completion', 'csh'])).err,
    /Allowed choices are bash, zsh, fish, powershell/,
  )
})
