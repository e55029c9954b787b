import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { crdCases } from '../../test/world/src/crds/tests/all-cases.test-support.ts'
import { holdCase, type SendRequest } from '../../test/world/src/crds/tests/crd-case.test-support.ts'
import {
  evaluatesExpressions,
  refusesExpressions,
} from '../../test/world/src/crds/tests/expression-story.test-support.ts'
import {
  appliesExamples,
  appliesTwice,
  explains,
  type Kubectl,
  scales,
  showsColumns,
} from '../../test/world/src/crds/tests/kubectl-story.test-support.ts'
import { administrator } from './administrator.ts'
import { sharedControlPlane } from './cluster.ts'
import { crdsYaml } from './tenon.ts'

/** The same cases and the same use of kubectl that the embedded API server is tested with. */
describe('VER-4 CRDs on a real API server', () => {
  let controlPlane: Awaited<ReturnType<typeof sharedControlPlane>>
  let send: SendRequest

  before(async () => {
    controlPlane = await sharedControlPlane()
    send = await administrator(controlPlane.kubeconfigPath)
  })

  after(async () => {
    await kubectl(['delete', '--ignore-not-found', '-f', '-'], crdsYaml())
    await controlPlane.stop()
  })

  const kubectl: Kubectl = (args, input = '') => {
    const program = join(controlPlane.binDir, 'kubectl')
    const all = ['--kubeconfig', controlPlane.kubeconfigPath, ...args]
    return new Promise((resolve) => {
      const child = execFile(program, all, { timeout: 30_000 }, (error, out, err) => {
        resolve({ code: error === null ? 0 : Number(error.code ?? 1), out, err })
      })
      child.stdin?.end(input)
    })
  }

  test('they apply on both sides, twice without a change', () => appliesTwice(kubectl, crdsYaml()))
  test('get shows the columns, wide ones too', () => showsColumns(kubectl))
  test('explain shows the descriptions', () => explains(kubectl))
  test('tenon crds diff finds what another tool has changed, tenon crds apply puts it right', async () => {
    const tenon = (...args: readonly string[]) =>
      tenonCrds([...args, '--kubeconfig', controlPlane.kubeconfigPath])
    const patch = [{ op: 'remove', path: '/spec/versions/0/additionalPrinterColumns/0' }]
    const name = 'nodepools.karpenter.sh'
    await kubectl(['patch', 'crd', name, '--type=json', '-p', JSON.stringify(patch)])
    const different = await tenon('diff')
    assert.equal(different.code, 1, different.err)
    assert.match(different.out, /^\+ +- jsonPath: \.spec\.template\.spec\.nodeClassRef\.name$/m)
    assert.equal((await tenon('apply')).code, 2)
    const applied = await tenon('apply', '--force-conflicts')
    assert.match(applied.out, /^customresourcedefinition\/nodepools\.karpenter\.sh configured$/m)
    assert.deepEqual(await tenon('diff'), { code: 0, out: '', err: '' })
  })
  test('API-96 scale works on static pools only', () => scales(kubectl))
  test('EXO-13 EXO-14 documented manifests apply', () => appliesExamples(kubectl))

  test('RPT-51 RPT-53 expressions are refused as the table says', () => refusesExpressions(send))
  test('RPT-51 RPT-53 expressions are decided as the table says', () =>
    evaluatesExpressions(send, controlPlane.minor))

  for (const [group, cases] of Object.entries(crdCases)) {
    // Most of the time is spent waiting for the server's disk.
    describe(group, { concurrency: 6 }, () => {
      for (const [id, each] of cases.entries())
        test(each.name, () => holdCase(send, each, id, controlPlane.minor))
    })
  }
})

const tenonMain = join(import.meta.dirname, '../../packages/cli/src/main.ts')

function tenonCrds(args: readonly string[]): ReturnType<Kubectl> {
  return new Promise((resolve) => {
    execFile(process.execPath, [tenonMain, 'crds', ...args], { timeout: 60_000 }, (error, out, err) => {
      resolve({ code: error === null ? 0 : Number(error.code ?? 1), out, err })
    })
  })
}
