/**
 * Holds the embedded API server to kube-apiserver: what both make of random objects of built-in kinds, and which
 * they refuse. TENON_CASES=<number> tries more, TENON_DEFAULTING_SEED=<text> others, TENON_DEFAULTING_CASE=<name>
 * one alone, TENON_DEFAULTING_KINDS=<kinds> those of some kinds.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { provisioningRequestCrd } from '@tenon/api'
import { SeededRandom, SystemClock } from '@tenon/runtime'
import {
  nothingThere,
  saidOf,
} from '../../packages/devcluster/src/apiserver/not-served-paths.test-support.ts'
import type { SendRequest } from '../../test/world/src/crds/tests/crd-case.test-support.ts'
import { imitatedMinor, knownDifferences } from '../src/defaulting/by-minor.ts'
import { compareServers } from '../src/defaulting/comparison.ts'
import { createEmbedded } from '../src/defaulting/embedded.ts'
import { drawDefaultingCase, kindAt, kindCount } from '../src/defaulting/kinds.ts'
import { administrator } from './administrator.ts'
import { sharedControlPlane } from './cluster.ts'

const seed = process.env['TENON_DEFAULTING_SEED'] ?? 'defaulting'
const wanted = Number(process.env['TENON_CASES'] ?? 500)

const kinds = process.env['TENON_DEFAULTING_KINDS']?.split(',')
const indices =
  process.env['TENON_DEFAULTING_CASE']?.split(',').map((name) => Number(name.slice(1))) ??
  Array.from({ length: wanted }, (_, index) => index).filter(
    (index) => kinds?.includes(kindAt(index)) ?? true,
  )

/** Why a minor is not compared, if it is not. */
const skipped = (minor: number): string | undefined =>
  knownDifferences[minor] === undefined
    ? `the embedded API server imitates 1.${imitatedMinor}, and how 1.${minor} differs is not known`
    : undefined

test('the embedded API server says of what is not served what kube-apiserver does', async (t) => {
  const controlPlane = await sharedControlPlane()
  try {
    const reason = skipped(controlPlane.minor)
    if (reason !== undefined) return t.skip(reason)
    const real = await administrator(controlPlane.kubeconfigPath)
    await real('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', provisioningRequestCrd)
    const served = nothingThere.filter(([, , said]) => said === 'ok').map(([, path]) => path)
    const areServed = async () =>
      (await Promise.all(served.map((path) => real('GET', path)))).every(({ status }) => status === 200)
    while (!(await areServed())) await new SystemClock().sleep(200)
    const object = { apiVersion: 'v1', kind: 'Thing', metadata: { name: 'x' } }
    for (const [method, path, said] of nothingThere) {
      const body = method === 'POST' || method === 'PUT' ? object : undefined
      assert.equal(saidOf(await real(method, path, body)), said, `${method} ${path}`)
    }
  } finally {
    await controlPlane.stop()
  }
})

describe(`defaults and refusals, seed ${seed}`, () => {
  let controlPlane: Awaited<ReturnType<typeof sharedControlPlane>>
  let real: SendRequest

  before(async () => {
    controlPlane = await sharedControlPlane()
    real = await administrator(controlPlane.kubeconfigPath)
  })

  after(() => controlPlane?.stop())

  test(`the embedded API server makes of objects what kube-apiserver does, ${indices.length} of ${kindCount} kinds`, async (context) => {
    const reason = skipped(controlPlane.minor)
    if (reason !== undefined) return context.skip(reason)
    const embedded = createEmbedded()
    const cases = indices.map((index) => drawDefaultingCase(index, new SeededRandom(`${seed} c${index}`)))
    const { accepted, found } = await compareServers(cases, real, embedded, controlPlane.minor)
    context.diagnostic(`${cases.length} objects, ${accepted} accepted, ${found.length} different`)
    // A comparison of nothing would hold as well.
    assert.ok(indices.length < kindCount || (accepted > cases.length / 4 && accepted < cases.length))
    assert.equal(found.length, 0, `seed ${seed}:\n${found.join('\n')}`)
  })
})
